//! Keys that are longer than what a map keeps of them, against a table without any index: what is found, in which order, what is a duplicate, and what a crash leaves.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use sql_mysql::Session;

use crate::spill::Folder;
use crate::support::{World, run};

/// A type of text, and how many characters of it are about as long as what is kept whole, and as what is kept.
struct Subject {
    ty: &'static str,
    lengths: [usize; 6],
    /// The case of letters counts.
    tells_case: bool,
}

const SUBJECTS: [Subject; 4] = [
    Subject { ty: "varbinary(900)", lengths: [346, 347, 348, 349, 379, 381], tells_case: true },
    Subject { ty: "varchar(700) collate utf8mb4_bin", lengths: [345, 346, 347, 349, 378, 381], tells_case: true },
    Subject { ty: "varchar(700)", lengths: [171, 172, 173, 174, 189, 191], tells_case: false },
    Subject {
        ty: "varchar(700) collate utf8mb4_general_ci",
        lengths: [170, 171, 172, 173, 188, 190],
        tells_case: false,
    },
];

const ENDS: [&str; 9] = ["", "a", "A", "b", "aB", "ab", "zz", "abab", "B"];

/// Texts of a few beginnings: most long enough that maps keep no more of them, and near that.
fn text(lengths: [usize; 6]) -> impl Strategy<Value = String> {
    (0..9usize, 0..6usize, 0..ENDS.len()).prop_map(move |(kind, length, end)| {
        let end = ENDS[end];
        match kind {
            0 => end.to_owned(),
            1 => format!("x{end}"),
            2 => format!("{}y{end}", "x".repeat(lengths[length] - 1)),
            _ => format!("{}{end}", "x".repeat(lengths[length])),
        }
    })
}

#[derive(Clone, Debug)]
enum Step {
    Insert { id: u32, a: String, b: Option<String>, on_conflict: u8 },
    Update { set: &'static str, condition: String },
    Delete { condition: String },
    Ask { condition: String, column: &'static str },
}

fn condition(lengths: [usize; 6]) -> impl Strategy<Value = (String, &'static str)> {
    (prop_oneof![Just("a"), Just("b")], 0..12u8, text(lengths), text(lengths), text(lengths)).prop_map(
        |(column, form, one, two, three)| {
            let condition = match form {
                0 | 1 => format!("@.{column} = '{one}'"),
                2 => format!("@.{column} < '{one}'"),
                3 => format!("@.{column} <= '{one}'"),
                4 => format!("@.{column} > '{one}'"),
                5 => format!("@.{column} >= '{one}'"),
                6 => format!("@.{column} in ('{one}', '{two}', '{three}')"),
                7 => format!("@.{column} like '{one}%'"),
                8 => format!("@.{column} > '{one}' and @.n < 3"),
                9 => format!("@.{column} is null or @.{column} = '{one}'"),
                10 => format!("(@.{column} = '{one}' or @.{column} > '{two}') and @.n in (1, 2)"),
                _ => format!("@.{column} between '{one}' and '{two}'"),
            };
            (condition, column)
        },
    )
}

fn step(lengths: [usize; 6]) -> impl Strategy<Value = Step> {
    let insert = (0..60u32, text(lengths), prop::option::weighted(0.9, text(lengths)), 0..4u8)
        .prop_map(|(id, a, b, on_conflict)| Step::Insert { id, a, b, on_conflict });
    let sets = prop_oneof![Just("n = n + 1"), Just("b = concat(b, 'q')"), Just("b = a"), Just("b = upper(b)")];
    let update = (sets, condition(lengths)).prop_map(|(set, (condition, _))| Step::Update { set, condition });
    let delete =
        condition(lengths).prop_map(|(condition, _)| Step::Delete { condition: format!("({condition}) and @.n > 3") });
    let ask = condition(lengths).prop_map(|(condition, column)| Step::Ask { condition, column });
    prop_oneof![6 => insert, 1 => update, 1 => delete, 4 => ask]
}

struct Twins<'s> {
    session: &'s mut Session,
    tells_case: bool,
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

impl Twins<'_> {
    fn ask(&mut self, sql: &str) -> Vec<String> {
        let lines = run(self.session, sql);
        assert!(!lines.iter().any(|line| line.starts_with("error")), "{sql}: {lines:?}");
        lines
    }

    fn is_there(&mut self, condition: &str) -> bool {
        self.ask(&format!("select count(*) from o where {condition}"))[1] != "0"
    }

    /// A column as far as its collation tells texts apart.
    fn shown(&self, column: &str) -> String {
        if self.tells_case { format!("hex({column})") } else { format!("upper({column})") }
    }

    fn both(&mut self, sql: &str) {
        for table in ["o", "t", "p"] {
            self.ask(&sql.replace("{}", table));
        }
    }

    fn insert(&mut self, id: u32, a: &str, b: Option<&str>, on_conflict: u8) {
        let b = b.map_or("null".to_owned(), |b| format!("'{b}'"));
        let (same_id, same_a) = (format!("id = {id}"), format!("a = '{a}'"));
        let (has_id, has_a) = (self.is_there(&same_id), self.is_there(&same_a));
        let row = format!("({id}, '{a}', {b}, {})", id % 5);
        match on_conflict {
            0 if has_id || has_a => {
                for table in ["t", "p"] {
                    let answer = run(self.session, &format!("insert into {table} values {row}"));
                    assert!(answer[0].starts_with("error 1062"), "{row}: {answer:?}");
                }
            }
            1 if has_id || has_a => {
                for table in ["t", "p"] {
                    self.ask(&format!("insert ignore into {table} values {row}"));
                }
            }
            2 => {
                self.ask(&format!("delete from o where {same_id} or {same_a}"));
                self.ask(&format!("insert into o values {row}"));
                for table in ["t", "p"] {
                    self.ask(&format!("replace into {table} values {row}"));
                }
            }
            // Which of two rows in the way is changed depends on the order of keys.
            3 if has_id != has_a || !has_id => {
                let same = if has_id { &same_id } else { &same_a };
                let insert = if has_id || has_a {
                    format!("update o set n = n + 10, b = concat(b, 'z') where {same}")
                } else {
                    format!("insert into o values {row}")
                };
                self.ask(&insert);
                for table in ["t", "p"] {
                    self.ask(&format!(
                        "insert into {table} values {row} on duplicate key update n = {table}.n + 10, b = concat({table}.b, 'z')"
                    ));
                }
            }
            _ if has_id || has_a => {}
            _ => self.both(&format!("insert into {{}} values {row}")),
        }
    }

    /// Rows, their order, groups and joins are those of the table without an index, whatever way leads to them.
    fn compare(&mut self, condition: &str, column: &str) {
        let here = condition.replace("@.", "");
        for (sql, is_ordered) in self.questions(&here, column) {
            let given = |lines: Vec<String>| if is_ordered { lines } else { sorted(lines) };
            let expected = given(self.ask(&sql.replace("{}", "o")));
            for (table, hints) in HINTS {
                for hint in hints {
                    let sql = sql.replace("{}", &format!("{table} {hint}"));
                    assert_eq!(given(self.ask(&sql)), expected, "{sql}");
                }
            }
        }
        let join = |one: &str, two: &str, hint: &str| {
            let condition = condition.replace("@.", "x.");
            format!("select x.id, y.id from {one} x join {two} y {hint} on y.{column} = x.b where {condition}")
        };
        let expected = sorted(self.ask(&join("o", "o", "")));
        for (one, two, hint) in
            [("o", "t", ""), ("t", "p", ""), ("p", "t", "force index (bn)"), ("o", "p", "force index (b)")]
        {
            let sql = join(one, two, hint);
            assert_eq!(sorted(self.ask(&sql)), expected, "{sql}");
        }
    }

    /// Questions of the rows that satisfy a condition, and whether their answers have an order.
    fn questions(&self, condition: &str, column: &str) -> Vec<(String, bool)> {
        let shown = self.shown(column);
        let mut questions = Vec::new();
        for what in [
            "id, n, hex(a), hex(b)".to_owned(),
            format!("count(*), min({shown}), max({shown}), count(distinct {column}), sum(n)"),
            format!("distinct {shown}"),
            "count(*)".to_owned(),
            "n".to_owned(),
            "id".to_owned(),
        ] {
            questions.push((format!("select {what} from {{}} where {condition}"), false));
        }
        questions.push((format!("select id, n from {{}} where {condition} for update"), false));
        questions.push((format!("select max({shown}), count(*) from {{}} where {condition} group by {column}"), false));
        for order in ["asc", "desc"] {
            for end in ["limit 3", "limit 2 offset 1 for update", "", "limit 100 for share"] {
                let by = format!("order by {column} {order} {end}");
                questions.push((format!("select {shown} from {{}} where {condition} {by}"), true));
            }
        }
        questions
    }
}

/// The tables with indexes, and the ways to their rows.
const HINTS: [(&str, &[&str]); 2] = [
    ("t", &["", "force index (ua)", "force index (bd)", "force index (bn)", "force index (na)"]),
    ("p", &["", "force index (primary)", "force index (b)", "force index (nb)", "force index (ab)"]),
];

fn sound(world: &World) {
    let report = sql_mysql::check::check(&world.db).expect("the walk comes to its end");
    assert_eq!(report.problems, Vec::<String>::new());
}

fn all_ok(session: &mut Session, statements: &[String]) {
    for sql in statements {
        let answer = run(session, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
}

fn definitions(ty: &str) -> [String; 5] {
    let columns = format!("id int not null, a {ty} not null, b {ty}, n int");
    [
        "create database d".to_owned(),
        "use d".to_owned(),
        format!("create table o ({columns})"),
        format!(
            "create table t ({columns}, primary key (id), unique key ua (a), key bd (b desc), key bn (b, n), key na (n, a))"
        ),
        format!(
            "create table p ({columns}, primary key (a), unique key (id), key (b), key nb (n, b desc), key ab (a(300), b(400)))"
        ),
    ]
}

fn whatever_happens_is_what_happens_without_an_index(subject: &Subject) {
    // The same steps each time. PROPTEST_CASES asks for more of them.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4);
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let steps = prop::collection::vec(step(subject.lengths), 60..90);
    runner
        .run(&steps, |steps| {
            let world = World::new(83);
            let mut session = world.session(1);
            all_ok(&mut session, &definitions(subject.ty));
            let mut twins = Twins { session: &mut session, tells_case: subject.tells_case };
            for step in steps {
                match step {
                    Step::Insert { id, a, b, on_conflict } => twins.insert(id, &a, b.as_deref(), on_conflict),
                    Step::Update { set, condition } => {
                        twins.both(&format!("update {{}} set {set} where {}", condition.replace("@.", "")));
                    }
                    Step::Delete { condition } => {
                        twins.both(&format!("delete from {{}} where {}", condition.replace("@.", "")));
                    }
                    Step::Ask { condition, column } => twins.compare(&condition, column),
                }
            }
            twins.both("delete from {} where n > 0 order by a desc limit 2");
            twins.compare("@.n >= 0", "a");
            twins.compare("@.b > 'x'", "b");
            drop(session);
            sound(&world);
            Ok(())
        })
        .unwrap();
}

#[test]
fn long_binary_keys_find_what_a_walk_finds() {
    whatever_happens_is_what_happens_without_an_index(&SUBJECTS[0]);
}

#[test]
fn long_keys_of_texts_by_their_bytes_find_what_a_walk_finds() {
    whatever_happens_is_what_happens_without_an_index(&SUBJECTS[1]);
}

#[test]
fn long_keys_of_texts_by_their_letters_find_what_a_walk_finds() {
    whatever_happens_is_what_happens_without_an_index(&SUBJECTS[2]);
}

#[test]
fn long_keys_of_padded_texts_find_what_a_walk_finds() {
    whatever_happens_is_what_happens_without_an_index(&SUBJECTS[3]);
}

/// QU-3 and QU-4, where parents and children are found by the beginning of a key, and by all of it.
#[test]
fn foreign_keys_follow_long_keys() {
    let world = World::new(84);
    let mut session = world.session(1);
    let (x, y) = ("x".repeat(400), "y".repeat(400));
    let statements = [
        "create database d".to_owned(),
        "use d".to_owned(),
        "create table p (a varchar(700) primary key)".to_owned(),
        "create table c (id int primary key, a varchar(700), n int, key an (a, n), foreign key (a) references p (a) on delete cascade on update cascade)".to_owned(),
        "create table w (id int primary key, a varchar(700), key (a), foreign key (a) references p (a) on delete set null on update cascade)".to_owned(),
        format!("insert into p values ('{x}1'), ('{x}2'), ('{x}3'), ('{y}'), ('s')"),
        format!("insert into c values (1, '{x}1', 1), (2, '{x}2', 2), (3, '{x}1', 3), (4, '{y}', 4), (5, 's', 5), (6, null, 6), (7, '{x}3', 7)"),
        format!("insert into w values (1, '{x}1'), (2, '{x}2'), (3, '{y}')"),
    ];
    all_ok(&mut session, &statements);
    let missing = run(&mut session, &format!("insert into c values (9, '{x}', 9)"));
    assert!(missing[0].starts_with("error 1452"), "{missing:?}");
    let missing = run(&mut session, &format!("update w set a = '{x}9' where id = 3"));
    assert!(missing[0].starts_with("error 1452"), "{missing:?}");
    sound(&world);
    all_ok(
        &mut session,
        &[format!("delete from p where a = '{x}1'"), format!("update p set a = '{x}22' where a = '{x}2'")],
    );
    assert_eq!(
        run(&mut session, "select id, right(a, 2) from c order by id"),
        ["[id | right(a, 2)]", "2 | 22", "4 | yy", "5 | s", "6 | NULL", "7 | x3"]
    );
    assert_eq!(
        run(&mut session, "select id, right(a, 2) from w order by id"),
        ["[id | right(a, 2)]", "1 | NULL", "2 | 22", "3 | yy"]
    );
    all_ok(&mut session, &["alter table c drop foreign key c_ibfk_1, add foreign key (a) references p (a)".to_owned()]);
    let refused = run(&mut session, &format!("delete from p where a = '{x}3'"));
    assert!(refused[0].starts_with("error 1451"), "{refused:?}");
    // Only its neighbours in the index have children.
    all_ok(&mut session, &[format!("insert into p values ('{x}4')"), format!("delete from p where a = '{x}4'")]);
    sound(&world);
}

#[test]
fn long_keys_survive_a_restart_and_a_crash() {
    let mut world = World::new(85);
    let text = |nth: u32| format!("concat(repeat('v', 500), lpad({nth}, 9, '0'))");
    let mut session = world.session(1);
    all_ok(&mut session, &definitions("varchar(700)"));
    drop(session);
    for round in 0..6u32 {
        let mut session = world.session(1);
        let from = round * 100;
        let rows = format!(
            "insert into d.t with recursive r as (select {from} i union all select i + 1 from r where i < {from} + 99) \
             select i, concat(repeat('v', 500), lpad(i * 7919 % 10007, 9, '0')), concat(repeat('w', 420), i % 7), i from r"
        );
        all_ok(
            &mut session,
            &[rows, "insert into d.p select * from d.t where id not in (select id from d.p)".to_owned()],
        );
        drop(session);
        // The next opening finds all of it; what is under way at the crash goes.
        world = world.reopen();
        let mut session = world.session(1);
        all_ok(
            &mut session,
            &[
                "begin".to_owned(),
                format!("update d.t set b = {} where id % 3 = 0", text(round)),
                "delete from d.p where a > repeat('v', 500)".to_owned(),
                format!("insert into d.p values (100000, {}, {}, 1)", text(20_000), text(1)),
            ],
        );
        std::mem::forget(session);
        world = world.crash();
        let mut session = world.session(1);
        let rows = (from + 100).to_string();
        for table in ["t", "p"] {
            assert_eq!(
                run(&mut session, &format!("select count(*) from d.{table} where b < repeat('w', 421)"))[1],
                rows
            );
            let by_index = run(&mut session, &format!("select a from d.{table} order by a desc limit 50"));
            let by_sort =
                run(&mut session, &format!("select concat(a) from d.{table} order by concat(a) desc limit 50"));
            assert_eq!(by_index[1..], by_sort[1..]);
        }
        drop(session);
        sound(&world);
    }
}

/// A group of keys with one beginning need not fit the memory of a statement.
#[test]
fn tied_rows_beyond_the_memory_of_a_statement_are_sorted_in_a_file() {
    let (world, folder) = (World::new(86), Folder::new("tied"));
    world.db.spill_to(&folder.0, 64 << 10).expect("the folder can be made");
    let mut session = world.session(1);
    let rows = "insert into t with recursive r as (select 0 i union all select i + 1 from r where i < 2999) \
                select i, concat(repeat('k', 600), lpad(i * 7919 % 10007, 9, '0')) from r";
    all_ok(
        &mut session,
        &[
            "create database d".to_owned(),
            "use d".to_owned(),
            "create table t (id int primary key, a varchar(700) character set latin1 collate latin1_bin, key (a))"
                .to_owned(),
            "set cte_max_recursion_depth = 5000".to_owned(),
            rows.to_owned(),
            "create table s (id int, a varchar(700) character set latin1 collate latin1_bin)".to_owned(),
            "insert into s select * from t".to_owned(),
        ],
    );
    for sql in [
        "select id, a from {} order by a",
        "select id from {} where a > repeat('k', 600) order by a desc",
        "select a from {} order by a limit 7 for update",
    ] {
        let by_index = sql.replace("{}", "t force index (a)");
        let plan = run(&mut session, &format!("explain format=tree {by_index}")).join("\n");
        assert!(!plan.contains("Sort"), "{plan}");
        let expected = run(&mut session, &sql.replace("{}", "s"));
        assert_eq!(run(&mut session, &by_index), expected, "{sql}");
    }
}

/// Writes the records of a dump: all maps of a database whose definitions have version 4.
fn load(world: &World, dump: &str) {
    let bytes = |hex: &str| -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a byte");
        (0..hex.len()).step_by(2).map(digit).collect()
    };
    let mut txn = world.engine.rows().begin(engine::rows::Isolation::ReadCommitted);
    let mut map = engine::rows::CATALOG;
    for line in dump.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "map" {
            map = value.parse().expect("a map's number");
            if map != engine::rows::CATALOG {
                assert_eq!(txn.create_map().expect("a map"), map);
            }
            continue;
        }
        txn.insert(map, &bytes(key), &bytes(value), &mut Vec::new()).expect("a record");
    }
    txn.commit().expect("all records");
}

#[test]
fn keys_of_version_4_stay_whole_until_their_table_is_rebuilt() {
    let world = World::new(4);
    load(&world, include_str!("long_keys/version_4.txt"));
    let world = world.reopen();
    sound(&world);
    let mut session = world.session(1);
    let ask = |session: &mut Session, sql: &str| run(session, sql)[1..].join(", ");
    all_ok(&mut session, &["use d".to_owned()]);
    // Of 600 bytes; and of 384, as shortened ones have.
    assert_eq!(ask(&mut session, "select id from t where a = repeat('k', 600)"), "3");
    assert_eq!(
        ask(&mut session, "select id, n from t force index (u) where id = 4 and a = repeat('m', 381)"),
        "4 | 8.00"
    );
    assert_eq!(ask(&mut session, "select id from t force index (i) order by a desc"), "1, 4, 3, 2");
    assert_eq!(ask(&mut session, "select length(a), e from p where a > 'm' order by a desc"), "1 | NULL, 381 | y");
    assert_eq!(ask(&mut session, "select length(a) from p where b = repeat('m', 381)"), "1");
    assert_eq!(ask(&mut session, "select count(*) from c join p on c.a = p.a"), "3");
    let too_long = run(&mut session, "insert into p values (repeat('z', 800), 'x', 'z')");
    let expected = "error 1071 Specified key was too long; max key length is 768 bytes; ALTER TABLE `p` FORCE makes keys for longer values";
    assert_eq!(too_long, [expected]);
    assert!(run(&mut session, "insert into p values ('z', 'x', repeat('z', 800))")[0].starts_with("error 1071"));
    // Parents with whole keys, children with shortened ones.
    all_ok(
        &mut session,
        &[
            "alter table c force".to_owned(),
            "insert into c (a) values (repeat('k', 600))".to_owned(),
            "update p set a = concat(a, 'k') where a = repeat('k', 600)".to_owned(),
            "delete from p where a = repeat('m', 381)".to_owned(),
        ],
    );
    assert_eq!(
        ask(&mut session, "select length(a), count(*) from c group by a order by 1"),
        "NULL | 1, 1 | 1, 601 | 2"
    );
    sound(&world);
    // A new index asks for shorter keys of rows.
    all_ok(
        &mut session,
        &[
            "alter table p add key eb (e, b)".to_owned(),
            "insert into p values (repeat('z', 800), 'x', repeat('z', 800)), (repeat('z', 801), 'x', repeat('z', 800))"
                .to_owned(),
            "insert into c (a) values (repeat('z', 800))".to_owned(),
            "truncate table t".to_owned(),
            "insert into t (id, a) values (1, repeat('m', 700))".to_owned(),
        ],
    );
    assert_eq!(ask(&mut session, "select length(a) from p where b = repeat('z', 800) order by a"), "800, 801");
    sound(&world);
    drop(session);
    let world = world.reopen();
    sound(&world);
    let mut session = world.session(1);
    assert_eq!(ask(&mut session, "select count(*) from d.p where a like 'zzz%'"), "2");
    assert_eq!(ask(&mut session, "select length(a) from d.t where a = repeat('m', 700)"), "700");
}
