"""Values of SQL beside a real MySQL server: comparisons, BETWEEN, IN, GREATEST, CASE, UNION, ROLLUP, bit operators and JSON over random pairs of types, and the statements of sql/values.sql.

sql/values.golden holds what MySQL answered to both, so that the answers are checked where no MySQL can be had; where there is one (scripts/mysql.sh), random statements of another seed are asked of both.

    mysql_values.py --record             asks MySQL and writes sql/values.golden
    mysql_values.py --seed N --count N   other random statements; needs MySQL
    mysql_values.py --mysql PORT         a MySQL server that runs
    mysql_values.py --canary             spoils one answer: must fail"""

import argparse
import contextlib
import json
import os
import random
import re
import sys

import pymysql

from beluga import Server, Tally
from mysql_server import MySQL

HERE = os.path.dirname(os.path.abspath(__file__))
STATEMENTS = os.path.join(HERE, "..", "sql", "values.sql")
GOLDEN = os.path.join(HERE, "..", "sql", "values.golden")
# Of the random statements whose answers are recorded, and of those that are asked of both where MySQL is there.
RECORDED, FRESH = 20261123, 20261124
COUNT = 2500

# Answers that differ for a reason: patterns of the statement and of both answers, reason.
KNOWN = [
    (r"UNION.*\(de \* 1\)|\(de \* 1\).*UNION", r"0\.000", "MySQL writes the zero that a product of decimals comes to without its digits"),
    (r"\bIN \(.*(102935229216544104|100000000000000000000001)", r"", "MySQL compares candidates of several kinds as doubles, we exactly"),
    (r"-d6|ROUND\(d6\)", r"", "MySQL loses the last digits of a moment's number"),
    (r"-(st|ti)", r"-0", "MySQL's zero of a member or a time has a sign"),
    (r"AVG\((e|st)\)", r"", "an average of the numbers of members has nine digits here"),
    (r"CASE WHEN id > 2|\bIF\(", r"\.[0-9]*0\b", "MySQL 9 writes the decimals and integers of a CASE or IF each with its own digits, 8.0 does not"),
    (r"\b(ABS|ROUND)\(TIMESTAMP'", r"59\.9", "MySQL rounds a moment's number into a second that is none"),
    (r"NULLIF\((TRUE|FALSE|DATE|TIME|[0-9'-])", r"", "MySQL answers its constant as it was converted for the comparison"),
    (r"BETWEEN .*'(10:00:00|20010101)'|CAST\(2001 AS YEAR\)", r"", "texts of one kind and years beside dates: MySQL chooses by the place"),
    (r"\by\b.*(TIME|IN \(|'[^0-9]|'')|('[^0-9]|''|TIME).*\by\b|CAST\(y AS", r"", "a year beside times, lists and what is no number"),
    (r"\bti\b.*('[^0-9-]|''|TIMESTAMP|DATE|\bd[at6t]\b|\bts\b)|('[^0-9-]|''|DATE'|TIMESTAMP').*\bti\b", r"", "a time beside dates and texts that are no time"),
    (r"\b(s|c|b|e|st)\b.*(BETWEEN|IN \().*(TIME|DATE)", r"", "texts beside dates in a list: MySQL chooses by the place"),
    (r"\b(ts|dt|d6|da|y)\b.*BETWEEN [0-9e.-]+ AND", r"", "moments between numbers that are none"),
    (r"CASE ti WHEN (e|st)|CASE (e|st) WHEN ti", r"", "MySQL compares the operand of CASE with all of its kinds as one"),
    (r"\bti\b.*\b10\.10|\b10\.10\b.*\bti\b", r"", "a time beside decimals with digits behind the point"),
    (r"CAST\((e|st) AS JSON\)|NULLIF\((e|st),", r"", "members are their names in documents and in NULLIF"),
    (r"CAST\('null' AS JSON\)", r"", "MySQL finds JSON's null equal to an unsigned 0"),
]

SETUP = """
CREATE TABLE v (id INT PRIMARY KEY, i INT, big BIGINT, u BIGINT UNSIGNED, tiny TINYINT NOT NULL, de DECIMAL(12,3), dl DECIMAL(30,0), f FLOAT, d DOUBLE, s VARCHAR(30), c CHAR(10), b VARCHAR(30) COLLATE utf8mb4_bin, x VARBINARY(20),
  da DATE, dt DATETIME, d6 DATETIME(6), ti TIME, ts TIMESTAMP NULL, y YEAR, e ENUM('b','a','10'), st SET('x','y','z'), bi BIT(8), j JSON)
INSERT INTO v VALUES (1, 1, 102935229216544104, 18446744073709551615, 1, 1.500, 100000000000000000000001, 1.5, 1.5, '1', '1', '1', '1', '2001-01-01', '2001-01-01 00:00:00', '2001-01-01 00:00:00.5', '10:00:00', '2001-01-01 00:00:00', 2001, 'a', 'x', b'1', '1')
INSERT INTO v VALUES (2, 20010101, 102935229216544093, 20010101, 2, 20010101.000, 20010101, 20010100, 20010101, '2001-01-01', '2001-1-1', '2001-01-01 10:00:00', '10:00:00', '2001-01-02', '2001-01-01 10:00:00', '2001-01-01 10:00:00', '-01:00:00', '2001-01-01 10:00:00', 1999, 'b', 'x,y', b'1010', '"2001-01-01"')
INSERT INTO v VALUES (3, -5, -1, 0, -5, -5.250, -5, -5.25, -5.25, '-5', 'a', 'A', 'a', '1999-12-31', '1999-12-31 23:59:59', '1999-12-31 23:59:59.999999', '00:00:10', '1999-12-31 23:59:59', 1970, '10', 'z', b'11111111', 'true')
INSERT INTO v VALUES (4, 100000, 5, 5, 10, 0.000, 0, 0, 0, '', 'B', '10:00:00', 'B', '2010-10-10', '2010-10-10 10:10:10', '2010-10-10 10:10:10.1', '100:00:00', '2010-10-10 10:10:10', 2010, NULL, '', b'0', '{"a": 1}')
INSERT INTO v VALUES (5, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
INSERT INTO v VALUES (6, 10, 10, 10, 99, 10.100, 10, 10.1, 10.1, '10', '10abc', '10', '10', '2000-02-29', '2000-02-29 00:00:00', '2000-02-29 00:00:00', '00:00:00', '2000-02-29 00:00:00', 2000, 'a', 'y,z', b'1100001', '[1, 2]')
"""


class Draw:
    """Statements over `v`."""

    COLUMNS = {
        "integer": ["i", "big", "u", "tiny"], "decimal": ["de", "dl"], "double": ["f", "d"], "text": ["s", "c", "b"], "bytes": ["x"], "date": ["da"], "moment": ["dt", "d6", "ts"], "time": ["ti"], "year": ["y"], "enum": ["e"],
        "set": ["st"], "bit": ["bi"], "json": ["j"],
    }
    CONSTANTS = {
        "integer": ["0", "1", "5", "-5", "10", "99", "20010101", "102935229216544104", "18446744073709551615", "100000"],
        "decimal": ["1.5", "-5.25", "0.0", "10.10", "20010101.0", "100000000000000000000001"],
        "double": ["1.5e0", "1e1", "-5.25e0", "0e0", "2.0010101e7"],
        "text": ["'1'", "'10'", "'-5'", "'a'", "'B'", "''", "'10abc'", "'1.50'", "' 10 '", "'102935229216544104'", "'x'", "'x,y'"],
        "bytes": ["_binary'a'", "_binary'10'", "x'31'", "0x0A"],
        "date": ["DATE'2001-01-01'", "DATE'1999-12-31'"],
        "moment": ["TIMESTAMP'2001-01-01 10:00:00'", "TIMESTAMP'2001-01-01 00:00:00'", "TIMESTAMP'1999-12-31 23:59:59.999999'"],
        "time": ["TIME'10:00:00'", "TIME'-01:00:00'", "TIME'00:00:10'"],
        "year": ["CAST(2001 AS YEAR)"],
        "clock": ["'2001-01-01'", "'2001-1-1'", "'2001-01-01 10:00:00'", "'20010101'", "'10:00:00'"],
        "bit": ["b'1'", "b'1010'"],
        "json": ["CAST('1' AS JSON)", "CAST('true' AS JSON)", "CAST('\"a\"' AS JSON)", "JSON_ARRAY(1, 2)", "CAST('null' AS JSON)"],
        "truth": ["TRUE", "FALSE"], "null": ["NULL"],
    }
    KINDS = list(COLUMNS)
    # Beside other kinds MySQL's answers for bytes, bits and documents hang on the place they stand in (a list of bytes and hexadecimal literals ends its process): they are asked by `bits` and `document`.
    PLAIN = [kind for kind in COLUMNS if kind not in ("bytes", "bit", "json")]
    PLAIN_CONSTANTS = [kind for kind in CONSTANTS if kind not in ("bytes", "bit", "json")]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def constant(self, kind=None):
        return self.one(*self.CONSTANTS[kind or self.one(*self.PLAIN_CONSTANTS)])

    def column(self, kind=None):
        return self.one(*self.COLUMNS[kind or self.one(*self.PLAIN)])

    def side(self):
        if self.chance(0.6):
            return self.column()
        if self.chance(0.75):
            return self.constant()
        kind = self.one("integer", "decimal", "text", "moment", "date")
        column = self.column(kind)
        return {"integer": f"({column} + 0)", "decimal": f"({column} * 1)", "text": f"CONCAT({column}, '')", "moment": f"DATE({column})", "date": f"ADDDATE({column}, 0)"}[kind]

    def comparison(self):
        a, b = self.side(), self.side()
        return f"{a} {self.one('=', '=', '<=>', '<', '>', '<>', '>=', '<=')} {b}"

    def between(self):
        # Bounds of one kind: MySQL chooses one kind for all three.
        kind = self.one(*self.PLAIN_CONSTANTS)
        low, high = self.constant(kind), self.constant(kind)
        return f"{self.column()} {self.one('', 'NOT ')}BETWEEN {low} AND {high}"

    def within(self):
        kind = self.one(*self.PLAIN_CONSTANTS)
        if self.chance(0.3):
            return f"{self.column()} IN ({self.constant()}, {self.constant()})"
        return f"{self.column()} {self.one('', 'NOT ')}IN ({', '.join(self.constant(kind) for _ in range(self.one(1, 2, 5)))})"

    def condition(self):
        return self.one(self.comparison, self.comparison, self.comparison, self.between, self.within)()

    def pick(self):
        a, b, c = self.side(), self.side(), self.side()
        # Beside dates only what is one: MySQL shows others as dates that are none.
        dates = ("date", "moment")
        first, second = self.one((self.column(self.one(*dates)), self.one(self.column(self.one(*dates)), self.constant(self.one(*dates)), "'2001-01-01'", "'2001-1-2'", "20010101")),
                                 tuple(self.column(self.one("integer", "decimal", "double", "text", "enum", "set")) for _ in range(2)))
        return self.one(f"GREATEST({first}, {second})", f"LEAST({first}, {second})", f"IF({self.column()} IS NULL, {a}, {b})", f"COALESCE({a}, {b})", f"IFNULL({a}, {b})", f"NULLIF({a}, {b})", f"CASE {a} WHEN {b} THEN 1 WHEN {c} THEN 2 ELSE 3 END",
                        f"CASE WHEN id > 2 THEN {a} ELSE {b} END", f"INTERVAL({a}, 1, 10)")

    def bits(self):
        kinds = ("integer", "decimal", "text", "bytes", "bit", "null")
        a, b = (self.one(self.column(kind), self.constant(kind)) if kind != "null" else "NULL" for kind in (self.one(*kinds), self.one(*kinds)))
        return self.one(f"{a} | {b}", f"{a} & {b}", f"{a} ^ {b}", f"{a} << 2", f"{a} >> 1", f"~{a}", f"BIT_COUNT({a})", f"HEX({a} | {b})")

    def document(self):
        j = self.one("j", "j", self.constant("json"))
        other = self.one(self.column("integer"), self.column("decimal"), self.column("text"), *(self.constant(kind) for kind in ("integer", "decimal", "double", "text", "json", "truth")))
        path = self.one("'$'", "'$.a'", "'$[0]'", "'$[last]'")
        return self.one(f"JSON_EXTRACT({j}, {path}) = {self.constant()}", f"JSON_UNQUOTE(JSON_EXTRACT({j}, {path}))", f"{j} = {other}", f"{j} < {other}", f"{j} IN ({other}, {other})", f"({j}) IS TRUE", f"NOT {j}", f"IF({j}, 1, 0)",
                        f"JSON_SET({j}, {self.one(path, chr(39) + '$[1]' + chr(39), chr(39) + '$[last-1]' + chr(39))}, {self.constant('integer')})", f"JSON_CONTAINS({j}, '1')", f"JSON_TYPE({j})", f"JSON_VALUE({j}, {path})",
                        f"JSON_VALUE({j}, {path} RETURNING {self.one('SIGNED', 'UNSIGNED', 'DECIMAL(4,2)', 'CHAR(3)', 'DATE', 'JSON', 'DOUBLE')})", f"CAST({self.column()} AS JSON)", f"JSON_ARRAY({self.column()}, {self.constant()})",
                        f"CAST({j} AS {self.one('SIGNED', 'CHAR', 'DECIMAL(5,2)', 'DOUBLE')})")

    def cast(self):
        to = self.one("SIGNED", "UNSIGNED", "DECIMAL(10,2)", "DOUBLE", "CHAR", "CHAR(3)", "BINARY", "DATE", "DATETIME", "TIME")
        return f"CAST({self.side()} AS {to})"

    def number(self):
        a = self.side()
        return self.one(f"{a} + {self.side()}", f"{a} * 2", f"{a} - 1", f"{a} / 3", f"{a} % 3", f"-{self.column()}", f"ROUND({self.column()})", f"ABS({a})", f"HEX({self.column()})", f"CONCAT({a}, {self.side()})", f"LENGTH({a})")

    def expression(self):
        return self.one(self.condition, self.condition, self.condition, self.pick, self.pick, self.bits, self.document, self.cast, self.number)()

    def statements(self):
        """One question, of one statement or more."""
        turn = self.random.random()
        if turn < 0.5:
            return [f"SELECT id, {self.expression()} FROM v ORDER BY id"]
        if turn < 0.7:
            return [f"SELECT id FROM v WHERE {self.condition()} ORDER BY id"]
        if turn < 0.78:
            # Parameters.
            is_dated = self.chance(0.3)
            column, op = self.column(self.one("date", "moment") if is_dated else self.one("integer", "decimal", "double", "text")), self.one("=", "<", ">", "<=>", ">=")
            values = [self.one("DATE'2001-01-01'", "'2001-01-01'", "20010101", "'2001-01-01 10:00:00'") if is_dated else self.constant(self.one("integer", "decimal", "double", "text")) for _ in range(1 + op.count("?"))]
            names = [f"@p{at}" for at in range(len(values))]
            assigned = ", ".join(f"{name} = {value}" for name, value in zip(names, values))
            return [f"SET {assigned}", f"PREPARE p FROM 'SELECT id FROM v WHERE {column} {op} ? ORDER BY id'", f"EXECUTE p USING {', '.join(names)}"]
        if turn < 0.88:
            a, b = self.side(), self.side()
            return [f"SELECT {a} FROM v WHERE id < 5 UNION {self.one('', 'ALL ')}SELECT {b} FROM v WHERE id < 5"]
        if turn < 0.94:
            a, b = self.column(), self.column()
            keys = self.one(f"{a}", f"{a}, {b}", f"{a}, {a}", "1")
            shown = self.one(f"{a} AS k, COUNT(*)", f"{a} AS k, MAX({self.column()})", f"{a} AS k, {self.constant('text')} AS l, SUM(tiny)")
            if ", l" in keys or keys == "1":
                return [f"SELECT {shown} FROM v GROUP BY k WITH ROLLUP"]
            return [f"SELECT {shown} FROM v GROUP BY {keys} WITH ROLLUP" if keys != f"{a}, {b}" else f"SELECT {a}, {b}, COUNT(*) FROM v GROUP BY {keys} WITH ROLLUP"]
        call = self.one("SUM", "AVG", "MIN", "MAX", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT(DISTINCT", "GROUP_CONCAT")
        argument = self.column()
        if call == "COUNT(DISTINCT":
            return [f"SELECT COUNT(DISTINCT {argument}) FROM v"]
        if call == "GROUP_CONCAT":
            return [f"SELECT GROUP_CONCAT({argument} ORDER BY id) FROM v"]
        return [f"SELECT {call}({argument}) FROM v"]


def split(text):
    """The blocks of a file, each a list of statements: a line with --- begins one, a `;` at a line's end ends a statement, # begins a comment."""
    for block in re.split(r"(?m)^---\n", text):
        lines = [line for line in block.split("\n") if not line.startswith("# ")]
        statements = [statement.strip() for statement in re.split(r";\s*\n", "\n".join(lines) + "\n")]
        yield [statement for statement in statements if statement]


class Side:
    def __init__(self, port):
        self.port = port
        self.enter()

    def enter(self):
        """A session without a history, in an empty database."""
        if hasattr(self, "connection"):
            self.connection.close()
        self.connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", charset="utf8mb4", autocommit=True, read_timeout=60, connect_timeout=60, conv={})
        # A day that does not end.
        for statement in ("SET time_zone = '+00:00'", "SET timestamp = 1290000000", "DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d"):
            self.ask(statement)

    def ask(self, statement):
        """Rows, sorted where no order is asked for, or what has changed, or an error; as JSON has it."""
        with self.connection.cursor() as cursor:
            try:
                affected = cursor.execute(statement)
                if cursor.description is None:
                    return affected
                rows = [[value if value is None or isinstance(value, str) else "0x" + bytes(value).hex() for value in row] for row in cursor.fetchall()]
            except pymysql.err.MySQLError as error:
                return f"error {error.args[0]}"
            except UnicodeDecodeError:
                return "letters that are none"
            return rows if re.search(r"(?i)order by", statement) else sorted(rows, key=json.dumps)


def questions(seed, count):
    """Blocks of statements: those of the file, and random ones over one table."""
    with open(STATEMENTS, encoding="utf-8") as file:
        yield from split(file.read())
    yield from drawn(seed, count)


def drawn(seed, count):
    draw = Draw(seed)
    setup = [statement for statement in re.split(r"\n(?=CREATE|INSERT)", SETUP.strip())]
    yield setup + [statement for _ in range(count) for statement in draw.statements()]


def known(statement, one, other):
    return any(re.search(pattern, statement) and re.search(answers, f"{one} {other}") for pattern, answers, _ in KNOWN)


def compare(tally, beluga, blocks, canary):
    """Asks Beluga; `blocks` are lists of statements and MySQL's answers."""
    spoilt = canary
    for block in blocks:
        beluga.enter()
        for statement, expected in block:
            found = beluga.ask(statement)
            if spoilt and isinstance(expected, list) and len(expected) > 1:
                expected, spoilt = expected[1:], False
            if found != expected and known(statement, found, expected):
                continue
            tally.check(statement, found == expected, f"\n  Beluga: {str(found)[:400]}\n  MySQL:  {str(expected)[:400]}")


def answers(mysql, blocks):
    for block in blocks:
        mysql.enter()
        yield [(statement, mysql.ask(statement)) for statement in block]


def record(port):
    mysql = Side(port)
    version = mysql.ask("SELECT VERSION()")[0][0]
    with open(GOLDEN, "w", encoding="utf-8") as file:
        file.write(json.dumps({"server": f"MySQL {version}"}) + "\n")
        for block in answers(mysql, questions(RECORDED, COUNT)):
            file.write("\n")
            for pair in block:
                file.write(json.dumps(pair, ensure_ascii=False) + "\n")
    print(f"recorded from MySQL {version}")


def recorded():
    with open(GOLDEN, encoding="utf-8") as file:
        for block in file.read().split("\n\n")[1:]:
            yield [json.loads(line) for line in block.splitlines() if line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--mysql", type=int)
    parser.add_argument("--beluga", type=int, help="the port of one that runs")
    parser.add_argument("--canary", action="store_true")
    arguments = parser.parse_args()
    tally = Tally()
    # The canary needs none.
    with contextlib.nullcontext(MySQL()) if arguments.canary else MySQL(arguments.mysql) as mysql:
        if arguments.record:
            if not mysql.port:
                sys.exit("no MySQL to record from; scripts/mysql.sh install")
            record(mysql.port)
            return
        if arguments.beluga:
            play(tally, Side(arguments.beluga), mysql.port, arguments)
        else:
            with Server(mysql=True) as server:
                play(tally, Side(server.mysql_port), mysql.port, arguments)
    tally.close()


def play(tally, beluga, port, arguments):
    if arguments.seed is None:
        compare(tally, beluga, recorded(), arguments.canary)
    if arguments.canary:
        return
    seed = FRESH if arguments.seed is None else arguments.seed
    if not port:
        tally.skip("no MySQL server to compare with; scripts/mysql.sh install")
        return
    print(f"seed {seed}", flush=True)
    compare(tally, beluga, answers(Side(port), drawn(seed, arguments.count)), False)


main()
