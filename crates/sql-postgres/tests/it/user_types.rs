//! Types that users define: answers as the real server gives them, order in indexes, restarts and two sessions.

use crate::world::{World, play};

#[test]
fn enums_answer_as_the_real_server_does() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/enums.txt"));
}

#[test]
fn composite_types_are_made_and_changed_as_by_the_real_server() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/composites.txt"));
}

#[test]
fn domains_within_composite_types_are_checked_as_by_the_real_server() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/domains_in_composites.txt"));
}

#[test]
fn domains_over_composite_types_answer_as_the_real_server_does() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/domains_of_composites.txt"));
}

/// The labels in the order of the type, as a scan of each index gives them.
fn labels(client: &mut crate::world::Client) -> Vec<String> {
    let rows = client.run("select m from t where m >= enum_first(null::e) order by m");
    let by_second = client.run("select m from t where x = 1 order by m");
    assert_eq!(rows, by_second);
    let mut backwards = client.run("select m from t order by m desc");
    backwards.reverse();
    assert_eq!(rows, backwards);
    rows
}

#[test]
fn indexes_keep_the_order_of_labels_that_are_added_between_others() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type e as enum ('l0', 'l1')");
    client.run("create table t (m e primary key, x int default 1)");
    client.run("create index on t (x, m)");
    client.run("insert into t values ('l0'), ('l1')");
    let mut expected = vec!["l0".to_owned(), "l1".to_owned()];
    let mut seed = 11u64;
    for nth in 2..120 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Half of them beside one and the same label.
        let at = if seed >> 63 == 0 { 1 } else { (seed >> 33) as usize % expected.len() };
        let before = seed >> 40 & 1 == 0;
        let word = if before { "before" } else { "after" };
        let label = format!("l{nth}");
        client.run(&format!("alter type e add value '{label}' {word} '{}'", expected[at]));
        expected.insert(if before { at } else { at + 1 }, label.clone());
        assert_eq!(client.run(&format!("insert into t values ('{label}')")), ["INSERT 0 1"]);
    }
    assert_eq!(labels(&mut client), expected);
    let middle = &expected[60];
    let above = client.run(&format!("select m from t where m > '{middle}' order by m"));
    assert_eq!(above, expected[61..]);
    let sorted = client.run("select enumlabel from pg_enum where enumtypid = 'e'::regtype order by enumsortorder");
    assert_eq!(sorted, expected);
    let mut world = world.crash(client);
    assert_eq!(labels(&mut world.session()), expected);
}

#[test]
fn types_and_their_numbers_are_the_same_after_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create type mood as enum ('sad', 'ok')");
    client.run("create table t (m mood default 'ok', n mood[])");
    client.run("insert into t values ('sad', '{ok,sad}'), (default, null)");
    client.run("alter type mood add value 'happy'");
    client.run("comment on type mood is 'how one feels'");
    let facts = "select oid, typname, typarray, typelem, obj_description(oid, 'pg_type') from pg_type where typname like '%mood'
        union all select oid, enumlabel, enumtypid, 0, null from pg_enum order by 1";
    let before = client.run(facts);
    assert_eq!(before.len(), 5);
    // What is open when the power fails is gone.
    let mut other = world.session();
    other.run("begin");
    other.run("create type lost as enum ('x')");
    other.run("alter type mood add value 'lost' before 'sad'");
    drop(other);
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(client.run(facts), before);
    assert_eq!(client.run("select * from t order by m"), ["sad|{ok,sad}", "ok|"]);
    assert_eq!(client.run("insert into t values ('happy')"), ["INSERT 0 1"]);
    assert_eq!(client.run("drop type lost")[0], "ERROR:  42704: type \"lost\" does not exist");
    client.run("create type later as enum ('x')");
    let numbers = client.run("select count(distinct oid) = count(*) from pg_type");
    assert_eq!(numbers, ["t"], "a number is given once");
}

#[test]
fn plans_follow_changes_of_a_type() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create type mood as enum ('sad', 'ok')");
    one.run("create table t (m mood); insert into t values ('sad')");
    one.run("prepare p as select m, m = 'ok' from t where m = any (array['sad', 'ok']::mood[])");
    assert_eq!(one.run("execute p"), ["sad|f"]);
    assert_eq!(other.run("select * from t where m = 'ok'"), Vec::<String>::new());
    other.run("alter type mood rename value 'ok' to 'fine'");
    assert_eq!(
        other.run("select * from t where m = 'ok'")[0],
        "ERROR:  22P02: invalid input value for enum mood: \"ok\""
    );
    assert_eq!(
        one.run("select * from t where m = 'ok'")[0],
        "ERROR:  22P02: invalid input value for enum mood: \"ok\""
    );
    assert_eq!(one.run("execute p")[0], "ERROR:  22P02: invalid input value for enum mood: \"ok\"");
    other.run("alter type mood rename value 'fine' to 'ok'");
    assert_eq!(one.run("execute p"), ["sad|f"]);
    one.run("begin");
    one.run("alter type mood rename value 'ok' to 'good'");
    assert_eq!(one.run("select 'good'::mood"), ["good"]);
    assert_eq!(other.run("select 'good'::mood")[0], "ERROR:  22P02: invalid input value for enum mood: \"good\"");
    one.run("rollback");
    assert_eq!(one.run("select 'good'::mood")[0], "ERROR:  22P02: invalid input value for enum mood: \"good\"");
}

/// The other session waits for the type until the first has ended.
#[test]
fn a_type_is_not_dropped_under_a_table_that_is_being_made() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create type mood as enum ('sad')");
    other.run("set lock_timeout = '20ms'");
    one.run("begin");
    one.run("create table t (m mood)");
    let refused = other.run("drop type mood");
    assert_eq!(refused, ["ERROR:  55P03: canceling statement due to lock timeout"]);
    let refused = other.run("alter type mood add value 'x'");
    assert_eq!(refused, ["ERROR:  55P03: canceling statement due to lock timeout"]);
    one.run("commit");
    assert_eq!(
        other.run("drop type mood")[0],
        "ERROR:  2BP01: cannot drop type mood because other objects depend on it"
    );
    one.run("begin");
    one.run("drop table t; drop type mood");
    let refused = other.run("create type mood as enum ('y')");
    assert_eq!(refused, ["ERROR:  42710: type \"mood\" already exists"]);
    one.run("rollback");
    assert_eq!(one.run("select 'sad'::mood"), ["sad"]);
}

#[test]
fn domains_answer_as_the_real_server_does() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/domains.txt"));
}

#[test]
fn domains_and_their_checks_are_the_same_after_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create domain d as varchar(4) default 'ab' not null check (value <> 'no')");
    client.run("create domain d2 as d check (length(value) > 1)");
    client.run("create table t (k int primary key, v d2)");
    client.run("insert into t (k) values (1)");
    // What is open when the power fails is gone.
    let mut other = world.session();
    other.run("begin");
    other.run("alter domain d2 add check (value <> 'later')");
    other.run("create domain lost as int");
    drop(other);
    let mut world = world.crash(client);
    let mut client = world.session();
    assert_eq!(
        client.run("insert into t values (2, 'x')")[0],
        "ERROR:  23514: value for domain d2 violates check constraint \"d2_check\""
    );
    assert_eq!(
        client.run("insert into t values (2, 'no')")[0],
        "ERROR:  23514: value for domain d2 violates check constraint \"d_check\""
    );
    assert_eq!(client.run("insert into t values (2, null)")[0], "ERROR:  23502: domain d2 does not allow null values");
    assert_eq!(client.run("insert into t (k) values (3)"), ["INSERT 0 1"]);
    assert_eq!(client.run("select 1::lost")[0], "ERROR:  42704: type \"lost\" does not exist");
    assert_eq!(client.run("select k, v from t order by k"), ["1|ab", "3|ab"]);
}

#[test]
fn a_new_constraint_holds_for_plans_that_were_made_before() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create domain d as int");
    one.run("create table t (k int, v d, g d generated always as (k * 2) stored)");
    for client in [&mut one, &mut other] {
        client.run("prepare p as insert into t values ($1, $2)");
        assert_eq!(client.run("execute p(1, 1)"), ["INSERT 0 1"]);
    }
    assert_eq!(one.run("alter domain d add constraint c check (value < 10)"), ["ALTER DOMAIN"]);
    for client in [&mut one, &mut other] {
        let violated = "ERROR:  23514: value for domain d violates check constraint \"c\"";
        assert_eq!(client.run("execute p(1, 10)")[0], violated);
        assert_eq!(client.run("execute p(5, 1)")[0], violated);
        assert_eq!(client.run("execute p(4, 9)"), ["INSERT 0 1"]);
    }
    assert_eq!(one.run("alter domain d drop constraint c"), ["ALTER DOMAIN"]);
    assert_eq!(other.run("execute p(5, 10)"), ["INSERT 0 1"]);
}

#[test]
fn domains_over_each_other_are_bounded() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create domain d0 as int check (value > 0)");
    let made = (1..40).map(|nth| client.run(&format!("create domain d{nth} as d{} check (value > 0)", nth - 1)));
    let made: Vec<Vec<String>> = made.collect();
    let refused = made.iter().position(|lines| lines[0] != "CREATE DOMAIN").unwrap();
    assert_eq!(made[refused][0], "ERROR:  54000: domains are over each other at most 32 times");
    assert_eq!(client.run(&format!("select 5::d{refused}")), ["5"]);
    assert_eq!(
        client.run(&format!("select (-5)::d{refused}")),
        [format!("ERROR:  23514: value for domain d{refused} violates check constraint \"d0_check\"")]
    );
}

#[test]
fn a_text_keeps_the_length_of_the_varchar_that_it_was_cast_from() {
    let mut world = World::new();
    let mut client = world.session();
    let cut = client.run("select x::varchar(2)::text || 'z' from (values ('abc'), ('de')) s(x)");
    assert_eq!(cut, ["abz", "dez"]);
}
