use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The fields that the real client sends with every statement whose result it reads.
fn plain<'a>(statement: &'a [u8]) -> StmtExecute<'a> {
    StmtExecute { statement: Some(statement), token: Some(10240), reset_error: Some(true), ..StmtExecute::default() }
}

#[test]
fn statements_of_the_real_client_are_read() {
    let payload = hex("0a0873656c656374203140805048016a00");
    let meant = StmtExecute { hint: Some(b""), ..plain(b"select 1") };
    assert_eq!(StmtExecute::read(&payload), Ok(meant));

    let payload = hex("0a0873656c65637420312a02646240805048016a00");
    let meant = StmtExecute { hint: Some(b""), schema_name: Some(b"db"), ..plain(b"select 1") };
    assert_eq!(StmtExecute::read(&payload), Ok(meant));

    let payload =
        hex("0a2773656c65637420632066726f6d207362746573742077686572652069643d3f20616e6420733d3f 1208080112040801100e \
         120f0801120b08084a070a03612762102d 40805048016a00");
    let args = vec![Any::Scalar(Scalar::Int(7)), Any::Scalar(Scalar::String(b"a'b", Some(45)))];
    let statement = b"select c from sbtest where id=? and s=?";
    assert_eq!(StmtExecute::read(&payload), Ok(StmtExecute { hint: Some(b""), args, ..plain(statement) }));

    let payload = hex("0a17696e7365727420696e746f20742076616c7565732831294801");
    let meant = StmtExecute { token: None, ..plain(b"insert into t values(1)") };
    assert_eq!(StmtExecute::read(&payload), Ok(meant));

    let payload = hex("1208080112040801100a 4080504801 620401020304");
    let args = vec![Any::Scalar(Scalar::Int(5))];
    let meant = StmtExecute { statement: None, digest: Some(&[1, 2, 3, 4]), args, ..plain(b"") };
    assert_eq!(StmtExecute::read(&payload), Ok(meant));
}

#[test]
fn a_plan_by_its_digest_is_read() {
    let payload = hex(
        "1a1030313233343536373839616263646566 2209080a4a050a0174102d 220a080a4a060a026462102d 220408011054 3080503801 \
         72092f2a74726163652a2f",
    );
    let meant = ExecPlan {
        digest: Some(b"0123456789abcdef"),
        parameters: vec![Scalar::Identifier(b"t"), Scalar::Identifier(b"db"), Scalar::Int(42)],
        token: Some(10240),
        reset_error: Some(true),
        trace_id: Some(b"/*trace*/"),
        ..ExecPlan::default()
    };
    assert_eq!(ExecPlan::read(&payload), Ok(meant));
}

#[test]
fn the_small_ones_are_read() {
    assert_eq!(TokenOffer::read(&hex("088050")), Ok(TokenOffer { token: 10240 }));
    assert_eq!(TokenOffer::read(b""), Ok(TokenOffer { token: -1 }));
    assert_eq!(GetTso::read(&hex("0a001003")), Ok(GetTso { leader_name: b"", batch_count: 3 }));
    let savepoint = AutoSavepoint { op: SavepointOp::Set, name: b"sp1", reset_error: Some(true) };
    assert_eq!(AutoSavepoint::read(&hex("080012037370311801")), Ok(savepoint));
    let kill = |kind| Ok(KillSession { kind, session: 2 });
    assert_eq!(KillSession::read(&hex("08011002")), kill(KillKind::Query));
    assert_eq!(KillSession::read(&hex("08021002")), kill(KillKind::Connection));
    let start = AuthenticateStart { mech_name: b"MYSQL41" };
    assert_eq!(AuthenticateStart::read(&hex("0a074d5953514c3431")), Ok(start));
    assert_eq!(read_empty(b"\x08\x01"), Ok(()), "what a newer client may add");
}

#[test]
fn what_lacks_a_required_field_is_malformed() {
    assert_eq!(KillSession::read(&hex("0801")), Err(Malformed));
    assert_eq!(KillSession::read(&hex("08031002")), Err(Malformed), "an unknown kind is none");
    assert_eq!(GetTso::read(&hex("1003")), Err(Malformed));
    assert_eq!(AutoSavepoint::read(&hex("0800")), Err(Malformed));
    assert_eq!(AuthenticateContinue::read(b""), Err(Malformed));
    assert_eq!(StmtExecute::read(&hex("12020801")), Err(Malformed), "an argument without its value");
    assert_eq!(read_empty(b"\x0a\x05"), Err(Malformed));
}

/// A payload that is cut either yields the fields before the cut or is malformed; it never yields more.
#[test]
fn a_cut_payload_is_malformed_inside_a_field_and_shorter_between_two() {
    let payload =
        hex("0a2773656c65637420632066726f6d207362746573742077686572652069643d3f20616e6420733d3f 1208080112040801100e \
         120f0801120b08084a070a03612762102d 40805048016a00");
    let whole = [0, 41, 51, 68, 71, 73, 75];
    assert_eq!(payload.len(), 75);
    for end in 0..=payload.len() {
        let read = StmtExecute::read(&payload[..end]);
        assert_eq!(read.is_ok(), whole.contains(&end), "{end}: {read:?}");
    }
}
