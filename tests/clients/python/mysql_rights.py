"""Users, roles and rights with real clients: logins by each method, locks, expiry, hosts, TLS, rights of running sessions, one account at two doors, and all of it again after a kill."""

import subprocess

import pymysql
import redis

from beluga import Server, Tally
from sql import ask, come

tally = Tally()


def enters(server, user, **more):
    try:
        come(server, user, **more).close()
        return True
    except pymysql.Error as error:
        return error.args[0]


def logins(server, root):
    for method in ("caching_sha2_password", "mysql_native_password"):
        ask(root, f"CREATE USER by_{method[:5]} IDENTIFIED WITH {method} BY 'se cret'")
        name = f"by_{method[:5]}"
        tally.equal(f"right, {method}", enters(server, name, password="se cret"), True)
        tally.equal(f"again, {method}", enters(server, name, password="se cret"), True)
        tally.equal(f"wrong, {method}", enters(server, name, password="secret"), 1045)
        tally.equal(f"none, {method}", enters(server, name), 1045)
        ask(root, f"ALTER USER {name} IDENTIFIED BY 'other'")
        tally.equal(f"the old one, {method}", enters(server, name, password="se cret"), 1045)
        tally.equal(f"the new one, {method}", enters(server, name, password="other"), True)
    ask(root, "CREATE USER open")
    tally.equal("no password", enters(server, "open"), True)
    tally.equal("no password but one is given", enters(server, "open", password="x"), 1045)
    ask(root, "ALTER USER open ACCOUNT LOCK")
    tally.equal("locked", enters(server, "open"), 3118)
    tally.equal("locked, wrong password", enters(server, "open", password="x"), 1045)
    ask(root, "ALTER USER open REQUIRE SSL ACCOUNT UNLOCK")
    tally.equal("without TLS", enters(server, "open"), 1045)
    ask(root, "ALTER USER open REQUIRE NONE PASSWORD EXPIRE")
    tally.equal("expired, client cannot", enters(server, "open"), 1862)
    patient = come(server, "open", client_flag=1 << 22)
    tally.equal("expired, statement", ask(patient, "SELECT 1"), 1820)
    tally.equal("new password", ask(patient, "ALTER USER USER() IDENTIFIED BY 'fresh'"), [])
    tally.equal("then", ask(patient, "SELECT 1"), [[1]])
    ask(root, "CREATE USER far@'10.%', near@'127.0.0.0/8'")
    tally.equal("another host", enters(server, "far"), 1045)
    tally.equal("a net", ask(come(server, "near"), "SELECT CURRENT_USER()"), [["near@127.0.0.0/8"]])


def by_command(server, root):
    """The command that comes with the system. Its first login shows the whole password, and how it does that is the library's choice."""
    ask(root, "CREATE USER typist IDENTIFIED BY 'se cret'")
    for name, password, seen in [("first", "se cret", "typist@%"), ("again", "se cret", "typist@%"), ("wrong", "secret", "1045")]:
        command = ["mysql", "--no-defaults", "-h", "127.0.0.1", "-P", str(server.mysql_port), "-u", "typist", f"-p{password}", "-N", "-e", "SELECT CURRENT_USER()"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        tally.check(f"mysql, {name}", seen in done.stdout + done.stderr, done.stdout + done.stderr)


def running(server, root):
    ask(root, "CREATE USER app IDENTIFIED BY 'pw'")
    ask(root, "CREATE DATABASE shop")
    ask(root, "CREATE TABLE shop.item (id INT PRIMARY KEY, price INT)")
    ask(root, "INSERT INTO shop.item VALUES (1, 10)")
    app = come(server, "app", password="pw")
    tally.equal("nothing yet", ask(app, "SELECT * FROM shop.item"), 1142)
    tally.equal("no such database for it", enters(server, "app", password="pw", database="shop"), 1044)
    ask(root, "GRANT SELECT ON shop.* TO app")
    tally.equal("at once", ask(app, "SELECT * FROM shop.item"), [[1, 10]])
    for _ in range(3):
        tally.equal("a kept plan", ask(app, "SELECT price FROM shop.item WHERE id = 1"), [[10]])
    ask(root, "REVOKE SELECT ON shop.* FROM app")
    tally.equal("at once no more", ask(app, "SELECT price FROM shop.item WHERE id = 1"), 1142)
    ask(root, "CREATE ROLE clerk")
    ask(root, "GRANT SELECT, UPDATE ON shop.item TO clerk")
    ask(root, "GRANT clerk TO app")
    ask(root, "SET DEFAULT ROLE clerk TO app")
    tally.equal("not active", ask(app, "SELECT * FROM shop.item"), 1142)
    tally.equal("active", ask(app, "SET ROLE ALL"), [])
    tally.equal("by the role", ask(app, "SELECT * FROM shop.item"), [[1, 10]])
    tally.equal("kill root", ask(app, f"KILL {root.thread_id()}"), 1095)
    other = come(server, "app", password="pw")
    tally.equal("kill one's own", ask(app, f"KILL {other.thread_id()}"), [])
    tally.equal("own threads only", len({row[1] for row in ask(app, "SHOW PROCESSLIST")}), 1)
    app.select_db("shop")
    tally.equal("not that one", ask(app, "USE mysql"), 1044)


def doors(server, root):
    shell = redis.Redis(port=server.port)
    key = redis.Redis(port=server.port, username="app", password="pw")
    try:
        key.get("x")
        tally.check("no rights at the Redis door", False)
    except redis.exceptions.NoPermissionError:
        tally.check("no rights at the Redis door", True)
    shell.execute_command("ACL", "SETUSER", "app", "~a:*", "+get", "+set")
    tally.equal("the same password", key.set("a:1", "x"), True)
    tally.equal("its grants stay", [row[0] for row in ask(root, "SHOW GRANTS FOR app")][1:], ["GRANT `clerk`@`%` TO `app`@`%`"])
    shell.execute_command("ACL", "SETUSER", "some", "on", ">pw", "~*", "+get")
    tally.equal("no rights in SQL", ask(come(server, "some", password="pw"), "SELECT * FROM shop.item"), 1142)
    shell.execute_command("ACL", "SETUSER", "all", "on", ">pw", "~*", "+@all")
    tally.equal("who administers there does here", ask(come(server, "all", password="pw"), "SELECT * FROM shop.item"), [[1, 10]])
    ask(root, "GRANT SELECT ON shop.* TO `all`")
    ask(root, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM `all`")
    tally.equal("until somebody says otherwise", ask(come(server, "all", password="pw"), "SELECT * FROM shop.item"), 1142)
    ask(root, "DROP USER some")
    tally.check("gone from both", "some" not in str(shell.execute_command("ACL", "LIST")))
    for name in ("near@127.0.0.0/8", "far@10.%"):
        try:
            redis.Redis(port=server.port, username=name, password="").ping()
            tally.check(f"{name} is of one door", False)
        except redis.exceptions.AuthenticationError:
            tally.check(f"{name} is of one door", True)


def after_a_kill(server):
    root = come(server)
    before = [ask(root, "SHOW GRANTS FOR app"), ask(root, "SHOW CREATE USER app"), ask(root, "SELECT * FROM mysql.user ORDER BY User, Host")]
    server.kill()
    server.start()
    root = come(server)
    after = [ask(root, "SHOW GRANTS FOR app"), ask(root, "SHOW CREATE USER app"), ask(root, "SELECT * FROM mysql.user ORDER BY User, Host")]
    tally.equal("all accounts", after, before)
    app = come(server, "app", password="pw", database="shop")
    tally.equal("the default role", ask(app, "SELECT CURRENT_ROLE()"), [["`clerk`@`%`"]])
    tally.equal("what it may", ask(app, "UPDATE item SET price = 11 WHERE id = 1"), [])
    tally.equal("what it may not", ask(app, "DELETE FROM item"), 1142)
    # The output of SHOW CREATE USER creates the same account.
    made = ask(root, "SHOW CREATE USER app")[0][0].replace("`app`", "`copy`", 1).split(" DEFAULT ROLE")[0]
    ask(root, made)
    tally.equal("a copy", enters(server, "copy", password="pw"), True)


def main():
    with Server(mysql=True) as server:
        root = come(server)
        by_command(server, root)
        logins(server, root)
        running(server, root)
        doors(server, root)
        after_a_kill(server)


main()
tally.close()
