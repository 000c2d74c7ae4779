//! GIN indexes over arrays and documents: what they lead to is what a walk over all rows finds.

use crate::world::{Client, World};

/// A generator of small numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn scalar(&mut self) -> String {
        match self.below(6) {
            0 => "null".to_owned(),
            1 => "true".to_owned(),
            2 => format!("{}", self.below(4)),
            3 => format!("{}.0", self.below(4)),
            _ => format!("\"{}\"", self.name()),
        }
    }

    fn name(&mut self) -> &'static str {
        ["a", "b", "c", "d", ""][self.below(5) as usize]
    }

    fn document(&mut self, depth: u32) -> String {
        let count = self.below(3);
        match self.below(if depth == 0 { 1 } else { 4 }) {
            0 => self.scalar(),
            1 => {
                let parts: Vec<String> = (0..count).map(|_| self.document(depth - 1)).collect();
                format!("[{}]", parts.join(", "))
            }
            _ => {
                let parts: Vec<String> =
                    (0..count).map(|_| format!("\"{}\": {}", self.name(), self.document(depth - 1))).collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }

    fn array(&mut self) -> String {
        let count = self.below(4);
        let parts: Vec<String> = (0..count)
            .map(|_| match self.below(8) {
                0 => "null".to_owned(),
                _ => self.below(6).to_string(),
            })
            .collect();
        format!("{{{}}}", parts.join(","))
    }

    /// Returns a path of jsonpath to some items.
    fn path(&mut self, depth: u32) -> String {
        let mut path = ["$", "@"][usize::from(depth < 2)].to_owned();
        for _ in 0..self.below(4) {
            let name = self.name();
            match self.below(9) {
                0..=3 => path += &format!(".\"{name}\""),
                4 => path += "[*]",
                5 => path += ["[0]", "[last]", ".*", ".**"][self.below(4) as usize],
                6 if depth > 0 => path += &format!(" ? ({})", self.path_condition(depth - 1)),
                7 if self.below(4) == 0 => path += [".size()", ".type()"][self.below(2) as usize],
                _ => {}
            }
        }
        path
    }

    fn path_condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.below(3) == 0 {
            let (left, right) = (self.path_condition(depth - 1), self.path_condition(depth - 1));
            return match self.below(4) {
                0 => format!("({left} && {right})"),
                1 => format!("({left} || {right})"),
                2 => format!("!({left})"),
                _ => format!("({left}) is unknown"),
            };
        }
        let (path, scalar) = (self.path(depth), self.scalar());
        match self.below(9) {
            0..=3 => format!("{path} == {scalar}"),
            4 => format!("{scalar} == {path}"),
            5 => format!("{path} {} {scalar}", ["<", ">=", "!="][self.below(3) as usize]),
            6 => format!("exists({path})"),
            7 => format!("{path} starts with \"{}\"", self.name()),
            _ => format!("{path} == {}", self.path(depth)),
        }
    }

    fn whole_path(&mut self) -> String {
        let mode = ["", "", "", "strict "][self.below(4) as usize];
        match self.below(3) {
            0 => format!("{mode}{}", self.path(2)),
            1 => format!("{mode}{} ? ({})", self.path(2), self.path_condition(1)),
            _ => format!("{mode}{}", self.path_condition(2).replace('@', "$")),
        }
    }

    fn condition(&mut self) -> String {
        match self.below(20) {
            14..=16 => format!("doc @? '{}'", self.whole_path()),
            17..=19 => format!("doc @@ '{}'", self.whole_path()),
            0..=3 => format!("doc @> '{}'", self.document(2)),
            4 => format!("doc <@ '{}'", self.document(2)),
            5 => format!("doc ? '{}'", self.name()),
            6 => format!("doc ?| array['{}', null, '{}']", self.name(), self.name()),
            7 => format!("doc ?& array['{}', '{}']", self.name(), self.name()),
            8 => format!("tags @> '{}'", self.array()),
            9 => format!("tags <@ '{}'", self.array()),
            10 => format!("tags && '{}'", self.array()),
            11 => format!("tags = '{}'", self.array()),
            12 => format!("'{}' <@ tags", self.array()),
            _ => format!("'{}' <@ doc", self.document(1)),
        }
    }

    fn row(&mut self, id: u64) -> String {
        let doc = if self.below(10) == 0 { "null".to_owned() } else { format!("'{}'", self.document(3)) };
        let tags = if self.below(10) == 0 { "null".to_owned() } else { format!("'{}'", self.array()) };
        format!("({id}, {doc}, {tags})")
    }
}

/// Compares the rows of the indexed table with those of one that has no index.
fn compare(client: &mut Client, numbers: &mut Numbers, times: usize) {
    for _ in 0..times {
        let condition = match numbers.below(4) {
            0 => format!("{} or {}", numbers.condition(), numbers.condition()),
            1 => format!("{} and {}", numbers.condition(), numbers.condition()),
            _ => numbers.condition(),
        };
        let rows = |client: &mut Client, table: &str| {
            client.run(&format!("select id, doc, tags from {table} where {condition} order by id"))
        };
        let (with, without) = (rows(client, "t"), rows(client, "plain"));
        assert!(!without.iter().any(|line| line.starts_with("ERROR")), "{condition}: {without:?}");
        assert_eq!(with, without, "{condition}");
    }
}

const INDEXES: [&str; 3] = ["(doc)", "(doc jsonb_path_ops)", "(tags)"];

fn filled(client: &mut Client, numbers: &mut Numbers, count: u64) {
    for table in ["t", "plain"] {
        client.run(&format!("create table {table} (id int primary key, doc jsonb, tags int[])"));
    }
    let rows: Vec<String> = (0..count).map(|id| numbers.row(id)).collect();
    for table in ["t", "plain"] {
        client.run(&format!("insert into {table} values {}", rows.join(", ")));
    }
}

#[test]
fn an_index_of_terms_finds_what_a_walk_finds() {
    let mut world = World::new();
    let mut client = world.session();
    let mut numbers = Numbers(7);
    filled(&mut client, &mut numbers, 600);
    for index in INDEXES {
        client.run(&format!("create index i on t using gin {index}"));
        compare(&mut client, &mut numbers, 100);
        client.run("drop index i");
    }
    for index in INDEXES {
        client.run(&format!("create index on t using gin {index}"));
    }
    compare(&mut client, &mut numbers, 100);
}

#[test]
fn entries_follow_changes_savepoints_and_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    let mut numbers = Numbers(11);
    filled(&mut client, &mut numbers, 200);
    for index in INDEXES {
        client.run(&format!("create index on t using gin {index}"));
    }
    for round in 0..40 {
        client.run("begin");
        for step in 0..6 {
            client.run(&format!("savepoint s{step}"));
            let id = numbers.below(220);
            let row = numbers.row(id);
            let change = match numbers.below(5) {
                0 => format!("delete from TABLE where id = {id}"),
                1 => format!("update TABLE set id = {} where id = {id}", 1000 + round * 10 + step),
                2 => format!("update TABLE set doc = '{}' where id = {id}", numbers.document(3)),
                3 => format!("update TABLE set tags = '{}' where tags && '{{{}}}'", numbers.array(), id % 6),
                _ => format!(
                    "insert into TABLE values {row} on conflict (id) do update set doc = excluded.doc, tags = excluded.tags"
                ),
            };
            for table in ["t", "plain"] {
                client.run(&change.replace("TABLE", table));
            }
            compare(&mut client, &mut numbers, 1);
            if numbers.below(3) == 0 {
                client.run(&format!("rollback to s{step}"));
            }
        }
        compare(&mut client, &mut numbers, 2);
        client.run(if round % 3 == 0 { "rollback" } else { "commit" });
        compare(&mut client, &mut numbers, 2);
    }
    client.run("begin");
    client.run("delete from t");
    let mut world = world.crash(client);
    let mut client = world.session();
    compare(&mut client, &mut numbers, 60);
}

/// Element types, and values of which some are equal in other spellings.
const ELEMENTS: [(&str, &[&str]); 11] = [
    ("text", &["a", "b", "\"a \"", "\"\"", "\"NULL\"", "ä"]),
    ("varchar(3)", &["a", "b", "\"a \"", "\"\""]),
    ("char(3)", &["a", "\"a \"", "b", "\"\""]),
    ("numeric", &["1", "1.0", "1.00", "100", "1e2", "NaN", "-0", "0"]),
    ("numeric(6,2)", &["1", "1.004", "1.01", "-1"]),
    ("float8", &["0", "-0", "1", "1e0", "NaN", "Infinity"]),
    ("timestamptz", &["\"2026-11-27 12:00+00\"", "\"2026-11-27 13:00+01\"", "infinity", "\"2026-11-28 12:00+00\""]),
    ("bool", &["t", "f", "true"]),
    ("mood", &["sad", "ok", "happy"]),
    ("small", &["1", "2", "3"]),
    ("interval", &["\"1 day\"", "\"24 hours\"", "\"1 mon\"", "\"30 days\""]),
];

#[test]
fn elements_of_every_type_are_found_as_their_equality_says() {
    let mut world = World::new();
    let mut client = world.session();
    let mut numbers = Numbers(23);
    client.run("create type mood as enum ('sad', 'ok', 'happy')");
    client.run("create domain small as int check (value < 100)");
    for (ty, values) in ELEMENTS {
        let mut array = || {
            let count = numbers.below(4);
            let element = |numbers: &mut Numbers| match numbers.below(8) {
                0 => "null",
                _ => values[numbers.below(values.len() as u64) as usize],
            };
            let parts: Vec<&str> = (0..count).map(|_| element(&mut numbers)).collect();
            match count == 2 && numbers.below(3) == 0 {
                true => format!("{{{{{}}},{{{}}}}}", parts[0], parts[1]),
                false => format!("{{{}}}", parts.join(",")),
            }
        };
        let rows: Vec<String> = (0..100).map(|id| format!("({id}, '{}')", array())).collect();
        for table in ["t", "plain"] {
            client.run(&format!("create table {table} (id int primary key, tags {ty}[])"));
            assert_eq!(client.run(&format!("insert into {table} values {}", rows.join(", "))), ["INSERT 0 100"]);
        }
        client.run("create index on t using gin (tags)");
        for _ in 0..15 {
            let other = array();
            for operator in ["@>", "<@", "&&", "="] {
                let rows = |client: &mut Client, table: &str| {
                    client.run(&format!("select id from {table} where tags {operator} '{other}'::{ty}[] order by id"))
                };
                let (with, without) = (rows(&mut client, "t"), rows(&mut client, "plain"));
                assert!(!without.iter().any(|line| line.starts_with("ERROR")), "{ty} {operator} {other}: {without:?}");
                assert_eq!(with, without, "{ty} {operator} {other}");
            }
        }
        client.run("drop table t, plain");
    }
}

#[test]
fn an_index_follows_its_column_through_definitions() {
    let mut world = World::new();
    let mut client = world.session();
    let mut numbers = Numbers(31);
    filled(&mut client, &mut numbers, 150);
    for index in
        ["(doc)", "(tags)", "((doc -> 'a'))", "((doc -> 'a') jsonb_path_ops) where id > 40", "(tags) where id % 2 = 0"]
    {
        client.run(&format!("create index on t using gin {index}"));
    }
    let compare_both = |client: &mut Client, numbers: &mut Numbers| {
        compare(client, numbers, 20);
        for _ in 0..20 {
            let condition = numbers.condition().replace("doc", "(doc -> 'a')");
            let known = ["true", "id > 40", "id % 2 = 0"][numbers.below(3) as usize];
            let rows = |client: &mut Client, table: &str| {
                client.run(&format!("select id from {table} where {condition} and {known} order by id"))
            };
            let (with, without) = (rows(client, "t"), rows(client, "plain"));
            assert_eq!(with, without, "{condition} and {known}");
        }
    };
    compare_both(&mut client, &mut numbers);
    for change in [
        "alter table TABLE add column more int default 7",
        "alter table TABLE alter column tags type bigint[]",
        "alter table TABLE alter column tags type int[] using tags[2:]",
        "alter table TABLE drop column more",
        "update TABLE set id = id + 1000 where id % 7 = 3",
        "alter table TABLE drop constraint TABLE_pkey",
        "alter table TABLE add primary key (id)",
        "alter table TABLE rename column tags to labels; alter table TABLE rename column labels to tags",
        "begin; truncate TABLE; rollback",
        "begin; alter table TABLE drop column tags; rollback",
    ] {
        for table in ["t", "plain"] {
            let done = client.run(&change.replace("TABLE", table));
            assert!(!done.iter().any(|line| line.starts_with("ERROR")), "{change}: {done:?}");
        }
        compare_both(&mut client, &mut numbers);
    }
    let error = client.script_error("alter table t alter column tags type text using 'x'").expect("an error");
    let message = "data type text has no default operator class for access method \"gin\"";
    assert_eq!(error.message, message);
    let (mut world, count) = (world.crash(client), "select count(*) from pg_indexes where tablename = 't'");
    let mut client = world.session();
    compare_both(&mut client, &mut numbers);
    assert_eq!(client.run(count), ["6"]);
    client.run("truncate t; truncate plain");
    compare_both(&mut client, &mut numbers);
    let rows: Vec<String> = (0..60).map(|id| numbers.row(id)).collect();
    for table in ["t", "plain"] {
        let made = client.run(&format!("insert into {table} (id, doc, tags) values {}", rows.join(", ")));
        assert_eq!(made, ["INSERT 0 60"]);
    }
    compare_both(&mut client, &mut numbers);
    client.run("alter table t drop column tags");
    assert_eq!(client.run(count), ["4"], "the indexes of a column are dropped with it");
}

#[test]
fn older_snapshots_and_own_changes_are_seen_through_an_index() {
    let mut world = World::new();
    let (mut client, mut older) = (world.session(), world.session());
    client.run("create table t (id int primary key, tags int[])");
    client.run("insert into t select g, array[g % 10, 100] from generate_series(1, 500) g");
    client.run("create index by_tags on t using gin (tags)");
    client.run("analyze t");
    older.run("begin isolation level repeatable read");
    let of = |client: &mut Client, tag: u32| client.run(&format!("select count(*) from t where tags @> '{{{tag}}}'"));
    assert_eq!(of(&mut older, 3), ["50"]);
    assert!(older.run("explain select * from t where tags @> '{3}'").join("\n").contains("by_tags"));
    // A row that is changed again and again gets and loses the same terms.
    for round in 0..300 {
        client.run(&format!("update t set tags = '{{{}, {}, 100}}' where id = 3", round % 3, round % 5));
    }
    client.run("delete from t where tags && '{4}'");
    assert_eq!(of(&mut client, 3), ["49"]);
    assert_eq!(of(&mut client, 4), ["0"]);
    assert_eq!((of(&mut older, 3), of(&mut older, 4)), (vec!["50".to_owned()], vec!["50".to_owned()]));
    client.run("begin");
    client.run("update t set tags = tags || 3 where tags @> '{5}'");
    assert_eq!(of(&mut client, 3), ["99"]);
    client.run("update t set tags = array_remove(tags, 3) where tags @> '{3}'");
    assert_eq!(of(&mut client, 3), ["0"]);
    client.run("rollback");
    assert_eq!(of(&mut client, 3), ["49"]);
    older.run("commit");
    assert_eq!((of(&mut older, 3), of(&mut older, 4)), (vec!["49".to_owned()], vec!["0".to_owned()]));
    // An index that is newer than the snapshot leads to no rows.
    client.run("drop index by_tags");
    older.run("begin isolation level repeatable read");
    assert_eq!(of(&mut older, 1), ["50"]);
    client.run("delete from t where id = 1");
    client.run("create index by_tags on t using gin (tags)");
    assert_eq!(of(&mut older, 1), ["50"]);
}

#[test]
fn a_value_with_too_many_terms_is_found() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, tags int[])");
    client.run("create index on t using gin (tags)");
    // As text of the client: an aggregate of so many rows exceeds the memory of this small world.
    let elements: Vec<String> = (1..=70_000).map(|number| number.to_string()).collect();
    let made = client.run(&format!("insert into t values (1, '{{{}}}')", elements.join(",")));
    assert_eq!(made, ["INSERT 0 1"]);
    let made = client.run("insert into t select g, array[g, 5] from generate_series(2, 3000) g");
    assert_eq!(made, ["INSERT 0 2999"]);
    client.run("analyze t");
    for (condition, count) in [("tags @> '{69999}'", "1"), ("tags && '{7, 69999}'", "2"), ("tags @> '{7, 5}'", "2")] {
        assert_eq!(client.run(&format!("select count(*) from t where {condition}")), [count], "{condition}");
    }
}

#[test]
fn plans_and_definitions_are_shown_as_in_postgresql() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key, doc jsonb, tags text[])");
    client.run("insert into t select g, jsonb_build_object('n', g), array['x' || g] from generate_series(1, 3000) g");
    client.run("create index by_doc on t using gin (doc jsonb_path_ops) with (fastupdate = off)");
    client.run("create index concurrently by_tags on t using gin (tags array_ops)");
    client.run("analyze t");
    let plan = client.run("explain (costs off) select * from t where doc @> '{\"n\": 5}'").join("\n");
    for part in [
        "Bitmap Heap Scan on t",
        "Recheck Cond: (doc @> '{\"n\": 5}'::jsonb)",
        "Bitmap Index Scan on by_doc",
        "Index Cond",
    ] {
        assert!(plan.contains(part), "{plan}");
    }
    let all = client.run("explain (costs off) select * from t where doc @> '{}'").join("\n");
    assert!(all.contains("Seq Scan"), "{all}");
    let shown = client.run("select indexdef from pg_indexes where tablename = 't' order by 1").join("\n");
    assert!(shown.contains("CREATE INDEX by_doc ON public.t USING gin (doc jsonb_path_ops)"), "{shown}");
    assert!(shown.contains("CREATE INDEX by_tags ON public.t USING gin (tags)"), "{shown}");
    let names = client.run(
        "select amname, opcname from pg_index x join pg_class c on c.oid = indexrelid join pg_am a on a.oid = relam \
         join pg_opclass o on o.oid = indclass[0] where amname = 'gin' order by opcname",
    );
    assert!(names.join("\n").contains("jsonb_path_ops"), "{names:?}");
    for (definition, message) in [
        ("unique index on t using gin (tags)", "access method \"gin\" does not support unique indexes"),
        ("index on t using gin (tags) include (id)", "access method \"gin\" does not support included columns"),
        ("index on t using gin (tags desc)", "access method \"gin\" does not support ASC/DESC options"),
        ("index on t using gin (id)", "data type integer has no default operator class for access method \"gin\""),
        ("index on t using gin (id jsonb_ops)", "operator class \"jsonb_ops\" does not accept data type integer"),
        ("index on t using gin (doc x)", "operator class \"x\" does not exist for access method \"gin\""),
        ("index on t using gin (doc) with (fillfactor = 50)", "unrecognized parameter \"fillfactor\""),
    ] {
        let error = client.script_error(&format!("create {definition}")).expect("an error");
        assert_eq!(error.message, message, "{definition}");
    }
}
