//! Roles and rights: statements of several roles with the answers of the real server, as the files of `tests/roles` have them (`record.py`).
//!
//! A line that begins with `> ` is a role and its statement; what follows is the answer: notices, then the number of columns and the rows, or the tag, or the error with its detail, hint and position. `ann@d1` is a login of the role to the database, and so is `ann@d1#2`; `leave` ends a session.

use std::collections::BTreeMap;

use sql_postgres::error::PgError;
use sql_postgres::session::{Login, Outcome, Session};

use crate::world::{Client, World};

fn client(world: &mut World, label: &str) -> Client {
    let (role, database) = label.split('#').next().and_then(|login| login.split_once('@')).unwrap_or((label, ""));
    if !database.is_empty() {
        return Client(login_to(world, role, database).expect("the login succeeds"));
    }
    let mut client = world.session();
    if role != "postgres" {
        assert_eq!(client.run(&format!("set session authorization {role}")), ["SET"]);
    }
    client
}

fn shown(error: &PgError) -> String {
    let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or("").replace('\n', "; ");
    let (detail, hint) = (text(&error.detail), text(&error.hint));
    format!("ERROR {} {} | {detail} | {hint} | {}", error.state, error.message, error.position.unwrap_or(0))
}

fn notices(client: &mut Client) -> Vec<String> {
    let notices = client.0.take_notices().into_iter();
    notices.map(|notice| format!("{} {} {}", notice.severity, notice.error.state, notice.error.message)).collect()
}

fn answer(client: &mut Client, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // Those of the login.
    let mut all = notices(client);
    let done = script(client, text, &mut lines);
    all.extend(notices(client));
    all.extend(lines);
    all.extend(done.err().iter().map(shown));
    all
}

fn script(client: &mut Client, text: &str, lines: &mut Vec<String>) -> Result<(), PgError> {
    let mut script = client.0.simple(text)?;
    while let Some(outcome) = client.0.next_of(&mut script)? {
        match outcome {
            Outcome::Done { tag } => lines.push(tag),
            Outcome::Rows(result) => {
                let columns = result.columns().fields().count();
                let mut rows = Vec::new();
                client.outcome(Outcome::Rows(result), &mut rows)?;
                // The tag of a change.
                rows.retain(|row| !row.starts_with("INSERT "));
                lines.push(format!("# {columns}"));
                lines.extend(rows);
            }
            _ => lines.push("another outcome".to_owned()),
        }
    }
    Ok(())
}

#[test]
fn statements_of_several_roles_have_the_outcomes_of_the_real_server() {
    play(include_str!("../roles/privileges.txt"));
}

#[test]
fn settings_of_roles_and_databases_have_the_effects_of_the_real_server() {
    play(include_str!("../roles/settings.txt"));
}

#[test]
fn default_privileges_have_the_effects_of_the_real_server() {
    play(include_str!("../roles/defaults.txt"));
}

fn play(recorded: &str) {
    let mut world = World::new();
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut lines = recorded.lines().peekable();
    while let Some(line) = lines.next() {
        let (role, text) = line.strip_prefix("> ").and_then(|line| line.split_once(": ")).expect("a statement");
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("> ")) {
            expected.push(line.replace("<NULL>", ""));
        }
        if !clients.contains_key(role) {
            let made = client(&mut world, role);
            clients.insert(role.to_owned(), made);
        }
        if text == "leave" {
            clients.remove(role);
            continue;
        }
        let client = clients.get_mut(role).expect("it is there");
        assert_eq!(answer(client, text), expected, "{line}");
    }
}

fn login(world: &World, role: &str) -> Result<Session, PgError> {
    login_to(world, role, "postgres")
}

fn login_to(world: &World, role: &str, database: &str) -> Result<Session, PgError> {
    let (role, database) = (role.to_owned(), database.to_owned());
    Session::new(&world.db, Login { role, database, pid: 900, connection_id: 900, ..Login::default() })
}

#[test]
fn a_login_needs_the_attribute_the_right_to_connect_and_a_free_place() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines("create role ann login\ncreate role group_of_all\ncreate role two login connection limit 1");
    assert!(login(&world, "ann").is_ok());
    assert_eq!(
        shown(&login(&world, "group_of_all").err().unwrap()),
        "ERROR 28000 role \"group_of_all\" is not permitted to log in |  |  | 0"
    );
    let first = login(&world, "two").unwrap();
    assert_eq!(login(&world, "two").err().unwrap().message, "too many connections for role \"two\"");
    drop(first);
    assert!(login(&world, "two").is_ok());
    postgres.run("revoke connect on database postgres from public");
    let refused = shown(&login(&world, "ann").err().unwrap());
    assert_eq!(
        refused,
        "ERROR 42501 permission denied for database postgres | User does not have CONNECT privilege. |  | 0"
    );
    postgres.run("grant connect on database postgres to ann");
    assert!(login(&world, "ann").is_ok());
}

#[test]
fn owners_and_rights_survive_a_crash_and_end_with_their_objects() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines(
        "create role ann\ncreate role bob\ngrant ann to bob\ncreate table t (a int)\ngrant select on t to ann\ncreate table u (a int)\nalter table u owner to ann",
    );
    postgres.lines("begin\ngrant delete on t to ann");
    let mut world = world.crash(postgres);
    let mut postgres = world.session();
    let rights =
        "select relname, pg_get_userbyid(relowner), relacl from pg_class where relname in ('t', 'u') order by 1";
    let expected = ["t|postgres|{postgres=arwdDxt/postgres,ann=r/postgres}", "u|ann|"];
    assert_eq!(postgres.run(rights), expected);
    assert_eq!(postgres.run("select pg_has_role('bob', 'ann', 'usage')")[0], "t");
    postgres.lines("drop table t\ndrop table u\ndrop role ann");
    // A role of the same name is another one.
    let mut world = world.crash(postgres);
    let mut postgres = world.session();
    postgres.lines("create role ann\ncreate table t (a int)\ncreate table u (a int)");
    assert_eq!(postgres.run(rights), ["t|postgres|", "u|postgres|"]);
    assert_eq!(postgres.run("select pg_has_role('bob', 'ann', 'member')")[0], "f");
}

#[test]
fn roles_follow_their_transaction_and_its_savepoints() {
    let mut world = World::new();
    let (mut one, mut two) = (world.session(), world.session());
    let roles = "select rolname, rolcreatedb from pg_roles where rolname in ('ann', 'bob', 'eve') order by 1";
    one.lines(
        "create role ann\nbegin\nalter role ann createdb\ncreate role bob in role ann\nsavepoint s\ndrop role ann",
    );
    assert_eq!(one.run(roles), ["bob|f"]);
    assert_eq!(two.run(roles), ["ann|f"], "others see roles as they are committed");
    assert!(world.db.engine().accounts().get("bob").is_none());
    one.lines("rollback to s\nalter role bob rename to eve");
    assert_eq!(one.run(roles), ["ann|t", "eve|f"]);
    one.lines("create table t (a int)\nalter table t owner to eve\ncommit");
    assert_eq!(two.run(roles), ["ann|t", "eve|f"]);
    assert_eq!(two.run("select tableowner from pg_tables where tablename = 't'"), ["eve"]);
    one.lines("begin\ndrop table t\ndrop role eve, ann\nrollback");
    assert_eq!(one.run(roles), ["ann|t", "eve|f"]);
    assert_eq!(one.run("select pg_has_role('eve', 'ann', 'member')"), ["t"]);
}

#[test]
fn roles_of_an_undecided_transaction_do_not_survive_a_crash_and_committed_ones_do() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines("begin\ncreate role ann\ncreate table t (a int)\nalter table t owner to ann\ncommit");
    postgres.lines(
        "begin\ncreate role bob\ncreate table u (a int)\nalter table u owner to bob\ndrop table t\ndrop role ann",
    );
    let mut world = world.crash(postgres);
    let mut postgres = world.session();
    assert_eq!(postgres.run("select rolname from pg_roles where rolname in ('ann', 'bob')"), ["ann"]);
    assert_eq!(postgres.run("select tablename, tableowner from pg_tables where schemaname = 'public'"), ["t|ann"]);
}

#[test]
fn a_role_that_another_door_has_changed_meanwhile_fails_the_commit() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines("create role ann\nbegin\nalter role ann createdb\ncreate table t (a int)");
    let accounts = world.db.engine().accounts();
    let mut ann = engine::Account::clone(&accounts.get("ann").expect("it was made"));
    ann.add_password(b"new");
    accounts.put(ann.clone()).expect("it is written");
    let refused = "ERROR:  40001: could not serialize access due to concurrent update";
    assert_eq!(postgres.run("commit"), [refused]);
    assert_eq!(*accounts.get("ann").expect("it is there"), ann);
    assert_eq!(postgres.run("select count(*) from pg_class where relname = 't'"), ["0"]);
    assert_eq!(postgres.run("alter role ann createdb"), ["ALTER ROLE"]);
}

#[test]
fn a_role_is_not_dropped_while_a_transaction_gives_it_something() {
    let mut world = World::new();
    let (mut one, mut two) = (world.session(), world.session());
    one.lines("create role ann\ncreate table t (a int)\nbegin\ngrant select on t to ann");
    two.run("set lock_timeout = '10ms'");
    let waited = "ERROR:  55P03: canceling statement due to lock timeout";
    assert_eq!(two.run("drop role ann"), [waited]);
    assert_eq!(two.run("create role ann"), ["ERROR:  42710: role \"ann\" already exists"]);
    one.lines("rollback\nbegin\ndrop role ann");
    assert_eq!(two.run("grant select on t to ann"), [waited]);
    assert_eq!(two.run("alter table t owner to ann"), [waited]);
    one.run("commit");
    assert_eq!(two.run("grant select on t to ann"), ["ERROR:  42704: role \"ann\" does not exist"]);
}

#[test]
fn a_revoked_right_ends_prepared_statements_of_both_protocols() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines("create role ann login\ncreate table t (a int)\ninsert into t values (1)\ngrant select on t to ann");
    let mut ann = client(&mut world, "ann");
    ann.run("prepare p as select a from t");
    assert_eq!(ann.run("execute p"), ["1"]);
    assert_eq!(ann.run("select a from t where a = 1"), ["1"]);
    postgres.run("revoke select on t from ann");
    let denied = "ERROR:  42501: permission denied for table t";
    assert_eq!(ann.run("execute p"), [denied]);
    assert_eq!(ann.run("select a from t where a = 1"), [denied]);
    postgres.run("grant select on t to ann");
    assert_eq!(ann.run("execute p"), ["1"]);
}

#[test]
fn what_roles_own_is_reassigned_or_dropped_with_their_privileges() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines(
        "create role ann\ncreate role bob\ncreate role eve\ncreate table t (a int)\ncreate table u (a int)\ncreate view v as select a from t",
    );
    postgres
        .lines("alter table t owner to ann\ngrant select on u to ann with grant option\ngrant select (a) on u to ann");
    let mut ann = client(&mut world, "ann");
    assert_eq!(ann.run("grant select on u to bob"), ["GRANT"]);
    let rights =
        "select relname, pg_get_userbyid(relowner), relacl from pg_class where relname in ('t', 'u') order by 1";
    postgres.run("begin");
    assert_eq!(postgres.run("reassign owned by ann to eve"), ["REASSIGN OWNED"]);
    let kept = "u|postgres|{postgres=arwdDxt/postgres,ann=r*/postgres,bob=r/ann}";
    assert_eq!(postgres.run(rights), ["t|eve|", kept]);
    postgres.run("rollback");
    let required = "ERROR 2BP01 cannot drop objects owned by role pg_monitor because they are required by the database system |  |  | 0";
    assert_eq!(answer(&mut postgres, "drop owned by ann, pg_monitor"), [required]);
    let depends = "ERROR 2BP01 cannot drop table t because other objects depend on it | view v depends on table t | Use DROP ... CASCADE to drop the dependent objects too. | 0";
    assert_eq!(answer(&mut postgres, "drop owned by ann"), [depends]);
    let denied = "ERROR 42501 permission denied to drop objects | Only roles with privileges of role \"eve\" may drop objects owned by it. |  | 0";
    assert_eq!(answer(&mut ann, "drop owned by eve"), [denied]);
    assert_eq!(
        answer(&mut postgres, "drop owned by ann cascade"),
        ["NOTICE 00000 drop cascades to view v", "DROP OWNED"]
    );
    assert_eq!(postgres.run(rights), ["u|postgres|{postgres=arwdDxt/postgres}"]);
    assert_eq!(postgres.run("drop role ann"), ["DROP ROLE"]);
}

#[test]
fn a_monitor_has_the_rights_of_the_roles_that_read_statistics() {
    let mut world = World::new();
    let mut postgres = world.session();
    postgres.lines("create role ann\ngrant pg_monitor to ann");
    let has =
        "select pg_has_role('ann', 'pg_read_all_stats', 'usage'), pg_has_role('ann', 'pg_write_all_data', 'member')";
    assert_eq!(postgres.run(has), ["t|f"]);
    let members = "select count(*) from pg_auth_members where member = 'pg_monitor'::regrole";
    assert_eq!(postgres.run(members), ["3"]);
}

const STORED: &str = "select coalesce(rolname, '-'), setdatabase <> 0, setconfig from pg_db_role_setting left join pg_roles r on r.oid = setrole order by 1, 2";

#[test]
fn settings_of_roles_and_databases_follow_their_transaction_and_survive_a_crash() {
    let mut world = World::new();
    let (mut one, mut two) = (world.session(), world.session());
    one.lines("create role ann login\ncreate role bob login\ncreate database d\nalter role ann set work_mem = '1MB'");
    one.lines(
        "begin\nalter role ann set lock_timeout = 5\nsavepoint s\nalter role ann in database d set work_mem = '2MB'",
    );
    one.lines("alter role ann reset work_mem");
    assert_eq!(one.run(STORED), ["ann|f|{lock_timeout=5}", "ann|t|{work_mem=2MB}"]);
    assert_eq!(two.run(STORED), ["ann|f|{work_mem=1MB}"], "others see settings as they are committed");
    one.run("rollback to s");
    assert_eq!(one.run(STORED), ["ann|f|{work_mem=1MB,lock_timeout=5}"]);
    one.run("commit");
    assert_eq!(two.run(STORED), ["ann|f|{work_mem=1MB,lock_timeout=5}"]);
    let long = format!("alter role bob set my.text = '{}'", "x".repeat(5000));
    assert_eq!(one.run(&long), ["ALTER ROLE"]);
    one.lines("alter database d set work_mem = '4MB'\nalter role all set work_mem = '5MB'");
    let stored = one.run(STORED);
    assert_eq!(stored.len(), 4);
    two.lines("begin\nalter role ann reset all\nalter role bob reset all\nalter role all set lock_timeout = 9");
    let mut world = world.crash(one);
    let mut one = world.session();
    assert_eq!(one.run(STORED), stored, "what is committed is there, and nothing else");
    one.lines("drop role ann, bob\ndrop database d\nalter role all reset all");
    let mut world = world.crash(one);
    let mut one = world.session();
    assert!(one.run(STORED).is_empty());
    // A database of the same name is another one.
    one.lines("create database d\ncreate role ann login");
    let mut session = Client(login_to(&world, "ann", "d").unwrap());
    assert_eq!(session.run("select source from pg_settings where name = 'work_mem'"), ["default"]);
}

#[test]
fn a_change_of_settings_keeps_the_role_and_the_database_from_being_dropped() {
    let mut world = World::new();
    let (mut one, mut two) = (world.session(), world.session());
    one.lines("create role ann login\ncreate database d\nbegin\nalter role ann in database d set work_mem = '1MB'");
    two.run("set lock_timeout = 20");
    let refused = ["ERROR:  55P03: canceling statement due to lock timeout"];
    assert_eq!(two.run("drop role ann"), refused);
    assert_eq!(two.run("drop database d"), refused);
    one.run("commit");
    assert_eq!(two.lines("drop role ann\ndrop database d"), ["DROP ROLE", "DROP DATABASE"]);
    assert!(two.run(STORED).is_empty());
}

#[test]
fn stored_settings_are_bounded_for_each_role() {
    let mut world = World::new();
    let mut one = world.session();
    one.lines("create role ann\ncreate role bob");
    let store = |role: &str, place: &str, name: usize, size: usize| {
        format!("alter role {role} {place} set my.v{name} = '{}'", "x".repeat(size))
    };
    let mut stored = 0;
    while one.run(&store("ann", "", stored, 8000)) == ["ALTER ROLE"] {
        stored += 1;
    }
    assert_eq!(stored, 8, "64 KiB in one record");
    assert_eq!(one.run(&store("ann", "", 0, 9900))[0], "ERROR:  54000: too many settings of a role or database");
    assert_eq!(one.run(&store("bob", "", 0, 60_000)), ["ALTER ROLE"], "each role by itself");
    let mut databases = 0;
    loop {
        let place = format!("in database d{databases}");
        one.run(&format!("create database d{databases}"));
        if one.run(&store("ann", &place, 0, 60_000)) != ["ALTER ROLE"] {
            break;
        }
        databases += 1;
    }
    assert_eq!(databases, 16, "1 MiB in all records of a role");
    assert_eq!(one.run("alter role ann reset all"), ["ALTER ROLE"]);
    assert_eq!(one.run(&store("ann", "in database d16", 0, 60_000)), ["ALTER ROLE"]);
}
