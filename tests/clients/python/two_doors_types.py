"""Every type of each SQL door, read and written at the other, with its boundaries and NULL.

A table is made at one door and filled there. The other door reads each value as text, then writes values of its own, which the first door reads. `docs/protocols/types.md` has the result as tables; the
suite fails if they differ from that file, and `UPDATE=1` writes it anew.
"""

import os

import psycopg
import pymysql

from beluga import Server, Tally
from sql import come

tally = Tally()
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "protocols", "types.md")
REFUSED = "refused"

# A type of MySQL, the values that it is filled with there, and those that PostgreSQL writes.
MYSQL = [
    ("tinyint", ["-128", "127"], ["-128", "128"]),
    ("tinyint unsigned", ["0", "255"], ["255", "256", "-1"]),
    ("tinyint(1)", ["0", "1"], ["1", "2"]),
    ("smallint", ["-32768", "32767"], ["32767", "32768"]),
    ("smallint unsigned", ["65535"], ["65535", "65536"]),
    ("mediumint", ["-8388608", "8388607"], ["-8388608", "8388608"]),
    ("mediumint unsigned", ["16777215"], ["16777215", "16777216"]),
    ("int", ["-2147483648", "2147483647"], ["2147483647", "2147483648"]),
    ("int unsigned", ["4294967295"], ["4294967295", "4294967296"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"], ["9223372036854775807", "9223372036854775808"]),
    ("bigint unsigned", ["18446744073709551615"], ["18446744073709551615", "18446744073709551616", "-1"]),
    ("float", ["1.5", "-3.40282e38"], ["-1.5", "'NaN'"]),
    ("double", ["0.1", "1.7976931348623157e308"], ["-0.1", "'infinity'"]),
    ("decimal(5,2)", ["-999.99", "0.005"], ["999.994", "999.995"]),
    ("decimal(65,30)", ["99999999999999999999999999999999999.999999999999999999999999999999"], ["1e34", "1e35", "'NaN'"]),
    ("decimal(5,2) unsigned", ["999.99"], ["1.5", "-0.01"]),
    ("year", ["1901", "2155", "0"], ["2155", "0", "1900"]),
    ("date", ["'0001-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-02-00'"], ["'2024-02-29'", "'0001-01-01 BC'", "'10000-01-01'", "'infinity'"]),
    ("time", ["'-838:59:59'", "'838:59:59'"], ["'25:00:00.6'", "'-1 day'", "'839 hours'", "'1 month'"]),
    ("time(6)", ["'00:00:00.000001'"], ["'00:00:00.1234564'"]),
    ("datetime", ["'1000-01-01'", "'9999-12-31 23:59:59'", "'0000-00-00'"], ["'2024-02-29 12:00:00.5'", "'9999-12-31 23:59:59.9'", "'-infinity'"]),
    ("datetime(3)", ["'2024-02-29 12:34:56.789'"], ["'2024-02-29 12:34:56.7896'"]),
    ("timestamp null", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00'"], ["'1970-01-01 00:00:01+00'", "'1970-01-01 00:00:00+00'", "'2038-01-19 03:14:08+00'"]),
    ("char(5)", ["'ab  '", "'äöüßé'"], ["'ab  '", "'abcdef'"]),
    ("varchar(5)", ["'ab  '", "''"], ["'ab  '", "'abcdef'"]),
    ("varchar(5) character set latin1", ["'é'"], ["'é'", "'Ω'"]),
    ("tinytext", ["repeat('x', 255)"], ["repeat('é', 127)", "repeat('é', 128)"]),
    ("longtext", ["'𝄞'"], ["'𝄞'"]),
    ("binary(3)", ["'a'"], ["'\\x61'", "'\\x61626364'"]),
    ("varbinary(3)", ["x'00ff'"], ["'\\x00ff'", "'\\x61626364'"]),
    ("blob", ["x'00ff'"], ["'\\x00ff'"]),
    ("enum('a','B c')", ["'a'", "'b C'"], ["'B c'", "'b c'", "''"]),
    ("set('x','y','z')", ["'z,x'", "''"], ["'z,x'", "''", "'x,q'"]),
    ("json", ["'{\"b\": [1, 1.5, 1.0, 1e100], \"a\": null}'", "'18446744073709551615'"], ["'{\"b\": [1, 1.50], \"a\": \"\"}'", "'1e400'"]),
    ("bit(9)", ["b'111111111'"], ["'1'"]),
]

# A type of PostgreSQL, the values that it is filled with there, and those that MySQL writes.
POSTGRES = [
    ("boolean", ["true", "false"], ["1", "true", "2"]),
    ("smallint", ["-32768", "32767"], ["32767", "32768"]),
    ("integer", ["-2147483648", "2147483647"], ["2147483647", "2147483648"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"], ["9223372036854775807", "9223372036854775808"]),
    ("real", ["1.5"], ["-1.5"]),
    ("double precision", ["0.1", "1.7976931348623157e308"], ["-0.1"]),
    ("numeric", ["1.50", "1e34", "1e35", "1e-31", "'NaN'"], ["1.50", "1e34", "1e35"]),
    ("numeric(5,2)", ["-999.99"], ["999.994", "999.995"]),
    ("numeric(70,2)", ["1.5", "1e40"], ["2.5"]),
    ("text", ["'ab  '", "'𝄞'", "''"], ["'ab  '", "'𝄞'"]),
    ("varchar(3)", ["'äöü'"], ["'äöü'", "'abcd'"]),
    ("char(3)", ["'a'"], ["'a'"]),
    ("bytea", ["'\\x00ff'"], ["x'00ff'"]),
    ("date", ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'0001-01-01 BC'", "'10000-01-01'", "'infinity'"], ["'2024-02-29'", "'2023-02-29'", "'0000-00-00'"]),
    ("time", ["'24:00'", "'12:34:56.123456'"], ["'23:59:59.9999999'", "'24:00:01'", "'-1:00'"]),
    ("time(0)", ["'12:34:56.5'"], ["'12:34:56.5'"]),
    ("timestamp", ["'9999-12-31 23:59:59.999999'", "'-infinity'"], ["'2024-02-29 12:34:56.1234564'", "'0000-00-00'"]),
    ("timestamp(3)", ["'2024-02-29 12:34:56.7896'"], ["'2024-02-29 12:34:56.7896'"]),
    ("timestamptz", ["'1970-01-01 00:00:01+00'", "'1970-01-01 00:00:00+00'", "'2038-01-19 03:14:08+00'", "'infinity'"], ["'2038-01-19 03:14:07.999999'", "'2038-01-19 03:14:08'"]),
    ("timetz", ["'12:00+01'"], ["'12:00'"]),
    ("interval", ["'1 mon 2 days 03:04:05'"], ["'1'"]),
    ("uuid", ["'00112233-4455-6677-8899-AABBCCDDEEFF'"], ["'00112233-4455-6677-8899-AABBCCDDEEFF'", "'0011'"]),
    ("jsonb", ["'{\"b\": [1, 1.50, 1.0], \"a\": null}'", "'1e400'"], ["'{\"b\": [1, 1.5, 1.0], \"a\": null}'", "'{'"]),
    ("json", ["'{\"b\":1, \"b\":2}'"], ["'1'"]),
    ("integer[]", ["'{1,2}'"], ["'1'"]),
    ("int4range", ["'[1,5)'"], ["'[1,5)'"]),
    ("nummultirange", ["'{[1.0,2]}'"], ["'{}'"]),
    ("pair", ["'(1,x)'"], ["'(1,x)'"]),
]

# Results that must come out whatever the page says: (made at, type, value) to what the other door has.
RULES = {
    ("MySQL", "bigint unsigned", "18446744073709551615"): "18446744073709551615",
    ("MySQL", "year", "2155"): "2155",
    ("MySQL", "date", "'0000-00-00'"): "22008",
    ("MySQL", "datetime", "'0000-00-00'"): "22008",
    ("MySQL", "timestamp null", "'0000-00-00'"): "22008",
    ("MySQL", "time", "'-838:59:59'"): "-838:59:59",
    ("MySQL", "set('x','y','z')", "'z,x'"): "x,z",
    ("PostgreSQL", "boolean", "true"): "1",
    ("PostgreSQL", "numeric", "1e35"): "1264",
    ("PostgreSQL", "timestamptz", "'2038-01-19 03:14:08+00'"): "1292",
    ("PostgreSQL", "uuid", "'00112233-4455-6677-8899-AABBCCDDEEFF'"): "00112233-4455-6677-8899-aabbccddeeff",
}
TYPES = {
    ("MySQL", "tinyint"): "smallint",
    ("MySQL", "bigint unsigned"): "numeric(20,0)",
    ("MySQL", "year"): "smallint",
    ("MySQL", "time"): "interval(0)",
    ("MySQL", "json"): "jsonb",
    ("PostgreSQL", "boolean"): "tinyint(1)",
    ("PostgreSQL", "uuid"): "char(36)",
    ("PostgreSQL", "timestamptz"): "timestamp(6)",
    ("PostgreSQL", "numeric"): "decimal(65,30)",
    ("PostgreSQL", "jsonb"): "json",
}


class Mysql:
    name, unknown = "MySQL", {1235}

    def __init__(self, server):
        self.wire = come(server, conv={})
        self.run("SET NAMES utf8mb4")
        self.run("SET time_zone = '+00:00'")
        self.run("CREATE DATABASE doors")
        self.run("USE doors")

    def run(self, sql):
        """The rows as texts, or the number of the error."""
        try:
            with self.wire.cursor() as cursor:
                cursor.execute(sql)
                return [[self.text(value) for value in row] for row in cursor.fetchall()]
        except pymysql.Error as error:
            return error.args[0]

    @staticmethod
    def text(value):
        if not isinstance(value, bytes):
            return value
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = "\0"
        return "0x" + value.hex() if "\0" in text else text

    def read(self, table, number):
        return self.run(f"SELECT v FROM {table} WHERE id = {number}")

    def type_of(self, table):
        rows = self.run(f"SHOW COLUMNS FROM {table} LIKE 'v'")
        return rows[0][1]


class Texts(psycopg.adapt.Loader):
    def load(self, data):
        return bytes(data).decode()


class Postgres:
    name, unknown = "PostgreSQL", {"0A000"}

    def __init__(self, server):
        self.wire = psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", dbname="doors", sslmode="disable", autocommit=True)
        self.run("SET timezone = utc")

    def run(self, sql):
        """The rows as texts, or the SQLSTATE."""
        try:
            cursor = self.wire.execute(sql)
            return [list(row) for row in cursor.fetchall()] if cursor.description else []
        except psycopg.Error as error:
            return error.sqlstate

    def read(self, table, number):
        return self.run(f"SELECT v::text FROM {table} WHERE id = {number}")

    def type_of(self, table):
        rows = self.run(f"SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'doors.public.{table}'::regclass AND attname = 'v'")
        return rows[0][0]


def shown(rows, door):
    """A value, an error's code, or that the door does not serve the type."""
    if not isinstance(rows, list):
        return REFUSED if rows in door.unknown else str(rows)
    text = "NULL" if rows[0][0] is None else rows[0][0]
    return f"{text[:3]}... ({len(text)})" if len(text) > 80 else text


def one_type(maker, other, number, declared, filled, written):
    """One row of the page: the type, as the other door sees it, and what became of each value."""
    table = f"t{number}_{maker.name.lower()}"
    made = maker.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v {declared})")
    tally.equal(f"{maker.name} makes {declared}", made, [])
    reads, writes = [], []
    for at, value in enumerate(["NULL", *filled]):
        tally.equal(f"{maker.name} {declared} takes {value}", maker.run(f"INSERT INTO {table} VALUES ({at}, {value})"), [])
        own, others = shown(maker.read(table, at), maker), shown(other.read(table, at), other)
        if value == "NULL" and others != REFUSED:
            tally.equal(f"{maker.name} {declared} NULL", others, "NULL")
        elif value != "NULL":
            reads.append(f"{own} → {others}")
        expected = RULES.get((maker.name, declared, value))
        tally.check(f"{maker.name} {declared} {value} at {other.name}", expected in (None, others), f"{others}, not {expected}")
    for at, value in enumerate(written, 100):
        answer = other.run(f"INSERT INTO {table} VALUES ({at}, {value})")
        writes.append(f"{value} → " + (shown(maker.read(table, at), maker) if answer == [] else shown(answer, other)))
    seen = other.type_of(table)
    expected = TYPES.get((maker.name, declared))
    tally.check(f"{maker.name} {declared} is {seen} at {other.name}", expected in (None, seen), f"not {expected}")
    # NULL and DELETE work at the other door whatever the type is.
    tally.equal(f"{declared}: DELETE at {other.name}", other.run(f"DELETE FROM {table}"), [])
    tally.equal(f"{declared}: nothing is left", maker.run(f"SELECT count(*) FROM {table} WHERE id >= 0"), [["0" if maker.name == "MySQL" else 0]])
    cells = (declared, seen, "<br>".join(reads), "<br>".join(writes))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def page(mysql, postgres):
    text = """# Types at both SQL doors

Each type of one SQL door, read and written at the other. The suite `two_doors_types` makes this page from a running server and fails where the two differ; `UPDATE=1` writes it anew. A cell has a value and, behind the arrow, the result: a value, an error's code, or "refused" for a type that the door does not serve (1235, 0A000).
docs/protocols/mysql.md and docs/protocols/postgres.md say the same in words. Reads have the value at its own door first; writes have it as it was written.
"""
    for maker, other, types in ((mysql, postgres, MYSQL), (postgres, mysql, POSTGRES)):
        text += f"\n## Made at the {maker.name} door\n\n| Type | at the {other.name} door | read there | written there, then read at its own door |\n|---|---|---|---|\n"
        for number, (declared, filled, written) in enumerate(types):
            text += one_type(maker, other, number, declared, filled, written)
    return text


def main():
    with Server(mysql=True, postgres=True) as server:
        mysql = Mysql(server)
        # Zero dates are part of the comparison.
        mysql.run("SET sql_mode = 'STRICT_TRANS_TABLES'")
        postgres = Postgres(server)
        postgres.run("CREATE TYPE pair AS (a int, b text)")
        made = page(mysql, postgres)
    if os.environ.get("UPDATE"):
        with open(PAGE, "w") as file:
            file.write(made)
    with open(PAGE) as file:
        kept = file.read()
    for found, known in zip(made.split("\n"), kept.split("\n")):
        tally.equal("docs/protocols/types.md", found, known)
    tally.equal("lines of docs/protocols/types.md", made.count("\n"), kept.count("\n"))


main()
tally.close()
