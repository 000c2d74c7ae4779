//! WITH that changes rows, MERGE, COPY of changes; results as the real server gives them.

use crate::world::{Client, World, check};

fn prepared(world: &mut World) -> Client {
    let mut client = world.session();
    client.lines(
        "create table t (id int primary key, v text, n int default 7)
         create table u (id int primary key, v text)
         insert into t select i, 'v' || i, i from generate_series(1, 6) i",
    );
    client
}

#[test]
fn all_parts_of_a_statement_read_the_tables_as_they_were_before_it() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "with d as (delete from t where id <= 2 returning id, v) insert into u select * from d
         with i as (insert into t values (10, 'new') returning id) select count(*), (select count(*) from i) from t
         with i as (insert into t values (4, 'x'), (20, 'y') on conflict do nothing returning id) select id, 'new' from i union all select id, 'old' from t where id in (4, 20) order by 1
         with c as (update t set v = v || '!' where id < 5 returning *) select t.id, t.v, c.v from t join c using (id) order by 1
         with c as (update t set v = 'unread' where id = 5) select v from t where id = 5
         select v from t where id = 5
         with c as (update t set id = id + 100 where id >= 10 returning id) select count(*) from c, t where t.id = c.id - 100
         select id from t order by 1",
    );
    check(
        found,
        "INSERT 0 2
         4|1
         4|old
         20|new
         3|v3|v3!
         4|v4|v4!
         v5
         unread
         2
         3
         4
         5
         6
         110
         120",
    );
}

#[test]
fn a_part_sees_what_earlier_parts_return_and_an_error_undoes_all() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "create table child (id int primary key, p int references u)
         with p as (insert into u values (1), (2) returning id), c as (insert into child select id * 10, id from p returning *) select c.*, (select count(*) from u) from c order by 1
         with a as (delete from u where id = 3 returning id), b as (insert into u values (3, 'x')) insert into t values (6)
         select count(*) from u
         with x as (insert into u values (9, 'y')) select * from x
         select 1 from (with x as (delete from t returning 1) select * from x) s
         copy (delete from t where id > 4 returning id, v) to stdout
         copy (delete from t) to stdout",
    );
    check(
        found,
        "CREATE TABLE
         10|1|0
         20|2|0
         ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"
         DETAIL:  Key (id)=(6) already exists.
         2
         ERROR:  0A000: WITH query \"x\" does not have a RETURNING clause
         ERROR:  0A000: WITH clause containing a data-modifying statement must be at the top level
         5\tv5
         6\tv6
         COPY 2
         ERROR:  0A000: COPY query must have a RETURNING clause",
    );
}

#[test]
fn changes_taken_back_for_a_reader_are_made_again_row_by_row() {
    let mut world = World::new();
    let mut client = world.session();
    let found = client.lines(
        "create table big (id int primary key, n int)
         create index on big (n)
         create table bare (a int, b text)
         insert into bare values (1, 'x'), (1, 'y')
         insert into big select i, 0 from generate_series(1, 3000) i
         with c as (update big set n = n + 1 where id % 2 = 0 returning id, n), d as (delete from big where id % 3 = 0 and id % 2 = 1 returning id) select (select count(*) from c), (select count(*) from d), count(*), sum(n) from big
         select count(*), sum(n) from big
         select count(*) from big where n = 1
         with i as (insert into bare values (2, 'z') returning *), c as (update bare set b = b || '!' where a = 1 returning *) select (select count(*) from i), (select count(*) from c), count(*) from bare
         select * from bare order by 1, 2",
    );
    check(
        found,
        "CREATE TABLE
         CREATE INDEX
         CREATE TABLE
         INSERT 0 2
         INSERT 0 3000
         1500|500|3000|0
         2500|1500
         1500
         1|2|2
         1|x!
         1|y!
         2|z",
    );
}

#[test]
fn merge_takes_the_first_clause_that_applies() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "insert into u values (2, 'two'), (4, 'four'), (8, 'eight')
         merge into t using u on t.id = u.id when matched and u.v = 'two' then delete when matched then update set v = u.v, n = default when not matched then insert (id, v) values (u.id, u.v)
         select * from t where id in (2, 4, 8) order by 1
         merge into t using (values (1, 'a'), (1, 'b')) q (id, v) on t.id = q.id when matched then update set v = q.v
         merge into t using (values (1, 'a'), (1, 'b')) q (id, v) on t.id = q.id when matched and q.v = 'a' then update set v = 'z' when matched then do nothing
         merge into t using (values (50), (50)) q (id) on t.id = q.id when not matched then insert (id) values (q.id)
         merge into t using u on t.id = u.id when matched then delete when matched then do nothing
         merge into t using u on t.id = u.id when not matched then insert (id, v) values (t.id, u.v)
         with q as (select 3 as id) merge into t using q on t.id = q.id when matched then update set n = (select count(*) from t)
         select n from t where id = 3
         create table bare (a int, b text)
         insert into bare values (1, 'x'), (1, 'y'), (2, 'z')
         merge into bare using (values (1), (3)) q (a) on bare.a = q.a when matched then update set b = bare.b || '!' when not matched then insert values (q.a, 'new')
         select * from bare order by 1, 2",
    );
    check(
        found,
        "INSERT 0 3
         MERGE 3
         4|four|7
         8|eight|7
         ERROR:  21000: MERGE command cannot affect row a second time
         HINT:  Ensure that not more than one source row matches any one target row.
         MERGE 1
         ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"
         DETAIL:  Key (id)=(50) already exists.
         ERROR:  42601: unreachable WHEN clause specified after unconditional WHEN clause
         ERROR:  42P01: invalid reference to FROM-clause entry for table \"t\"
         DETAIL:  There is an entry for table \"t\", but it cannot be referenced from this part of the query.
         MERGE 1
         6
         CREATE TABLE
         INSERT 0 3
         MERGE 3
         1|x!
         1|y!
         2|z
         3|new",
    );
}

#[test]
fn an_error_of_a_row_shows_the_row() {
    let mut world = World::new();
    let mut client = world.session();
    let found = client.lines(
        "create table r (id int primary key, v text not null, n int default 7 check (n > 0), g int generated always as (n * 2) stored)
         insert into r (id) values (1)
         insert into r values (null, 'x')
         insert into r values (1, repeat('long', 40), -1)
         insert into r values (1, 'x', 3)
         update r set v = null
         insert into r values (1, 'y') on conflict on constraint r_pkey do update set n = -5
         insert into r values (1, 'y') on conflict on constraint nope do nothing
         with x as (insert into r values (2, 'x', -2) returning *) select * from x",
    );
    check(
        found,
        "CREATE TABLE
         ERROR:  23502: null value in column \"v\" of relation \"r\" violates not-null constraint
         DETAIL:  Failing row contains (1, null, 7, 14).
         ERROR:  23502: null value in column \"id\" of relation \"r\" violates not-null constraint
         DETAIL:  Failing row contains (null, x, 7, 14).
         ERROR:  23514: new row for relation \"r\" violates check constraint \"r_n_check\"
         DETAIL:  Failing row contains (1, longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglong..., -1, -2).
         INSERT 0 1
         ERROR:  23502: null value in column \"v\" of relation \"r\" violates not-null constraint
         DETAIL:  Failing row contains (1, null, 3, 6).
         ERROR:  23514: new row for relation \"r\" violates check constraint \"r_n_check\"
         DETAIL:  Failing row contains (1, x, -5, -10).
         ERROR:  42704: constraint \"nope\" for table \"r\" does not exist
         ERROR:  23514: new row for relation \"r\" violates check constraint \"r_n_check\"
         DETAIL:  Failing row contains (2, x, -2, -4).",
    );
}

#[test]
fn a_simple_view_stands_for_its_table() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "create view low as select id, v, n from t where n < 100
         insert into low values (10, 'ten', 10), (11, 'eleven', 500)
         update low set n = n + 1 where id >= 10 returning *
         create view keyed as select id as key, upper(v) as u, n, v as name from low where n > 5 with local check option
         insert into keyed (key, name, n) values (20, 'x', 3)
         insert into keyed (key, name, n) values (20, 'x', 200)
         update keyed set u = 'x'
         create view narrow as select key, n, name from keyed where key > 0 with cascaded check option
         insert into narrow values (30, 200, 'c')
         insert into narrow values (-30, 20, 'c')
         insert into narrow values (30, 20, 'c') returning *
         delete from narrow using u where u.id = narrow.key
         delete from narrow where key = 30 returning name
         select id, n from t where id >= 10 order by 1
         create view grouped as select n, count(*) from t group by n
         delete from grouped
         create view checked as select n from t limit 1 with check option",
    );
    check(
        found,
        "CREATE VIEW
         INSERT 0 2
         10|ten|11
         UPDATE 1
         CREATE VIEW
         ERROR:  44000: new row violates check option for view \"keyed\"
         DETAIL:  Failing row contains (20, x, 3).
         INSERT 0 1
         ERROR:  0A000: cannot update column \"u\" of view \"keyed\"
         DETAIL:  View columns that are not columns of their base relation are not updatable.
         CREATE VIEW
         ERROR:  44000: new row violates check option for view \"low\"
         DETAIL:  Failing row contains (30, c, 200).
         ERROR:  44000: new row violates check option for view \"narrow\"
         DETAIL:  Failing row contains (-30, c, 20).
         30|20|c
         INSERT 0 1
         DELETE 0
         c
         DELETE 1
         10|11
         11|500
         20|200
         CREATE VIEW
         ERROR:  55000: cannot delete from view \"grouped\"
         DETAIL:  Views containing GROUP BY are not automatically updatable.
         HINT:  To enable deleting from the view, provide an INSTEAD OF DELETE trigger or an unconditional ON DELETE DO INSTEAD rule.
         ERROR:  0A000: WITH CHECK OPTION is supported only on automatically updatable views
         HINT:  Views containing LIMIT or OFFSET are not automatically updatable.",
    );
}

#[test]
fn explain_analyze_runs_the_statement_and_counts_its_rows() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    let found = client.lines(
        "explain (analyze, costs off, timing off, summary off) delete from t where n > 4
         select count(*) from t
         explain (analyze, costs off, timing off, summary off) select v from t order by v
         explain (costs off, format json) select * from t where id = 3
         explain (analyze, generic_plan) select 1
         explain (timing) select 1
         explain (format nope) select 1
         explain (generic_plan, costs off) select * from t where id = $1
         explain select * from t where id = $1",
    );
    check(
        found,
        "Delete on t (actual rows=0 loops=1)
         ->  Seq Scan on t (actual rows=2 loops=1)
         Filter: (n > 4)
         EXPLAIN
         4
         Sort (actual rows=4 loops=1)
         Sort Key: v
         ->  Seq Scan on t (actual rows=4 loops=1)
         EXPLAIN
         [
         {
         \"Plan\": {
         \"Node Type\": \"Index Scan\",
         \"Parallel Aware\": false,
         \"Async Capable\": false,
         \"Scan Direction\": \"Forward\",
         \"Index Name\": \"t_pkey\",
         \"Relation Name\": \"t\",
         \"Alias\": \"t\",
         \"Index Cond\": \"(id = 3)\"
         }
         }
         ]
         EXPLAIN
         ERROR:  22023: EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together
         ERROR:  22023: EXPLAIN option TIMING requires ANALYZE
         ERROR:  22023: unrecognized value for EXPLAIN option \"format\": \"nope\"
         Index Scan using t_pkey on t
         Index Cond: (id = $1)
         EXPLAIN
         ERROR:  42P02: there is no parameter $1",
    );
}

#[test]
fn parts_that_nothing_reads_run_after_the_main_statement_the_last_one_first() {
    let mut world = World::new();
    let mut client = world.session();
    let found = client.lines(
        "create table l (n serial, w text)
         with x as (insert into l (w) values ('x') returning n), y as (insert into l (w) values ('y')), z as (insert into l (w) values ('z')) insert into l (w) select 'main' from x
         select w from l order by n
         truncate l
         with x as (insert into l (w) values ('x') returning n), y as (insert into l (w) select 'y' from x returning n), z as (insert into l (w) select 'z' from y) select 1
         select w from l order by n
         truncate l
         with s as (select count(*) c from l), x as (insert into l (w) values ('x') returning n) select s.c, count(*) from s, x group by 1",
    );
    check(
        found,
        "CREATE TABLE
         INSERT 0 1
         x
         main
         z
         y
         TRUNCATE TABLE
         1
         x
         y
         z
         TRUNCATE TABLE
         0|1",
    );
}

#[test]
fn copy_passes_over_rows_that_its_condition_rejects() {
    let mut world = World::new();
    let mut client = prepared(&mut world);
    check(client.copy("copy t (id, v) from stdin where id > 20 and n = 7", "10\ta\n30\tb\n"), "COPY 1");
    check(client.run("select id, v, n from t where id >= 10"), "30|b|7");
    check(
        client.run("copy t from stdin where exists (select 1)"),
        "ERROR:  0A000: cannot use subquery in COPY FROM WHERE condition",
    );
}

#[test]
fn queries_of_with_may_read_the_query_around_them() {
    let mut world = World::new();
    let mut client = world.session();
    crate::world::play(&mut client, include_str!("../definitions/correlated_with.txt"));
}
