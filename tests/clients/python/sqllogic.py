"""Runs sqllogictest files (tests/clients/sql/logic/*.slt) against Beluga, and against a MariaDB server beside it: what a file expects is what both answer, but for the records that name one of them.

    statement ok                   query IT rowsort          skipif mariadb / onlyif mariadb
    CREATE TABLE t (a INT)         SELECT a, b FROM t        for the record behind it; `mysql` stands for what MySQL 8.0 does
    statement error 1062           ----
    INSERT INTO t VALUES (1)       1 one                     rows, one a line, values between blanks; or a line each with `values`
    statement count 2              2 NULL                    halt, hash-threshold as in SQLite's runner

Types: I integer, R real with three digits, T text (an empty one is shown as (empty)). Sorts: nosort, rowsort, valuesort.

    sqllogic.py [--update] [--canary] [FILE ...]      --update writes what Beluga answers, to be read before it is kept; --canary spoils one answer: must fail
"""

import contextlib
import glob
import hashlib
import os
import shutil
import sys

import pymysql

from beluga import MariaDB, Server, Tally

FOLDER = os.path.join(os.path.dirname(__file__), "..", "sql", "logic")
tally = Tally()


class Record:
    """A statement or query, and what is expected of it."""

    def __init__(self, line, words):
        self.line, self.kind, self.words = line, words[0], words[1:]
        self.sql, self.expected, self.skips, self.only = [], [], [], []

    def concerns(self, engine):
        return engine not in self.skips and (not self.only or engine in self.only)


def parse(path):
    """The records of a file, and its lines; a record knows where its rows stand."""
    with open(path) as file:
        lines = file.read().split("\n")
    records, at, skips, only = [], 0, [], []
    while at < len(lines):
        words = lines[at].split("#")[0].split()
        if not words:
            at += 1
        elif words[0] in ("skipif", "onlyif"):
            (skips if words[0] == "skipif" else only).append(words[1])
            at += 1
        elif words[0] == "halt":
            break
        elif words[0] in ("hash-threshold", "control"):
            at += 1
        elif words[0] in ("statement", "query"):
            record = Record(at + 1, words)
            record.skips, record.only, skips, only = skips, only, [], []
            at += 1
            while at < len(lines) and lines[at].strip() and lines[at] != "----":
                record.sql.append(lines[at])
                at += 1
            record.rows = (at, at)
            if at < len(lines) and lines[at] == "----":
                start = at = at + 1
                while at < len(lines) and lines[at].strip():
                    at += 1
                record.rows, record.expected = (start, at), lines[start:at]
            records.append(record)
        else:
            raise ValueError(f"{path}:{at + 1}: what is {words[0]!r}?")
    return records, lines


def shown(value, kind):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if kind == "I":
        return str(int(value))
    if kind == "R":
        return f"{float(value):.3f}"
    text = str(value)
    return "".join(letter if letter.isprintable() else "@" for letter in text) or "(empty)"


def run(connection, record):
    """The result of the record as lines, or `ok`, a count, or an error number."""
    with connection.cursor() as cursor:
        try:
            count = cursor.execute("\n".join(record.sql))
        except pymysql.Error as error:
            return "error", error.args[0]
        if record.kind == "statement":
            return "count", count
        types, mode = record.words[0], record.words[1] if len(record.words) > 1 else "nosort"
        rows = cursor.fetchall()
    if rows and len(rows[0]) != len(types):
        return "error", f"{len(rows[0])} columns"
    found = [[shown(value, kind) for value, kind in zip(row, types)] for row in rows]
    if mode == "rowsort":
        found.sort()
    if mode == "valuesort":
        return "rows", sorted(value for row in found for value in row)
    return "rows", ["  ".join(row) for row in found]


def hashed(lines):
    values = [value for line in lines for value in line.split("  ")]
    digest = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
    return [f"{len(values)} values hashing to {digest}"]


def agrees(record, answer):
    how, what = answer
    if record.kind == "query":
        expected = [line.rstrip() for line in record.expected]
        return how == "rows" and ([line.rstrip() for line in what] == expected or hashed(what) == expected)
    wanted = record.words[0]
    if wanted == "error":
        return how == "error" and (len(record.words) == 1 or what == int(record.words[1]))
    return how == "count" and (wanted == "ok" or what == int(record.words[1]))


def play(path, engine, connection, spoil=False):
    """Runs the file. With each record that disagrees, what came."""
    wrong, records = [], [record for record in parse(path)[0] if record.concerns(engine)]
    for record in records:
        how, what = answer = run(connection, record)
        if spoil and how == "rows" and what:
            answer, spoil = (how, ["spoilt", *what[1:]]), False
        if not agrees(record, answer):
            wrong.append((record, answer))
    return len(records), wrong


def update(path, connection):
    records, lines = parse(path)
    answers = [(record, run(connection, record)) for record in records if record.concerns("mysql")]
    for record, (how, what) in reversed(answers):
        if record.kind == "query" and how == "rows":
            start, end = record.rows
            lines[start:end] = what if record.expected or lines[start - 1] == "----" else ["----", *what]
    with open(path, "w") as file:
        file.write("\n".join(lines))


def fresh(port):
    """A connection with a database of its own, in which both servers read and sort alike."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, connect_timeout=60, read_timeout=300)
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS logic")
        cursor.execute("CREATE DATABASE logic CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute("USE logic")
        cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute("SET sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00'")
    return connection


def main():
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    files = named or sorted(glob.glob(os.path.join(FOLDER, "*.slt")))
    spoil = "--canary" in sys.argv
    with contextlib.ExitStack() as stack:
        ports = [("mysql", stack.enter_context(Server(mysql=True)).mysql_port)]
        if "--update" in sys.argv:
            for path in files:
                update(path, fresh(ports[0][1]))
            return
        if shutil.which("mariadbd"):
            ports.append(("mariadb", stack.enter_context(MariaDB()).port))
        else:
            tally.skip("no MariaDB to compare with")
        for path in files:
            for engine, port in ports:
                count, wrong = play(path, engine, fresh(port), spoil and engine == "mysql")
                tally.passed += count - len(wrong)
                for record, (how, what) in wrong:
                    sql = " ".join(record.sql)[:300]
                    tally.check(f"{os.path.basename(path)}:{record.line} {engine}", False, f"{sql}\n  expected {' '.join(record.words)} {record.expected}\n  came     {how} {what}")
            spoil = False
    tally.close()


main()
