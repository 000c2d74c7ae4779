"""Statements through the MySQL door by PyMySQL, Connector/Python and the mariadb command line: types as text and in binary, prepared statements, cursors,
many statements at once, long packets and long results, transactions, KILL, errors."""

import datetime
import decimal
import re
import subprocess
import threading
import time

import mysql.connector
import pymysql
from pymysql.constants import CLIENT

from beluga import Server, Tally

tally = Tally()

COLUMNS = """id BIGINT PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, small SMALLINT, medium MEDIUMINT, whole INT UNSIGNED, big BIGINT UNSIGNED, price DECIMAL(30,10),
    single_ FLOAT, double_ DOUBLE, letters VARCHAR(100), body TEXT, bytes_ BLOB, day_ DATE, at DATETIME(6), length_ TIME, year_ YEAR"""
ROW = (-5, -500, -70000, 4294967295, 18446744073709551615, decimal.Decimal("-12345678901234567890.0123456789"), 1.5, 0.1, "wal \U0001f40b", "text", b"\x00\xff\n",
       datetime.date(2026, 11, 21), datetime.datetime(2026, 11, 21, 8, 5, 4, 123456), datetime.timedelta(days=-1, seconds=-61), 2026)
EMPTY = (None,) * len(ROW)


def connect(server, **more):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", connect_timeout=60, read_timeout=120, **more)


def ask(connection, statement, arguments=None):
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return cursor.fetchall()


def code(action):
    try:
        action()
    except (pymysql.Error, mysql.connector.Error) as error:
        return error.args[0]
    return None


def types(server):
    connection = connect(server, database="shop", autocommit=True)
    ask(connection, f"CREATE TABLE kinds ({COLUMNS})")
    marks = ", ".join(["%s"] * len(ROW))
    names = ", ".join(re.findall(r"(\w+) [A-Z]", COLUMNS.replace(" PRIMARY KEY AUTO_INCREMENT", "").replace(" UNSIGNED", ""))[1:])
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO kinds ({names}) VALUES ({marks})", ROW)
        tally.equal("insert id", cursor.lastrowid, 1)
        cursor.execute(f"INSERT INTO kinds ({names}) VALUES ({marks})", EMPTY)
    found = ask(connection, f"SELECT {names} FROM kinds ORDER BY id")
    tally.equal("text rows", found, (ROW, EMPTY))
    other = mysql.connector.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="shop", use_pure=True, autocommit=True)
    cursor = other.cursor(prepared=True)
    cursor.execute(f"INSERT INTO kinds ({names}) VALUES ({', '.join(['?'] * len(ROW))})", ROW)
    cursor.execute(f"SELECT {names} FROM kinds WHERE id IN (?, ?) ORDER BY id", (2, 3))
    rows = cursor.fetchall()
    tally.equal("binary empty row", rows[0], EMPTY)
    # Connector/Python takes a YEAR in binary for a string.
    tally.equal("binary row", rows[1][:-1], ROW[:-1])
    other.close()


def sizes(server):
    connection = connect(server, database="shop", autocommit=True, max_allowed_packet=1 << 30)
    for size in (16777213, 16777215, 16777216, 33554430, 40000000):
        statement = "SELECT LENGTH('"
        statement += "a" * (size - len(statement) - 2) + "')"
        tally.equal(f"a statement of {size}", ask(connection, statement)[0][0], size - len("SELECT LENGTH('')"))
    tally.equal("a long value", len(ask(connection, "SELECT REPEAT('x', 20000000)")[0][0]), 20000000)
    tally.equal("too long", code(lambda: ask(connection, "SELECT '" + "a" * 70000000 + "'")), 1153)


def long_results(server):
    connection = connect(server, database="shop", autocommit=True)
    ask(connection, "CREATE TABLE many (id INT PRIMARY KEY, filler VARCHAR(200))")
    for start in range(0, 20000, 1000):
        values = ", ".join(f"({at}, REPEAT('x', 200))" for at in range(start, start + 1000))
        ask(connection, f"INSERT INTO many VALUES {values}")
    tally.equal("all rows", [row[0] for row in ask(connection, "SELECT id, filler FROM many ORDER BY id")], list(range(20000)))
    slow = pymysql.cursors.SSCursor(connection)
    slow.execute("SELECT id, filler FROM many ORDER BY id")
    first = slow.fetchmany(10)
    time.sleep(1)
    tally.equal("a slow reader", [row[0] for row in first + slow.fetchall()], list(range(20000)))
    slow.close()
    tally.equal("and then", ask(connection, "SELECT 1"), ((1,),))


def several(server):
    connection = connect(server, database="shop", autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1; INSERT INTO many VALUES (30000, 'a;b'); SELECT filler FROM many WHERE id = 30000;")
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        tally.equal("several statements", found, [((1,),), [], (("a;b",),)])
        cursor.execute("SELECT 1; SELEC 2; SELECT 3")
        tally.equal("an error ends them", code(cursor.nextset), 1064)
    tally.equal("found rows", connection.cursor().execute("UPDATE many SET filler = 'a;b' WHERE id = 30000"), 1)
    plain = connect(server, database="shop", autocommit=True)
    tally.equal("changed rows", plain.cursor().execute("UPDATE many SET filler = 'a;b' WHERE id = 30000"), 0)
    tally.equal("not allowed", code(lambda: ask(plain, "SELECT 1; SELECT 2")), 1064)


def transactions(server):
    one, two = connect(server, database="shop"), connect(server, database="shop")
    ask(one, "INSERT INTO many VALUES (40000, 'one')")
    tally.equal("not seen", ask(two, "SELECT COUNT(*) FROM many WHERE id = 40000"), ((0,),))
    one.rollback()
    tally.equal("rolled back", ask(one, "SELECT COUNT(*) FROM many WHERE id = 40000"), ((0,),))
    ask(one, "INSERT INTO many VALUES (40000, 'one')")
    one.commit()
    two.commit()
    tally.equal("committed", ask(two, "SELECT filler FROM many WHERE id = 40000"), (("one",),))
    tally.equal("duplicate", code(lambda: ask(one, "INSERT INTO many VALUES (40000, 'again')")), 1062)


def compressed(server):
    """CLIENT_COMPRESS by Connector/Python and the mariadb command line."""
    connection = mysql.connector.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="shop", use_pure=True, autocommit=True, compress=True, connection_timeout=120)
    cursor = connection.cursor()

    def asked(statement, *arguments):
        cursor.execute(statement, *arguments)
        return cursor.fetchall()

    tally.equal("compressed small", asked("SELECT 1, 'a'"), [(1, "a")])
    for size in (16777215, 16777216, 40000000):
        tally.equal(f"a compressed statement of {size}", asked("SELECT LENGTH('" + "a" * (size - 17) + "')")[0][0], size - 17)
    tally.equal("a long compressed value", len(asked("SELECT REPEAT('x', 20000000)")[0][0]), 20000000)
    tally.equal("many compressed rows", [row[0] for row in asked("SELECT id, filler FROM many WHERE id < 20000 ORDER BY id")], list(range(20000)))
    tally.equal("a compressed error", code(lambda: asked("SELECT * FROM nothing")), 1146)
    prepared = connection.cursor(prepared=True)
    prepared.execute("SELECT ?, REPEAT(?, 1000)", (7, "ab"))
    tally.equal("compressed prepared", prepared.fetchall(), [(7, "ab" * 1000)])
    connection.close()
    words = ["mariadb", "-h127.0.0.1", f"-P{server.mysql_port}", "-uroot", "--batch", "--skip-column-names", "--compress", "--quick", "shop"]
    done = subprocess.run(words, input="SELECT id, filler FROM many WHERE id < 20000 ORDER BY id;\nSELECT 1;\nSHOW TABLES;", capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    tally.equal("cli compressed", (len(lines), lines[19999], lines[20000]), (20003, "19999\t" + "x" * 200, "1"))


LONG = "SELECT COUNT(*) FROM many a JOIN many b ON a.filler <> b.filler"


def insert_ids(server):
    """The reply to an INSERT, and LAST_INSERT_ID()."""
    connection = connect(server, database="shop", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE ids (id INT PRIMARY KEY AUTO_INCREMENT, v INT UNIQUE)")
        for statement, told, kept in (("INSERT INTO ids (v) VALUES (1), (2)", 1, 1), ("INSERT INTO ids VALUES (10, 10), (20, 20)", 20, 1), ("INSERT INTO ids (v) VALUES (3)", 21, 21),
                                      ("UPDATE ids SET v = LAST_INSERT_ID(v + 100) WHERE id = 1", 101, 101), ("INSERT INTO ids VALUES (NULL, 4), (50, 50)", 22, 22),
                                      ("INSERT INTO ids (v) VALUES (10) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = 11", 10, 10), ("UPDATE ids SET v = 5 WHERE id = 50", 0, 10),
                                      ("INSERT IGNORE INTO ids (v) VALUES (11)", 0, 10), ("INSERT INTO ids (v) VALUES (20) ON DUPLICATE KEY UPDATE v = 21", 20, 10)):
            cursor.execute(statement)
            tally.equal(f"told by {statement}", cursor.lastrowid, told)
            tally.equal(f"kept by {statement}", ask(connection, "SELECT LAST_INSERT_ID()"), ((kept,),))
        cursor.execute("DROP TABLE ids")


def raw_bytes(server):
    """Bytes in quotes without a word before them, as clients send them that make statements themselves."""
    key, value = bytes(range(200, 216)), bytes(range(256))
    quoted = lambda what: b"'" + what.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b"\0", b"\\0") + b"'"
    for charset in ("utf8mb4", "latin1"):
        connection = connect(server, database="shop", autocommit=True, charset=charset)
        ask(connection, "CREATE TABLE raw (id BINARY(16) PRIMARY KEY, v VARBINARY(600), b BLOB)")
        connection.query(b"INSERT INTO raw VALUES (" + quoted(key) + b", " + quoted(value) + b", CONCAT(" + quoted(value) + b", X'00'))")
        tally.equal(f"{charset}: bytes in quotes are stored", ask(connection, "SELECT id, v, b FROM raw"), ((key, value, value + b"\0"),))
        for condition in (b"id = " + quoted(key), b"v IN (" + quoted(key) + b", " + quoted(value) + b")", b"b LIKE CONCAT(" + quoted(key[:1]) + b", '%') OR v BETWEEN " + quoted(value) + b" AND " + quoted(value)):
            connection.query(b"UPDATE raw SET b = v WHERE " + condition)
            tally.equal(f"{charset}: found by {condition[:12]}", ask(connection, "SELECT COUNT(*) FROM raw WHERE b = v"), ((1,),))
            ask(connection, "UPDATE raw SET b = ''")
        # Of any length, and one plan for all.
        for length in (10, 300, 30000, 5):
            text = "\u00e9" * length
            ask(connection, "REPLACE INTO raw (id, b) VALUES ('1', %s)", (text,))
            found = ask(connection, "SELECT LENGTH(b), b = %s FROM raw WHERE id = CONCAT('1', REPEAT(X'00', 15))", (text,))
            tally.equal(f"{charset}: {length} letters as bytes", found, ((length * (1 if charset == "latin1" else 2), 1),))
        ask(connection, "DROP TABLE raw")


def kill(server):
    victim, killer = connect(server, database="shop"), connect(server)
    number = ask(victim, "SELECT CONNECTION_ID()")[0][0]
    tally.equal("unknown", code(lambda: ask(killer, "KILL 4000000")), 1094)
    for statement, codes, is_gone in ((f"KILL QUERY {number}", [1317], False), (f"KILL {number}", [1317, 2006, 2013], True)):
        timer = threading.Timer(0.5, lambda: ask(killer, statement))
        timer.start()
        begun = time.monotonic()
        found = code(lambda: ask(victim, LONG))
        tally.check(statement, found in codes and time.monotonic() - begun < 20, f"{found} after {time.monotonic() - begun} s")
        timer.join()
        tally.equal(f"gone after {statement}", code(lambda: ask(victim, "SELECT 1")) is not None, is_gone)


def command_line(server):
    connection = connect(server)
    tally.equal("one version", connection.get_server_info(), ask(connection, "SELECT VERSION()")[0][0])
    words = ["mariadb", "-h127.0.0.1", f"-P{server.mysql_port}", "-uroot", "--batch"]
    done = subprocess.run([*words, "shop"], input="SELECT 1 AS one, NULL AS none;\nSELECT DATABASE();\nSHOW TABLES;\n", capture_output=True, text=True, timeout=60)
    tally.equal("cli", done.stdout, "one\tnone\n1\tNULL\nDATABASE()\nshop\nTables_in_shop\nkinds\nmany\n")
    done = subprocess.run([*words, "-e", "SELECT * FROM shop.nothing"], capture_output=True, text=True, timeout=60)
    tally.check("cli error", "ERROR 1146 (42S02)" in done.stderr and "Table 'shop.nothing' doesn't exist" in done.stderr, done.stderr)


def main():
    with Server("--memory", "1gb", mysql=True) as server:
        ask(connect(server), "CREATE DATABASE shop")
        for part in (types, sizes, long_results, several, compressed, insert_ids, raw_bytes, transactions, kill, command_line):
            try:
                part(server)
            except Exception as error:
                tally.check(part.__name__, False, repr(error))


main()
tally.close()
