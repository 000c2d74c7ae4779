"""Schemas of applications: each statement is accepted, SHOW CREATE TABLE shows every table as MySQL does, and what it shows makes the same table again.

sql/schemas.sql has the notation of applications in tables of our own; sql/schemas.golden MySQL's answers to it (`--record`). The applications' own files are under other licences than this
repository: scripts/setup.sh fetches Debian's packages of them into target/clients/schemas. Where a MySQL can be had (scripts/mysql.sh) their tables are compared with its.

    mysql_schemas.py --record            asks MySQL and writes sql/schemas.golden
    mysql_schemas.py --mysql PORT        a MySQL server that runs"""

import argparse
import glob
import gzip
import json
import os
import re

import pymysql

from beluga import Server, Tally
from mysql_server import MySQL

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "..", "sql", "schemas.sql")
GOLDEN = os.path.join(HERE, "..", "sql", "schemas.golden")
FETCHED = os.path.join(HERE, "..", "..", "..", "target", "clients", "schemas")
# Of the fetched files: statements that are not served.
NOT_SERVED = re.compile(r"(?i)\b(create|drop) (function|procedure|trigger)\b|\bfulltext (key|index)\b")


def statements(text):
    """The statements of a file as the client `mysql` cuts them: at the delimiter outside of quotes and comments."""
    token = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|/\*.*?\*/|(?:--(?=[ \t\n])|#)[^\n]*|(?<![^\n])[ \t]*delimiter[ \t]+(\S+)[^\n]*", re.S | re.I)
    delimiter, one, at = ";", "", 0
    while at < len(text):
        found = token.match(text, at)
        if found and found[1]:
            delimiter = found[1]
        elif found and not found[0].startswith(("--", "#")):
            one += found[0]
        elif not found and text.startswith(delimiter, at):
            if one.strip():
                yield one.strip()
            one, at = "", at + len(delimiter)
            continue
        elif not found:
            one += text[at]
        at = found.end() if found else at + 1
    if one.strip():
        yield one.strip()


class Side:
    def __init__(self, port):
        self.connection = pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4", autocommit=True, read_timeout=120)
        self.mode = self.ask("SELECT @@sql_mode")[0][0]

    def ask(self, statement):
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(statement)
                return [[value if value is None else str(value) for value in row] for row in cursor.fetchall()]
            except pymysql.err.MySQLError as error:
                return f"error {error.args[0]}"

    def load(self, text):
        """Errors by statement, and the tables."""
        for statement in ("SET NAMES utf8mb4", f"SET sql_mode = '{self.mode}', foreign_key_checks = 1", "DROP DATABASE IF EXISTS application", "CREATE DATABASE application", "USE application"):
            self.ask(statement)
        errors = [[statement[:200], answer] for statement in statements(text) if isinstance(answer := self.ask(statement), str)]
        return {"errors": errors, "tables": self.tables()}

    def tables(self):
        names = [name for (name,) in self.ask("SHOW TABLES")]
        return {name: [self.ask(f"SHOW CREATE TABLE `{name}`")[0][1], self.ask(f"SHOW COLUMNS FROM `{name}`"), self.ask(f"SELECT COUNT(*) FROM `{name}`")] for name in sorted(names)}

    def made_again(self, tables):
        """The definitions of tables that are made from their own."""
        for statement in ("DROP DATABASE application", "CREATE DATABASE application", "USE application", "SET foreign_key_checks = 0"):
            self.ask(statement)
        for definition, *_ in tables.values():
            self.ask(definition)
        return {name: definition for name, (definition, *_) in self.tables().items() if name in tables}


def blocks():
    with open(OWN, encoding="utf-8") as file:
        return [block for block in re.split(r"(?m)^---\n", file.read())]


def files():
    """The fetched files: name and text. Files of one application that follow each other are one."""
    for path in sorted(glob.glob(os.path.join(FETCHED, "*"))):
        with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
            yield os.path.basename(path), file.read()


def check(tally, name, beluga, text, expected):
    found = beluga.load(text)
    served = lambda errors: [error for error in errors if not NOT_SERVED.search(error[0])]
    tally.check(f"{name}: errors", served(found["errors"]) == served(expected["errors"] if expected else []), f"\n  {found['errors'][:5]}")
    for table in sorted({*found["tables"], *(expected["tables"] if expected else [])}):
        one = found["tables"].get(table)
        other = expected and expected["tables"].get(table)
        if expected and not (other and NOT_SERVED.search(other[0])):
            tally.check(f"{name}: {table}", one == other, f"\n  Beluga: {one}\n  MySQL:  {other}")
    # A column's character set is shown where it was named, so the second definition may name more than the first.
    bare = lambda definition: re.sub(r" CHARACTER SET \w+(?= COLLATE)", "", definition)
    for table, definition in beluga.made_again(found["tables"]).items():
        tally.check(f"{name}: {table} again", bare(definition) == bare(found["tables"][table][0]), definition)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--mysql", type=int)
    parser.add_argument("--beluga", type=int, help="the port of one that runs")
    arguments = parser.parse_args()
    tally = Tally()
    with MySQL(arguments.mysql) as mysql:
        if arguments.record:
            recorded = [Side(mysql.port).load(block) for block in blocks()]
            with open(GOLDEN, "w", encoding="utf-8") as file:
                file.write("\n".join(json.dumps(one, ensure_ascii=False) for one in recorded) + "\n")
            return
        if arguments.beluga:
            play(tally, Side(arguments.beluga), mysql)
        else:
            with Server(mysql=True) as server:
                play(tally, Side(server.mysql_port), mysql)
    tally.close()


def play(tally, beluga, mysql):
    with open(GOLDEN, encoding="utf-8") as file:
        golden = [json.loads(line) for line in file]
    for at, (block, expected) in enumerate(zip(blocks(), golden, strict=True)):
        check(tally, f"block {at + 1}", beluga, block, expected)
    other = Side(mysql.port) if mysql.port else None
    fetched = list(files())
    for name, text in fetched:
        check(tally, name, beluga, text, other and other.load(text))
    if not fetched:
        tally.skip("no schemas of applications; scripts/setup.sh test fetches them")


main()
