"""Roles and rights at the PostgreSQL door beside a real PostgreSQL 16: random grants, revokes, memberships, owners and statements of several roles have the same outcome.

    postgres_roles.py [--seed N] [--seconds N]
    postgres_roles.py --ours PORT --theirs PORT    between servers that run

Each round makes roles and objects, and then draws statements, each run by one of the roles. Tags, rows, notices and errors (SQLSTATE, message, detail, hint) agree, and at the end of a round so do the owners, the rights and the memberships that the catalogs show.
"""

import argparse
import os
import random
import subprocess
import tempfile
import time

from psycopg import pq

from beluga import Server, Tally, free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
SCRIPT = os.path.join(ROOT, "scripts/postgres.sh")
DATABASE = "rights"
ROLES = ["r_ann", "r_bob", "r_cat", "r_dan"]
TABLES = ["t0", "t1", "s.t2"]
VIEWS = ["v0", "v1"]
COLUMNS = ["a", "b"]
tally = Tally()


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--ours", type=int)
    parser.add_argument("--theirs", type=int)
    given = parser.parse_args()
    if given.seed is None:
        given.seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {given.seed}", flush=True)
    return given


class Side:
    """One server, with a session for each role."""

    def __init__(self, port):
        self.port = port
        self.sessions = {}
        self.notices = []

    def session(self, role):
        if role not in self.sessions:
            database = "postgres" if role is None else DATABASE
            conn = pq.PGconn.connect(f"host=127.0.0.1 port={self.port} user=postgres dbname={database} sslmode=disable".encode())
            if conn.status != pq.ConnStatus.OK:
                raise RuntimeError(conn.error_message.decode())
            conn.notice_handler = lambda result: self.notices.append(self.told(result))
            self.sessions[role] = conn
            # Stored settings may have given the session another role.
            self.ask(role, "set role none")
            if role not in (None, "postgres"):
                self.ask(role, f"set session authorization {role}")
        return self.sessions[role]

    @staticmethod
    def told(result):
        fields = [pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL, pq.DiagnosticField.MESSAGE_HINT]
        return tuple((result.error_field(field) or b"").decode() for field in fields)

    def ask(self, role, text):
        conn = self.session(role)
        self.notices.clear()
        result = conn.exec_(text.encode())
        if result.status == pq.ExecStatus.TUPLES_OK:
            answer = "rows", sorted((tuple(result.get_value(row, at) for at in range(result.nfields)) for row in range(result.ntuples)), key=repr)
        elif result.status == pq.ExecStatus.COMMAND_OK:
            answer = "done", result.command_status.decode()
        elif result.error_field(pq.DiagnosticField.SQLSTATE) is None:
            raise RuntimeError(f"connection lost: {conn.error_message.decode()}")
        else:
            answer = ("error", *self.told(result))
        return answer, list(self.notices)

    def leave(self):
        for conn in self.sessions.values():
            conn.finish()
        self.sessions.clear()

    def clear(self):
        """Leaves neither the database nor the roles of an earlier round."""
        self.leave()
        self.ask(None, f"drop database if exists {DATABASE}")
        self.ask(None, "alter role all reset all")
        for role in ROLES:
            self.ask(None, f"drop role if exists {role}")


class Drawer:
    def __init__(self, rng):
        self.rng = rng

    def role(self):
        return self.rng.choice(ROLES)

    def grantee(self):
        return self.rng.choice([*ROLES, "public"])

    def relation(self):
        return self.rng.choice(TABLES + VIEWS)

    def privileges(self, known, columns=False):
        if self.rng.random() < 0.15:
            return "all"
        chosen = self.rng.sample(known, self.rng.randint(1, 2))
        if columns and self.rng.random() < 0.4:
            fit = [one for one in chosen if one in ("select", "insert", "update", "references")] or ["select"]
            return ", ".join(f"{one} ({self.rng.choice(COLUMNS)})" for one in fit)
        return ", ".join(chosen)

    def grant(self):
        rng = self.rng
        is_grant = rng.random() < 0.6
        kind = rng.random()
        if kind < 0.55:
            of = rng.choice(TABLES)
            what = f"{self.privileges(['select', 'insert', 'update', 'delete', 'truncate', 'references'], columns=True)} on {of}"
        elif kind < 0.7:
            what = f"{self.privileges(['select', 'insert', 'update', 'delete'])} on {rng.choice(VIEWS)}"
        elif kind < 0.85:
            what = f"{self.privileges(['usage', 'create'])} on schema {rng.choice(['s', 'public'])}"
        elif kind < 0.92:
            what = f"{self.privileges(['usage', 'select', 'update'])} on sequence q"
        elif kind < 0.96:
            what = f"{self.privileges(['create', 'connect', 'temporary'])} on database {DATABASE}"
        else:
            what = f"{self.privileges(['select', 'insert'])} on all tables in schema s"
        if is_grant:
            return f"grant {what} to {self.grantee()}{rng.choice(['', '', ' with grant option'])}"
        return f"revoke {rng.choice(['', '', 'grant option for '])}{what} from {self.grantee()}{rng.choice(['', ' cascade'])}"

    def membership(self):
        of, member = self.role(), self.role()
        if self.rng.random() < 0.6:
            more = self.rng.choice(["", "", " with admin option", " with inherit false", " with set false", " with inherit true, set true"])
            return f"grant {of} to {member}{more}"
        return f"revoke {self.rng.choice(['', 'admin option for ', 'inherit option for '])}{of} from {member}{self.rng.choice(['', ' cascade'])}"

    def statement(self):
        rng = self.rng
        of, column, other = self.relation(), rng.choice(COLUMNS), rng.choice(COLUMNS)
        return rng.choice([
            f"select {column} from {of}",
            f"select * from {of}",
            f"select count(*) from {of}",
            f"select {column} from {of} where {other} > 0",
            f"select x.{column} from {of} x join {self.relation()} y on x.a = y.a",
            f"select 1 where exists (select {column} from {of})",
            f"with q as (select {column} from {of}) select 1",
            f"with q as (select {column} from {of}) select * from q",
            f"insert into {of} ({column}) values (1)",
            f"insert into {of} values (1, 2)",
            f"insert into {of} (a) select {column} from {self.relation()} limit 1",
            f"insert into {of} ({column}) values (1) returning {other}",
            f"update {of} set {column} = 1",
            f"update {of} set {column} = {other} + 1",
            f"update {of} set {column} = 1 where {other} = 1",
            f"update {of} set {column} = 2 returning {other}",
            f"update {of} x set {column} = y.{other} from {self.relation()} y where y.a = x.a",
            f"delete from {of}",
            f"delete from {of} where {column} = 1",
            f"delete from {of} x using {self.relation()} y where x.a = y.{column}",
            f"merge into {rng.choice(TABLES)} x using (values (1)) y(k) on x.{column} = y.k when matched then update set {other} = 3 when not matched then insert ({column}) values (4)",
            f"merge into {rng.choice(TABLES)} x using {self.relation()} y on x.a = y.a when matched then delete",
            f"truncate {rng.choice(TABLES)}",
            f"select {column} from {rng.choice(TABLES)} for update",
            "select nextval('q') > 0",
            "select setval('q', 5)",
            "select is_called from q",
            f"select has_table_privilege('{of}', 'select'), has_any_column_privilege('{of}', 'update'), has_column_privilege('{of}', '{column}', 'insert')",
            f"select has_table_privilege('{self.role()}', '{of}', 'select with grant option'), has_schema_privilege('{self.role()}', 's', 'usage')",
            f"select pg_has_role('{self.role()}', 'usage'), pg_has_role('{self.role()}', '{self.role()}', 'member'), pg_has_role('{self.role()}', 'set')",
            "select current_user, session_user",
        ])

    def definition(self):
        rng = self.rng
        of = rng.choice(TABLES)
        return rng.choice([
            f"alter table {of} owner to {self.role()}",
            f"alter view {rng.choice(VIEWS)} owner to {self.role()}",
            f"alter schema s owner to {self.role()}",
            f"alter sequence q owner to {self.role()}",
            f"alter table {of} add column c int",
            f"alter table {of} drop column if exists c",
            f"create index on {of} (a)",
            f"create or replace view {rng.choice(VIEWS)} as select a, b from {rng.choice(['t0', 't1'])}",
            "create table if not exists s.own (a int)",
            "drop table if exists s.own",
            "create table if not exists own (a int)",
            "drop table if exists own",
            f"create table if not exists child (a int references {rng.choice(['t0', 't1'])})",
            "drop table if exists child",
            f"alter role {self.role()} {rng.choice(['createrole', 'nocreaterole', 'noinherit', 'inherit', 'createdb', 'nocreatedb'])}",
            "create schema extra",
            "drop schema if exists extra",
            f"set role {rng.choice([*ROLES, 'none'])}",
            "reset role",
            self.setting(),
            self.default(),
            f"create sequence if not exists {rng.choice(['', 's.'])}own_q",
            f"drop sequence if exists {rng.choice(['', 's.'])}own_q",
            "create view s.own_v as select 1 as a",
            "drop view if exists s.own_v",
            "create table s.own_as as select 1 as a",
            "drop table if exists s.own_as",
            f"drop role {self.role()}",
            f"drop owned by {self.role()}",
            f"reassign owned by {self.role()} to {self.role()}",
        ])

    def default(self):
        """Returns a statement that changes the privileges of new objects."""
        rng = self.rng
        of = rng.choice(["", "", f"for role {self.role()} ", f"for user {self.role()}, {self.role()} ", "for role current_user "])
        place = rng.choice(["", "", "in schema s ", "in schema public, s ", "in schema missing "])
        objects = rng.choice(["tables", "tables", "sequences", "functions", "routines", "schemas"])
        privileges = rng.choice(["all", "all privileges", "select", "insert, select", "usage", "execute", "create", "usage, select", "update", "select (a)", "nothing"])
        who = rng.choice([self.role(), self.role(), "public", f"{self.role()}, {self.role()}", "current_user", "postgres"])
        if rng.random() < 0.5:
            return f"alter default privileges {of}{place}grant {privileges} on {objects} to {who}{rng.choice(['', '', ' with grant option'])}"
        return f"alter default privileges {place}{of}revoke {rng.choice(['', '', 'grant option for '])}{privileges} on {objects} from {who}{rng.choice(['', ' cascade', ' restrict'])}"

    def setting(self):
        """Returns a statement that changes the settings of new sessions."""
        rng = self.rng
        of = rng.choice([f"role {self.role()}", f"role {self.role()}", f"role {self.role()} in database {DATABASE}", f"database {DATABASE}", f"role all in database {DATABASE}", "role all"])
        name = rng.choice(["work_mem", "Lock_Timeout", "extra_float_digits", "search_path", "datestyle", "timezone", "my.one", "my.two", "role", "nope", "port"])
        values = {
            "work_mem": ["'2MB'", "64", "'many'"], "Lock_Timeout": ["5", "'1min'", "-1"], "extra_float_digits": ["2", "9"], "search_path": ["s, public", "'$user', \"B c\"", "'a,,b'"],
            "datestyle": ["german", "'sql, dmy'", "'iso, sql'"], "timezone": ["'UTC'", "5", "'no/where'", "interval '-01:30' hour to minute"], "role": [self.role(), "none", "nobody"],
        }
        if rng.random() < 0.3:
            return f"alter {of} reset {rng.choice([name, 'all'])}"
        # The two servers' own values of work_mem differ.
        if name != "work_mem" and rng.random() < 0.1:
            return f"alter {of} set {name} from current"
        return f"alter {of} set {name} {rng.choice(['=', 'to'])} {rng.choice([*values.get(name, ['1', 'word']), 'default'])}"

    def draw(self):
        """Returns a role and its statement."""
        kind = self.rng.random()
        role = self.rng.choice([*ROLES, *ROLES, "postgres"])
        if kind < 0.25:
            return self.rng.choice([role, "postgres"]), self.grant()
        if kind < 0.33:
            return self.rng.choice([role, "postgres"]), self.membership()
        if kind < 0.38:
            return self.rng.choice([role, "postgres"]), self.setting()
        if kind < 0.44:
            return self.rng.choice([role, role, "postgres"]), self.default()
        if kind < 0.58:
            return role, self.definition()
        return role, self.statement()


SETUP = [
    *[f"create role {role} login" for role in ROLES],
    "create schema s",
    "create table t0 (a int primary key default 0, b int)",
    "create table t1 (a int primary key default 0, b int)",
    "create table s.t2 (a int, b int)",
    "insert into t0 values (1, 1), (2, 2)",
    "insert into s.t2 values (1, 1)",
    "create view v0 as select a, b from t0",
    "create view v1 as select a, b from v0 where a > 0",
    "create sequence q",
]

SHOWN = [
    "select relname, pg_get_userbyid(relowner), relacl::text from pg_class where relnamespace in (select oid from pg_namespace where nspname in ('public', 's')) and relkind in ('r', 'v', 'S')",
    "select relname, attname, attacl::text from pg_attribute join pg_class c on c.oid = attrelid where attacl is not null and relnamespace in (select oid from pg_namespace where nspname in ('public', 's'))",
    "select nspname, pg_get_userbyid(nspowner), nspacl::text from pg_namespace where nspname in ('public', 's', 'extra')",
    f"select datname, pg_get_userbyid(datdba), datacl::text from pg_database where datname = '{DATABASE}'",
    "select roleid::regrole::text, member::regrole::text, grantor::regrole::text, admin_option, inherit_option, set_option from pg_auth_members where member::regrole::text like 'r\\_%'",
    "select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin from pg_roles where rolname like 'r\\_%'",
    "select pg_get_userbyid(defaclrole), coalesce(nspname, '-'), defaclobjtype::text, defaclacl::text from pg_default_acl left join pg_namespace n on n.oid = defaclnamespace",
    f"select coalesce(datname, '-'), coalesce(rolname, '-'), setconfig from pg_db_role_setting left join pg_database d on d.oid = setdatabase left join pg_roles r on r.oid = setrole where coalesce(datname, '{DATABASE}') = '{DATABASE}'",
    "select rolname, rolconfig from pg_roles where rolname like 'r\\_%'",
    "select grantor::text, grantee::text, table_schema::text, table_name::text, privilege_type::text, is_grantable::text from information_schema.role_table_grants where table_schema in ('public', 's')",
]


# Dependent objects, and rows that a change meets, have no fixed order. Of a row that may not be read whole PostgreSQL shows a part, and Beluga nothing.
OPEN_DETAILS = ["2BP01", "23502", "23505"]


def equal_or_open(one, other):
    """Whether two answers are the same, but for details that are open."""
    if one == other:
        return True
    return one[0][:3] == other[0][:3] and one[0][0] == "error" and one[0][1] in OPEN_DETAILS and one[1] == other[1]


# Settings that the suite's statements store.
APPLIED = "select name, setting, source, reset_val from pg_settings where name in ('work_mem', 'lock_timeout', 'extra_float_digits', 'search_path', 'DateStyle', 'TimeZone') and source not in ('default', 'configuration file')"


def login(side):
    """Returns the values and origins of settings in a new session, and its current role."""
    conn = pq.PGconn.connect(f"host=127.0.0.1 port={side.port} user=postgres dbname={DATABASE} sslmode=disable".encode())
    assert conn.status == pq.ConnStatus.OK, conn.error_message.decode()
    asked = [APPLIED, "select current_setting('my.one', true), current_setting('my.two', true), current_user"]
    answers = [conn.exec_(text.encode()) for text in asked]
    rows = [sorted(tuple(result.get_value(row, at) for at in range(result.nfields)) for row in range(result.ntuples)) for result in answers]
    conn.finish()
    return rows


def play_round(ours, theirs, rng):
    for side in (ours, theirs):
        side.clear()
        side.ask(None, f"create database {DATABASE}")
        for text in SETUP:
            answer, _ = side.ask("postgres", text)
            assert answer[0] != "error", (side.port, text, answer)
    drawer, played = Drawer(rng), []
    for _ in range(120):
        role, text = drawer.draw()
        own, real = ours.ask(role, text), theirs.ask(role, text)
        played.append(f"{role}: {text}")
        if not equal_or_open(own, real):
            tally.check("the same outcome", False, f"{played[-1]}\n  ours   {own}\n  theirs {real}\n  after\n    " + "\n    ".join(played[-25:]))
            return False
    for role in ("postgres", rng.choice(ROLES)):
        for text in SHOWN:
            own, real = ours.ask(role, text), theirs.ask(role, text)
            if own != real:
                tally.check("the same catalogs", False, f"{role}: {text}\n  ours   {own}\n  theirs {real}\n  after\n    " + "\n    ".join(played[-40:]))
                return False
    role = rng.choice(["postgres", *ROLES])
    for side in (ours, theirs):
        # The real server asks nobody for a password; ours only lets postgres in without one.
        side.ask(None, f"alter role postgres in database {DATABASE} set role = {role}")
    own, real = login(ours), login(theirs)
    if own != real:
        tally.check("the same settings of a login", False, f"{role}\n  ours   {own}\n  theirs {real}\n  after\n    " + "\n    ".join(played[-40:]))
        return False
    return True


def play(ours, theirs, given):
    ours, theirs = Side(ours), Side(theirs)
    end, rounds, failed = time.monotonic() + given.seconds, 0, 0
    while time.monotonic() < end and failed < 3:
        rng = random.Random(f"{given.seed} {rounds}")
        failed += not play_round(ours, theirs, rng)
        rounds += 1
    for side in (ours, theirs):
        side.clear()
        side.leave()
    tally.check(f"{rounds} rounds of 120 statements", failed == 0)


def main():
    given = options()
    if given.ours is not None:
        play(given.ours, given.theirs, given)
        return tally.close()
    with Server(postgres=True) as server:
        if subprocess.run([SCRIPT, "install"]).returncode:
            tally.skip("no PostgreSQL to compare with")
        else:
            with tempfile.TemporaryDirectory(prefix="beluga-postgres-") as folder:
                port = free_port()
                subprocess.run([SCRIPT, "start", folder, str(port)], check=True, stdout=subprocess.DEVNULL)
                try:
                    play(server.postgres_port, port, given)
                finally:
                    subprocess.run([SCRIPT, "stop", folder], check=True)
    tally.close()


if __name__ == "__main__":
    main()
