//! The specification's bytes, and a server that replays a script.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use prost::Message;

use crate::frame::{self, answer, ask};
use crate::message::{self, AutoSp, ColumnMetaData, GetTso, KillSession, ResultTso, StmtExecute, TokenOffer};
use crate::plan::{Read as Tree, Table, key, operator, parameter, reference, value};
use crate::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn payload(request: &Request<'_>, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    request.write(&mut out, 2, form, After::Anything);
    frame::cut(&out).unwrap().unwrap().payload.to_vec()
}

fn framed(sid: u64, kind: u8, message: &impl Message) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_message(&mut out, sid, kind, message);
    out
}

#[test]
fn requests_are_those_that_were_observed() {
    let mut out = Vec::new();
    Request::text("select 1").hint("").write(&mut out, 2, Form::Whole, After::Anything);
    assert_eq!(out, hex("0200000000000000 12000000 65 0a0873656c656374203140805048016a00"));
    let with_schema = Request::text("select 1").schema("db").hint("");
    assert_eq!(payload(&with_schema, Form::Whole), hex("0a0873656c656374203 12a02646240805048016a00"));
    let bound = Request::text("select c from sbtest where id=? and s=?").with(vec![7.into(), "a'b".into()]).hint("");
    let expected = "0a2773656c65637420632066726f6d207362746573742077686572652069643d3f20616e6420733d3f 1208080112040801100e \
                    120f0801120b08084a070a03612762102d 40805048016a00";
    assert_eq!(payload(&bound, Form::Whole), hex(expected));
    let insert = Request::text("insert into t values(1)").token(None);
    assert_eq!(payload(&insert, Form::Whole), hex("0a17696e7365727420696e746f20742076616c7565732831294801"));
    assert_eq!(framed(2, ask::TOKEN_OFFER, &TokenOffer { token: Some(10240) })[13..], hex("088050"));
    assert_eq!(GetTso { leader_name: Vec::new(), batch_count: 3 }.encode_to_vec(), hex("0a001003"));
    let savepoint = AutoSp { op: Savepoint::Set as i32, sp_name: b"sp1".into(), reset_error: Some(true) };
    assert_eq!(savepoint.encode_to_vec(), hex("080012037370311801"));
    let kill = KillSession { kind: 2, x_session_id: 2 };
    assert_eq!(framed(2, ask::SESSION_KILL, &kill), hex("0200000000000000 05000000 6f 08021002"));
}

#[test]
fn a_digest_stands_for_the_text() {
    let statement = Statement::new("select ?");
    let request = Request::statement(&statement).with(vec![5.into()]);
    let [short, whole] = [Form::Digest, Form::Whole].map(|form| payload(&request, form));
    let digest = request.digest().unwrap();
    let expected = [hex("120808011204080110 0a 4080504801 6210"), digest.to_vec()].concat();
    assert_eq!(short, expected);
    let message = StmtExecute::decode(&whole[..]).unwrap();
    assert_eq!((message.stmt.as_deref(), message.stmt_digest.as_deref()), (Some(&b"select ?"[..]), Some(&digest[..])));
    assert_ne!(Statement::new("select ? ").text(), statement.text());
    assert_ne!(Request::statement(&Statement::new("select ? ")).digest(), Some(digest));
}

#[test]
fn requests_are_the_messages_that_they_stand_for() {
    let arguments: Vec<Argument> = vec![
        Argument::Null,
        u64::MAX.into(),
        (-1i64).into(),
        1.5f32.into(),
        (-0.1).into(),
        true.into(),
        "é".into(),
        Argument::identifier("t"),
        (&b"\0\xff"[..]).into(),
        Argument::Raw("1, 2".into()),
    ];
    let all = |of: Request<'static>| of.hint("/* h */").token(Some(3)).chunks().without_names().count_changed();
    let request = all(Request::text("select ?").schema("shop")).with(arguments.clone());
    let bytes = payload(&request, Form::Whole);
    let message = StmtExecute::decode(&bytes[..]).unwrap();
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!((message.args.len(), message.capabilities, message.token), (10, Some(0x106_0000), Some(3)));
    assert_eq!(
        (message.chunk_result, message.compact_metadata, message.reset_error),
        (Some(true), Some(true), Some(true))
    );
    let plan = Tree::scan(Table::named("t")).plan();
    let request = Request::plan(&plan).with(arguments).hint("trace").chunks().without_names().count_found();
    let bytes = payload(&request, Form::Whole);
    let message = message::ExecPlan::decode(&bytes[..]).unwrap();
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!((message.parameters.len(), message.trace_id.as_deref()), (10, Some(&b"trace"[..])));
    assert_eq!(message.plan.unwrap().encode_to_vec(), plan.bytes());
}

#[test]
fn plans_are_those_that_were_observed() {
    let table = || Table::named(parameter(0)).schema(parameter(1));
    let get = Tree::get(table(), [key("id", parameter(2))]).plan();
    let expected = "080112240a0c1204080950001a04080950011a140a120a0a08084a060a026964102d120408095002";
    assert_eq!(get.bytes(), hex(expected));
    let names = vec![Argument::identifier("t"), Argument::identifier("db"), 42.into()];
    let request = Request::plan(&get).with(names).hint("/*trace*/");
    let expected = [
        hex("1a10"),
        request.digest().unwrap().to_vec(),
        hex("2209080a4a050a0174102d 220a080a4a060a026462102d 220408011054 3080503801 72092f2a74726163652a2f"),
    ];
    assert_eq!(payload(&request, Form::Digest), expected.concat());
}

#[test]
fn a_tree_has_the_shape_that_it_was_given() {
    let condition = (reference(0) + value(1)).at_least(value(parameter(0))).and(!reference(1).is_null());
    let tree = Tree::range(Table::named("t").index("by_n"), key("n", 1), None)
        .reversed()
        .columns(["n", "id"])
        .filter(condition)
        .compute([("m", -reference(0))])
        .aggregate(plan::Aggregate::Max, reference(0));
    let read = message::AnyPlan::decode(tree.plan().bytes()).unwrap();
    let aggr = read.aggr.unwrap();
    assert_eq!((read.plan_type, aggr.kind), (9, 8));
    let project = aggr.sub_read_plan.project.unwrap();
    assert_eq!(project.exprs[0].operator.as_ref().unwrap().name, "-");
    let filter = project.sub_read_plan.filter.unwrap();
    let both = filter.expr.operator.unwrap();
    assert_eq!((both.name.as_str(), both.param[0].operator.as_ref().unwrap().name.as_str()), ("&&", ">="));
    assert_eq!(both.param[0].operator.as_ref().unwrap().param[1].position, Some(0));
    let columns = filter.sub_read_plan.table_project.unwrap();
    let range = columns.sub_read_plan.range_scan.unwrap();
    assert_eq!((columns.fields.len(), range.reverse, range.end_key), (2, Some(true), None));
    assert_eq!(range.index_info.unwrap().name.v_string.unwrap().value, b"by_n");
    let list = reference(0).is_in([value(1), value(2)]);
    assert_eq!(list, operator("in", [reference(0), value(1), value(2)]));
}

#[test]
fn a_proof_is_that_of_the_specification() {
    let found = auth::response("root", "secret", b"ABCDEFGHIJKLMNOPQRST", "db");
    let expected =
        "646200 726f6f7400 2a32383434313539303637343238356537643033636165376166323337353034373937663730653931";
    assert_eq!(found, hex(expected));
    assert_eq!(auth::response("root", "", b"ABCDEFGHIJKLMNOPQRST", ""), b"\0root\0");
}

fn column(kind: Kind, mysql_type: u32) -> Column {
    let number = [
        (Kind::Sint, 1),
        (Kind::Uint, 2),
        (Kind::Double, 5),
        (Kind::Float, 6),
        (Kind::Bytes, 7),
        (Kind::Time, 10),
        (Kind::Datetime, 12),
        (Kind::Set, 15),
        (Kind::Enum, 16),
        (Kind::Bit, 17),
        (Kind::Decimal, 18),
    ];
    let number = number.iter().find(|(of, _)| *of == kind).unwrap().1;
    let meta = ColumnMetaData { kind: number, original_type: mysql_type, collation: Some(45), ..Default::default() };
    Column::read(&meta.encode_to_vec()).unwrap()
}

#[test]
fn fields_are_read_as_the_specification_has_them() {
    let text = |kind, mysql_type, bytes: &str| column(kind, mysql_type).field(&hex(bytes)).unwrap().to_string();
    for (kind, mysql_type, bytes, expected) in [
        (Kind::Sint, 3, "02", "1"),
        (Kind::Sint, 8, "ffffffffffffffffff01", "-9223372036854775808"),
        (Kind::Uint, 8, "ffffffffffffffffff01", "18446744073709551615"),
        (Kind::Bit, 16, "ff07", "1023"),
        (Kind::Decimal, 246, "04123401d0", "-12.3401"),
        (Kind::Decimal, 246, "020005c0", "0.05"),
        (Kind::Decimal, 246, "027c", "0.07"),
        (Kind::Decimal, 246, "000c", "0"),
        (Kind::Datetime, 12, "e80f021d0d0700c0c407", "2024-02-29 13:07:00.123456"),
        (Kind::Datetime, 12, "cf0f0c1f", "1999-12-31 00:00:00"),
        (Kind::Datetime, 10, "cf0f0c1f", "1999-12-31"),
        (Kind::Time, 11, "01c6063b3b", "-838:59:59"),
        (Kind::Time, 11, "00", "00:00:00"),
        (Kind::Set, 248, "03464f4f03424152", "FOO,BAR"),
        (Kind::Set, 248, "01", ""),
        (Kind::Set, 248, "00", ""),
        (Kind::Bytes, 253, "00", ""),
        (Kind::Bytes, 253, "6162 00", "ab"),
        (Kind::Double, 5, "000000000000f83f", "1.5"),
        (Kind::Float, 4, "0000c03f", "1.5"),
        (Kind::Bytes, 253, "", "NULL"),
    ] {
        assert_eq!(text(kind, mysql_type, bytes), expected, "{kind:?} {bytes}");
    }
    assert_eq!(column(Kind::Set, 248).field(&[0]).unwrap(), Value::Set(vec![String::new()]));
    assert_eq!(column(Kind::Set, 248).field(&[1]).unwrap(), Value::Set(Vec::new()));
    for (kind, bytes) in
        [(Kind::Sint, "80"), (Kind::Sint, "0202"), (Kind::Bytes, "61"), (Kind::Double, "00"), (Kind::Decimal, "02")]
    {
        assert!(column(kind, 0).field(&hex(bytes)).is_err(), "{kind:?} {bytes}");
    }
}

fn of(columns: Vec<Column>) -> Assembly {
    let mut assembly = Assembly::default();
    assembly.columns = columns;
    assembly
}

#[test]
fn chunks_are_read_as_the_specification_has_them() {
    let columns = vec![column(Kind::Sint, 3), column(Kind::Bytes, 253)];
    let chunk = "0803 1209 0a0140 1204 0a020205 120d 1a0b 0a09 026100 03626300 0100";
    let mut assembly = of(columns.clone());
    assembly.take(answer::CHUNK, &hex(chunk)).unwrap();
    let text = |text: &str| Value::Text(text.into());
    let expected = [vec![Value::Int(1), text("a")], vec![Value::Null, text("bc")], vec![Value::Int(-3), text("")]];
    assert_eq!(assembly.rows, expected);
    let mut halves = of(columns);
    halves.take(answer::CHUNK, &hex("0803 1209 0a0140 1204 0a020205")).unwrap();
    assert!(halves.rows.is_empty());
    halves.take(answer::CHUNK, &hex("0803 120d 1a0b 0a09 026100 03626300 0100")).unwrap();
    assert_eq!(halves.rows, expected);
    for (kind, mysql_type, bytes, expected) in [
        (Kind::Datetime, 12, "c0c487809cdaaed919", "2024-02-29 13:07:00.123456"),
        (Kind::Datetime, 10, "8080808080c0ffb119", "1999-12-31"),
        (Kind::Time, 11, "808080a890f2f2ffff01", "-838:59:59"),
    ] {
        let mut assembly = of(vec![column(kind, mysql_type)]);
        let area = hex(bytes);
        let (inner, outer) = (area.len() as u8 + 2, area.len() as u8 + 4);
        let chunk = [&[8, 1, 0x12, outer, 0x12, inner, 0x0a, area.len() as u8], &area[..]].concat();
        assembly.take(answer::CHUNK, &chunk).unwrap();
        assert_eq!(assembly.rows[0][0].to_string(), expected);
    }
    let mut sets = of(vec![column(Kind::Set, 248)]);
    sets.take(answer::CHUNK, &hex("0801 1206 1a04 0a02 0100")).unwrap();
    assert_eq!(sets.rows[0][0], Value::Set(Vec::new()));
    let mut lying = of(vec![column(Kind::Sint, 3)]);
    assert!(lying.take(answer::CHUNK, &hex("08ffffffff0f 1206 1204 0a020205")).is_err());
}

#[test]
fn notices_and_errors_are_told() {
    let mut assembly = Assembly::default();
    assembly.take(answer::COLUMN, &hex("080110081a01312201312a01743201743a0264624203646566483f58026010")).unwrap();
    let found = &assembly.columns[0];
    assert_eq!((found.kind, found.mysql_type, found.name.as_str(), found.schema.as_str()), (Kind::Sint, 8, "1", "db"));
    assert_eq!((found.collation, found.length, found.flags), (63, 2, 16));
    assembly.take(answer::ROW, &hex("0a0102")).unwrap();
    assert_eq!(assembly.rows.pop_front(), Some(vec![Value::Int(1)]));
    for notice in [
        "080310021a080803120408021809",
        "080310021a080804120408021803",
        "080110021a14080210d50a1a0d4469766973696f6e2062792030",
    ] {
        assert_eq!(assembly.take(answer::NOTICE, &hex(notice)).unwrap(), Step::More);
    }
    let summary = &assembly.summary;
    assert_eq!((summary.affected, summary.insert_id, summary.warnings[0].code), (3, Some(9), 1365));
    let error = message::Error { severity: Some(1), code: 1062, msg: "twice".into(), sql_state: "23000".into() };
    let Step::Failed(error) = assembly.take(answer::ERROR, &error.encode_to_vec()).unwrap() else { panic!("no error") };
    assert!(error.is_fatal);
    assert_eq!(error.to_string(), "1062 (23000): twice");
    assert_eq!(assembly.take(answer::EXECUTE_OK, &[]).unwrap(), Step::Done);
    assert!(assembly.take(99, &[]).is_err());
    let tso = ResultTso::decode(&hex("080010c0808080a0abfef962")[..]).unwrap();
    assert_eq!((tso.error_no, tso.ts), (0, 7_130_316_800_000_000_064));
}

/// A server for one connection: it lets everybody in, and then `play`s with what comes.
fn server(play: impl FnOnce(TcpStream) + Send + 'static) -> Options {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert_eq!(next(&mut stream).1, ask::AUTHENTICATE_START);
        let salt = message::AuthenticateContinue { auth_data: b"ABCDEFGHIJKLMNOPQRST".into() };
        stream.write_all(&framed(0, answer::AUTHENTICATE_CONTINUE, &salt)).unwrap();
        assert_eq!(next(&mut stream).1, ask::AUTHENTICATE_CONTINUE);
        stream.write_all(&hex("0000000000000000 03000000 04 0a00")).unwrap();
        play(stream);
    });
    Options::new(address).answer_timeout(Duration::from_secs(20))
}

/// The next frame's session, type and payload.
fn next(stream: &mut TcpStream) -> (u64, u8, Vec<u8>) {
    let mut head = [0; 13];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
    let mut payload = vec![0; length - 1];
    stream.read_exact(&mut payload).unwrap();
    (u64::from_le_bytes(head[..8].try_into().unwrap()), head[12], payload)
}

fn empty(sid: u64, kind: u8) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, sid, kind, |_| ());
    out
}

/// An answer of one row with one number.
fn one(sid: u64, number: u8) -> Vec<u8> {
    let meta = ColumnMetaData { kind: 1, original_type: 8, ..Default::default() };
    let mut out = framed(sid, answer::COLUMN, &meta);
    frame::put(&mut out, sid, answer::ROW, |out| out.extend_from_slice(&[0x0a, 1, number * 2]));
    [out, empty(sid, answer::FETCH_DONE), empty(sid, answer::EXECUTE_OK)].concat()
}

#[test]
fn answers_of_two_sessions_may_come_mixed_and_in_any_pieces() {
    let options = server(|mut stream| {
        let mut sids = Vec::new();
        while sids.len() < 2 {
            let (sid, kind, _) = next(&mut stream);
            if kind == ask::EXECUTE_SQL {
                sids.push(sid);
            }
        }
        sids.sort_unstable();
        let begun = sids.iter().flat_map(|sid| empty(*sid, answer::OK)).collect::<Vec<_>>();
        let [first, second] = [one(sids[0], 1), one(sids[1], 2)];
        // The second one's answer comes before the end of the first one's.
        let cut = first.len() - 13;
        for byte in [&begun[..], &first[..cut], &second, &first[cut..]].concat() {
            stream.write_all(&[byte]).unwrap();
        }
        let _ = stream.read(&mut [0; 100]);
    });
    let connection = Connection::open(&options).unwrap();
    let mut sessions = [connection.session().unwrap(), connection.session().unwrap()];
    let sent: Vec<_> = sessions
        .iter_mut()
        .map(|session| {
            let mut pipeline = session.pipeline();
            pipeline.add(Request::text("select 1"));
            pipeline.send().unwrap()
        })
        .collect();
    let found: Vec<_> = sent.into_iter().map(|sent| sent.collect().unwrap().remove(0).unwrap().rows).collect();
    assert_eq!(found, [[[Value::Int(1)]], [[Value::Int(2)]]]);
}

#[test]
fn a_digest_that_the_server_has_forgotten_is_followed_by_the_text() {
    let options = server(|mut stream| {
        let (mut forms, mut answered) = (Vec::new(), 0);
        while answered < 3 {
            let (sid, kind, payload) = next(&mut stream);
            if kind == ask::SESSION_NEW {
                stream.write_all(&empty(sid, answer::OK)).unwrap();
                continue;
            }
            let message = StmtExecute::decode(&payload[..]).unwrap();
            forms.push(message.stmt.is_some());
            let unknown = message::Error { severity: Some(0), code: 8000, msg: "?".into(), sql_state: "HY000".into() };
            let is_known = forms.len() != 2;
            answered += usize::from(is_known);
            let reply = if is_known { one(sid, forms.len() as u8) } else { framed(sid, answer::ERROR, &unknown) };
            stream.write_all(&reply).unwrap();
        }
        // The text first, then digests: one that was not known, its text, and one that was.
        assert_eq!(forms, [true, false, true, false]);
        let _ = stream.read(&mut [0; 100]);
    });
    let mut session = Connection::open(&options).unwrap().session().unwrap();
    let statement = Statement::new("select n");
    let mut ask = || session.run(&Request::statement(&statement)).unwrap().collect().unwrap().rows[0][0].clone();
    assert_eq!([ask(), ask(), ask()], [1, 3, 4].map(Value::Int));
}

#[test]
fn a_lost_connection_is_told_to_everybody_who_waits() {
    let options = server(|mut stream| while next(&mut stream).1 != ask::EXECUTE_SQL {});
    let connection = Connection::open(&options).unwrap();
    let mut session = connection.session().unwrap();
    assert!(matches!(session.execute("select 1", &[]), Err(Error::Lost(_))));
    assert!(matches!(session.execute("select 1", &[]), Err(Error::Ended)));
    assert!(connection.is_lost());
    assert!(matches!(connection.session(), Err(Error::Lost(_))));
}

#[test]
fn a_session_that_is_not_answered_in_time_ends_alone() {
    let options = server(|mut stream| {
        let mut slow = 0;
        loop {
            let (sid, kind, payload) = next(&mut stream);
            match kind {
                ask::SESSION_NEW => stream.write_all(&empty(sid, answer::OK)).unwrap(),
                ask::SESSION_KILL => assert_eq!(sid, slow),
                ask::SESSION_CLOSE => break,
                _ if StmtExecute::decode(&payload[..]).unwrap().stmt.unwrap() == b"slow" => slow = sid,
                _ => {
                    assert_ne!(slow, 0);
                    stream.write_all(&one(sid, 5)).unwrap();
                }
            }
        }
    });
    let connection = Connection::open(&options.answer_timeout(Duration::from_millis(50))).unwrap();
    let (mut slow, mut quick) = (connection.session().unwrap(), connection.session().unwrap());
    assert!(matches!(slow.execute("slow", &[]), Err(Error::Timeout)));
    assert!(matches!(slow.execute("slow", &[]), Err(Error::Ended)));
    assert_eq!(quick.execute("quick", &[]).unwrap().rows, [[Value::Int(5)]]);
}
