//! Catalogs and definitions as SQL, with the real server's answers.

use crate::world::{Client, World};

fn one(client: &mut Client, text: &str) -> String {
    client.run(text).join("\n")
}

fn made(world: &mut World) -> Client {
    let mut client = world.session();
    for statement in [
        "create table parent (id serial primary key, a text not null default 'x', b numeric(10,2) default 0, c varchar(20), i int8 default -5, e bool, check (b >= 0 and a <> 'it''s'))",
        "create table child (id int generated always as identity primary key, p int references parent on delete cascade, name char(5) default 'abc', g int generated always as (p * 2 + 1) stored)",
        "create index child_p on child (p desc nulls last)",
    ] {
        client.run(statement);
    }
    client
}

#[test]
fn defaults_and_checks_are_shown_as_they_were_written() {
    let mut world = World::new();
    let mut client = made(&mut world);
    let defaults = one(
        &mut client,
        "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'parent'::regclass or adrelid = 'child'::regclass order by adrelid, adnum",
    );
    assert_eq!(
        defaults,
        "nextval('parent_id_seq'::regclass)\n'x'::text\n0\n'-5'::integer\n'abc'::bpchar\n((p * 2) + 1)"
    );
    let check = "from pg_constraint where conrelid = 'parent'::regclass and contype = 'c'";
    let plain = one(&mut client, &format!("select pg_get_constraintdef(oid) {check}"));
    assert_eq!(plain, "CHECK (((b >= (0)::numeric) AND (a <> 'it''s'::text)))");
    let pretty = one(&mut client, &format!("select pg_get_constraintdef(oid, true) {check}"));
    assert_eq!(pretty, "CHECK (b >= 0::numeric AND a <> 'it''s'::text)");
}

#[test]
fn a_view_is_shown_as_postgresql_writes_it() {
    let mut world = World::new();
    let mut client = made(&mut world);
    let mut shown = |query: &str| {
        client.run(&format!("create or replace view v as {query}"));
        let text = one(&mut client, "select pg_get_viewdef('v'::regclass, true)");
        client.run("drop view v");
        text
    };
    assert_eq!(
        shown(
            "select p.id, left(p.a, 2) as l, c.name from parent p join child c on c.p = p.id where p.b > 1 and p.c in ('x', 'y') order by 1, p.id, id desc"
        ),
        " SELECT p.id,\n    \"left\"(p.a, 2) AS l,\n    c.name\n   FROM parent p\n     JOIN child c ON c.p = p.id\n  WHERE p.b > 1::numeric AND (p.c::text = ANY (ARRAY['x'::character varying, 'y'::character varying]::text[]))\n  ORDER BY p.id;"
    );
    assert_eq!(
        shown("select id, a from parent union all (select id, name from child) union select 1, 'x' order by 1"),
        "(\n         SELECT parent.id,\n            parent.a\n           FROM parent\n        UNION ALL\n         SELECT child.id,\n            child.name AS a\n           FROM child\n) UNION\n SELECT 1 AS id,\n    'x'::text AS a\n  ORDER BY 1;"
    );
    assert_eq!(
        shown(
            "select case when e then 1 else i end as x from parent where not exists (select 1 from child where p = parent.id)"
        ),
        " SELECT\n        CASE\n            WHEN e THEN 1::bigint\n            ELSE i\n        END AS x\n   FROM parent\n  WHERE NOT (EXISTS ( SELECT 1\n           FROM child\n          WHERE child.p = parent.id));"
    );
}

#[test]
fn a_search_by_oid_finds_what_a_walk_over_all_finds() {
    let mut world = World::new();
    let mut client = made(&mut world);
    for (relation, key) in [
        ("pg_class", "oid"),
        ("pg_class", "relname"),
        ("pg_attribute", "attrelid"),
        ("pg_attrdef", "adrelid"),
        ("pg_index", "indexrelid"),
        ("pg_index", "indrelid"),
        ("pg_constraint", "oid"),
        ("pg_constraint", "conrelid"),
        ("pg_constraint", "conindid"),
        ("pg_sequence", "seqrelid"),
        ("pg_type", "oid"),
        ("pg_proc", "proname"),
        ("pg_operator", "oprname"),
    ] {
        // An expression over the column is not searched by.
        let cast = if key.ends_with("name") { "text" } else { "int8" };
        let text = format!(
            "select count(*) from {relation} a where (select count(*) from {relation} b where b.{key} = a.{key}) <> (select count(*) from {relation} b where b.{key}::{cast} = a.{key}::{cast}) and a.{key}::{cast} in (select {key}::{cast} from {relation} order by 1 desc limit 20)"
        );
        assert_eq!(one(&mut client, &text), "0", "{relation} {key}");
    }
}

#[test]
fn a_sequence_is_a_relation_of_one_row() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create sequence s start 5");
    assert_eq!(one(&mut client, "select last_value, is_called from s"), "5|f");
    client.run("select nextval('s')");
    assert_eq!(one(&mut client, "select s.last_value, x.is_called from s, public.s x"), "5|t");
    assert_eq!(one(&mut client, "update s set last_value = 1"), "ERROR:  42809: cannot change sequence \"s\"");
}

#[test]
fn a_sequence_changes_its_owner() {
    let mut world = World::new();
    let mut client = made(&mut world);
    client.run("create table other (n int8 default 1)");
    client.run("alter sequence parent_id_seq owned by other.n");
    assert_eq!(one(&mut client, "select pg_get_serial_sequence('other', 'n')"), "public.parent_id_seq");
    assert_eq!(one(&mut client, "select pg_get_serial_sequence('parent', 'id') is null"), "t");
    assert_eq!(
        one(&mut client, "alter sequence child_id_seq owned by none"),
        "ERROR:  0A000: cannot change ownership of identity sequence\nDETAIL:  Sequence \"child_id_seq\" is linked to table \"child\"."
    );
    client.run("alter sequence parent_id_seq owned by none");
    client.run("drop table other");
    assert_eq!(one(&mut client, "select nextval('parent_id_seq')"), "1");
}
