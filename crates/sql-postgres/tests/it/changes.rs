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
