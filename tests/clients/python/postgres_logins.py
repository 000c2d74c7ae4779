"""Logins at the PostgreSQL door by psycopg and psql: no password, SCRAM with passwords that were set at each door, channel binding, TLS, denials; and how connections end: cancel requests, limits, a server that stops."""

import os
import signal
import subprocess
import tempfile
import threading
import time

import psycopg
import pymysql
import redis

from beluga import Server, Tally, certificate

tally = Tally()
SCRIPT = os.path.join(os.path.dirname(__file__), "../../../scripts/postgres.sh")


def connect(server, user="postgres", **more):
    options = {"host": "127.0.0.1", "dbname": "postgres", "sslmode": "disable", "connect_timeout": 20, "autocommit": True, **more}
    return psycopg.connect(port=server.postgres_port, user=user, **options)


def fails(name, server, state, text, **options):
    try:
        connect(server, **options).close()
        tally.check(name, False, "it let in")
    except psycopg.OperationalError as error:
        # libpq keeps no SQLSTATE of an error before the login.
        tally.check(name, text in str(error), f"found {error!s}, expected {state} {text}")


def enters(name, server, **options):
    try:
        with connect(server, **options) as connection:
            tally.equal(name, connection.execute("select 1").fetchone(), (1,))
            return True
    except psycopg.Error as error:
        tally.check(name, False, str(error))
        return False


def first_login(server):
    enters("postgres needs no password", server)
    fails("an unknown role", server, "28P01", 'password authentication failed for user "nobody"', user="nobody", password="x")
    fails("no TLS without a certificate", server, "", "server does not support SSL", sslmode="require")
    enters("TLS is preferred, not needed", server, sslmode="prefer", gssencmode="prefer")
    with connect(server) as connection:
        parameters = {name: connection.info.parameter_status(name) for name in ("server_encoding", "client_encoding", "DateStyle", "integer_datetimes", "standard_conforming_strings")}
        expected = {"server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "integer_datetimes": "on", "standard_conforming_strings": "on"}
        tally.equal("settings that clients follow", parameters, expected)
        tally.check("version", 160000 <= connection.info.server_version < 170000, connection.info.server_version)


def doors(server):
    """A password that is set at any door opens this one by SCRAM."""
    wire = redis.Redis(port=server.port)
    wire.execute_command("ACL", "SETUSER", "ann", "on", ">first", ">second", "~*", "+@all")
    enters("a password of ACL SETUSER", server, user="ann", password="second", require_auth="scram-sha-256")
    fails("of several passwords the last has the verifier", server, "28P01", "password authentication failed", user="ann", password="first")
    wire.execute_command("ACL", "SETUSER", "ann", "<second")
    fails("a removed password", server, "28000", "has no SCRAM-SHA-256 verifier", user="ann", password="second")
    wire.execute_command("ACL", "SETUSER", "ann", "resetpass", ">pässword ½")
    enters("a password that SASLprep changes", server, user="ann", password="pässword 1⁄2")
    my = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True)
    my.cursor().execute("create user bob identified by 'secret'")
    my.cursor().execute("create user old identified with mysql_native_password by 'secret'")
    for user in ("bob", "old"):
        my.cursor().execute(f"grant all on *.* to {user} with grant option")
        enters(f"a password of CREATE USER: {user}", server, user=user, password="secret", require_auth="scram-sha-256")
        fails(f"a wrong one: {user}", server, "28P01", "password authentication failed", user=user, password="Secret")
    my.cursor().execute("alter user bob account lock")
    fails("a locked account", server, "28000", 'role "bob" is not permitted to log in', user="bob", password="secret")
    my.cursor().execute("create user far@'10.0.0.1' identified by 'secret'")
    fails("an account of a host", server, "28P01", "password authentication failed", user="far", password="secret")
    digest = "5a5a" * 16
    wire.execute_command("ACL", "SETUSER", "digest", "on", f"#{digest}")
    fails("a digest alone, without TLS", server, "28000", "Set the password again in plain text", user="digest", password="x")


def encrypted(chain, key):
    settings = ["--postgres-ssl-cert", chain, "--postgres-ssl-key", key, "--redis-password", "secret", "--login-delay-max", "0"]
    with Server(*settings, mysql=True, postgres=True) as server:
        tls = {"sslmode": "verify-full", "sslrootcert": chain, "host": "localhost", "password": "secret"}
        enters("channel binding", server, channel_binding="require", **tls)
        enters("TLS without channel binding", server, channel_binding="disable", **tls)
        enters("redis_password is the password of postgres", server, password="secret", sslmode="disable")
        fails("channel binding without TLS", server, "", "channel binding required", password="secret", sslmode="disable", channel_binding="require")
        my = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", password="secret", ssl_disabled=True)
        wire = redis.Redis(port=server.port, password="secret")
        wire.execute_command("ACL", "SETUSER", "digest", "on", "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", "~*", "+@all")
        enters("a digest alone, with TLS", server, user="digest", require_auth="password", **tls)
        fails("a digest alone, and another password", server, "28P01", "password authentication failed", user="digest", **{**tls, "password": "Secret"})
        my.cursor().execute("create user safe identified by 'secret' require ssl")
        my.cursor().execute("grant all on *.* to safe with grant option")
        fails("an account that requires TLS", server, "28000", "with TLS only", user="safe", password="secret", sslmode="disable")
        enters("an account that requires TLS, with it", server, user="safe", **tls)


def answer(action):
    """Runs a statement in a thread of its own. Returns a function that waits for its answer: rows, or the state or number of its error."""
    answers = []

    def run():
        try:
            answers.append(action())
        except psycopg.Error as error:
            answers.append(error.sqlstate)
        except pymysql.Error as error:
            answers.append(error.args[0])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait(seconds=20):
        thread.join(seconds)
        return answers[0] if answers else "no answer"

    return wait


def sessions(server):
    """Each door lists and ends the sessions of the other."""
    my_connect = lambda: pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True, autocommit=True)
    pg, my = connect(server, application_name="one"), my_connect()
    pid, thread_id = pg.info.backend_pid, my.thread_id()

    def listed():
        with my.cursor() as cursor:
            cursor.execute("show full processlist")
            return {row[0]: row[1:] for row in cursor.fetchall()}

    def ask(connection, text):
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall()

    def seen():
        return {row[0]: row[1:] for row in pg.execute("select pid, usename, state, query from pg_stat_activity").fetchall()}

    tally.equal("an idle session in SHOW PROCESSLIST", (listed()[pid][0], listed()[pid][3]), ("postgres", "Sleep"))
    tally.equal("an idle session in pg_stat_activity", seen()[thread_id][:2], ("root", "idle"))
    tally.equal("its own row", seen()[pid][:2], ("postgres", "active"))
    sleeps = answer(lambda: pg.execute("select pg_sleep(3600)"))
    tally.until("a statement in SHOW PROCESSLIST", lambda: "pg_sleep" in (listed()[pid][6] or ""), detail=listed)
    my.cursor().execute(f"kill query {pid}")
    tally.equal("KILL QUERY", sleeps(), "57014")
    other = my_connect()
    sleeps = answer(lambda: ask(other, "select sleep(3600)"))
    tally.until("a statement in pg_stat_activity", lambda: "sleep(3600)" in seen()[other.thread_id()][2] and seen()[other.thread_id()][1] == "active", detail=seen)
    tally.equal("pg_cancel_backend", (pg.execute("select pg_cancel_backend(%s)", (other.thread_id(),)).fetchone(), sleeps()), ((True,), ((1,),)))
    tally.equal("pg_terminate_backend", pg.execute("select pg_terminate_backend(%s)", (other.thread_id(),)).fetchone(), (True,))
    tally.until("the session has ended", lambda: other.thread_id() not in seen(), detail=seen)
    second = connect(server)
    tally.check("ids are unique", len({pid, thread_id, second.info.backend_pid}) == 3)
    my.cursor().execute(f"kill {second.info.backend_pid}")
    try:
        second.execute("select 1")
        tally.check("KILL", False, "the session goes on")
    except psycopg.OperationalError:
        tally.check("KILL", True)
    tally.until("a session that KILL has ended is not listed", lambda: second.info.backend_pid not in listed(), detail=listed)
    tally.equal("no such session", pg.execute("select pg_terminate_backend(1000000)").fetchone(), (False,))


def ends(server):
    """How a connection ends."""
    connection = connect(server)
    asked = {}
    values = ", ".join(f"({i})" for i in range(1000))
    endless = "select count(*) from " + ", ".join(f"(values {values}) {name}(x)" for name in "abcd")

    def compute():
        try:
            connection.execute(endless)
        except psycopg.Error as error:
            asked["state"] = error.sqlstate

    thread = threading.Thread(target=compute)
    begun = time.monotonic()
    thread.start()
    # A request that comes before the statement ends nothing.
    while thread.is_alive() and time.monotonic() - begun < 30:
        connection.cancel_safe(timeout=5)
        thread.join(0.1)
    tally.equal("a cancel request", asked.get("state"), "57014")
    tally.check("a cancel request is quick", time.monotonic() - begun < 20)
    tally.equal("the session goes on", connection.execute("select 1").fetchone(), (1,))
    sleeping = connect(server)
    sleeps = answer(lambda: sleeping.execute("select pg_sleep(3600)"))
    asleep = "select count(*) from pg_stat_activity where query like '%pg_sleep(3600)%' and state = 'active' and pid <> pg_backend_pid()"
    tally.until("a statement that waits for the end", lambda: connection.execute(asleep).fetchone() == (1,))
    # libpq shows an error that it reads together with the end of a reply as a notice.
    noticed = []
    connection.add_notice_handler(lambda notice: noticed.append(notice.sqlstate))
    server.process.send_signal(signal.SIGTERM)
    try:
        while True:
            connection.execute("select 1")
            time.sleep(0.01)
    except psycopg.Error as error:
        tally.check("a server that stops says so", "57P01" in [error.sqlstate, *noticed] or "terminating connection" in str(error), repr(error))
    tally.check("the wait of a statement ends with the server", sleeps() != "no answer")
    tally.equal("the server has stopped", server.process.wait(20), 0)


def limits():
    with Server("--max-connections", "3", postgres=True) as server:
        held = []
        for _ in range(5):
            try:
                held.append(connect(server))
            except psycopg.OperationalError as error:
                tally.check("too many clients", "too many clients already" in str(error), str(error))
                break
        tally.check("no more than the limit", len(held) <= 3, len(held))


def psql(server):
    installed = subprocess.run([SCRIPT, "install"], capture_output=True).returncode == 0
    if not installed:
        return tally.skip("no psql")
    program = os.path.join(subprocess.run([SCRIPT, "bin"], capture_output=True, text=True).stdout.strip(), "psql")
    words = [program, "-X", "-At", "-h", "127.0.0.1", "-p", str(server.postgres_port), "-U", "postgres", "postgres"]
    done = subprocess.run([*words, "-c", "select 1", "-c", "begin", "-c", "rollback"], capture_output=True, text=True)
    tally.equal("psql", (done.returncode, done.stdout), (0, "1\nBEGIN\nROLLBACK\n"))
    done = subprocess.run(words, input="select 1; syntax error here; select 1;", capture_output=True, text=True)
    tally.check("psql shows where an error is", done.stdout == "1\n1\n" and "LINE 1: syntax error here" in done.stderr, (done.stdout, done.stderr))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with Server("--login-delay-max", "0", mysql=True, postgres=True) as server:
            first_login(server)
            doors(server)
            psql(server)
            sessions(server)
            ends(server)
        encrypted(*certificate(folder))
        limits()
    tally.close()
