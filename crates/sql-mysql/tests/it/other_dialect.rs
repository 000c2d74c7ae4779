//! Tables and views that another dialect made.

use std::ops::Bound;
use std::sync::Arc;

use datum::Storage;
use datum::key::KeyOrder;
use engine::rows::{Isolation, MapId, RowBatch};
use query::catalog::foreign_key::Deferral;
use query::catalog::object_id::Maker;
use query::catalog::table::{Check, Default, Generated, Identity, Index, Part, Table, TableColumn};
use query::catalog::table_state::TableState;
use query::catalog::view::View;
use query::catalog::{Writing, object_id::UNNUMBERED};
use query::key_form::KeyForm;
use query::nodes::term_test::TermForm;
use query::types::{Collation, Type, TypeId};

use crate::support::{World, run};

const POSTGRES: Maker = Maker(1);

fn int(bytes: u8) -> Storage {
    Storage::Int { bytes, signed: true }
}

fn column(name: &str, id: u32, storage: Storage, modifier: i32) -> TableColumn {
    let ty = Type::plain(storage, TypeId(id), (modifier as u32, 0), true, Collation::Binary);
    TableColumn::new(name.into(), ty, 0)
}

/// Stores a table as the other dialect does. The first column is the primary key.
fn put(writing: &mut Writing<'_>, name: &str, columns: &[TableColumn], change: impl FnOnce(&mut Table)) {
    let mut table = Table::draft(name, columns);
    (table.id, table.schema, table.maker, table.version) = (writing.new_id(), "d".into(), POSTGRES, 1);
    table.live = Arc::new(TableState::new(1));
    table.map = writing.txn.create_map().unwrap();
    table.columns[0].ty.nullable = false;
    table.primary = Some(vec![Part { column: 0, prefix: None, order: KeyOrder::with_null_greatest(false) }]);
    change(&mut table);
    writing.put_table(table).unwrap();
}

fn world(seed: u64) -> World {
    let world = World::new(seed);
    let mut writing = world.db.instance().catalog().write();
    writing.put_schema("d", Collation::Utf8Uca900AiCi, POSTGRES).unwrap();
    let plain = [
        column("id", 23, int(4), -1),
        column("is_on", 16, int(1), -1),
        column("name", 1043, Storage::Text, 9),
        column("note", 25, Storage::Text, -1),
        column("price", 1700, Storage::Decimal, (8 << 16 | 2) + 4),
        column("any_number", 1700, Storage::Decimal, -1),
        column("raw", 17, Storage::Bytes, -1),
        column("day", 1082, int(4), -1),
        column("lasts", 1186, Storage::Interval, -1),
    ];
    put(&mut writing, "plain", &plain, |_| {});
    let texts = [column("k", 25, Storage::Text, -1), column("n", 20, int(8), -1)];
    put(&mut writing, "texts", &texts, |_| {});
    let id_and_n = [column("id", 23, int(4), -1), column("n", 23, int(4), -1)];
    put(&mut writing, "has_default", &id_and_n, |table| {
        table.columns[1].default = Default::Expression("nextval('s'::regclass)".into());
    });
    put(&mut writing, "has_identity", &id_and_n, |table| table.columns[1].identity = Identity::Always);
    put(&mut writing, "has_check", &id_and_n, |table| {
        let text = "n ~~ '%'::text".into();
        table.checks.push(Check { id: UNNUMBERED, name: "c".into(), text, enforced: true, is_validated: true });
    });
    put(&mut writing, "has_generated", &id_and_n, |table| {
        let text = "id::int4 << 1".into();
        table.columns[1].generated = Some(Generated { text, stored: true, hidden: false, kept: true });
    });
    let id = writing.new_id();
    let view = View {
        id,
        maker: POSTGRES,
        schema: "d".into(),
        name: "v".into(),
        text: "select 1::int4".into(),
        ..View::default()
    };
    writing.put_view(view).unwrap();
    writing.commit().unwrap();
    world
}

#[track_caller]
fn refuses(run: Vec<String>, what: &str) {
    assert_eq!(run, [format!("error 1235 This version of Beluga doesn't yet support '{what}'")]);
}

#[test]
fn plain_columns_of_another_dialect_are_read_and_written() {
    let world = world(1);
    let mut session = world.session(1);
    run(&mut session, "use d");
    let insert = "insert into plain (id, is_on, name, note, price, raw) values (1, 1, 'ab', 'x ', 1.5, 'r'), (2, 0, 'B', 'x', 2, 's')";
    assert_eq!(run(&mut session, insert)[0], "ok 2, Records: 2  Duplicates: 0  Warnings: 0");
    let select = "select id, is_on, name, note, price, raw from plain where note = 'x ' and name > 'a'";
    assert_eq!(run(&mut session, select)[1..], ["1 | 1 | ab | x  | 1.50 | r"]);
    assert_eq!(
        run(&mut session, "update plain set price = price + 1, is_on = 0 where id = 1")[0],
        "ok 1, Rows matched: 1  Changed: 1  Warnings: 0"
    );
    assert_eq!(run(&mut session, "select sum(price), max(is_on) from plain")[1..], ["4.50 | 0"]);
    assert!(run(&mut session, "update plain set is_on = 2")[0].starts_with("error 1264 "), "a boolean is 0 or 1");
    assert!(run(&mut session, "update plain set name = 'abcdef'")[0].starts_with("error 1406 "));
    assert_eq!(run(&mut session, "select count(*) from plain p join plain q on p.note > q.note")[1..], ["1"]);
    for sql in ["insert into texts values ('b', 1), ('a', 2), ('a ', 3), ('A', 4)", "delete from texts where k = 'b'"] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    assert_eq!(run(&mut session, "select k, n from texts where k >= 'a' order by k")[1..], ["a | 2", "a  | 3"]);
    assert_eq!(run(&mut session, "select n from texts where k = 'a '")[1..], ["3"]);
    assert_eq!(
        run(&mut session, "insert into texts values ('a', 5)"),
        ["error 1062 Duplicate entry 'a' for key 'texts.PRIMARY'"]
    );
    assert!(run(&mut session, "create table own as select id, is_on, name from plain")[0].starts_with("ok 2"));
    assert!(run(&mut session, "update own set is_on = 7")[0].starts_with("ok 2"));
    for sql in ["truncate plain", "rename table plain to other", "drop table other, texts", "check table has_check"] {
        assert!(!run(&mut session, sql)[0].starts_with("error"), "{sql}");
    }
    assert!(sql_mysql::check::check(&world.db).unwrap().problems.is_empty());
}

#[test]
fn columns_of_unknown_form_are_refused_by_name() {
    let world = world(2);
    let mut session = world.session(1);
    run(&mut session, "use d");
    run(&mut session, "insert into plain (id) values (1)");
    let lasts = "column 'lasts' of type interval";
    for sql in [
        "select lasts from plain",
        "select * from plain",
        "select 1 from plain where lasts is null",
        "select 1 from plain p join plain q using (lasts)",
        "insert into plain (id, lasts) values (2, 3)",
        "insert into plain (id, lasts) select 2, 3",
        "update plain set lasts = 1",
        "delete from plain order by lasts",
    ] {
        refuses(run(&mut session, sql), lasts);
    }
    refuses(run(&mut session, "select * from v"), "view 'v' of another dialect");
    refuses(run(&mut session, "show create view v"), "view 'v' of another dialect");
    for sql in ["alter table plain add x int", "create index i on plain (id)", "create table c like plain"] {
        refuses(run(&mut session, sql), "definition of table 'plain' of another dialect");
    }
}

#[test]
fn values_of_another_form_are_converted_both_ways() {
    let world = world(5);
    let mut writing = world.db.instance().catalog().write();
    let columns = [
        column("id", 23, int(4), -1),
        column("day", 1082, int(4), -1),
        column("at", 1114, int(8), 3),
        column("instant", 1184, int(8), -1),
        column("clock", 1083, int(8), 0),
        column("uu", 2950, Storage::Bytes, -1),
        column("doc", 3802, Storage::Jsonb, -1),
        column("n", 1700, Storage::Decimal, -1),
    ];
    put(&mut writing, "forms", &columns, |_| {});
    writing.commit().unwrap();
    let mut session = world.session(1);
    run(&mut session, "use d");
    run(&mut session, "set time_zone = '+02:00'");
    let row = "'2024-02-29', '1999-12-31 23:59:59.9996', '2024-01-01', '24:00', '00112233-4455-6677-8899-AABBCCDDEEFF', '[1, 1.0, 1e300]', 1.50";
    assert_eq!(run(&mut session, &format!("insert into forms values (1, {row})"))[0], "ok 1");
    let shown = "2024-02-29 | 2000-01-01 00:00:00 | 2024-01-01 00:00:00 | 24:00:00 | 00112233-4455-6677-8899-aabbccddeeff | [1, 1.0, 1e300] | 1.500000000000000000000000000000";
    assert_eq!(run(&mut session, "select * from forms")[1..], [format!("1 | {shown}")]);
    run(&mut session, "set time_zone = '+00:00'");
    assert_eq!(run(&mut session, "select instant from forms")[1..], ["2023-12-31 22:00:00"]);
    let select = "select id from forms where day = '2024-02-29' and uu > '0011' and n = 1.5 and doc->'$[0]' = 1 and instant < now()";
    assert_eq!(run(&mut session, select)[1..], ["1"]);
    let update = "insert into forms (id, day) values (1, '2024-03-01') on duplicate key update day = values(day) + interval 1 day, at = day";
    assert_eq!(run(&mut session, update)[0], "ok 2");
    assert_eq!(
        run(&mut session, "select day, at, max(n) from forms group by day, at")[1..],
        ["2024-03-02 | 2024-03-02 00:00:00 | 1.500000000000000000000000000000"]
    );
    run(&mut session, "set sql_mode = ''");
    for (assignment, code) in [
        ("day = '0000-00-00'", 1292),
        ("day = 'no day'", 1292),
        ("at = '2024-00-01'", 1292),
        ("instant = '2040-01-01'", 1292),
        ("clock = '-00:00:01'", 1292),
        ("clock = '24:00:01'", 1292),
        ("uu = 'no uuid'", 1366),
        ("doc = '{'", 3140),
    ] {
        let answer = run(&mut session, &format!("update forms set {assignment}"));
        assert!(answer[0].starts_with(&format!("error {code} ")), "{assignment}: {answer:?}");
    }
    assert!(sql_mysql::check::check(&world.db).unwrap().problems.is_empty());
}

#[test]
fn texts_of_another_dialect_are_never_evaluated() {
    let world = world(3);
    let mut session = world.session(1);
    run(&mut session, "use d");
    for table in ["has_default", "has_identity"] {
        let default = "default of column 'n' of another dialect";
        refuses(run(&mut session, &format!("insert into {table} (id) values (1)")), default);
        refuses(run(&mut session, &format!("insert into {table} values (1, default)")), default);
        assert!(run(&mut session, &format!("insert into {table} values (1, 2)"))[0].starts_with("ok 1"));
        assert_eq!(run(&mut session, &format!("select * from {table}"))[1..], ["1 | 2"]);
        refuses(run(&mut session, &format!("update {table} set n = default")), default);
    }
    for (table, what) in [("has_check", "check constraint 'c'"), ("has_generated", "generated column 'n'")] {
        let what = format!("{what} of another dialect");
        refuses(run(&mut session, &format!("insert into {table} (id) values (1)")), &what);
        refuses(run(&mut session, &format!("update {table} set id = 1")), &what);
        assert_eq!(run(&mut session, &format!("select id, n from {table}"))[1..], [] as [&str; 0]);
        assert!(run(&mut session, &format!("delete from {table}"))[0].starts_with("ok 0"));
    }
}

#[test]
fn definitions_of_another_dialect_are_shown_with_honest_types() {
    let world = world(4);
    let mut session = world.session(1);
    run(&mut session, "use d");
    let shown = run(&mut session, "show columns from plain");
    let expected = [
        "id | int | NO | PRI | NULL | ",
        "is_on | tinyint(1) | YES |  | NULL | ",
        "name | varchar(5) | YES |  | NULL | ",
        "note | longtext | YES |  | NULL | ",
        "price | decimal(8,2) | YES |  | NULL | ",
        "any_number | decimal(65,30) | YES |  | NULL | ",
        "raw | longblob | YES |  | NULL | ",
        "day | date | YES |  | NULL | ",
        "lasts | interval | YES |  | NULL | ",
    ];
    assert_eq!(shown[1..], expected);
    let listed = "select column_name, data_type, column_type, numeric_precision from information_schema.columns where table_name = 'plain' and column_name in ('day', 'price') order by 1";
    assert_eq!(run(&mut session, listed)[1..], ["day | date | date | NULL", "price | decimal | decimal(8,2) | 8"]);
    let text = run(&mut session, "show create table plain")[1].clone();
    assert!(text.contains("`day` date"), "{text}");
    assert!(run(&mut session, "show create table has_check")[1].contains("'%'::text"));
    assert_eq!(run(&mut session, "show tables")[1..].len(), 7);
}

/// An index of the terms of a column, which the other dialect makes.
fn of_terms(writing: &mut Writing<'_>, name: &str, column: usize, terms: TermForm) -> Index {
    Index {
        id: UNNUMBERED,
        name: name.into(),
        map: writing.txn.create_map().unwrap(),
        unique: false,
        parts: vec![Part { column, prefix: None, order: KeyOrder::ASCENDING }],
        form: KeyForm::Hashed,
        comment: String::new(),
        invisible: false,
        using: false,
        generated: false,
        is_constraint: false,
        included: Vec::new(),
        predicate: None,
        terms: Some(terms),
        nulls_equal: false,
        deferral: Deferral::Never,
        is_primary: false,
        is_unseen: false,
    }
}

/// The entries of an index.
fn entries(world: &World, map: MapId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut txn = world.engine.rows().begin(Isolation::RepeatableRead);
    txn.take_snapshot();
    let mut cursor = txn.scan(map, Bound::Unbounded, Bound::Unbounded, false).unwrap();
    let (mut batch, mut found) = (RowBatch::new(), Vec::new());
    while cursor.next(&mut txn, &mut batch).unwrap() {
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    found
}

#[test]
fn indexes_of_terms_follow_writes_and_damage_to_them_is_found() {
    let world = world(6);
    let mut writing = world.db.instance().catalog().write();
    let columns =
        [column("id", 23, int(4), -1), column("doc", 3802, Storage::Jsonb, -1), column("note", 25, Storage::Text, -1)];
    let indexes = [
        of_terms(&mut writing, "by_member", 1, TermForm::Members),
        of_terms(&mut writing, "by_path", 1, TermForm::Paths),
    ];
    let maps: Vec<MapId> = indexes.iter().map(|index| index.map).collect();
    put(&mut writing, "docs", &columns, |table| table.indexes = indexes.into());
    writing.commit().unwrap();
    let mut session = world.session(1);
    run(&mut session, "use d");
    let problems = || sql_mysql::check::check(&world.db).unwrap().problems;
    let counts = || maps.iter().map(|map| entries(&world, *map).len()).collect::<Vec<_>>();
    for (sql, counted) in [
        // Names, scalars and elements by themselves; scalars with their names; a document without any has one entry.
        (
            "insert into docs values (1, '{\"a\": 1, \"b\": [\"x\", \"y\", \"x\"]}', 'n'), (2, '{}', 'n'), (3, null, 'n')",
            [6, 4],
        ),
        ("update docs set note = 'm'", [6, 4]),
        ("update docs set doc = '{\"a\": 1.0, \"c\": null}' where id = 1", [5, 3]),
        ("update docs set id = 9 where id = 1", [5, 3]),
        ("insert into docs values (9, null, 'n') on duplicate key update doc = '[1, 2, 3]'", [4, 4]),
        ("replace into docs values (3, '\"a\"', 'n')", [5, 5]),
        ("delete from docs where id = 2", [4, 4]),
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
        assert_eq!(problems(), Vec::<String>::new(), "{sql}");
        assert_eq!(counts(), counted, "{sql}");
    }
    run(&mut session, "begin");
    run(&mut session, "update docs set doc = '[7]'");
    run(&mut session, "rollback");
    assert_eq!((problems(), counts()), (Vec::new(), vec![4, 4]));
    assert_eq!(
        run(&mut session, "select id from docs force index (by_path) where doc = cast('[1, 2, 3]' as json)")[1..],
        ["9"]
    );

    let mut txn = world.engine.rows().begin(Isolation::ReadCommitted);
    let (key, value) = entries(&world, maps[0]).swap_remove(0);
    assert!(txn.delete(maps[0], &key).unwrap());
    // Another term for the same row.
    let (mut stray, value_of_stray) = (key.clone(), value);
    stray[1] ^= 1;
    txn.insert(maps[1], &stray, &value_of_stray, &mut Vec::new()).unwrap();
    txn.commit().unwrap();
    let found = problems();
    for wanted in [
        "index by_member lacks it",
        "index by_member: 3 entries for 4 terms of rows",
        "index by_path: 5 entries for 4 terms of rows",
    ] {
        assert!(found.iter().any(|problem| problem.contains(wanted)), "{wanted}: {found:?}");
    }
    assert!(run(&mut session, "check table docs").iter().any(|line| line.contains("by_path")));
    assert!(!run(&mut session, "truncate docs")[0].starts_with("error"));
    assert_eq!(problems(), Vec::<String>::new());
}
