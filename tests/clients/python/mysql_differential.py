"""Random statements to Beluga and to a MariaDB server: rows, affected rows and error numbers must agree. What both mean differently is not drawn, or listed in KNOWN.

    mysql_differential.py --seed 20261121 --rounds 12      one known history
    mysql_differential.py --seconds 1800                   new histories
    mysql_differential.py --canary ...                     spoils one answer in a hundred: must fail

A round is a schema, rows, and statements; `--round N` plays one alone. A difference is printed with everything that is needed to see it again."""

import argparse
import datetime
import decimal
import math
import random
import re
import shutil
import sys
import time

import pymysql

from beluga import MariaDB, Server, Tally

MODE = "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"
# Patterns of a statement, Beluga's answer and MariaDB's, and why they differ. What is drawn nowhere for the same reason: text that is no date compared with a date (MySQL: error 1525), dates and
# texts as two outcomes of one CASE (MariaDB shows six digits of a second), '' compared with a number in a change (MySQL: error 1292).
KNOWN = [
    (r".", r"error 1292", r"error 1366", "a wrong number in a CAST or a comparison within a change: MySQL says 1292"),
    (r".", r"error 1366", r"error 1292", "the same the other way round"),
    (r"ROUND\((CASE|IF|IFNULL|COALESCE)\b.*-\d", r"'-\d+'", r"'-\d+\.0+'", "a negative literal beside an unsigned column: MariaDB makes a DECIMAL of the two, MySQL a BIGINT"),
    (r".", r"error 1525", r"rows", "a text that is no date compared with a date, where a name stands for a table further in than was meant"),
    (r"= '1\.5'", r"rows", r"rows", "MariaDB looks into an index of integers for the rounded number: 2 = '1.5'"),
]
COLLATION = "utf8mb4_general_ci"
WORDS = ["", "a", "A", "b", "B ", "ab", "aB", "abc", "ä", "Ä", "z", "_", "%", "a%", "0", "1", "2", "10", "-3", "1.5", "7x", "x7", " 4", "ß", "é"]
TEXT, NUMBER, DATE, TIME = "text", "number", "date", "datetime"


class Draw:
    """A round's chance, and what it has made."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tables = {}

    def one(self, *things):
        return self.random.choice(things)

    def chance(self, part):
        return self.random.random() < part

    def number(self):
        return self.one("0", "1", "2", "3", "5", "-1", "-2", "7", "10", "100", "0.5", "1.25", "-0.75", "2.50", str(self.random.randrange(-20, 40)))

    def word(self):
        return "'" + self.one(*WORDS) + "'"

    def date(self):
        return "'%04d-%02d-%02d'" % (self.one(1999, 2000, 2020, 2024), self.one(1, 2, 12), self.one(1, 15, 28))

    def moment(self):
        return self.date()[:-1] + " %02d:%02d:%02d'" % (self.one(0, 9, 23), self.one(0, 30), self.one(0, 59))

    def typed(self, kind):
        """A literal that is a date, not a text."""
        return {DATE: "DATE", TIME: "TIMESTAMP"}.get(kind, "") + self.literal(kind)

    def literal(self, kind):
        return {TEXT: self.word, NUMBER: self.number, DATE: self.date, TIME: self.moment}[kind]()

    # Schema and rows.

    TYPES = [("INT", NUMBER), ("SMALLINT", NUMBER), ("BIGINT", NUMBER), ("TINYINT UNSIGNED", NUMBER), ("DECIMAL(8,2)", NUMBER), ("DECIMAL(20,6)", NUMBER), ("DOUBLE", NUMBER),
             ("VARCHAR(8)", TEXT), ("CHAR(4)", TEXT), ("VARCHAR(8) COLLATE utf8mb4_bin", TEXT), ("TEXT", TEXT), ("DATE", DATE), ("DATETIME", TIME)]

    def table(self, name):
        columns = [("id", "INT NOT NULL", NUMBER)]
        for at in range(self.random.randrange(3, 7)):
            type_, kind = self.one(*self.TYPES)
            null = " NOT NULL" if self.chance(0.2) else ""
            columns.append((f"c{at}", type_ + null, kind))
        keys = ["PRIMARY KEY (id)"]
        for at in range(self.random.randrange(0, 3)):
            chosen = self.random.sample([c for c in columns[1:]], self.one(1, 1, 2))
            parts = ", ".join(f"{c[0]}(3)" if c[1].startswith("TEXT") else c[0] + self.one("", "", " DESC") for c in chosen)
            keys.append(f"{self.one('KEY', 'KEY', 'UNIQUE KEY')} k{at} ({parts})")
        self.tables[name] = columns
        body = ", ".join([f"{column} {type_}" for column, type_, _ in columns] + keys)
        return f"CREATE TABLE {name} ({body}) DEFAULT CHARSET=utf8mb4 COLLATE={COLLATION}"

    def value(self, column):
        name, type_, kind = column
        if name == "id":
            return str(self.random.randrange(0, 40))
        if "NOT NULL" not in type_ and self.chance(0.2):
            return "NULL"
        if kind == NUMBER and not type_.startswith(("DEC", "DOUBLE")):
            return str(self.random.randrange(-3 if "UNSIGNED" not in type_ else 0, 20))
        return self.literal(kind)

    def values(self, name):
        return "(" + ", ".join(self.value(column) for column in self.tables[name]) + ")"

    # Expressions over columns: (text, kind) of what is in scope.

    def column(self, scope, kind):
        found = [text for text, its in scope if its == kind]
        return self.one(*found) if found else self.typed(kind)

    def expression(self, scope, kind, depth=2):
        if depth == 0 or self.chance(0.4):
            return self.column(scope, kind) if self.chance(0.75) else self.typed(kind)
        deeper = lambda its: self.expression(scope, its, depth - 1)
        if self.chance(0.12):
            return f"CASE WHEN {self.condition(scope, depth - 1)} THEN {deeper(kind)} ELSE {deeper(kind)} END"
        if self.chance(0.1):
            return f"{self.one('COALESCE', 'IFNULL', 'NULLIF')}({deeper(kind)}, {deeper(kind)})"
        if kind == NUMBER:
            return self.one(
                lambda: f"({deeper(NUMBER)} {self.one('+', '-', '*')} {deeper(NUMBER)})", lambda: f"({deeper(NUMBER)} {self.one('/', '%', 'DIV')} {deeper(NUMBER)})",
                lambda: f"ABS({deeper(NUMBER)})", lambda: f"(-({deeper(NUMBER)}))", lambda: f"LENGTH({deeper(TEXT)})", lambda: f"CHAR_LENGTH({deeper(TEXT)})",
                lambda: f"ROUND({deeper(NUMBER)}, {self.one(0, 1, 2)})", lambda: f"FLOOR({deeper(NUMBER)})", lambda: f"SIGN({deeper(NUMBER)})", lambda: f"YEAR({deeper(DATE)})",
                lambda: f"MONTH({deeper(TIME)})", lambda: f"DATEDIFF({deeper(DATE)}, {deeper(DATE)})", lambda: f"LOCATE({deeper(TEXT)}, {deeper(TEXT)})", lambda: f"({self.condition(scope, depth - 1)})",
                lambda: f"GREATEST({deeper(NUMBER)}, {deeper(NUMBER)})", lambda: f"CAST({deeper(NUMBER)} AS DECIMAL(12,3))", lambda: f"CAST({deeper(NUMBER)} AS SIGNED)")()
        if kind == TEXT:
            return self.one(
                lambda: f"CONCAT({deeper(TEXT)}, {deeper(TEXT)})", lambda: f"UPPER({deeper(TEXT)})", lambda: f"LOWER({deeper(TEXT)})", lambda: f"LEFT({deeper(TEXT)}, {self.one(0, 1, 2)})",
                lambda: f"SUBSTRING({deeper(TEXT)}, {self.one(-1, 1, 2)})", lambda: f"TRIM({deeper(TEXT)})", lambda: f"REPLACE({deeper(TEXT)}, {self.word()}, {self.word()})", lambda: f"REVERSE({deeper(TEXT)})",
                lambda: f"LPAD({deeper(TEXT)}, {self.one(0, 2, 5)}, 'xy')", lambda: f"CAST({self.column(scope, NUMBER)} AS CHAR)", lambda: f"HEX({deeper(TEXT)})")()
        if kind == DATE:
            return self.one(lambda: f"DATE_ADD({deeper(DATE)}, INTERVAL {self.one(-1, 1, 40)} {self.one('DAY', 'MONTH', 'YEAR')})", lambda: f"DATE({deeper(TIME)})", lambda: f"LAST_DAY({deeper(DATE)})")()
        return self.one(lambda: f"DATE_SUB({deeper(TIME)}, INTERVAL {self.one(1, 90)} {self.one('MINUTE', 'SECOND', 'DAY')})", lambda: f"CAST({deeper(DATE)} AS DATETIME)")()

    def condition(self, scope, depth=2):
        kind = self.one(NUMBER, NUMBER, TEXT, TEXT, DATE, TIME)
        side = lambda: self.expression(scope, kind, max(depth - 1, 0))
        if depth > 0 and self.chance(0.3):
            return f"({self.condition(scope, depth - 1)} {self.one('AND', 'OR', 'XOR')} {self.condition(scope, depth - 1)})"
        if depth > 0 and self.chance(0.1):
            return f"NOT ({self.condition(scope, depth - 1)})"
        if depth > 0 and self.chance(0.12):
            return self.subquery(scope, kind)
        shape = self.random.random()
        if shape < 0.5:
            return f"{side()} {self.one('=', '=', '<>', '<', '<=', '>', '>=', '<=>')} {side()}"
        if shape < 0.6:
            return f"{side()} IS {self.one('', 'NOT ')}NULL"
        if shape < 0.7:
            return f"{side()} {self.one('', 'NOT ')}IN ({', '.join(self.literal(kind) for _ in range(self.one(1, 2, 4)))}{self.one('', '', ', NULL')})"
        if shape < 0.8:
            return f"{side()} {self.one('', 'NOT ')}BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
        if shape < 0.9:
            return f"{self.expression(scope, TEXT, 0)} {self.one('', 'NOT ')}LIKE {self.one(self.word(), repr('a%'), repr('%b'), repr('_'), repr('%a%'))}"
        # Kinds mixed: numbers and texts are compared as doubles.
        return f"{self.column(scope, NUMBER)} {self.one('=', '<', '>')} {self.one(*[repr(word) for word in ('1', '2', '10', '1.5', '-3')])}"

    def scope_of(self, name, alias):
        return [(f"{alias}.{column}", kind) for column, _, kind in self.tables[name]]

    def subquery(self, scope, kind):
        name = self.one(*self.tables)
        inner = self.scope_of(name, "s")
        where = self.condition(inner + scope, 1)
        wanted = self.column(inner, kind)
        return self.one(
            lambda: f"{self.one('', 'NOT ')}EXISTS (SELECT 1 FROM {name} s WHERE {where})",
            lambda: f"{self.column(scope, kind)} {self.one('', 'NOT ')}IN (SELECT {wanted} FROM {name} s WHERE {where})",
            lambda: f"{self.column(scope, kind)} {self.one('=', '<', '>=')} (SELECT {self.one('MIN', 'MAX')}({wanted}) FROM {name} s WHERE {where})",
            lambda: f"{self.column(scope, kind)} {self.one('>', '<=')} {self.one('ANY', 'ALL')} (SELECT {wanted} FROM {name} s WHERE {where})")()

    # Statements.

    def sources(self):
        """FROM, and what is in scope."""
        aliases = ["t", "u", "v"][: self.one(1, 1, 2, 2, 3)]
        text, scope = "", []
        for at, alias in enumerate(aliases):
            name = self.one(*self.tables)
            mine = self.scope_of(name, alias)
            source = f"{name} {alias}"
            if self.chance(0.12):
                # Columns only: MariaDB keeps a literal where an outer join finds no row.
                kinds = [kind for kind in (NUMBER, TEXT, DATE) if any(its == kind for _, its in mine)]
                shown = [(f"d{n}", self.column(mine, kind), kind) for n, kind in enumerate(kinds)]
                items = ", ".join(f"{text} AS {name}" for name, text, _ in shown)
                source = f"(SELECT {items} FROM {name} {alias} WHERE {self.condition(mine, 1)}) {alias}"
                mine = [(f"{alias}.{name}", kind) for name, _, kind in shown]
            if at == 0:
                text = source
            else:
                kind = self.one(NUMBER, NUMBER, TEXT)
                join = self.one("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN")
                text += f" {join} {source}"
                on = f"{self.column(mine, kind)} = {self.column(scope, kind)}"
                if join != "CROSS JOIN":
                    text += f" ON {on}" + (f" AND {self.condition(mine + scope, 1)}" if self.chance(0.3) else "")
                    text += f" AND {self.match(mine, 'm', 1)}" if self.chance(0.1) else ""
            scope += mine
        return text, scope

    def select(self):
        return self.one(self.plain, self.plain, self.grouped, self.grouped, self.matched, self.matched, self.chained, self.sets, self.common, self.windowed)()

    def plain(self):
        source, scope = self.sources()
        items = [self.expression(scope, self.one(NUMBER, TEXT, DATE, TIME)) for _ in range(self.one(1, 2, 4))]
        text = f"SELECT {self.one('', '', 'DISTINCT ')}{', '.join(items)} FROM {source}"
        if self.chance(0.7):
            text += f" WHERE {self.condition(scope)}"
        return text

    def match(self, scope, alias, depth=2, but=None):
        """A subquery that may become a join, or a list of keys: equal values, NULLs, several tables (not `but`), one within another."""
        names = [name for name in self.tables if name != but]
        name = self.one(*names)
        inner = self.scope_of(name, alias)
        source = f"{name} {alias}"
        if self.chance(0.3):
            other = self.one(*names)
            more = self.scope_of(other, alias + "x")
            kind = self.one(NUMBER, TEXT)
            source += f" {self.one('JOIN', 'LEFT JOIN')} {other} {alias}x ON {self.column(more, kind)} = {self.column(inner, kind)}"
            inner = inner + more
        where = [self.condition(inner, 0)] if self.chance(0.4) else []
        for _ in range(self.one(0, 1, 1, 2)):
            kind = self.one(NUMBER, NUMBER, TEXT, DATE)
            where.append(f"{self.column(inner, kind)} {self.one('=', '=', '=', '<', '<>')} {self.column(scope, kind)}")
        if self.chance(0.3):
            # A whole unique key: one match at most.
            where.append(f"{alias}.id = {self.column(scope, NUMBER)}")
        if depth > 1 and self.chance(0.3):
            where.append(self.match(self.one(inner, inner + scope), alias + "n", depth - 1, but))
        where = f" WHERE {' AND '.join(where)}" if where else ""
        kind = self.one(NUMBER, NUMBER, TEXT)
        return self.one(
            lambda: f"{self.one('', 'NOT ')}EXISTS (SELECT {self.one('1', '*')} FROM {source}{where})",
            lambda: f"{self.column(scope, kind)} {self.one('', 'NOT ')}IN (SELECT {self.column(inner, kind)} FROM {source}{where})",
            lambda: f"{self.column(scope, NUMBER)} IN (SELECT {alias}.id FROM {source}{where})",
            lambda: f"{self.one('', 'NOT ')}({self.column(scope, NUMBER)}, {self.column(scope, kind)}) IN (SELECT {self.column(inner, NUMBER)}, {self.column(inner, kind)} FROM {source}{where})",
            lambda: f"{self.column(scope, NUMBER)} {self.one('IN', 'NOT IN')} (SELECT {self.one('COUNT(*)', 'MAX')}({self.column(inner, NUMBER)}) FROM {source}{where} GROUP BY {self.column(inner, kind)})".replace("COUNT(*)(", "COUNT("))()

    def matched(self):
        source, scope = self.sources()
        conditions = [self.match(scope, "s")] + ([self.match(scope, "r")] if self.chance(0.3) else [])
        if self.chance(0.3):
            conditions[0] = f"({self.condition(scope, 0)} OR {conditions[0]})"
        elif self.chance(0.4):
            common = self.condition(scope, 0)
            conditions.append(f"(({common} AND {self.condition(scope, 0)}) OR ({self.condition(scope, 0)} AND {common}))")
        self.random.shuffle(conditions)
        items = ", ".join(self.column(scope, kind) for kind in (NUMBER, TEXT))
        return f"SELECT {self.one('COUNT(*)', items)} FROM {source} WHERE {' AND '.join(conditions)}"

    def chained(self):
        """Three or four tables of which each is equal to one before in one of few columns: what follows of that may join them."""
        text, scope, columns, conditions = [], [], [], []
        kind = self.one(NUMBER, NUMBER, TEXT, DATE)
        for alias in ("t", "u", "v", "w")[: self.one(3, 3, 4)]:
            name = self.one(*self.tables)
            mine = self.scope_of(name, alias)
            text.append(f"{name} {alias}")
            if columns:
                conditions.append(f"{self.column(mine, kind)} = {self.one(*columns)}")
            column = self.column(mine, kind)
            columns += [column, column] if column.startswith(alias + ".") else []
            if not columns:
                columns.append(self.typed(kind))
            scope += mine
        if self.chance(0.3):
            conditions.append(f"{self.one(*columns)} = {self.one(*columns)}")
        if self.chance(0.4):
            conditions.append(self.condition(scope, 1))
        self.random.shuffle(conditions)
        tables = ", ".join(text)
        if self.chance(0.2) and not re.search(r"\b[vw]\.", conditions[-1]):
            tables = f"{text[0]} LEFT JOIN {text[1]} ON {conditions.pop()}, {', '.join(text[2:])}"
        shown = self.one("COUNT(*)", "COUNT(*), MIN(t.id), MAX(u.id), SUM(v.id)", ", ".join(f"{alias}.id" for alias in ("t", "u", "v")))
        return f"SELECT {shown} FROM {tables}{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"

    def grouped(self):
        source, scope = self.sources()
        keys = [self.expression(scope, self.one(NUMBER, TEXT, DATE), self.one(0, 0, 1)) for _ in range(self.one(0, 1, 1, 2))]
        keys = [key for key in keys if re.search(r"[tuv]\.", key)]
        calls = [self.one(
            lambda: "COUNT(*)", lambda: f"COUNT({self.one('', 'DISTINCT ')}{self.expression(scope, self.one(NUMBER, TEXT), 1)})", lambda: f"SUM({self.expression(scope, NUMBER, 1)})",
            lambda: f"AVG({self.column(scope, NUMBER)})", lambda: f"ROUND(AVG({self.column(scope, NUMBER)}), 6)", lambda: f"AVG({self.column(scope, NUMBER)}) * 3", lambda: f"{self.one('MIN', 'MAX')}({self.expression(scope, self.one(NUMBER, DATE, TIME), 1)})",
            lambda: f"GROUP_CONCAT(DISTINCT {self.column(scope, NUMBER)} ORDER BY 1)")() for _ in range(self.one(1, 2, 3))]
        # Letters that are equal are one group; which of them stands for it is nobody's business.
        shown = [f"MIN({key}) IS NULL" for key in keys]
        text = f"SELECT {', '.join(shown + calls)} FROM {source}"
        if self.chance(0.5):
            text += f" WHERE {self.condition(scope)}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
            # Of a derived table that is merged MariaDB loses groups there.
            plain = [column for column in scope if column[0] in keys and "(SELECT" not in source]
            if plain and self.chance(0.2):
                text += f" HAVING {self.one('COUNT(*) > 2 OR ', '')}{self.match(plain, 's', 1)}"
            elif self.chance(0.3):
                text += f" HAVING {self.one('COUNT(*) > 1', f'MAX({self.column(scope, NUMBER)}) > 2', f'SUM({self.column(scope, NUMBER)}) IS NOT NULL')}"
            elif self.chance(0.15):
                text += " WITH ROLLUP"
        return text

    def sets(self):
        parts = []
        kinds = [NUMBER] * self.one(1, 2)
        for _ in range(self.one(2, 2, 3)):
            name = self.one(*self.tables)
            scope = self.scope_of(name, "t")
            parts.append(f"SELECT {', '.join(f'{self.column(scope, kind)} AS a{at}' for at, kind in enumerate(kinds))} FROM {name} t WHERE {self.condition(scope, 1)}")
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.one('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} {part}"
        return text

    def common(self):
        source, scope = self.sources()
        # A quotient is greater than the average of the same quotients where one of them is rounded and the other is not: MariaDB merges the one reference and not the other.
        number, word = self.undivided(lambda: self.expression(scope, NUMBER, 1)), self.column(scope, TEXT)
        text = f"WITH w (n, x) AS (SELECT {number}, {word} FROM {source} WHERE {self.condition(scope, 1)}) "
        return text + self.one("SELECT COUNT(*), SUM(n) FROM w", "SELECT a.n, b.n FROM w a LEFT JOIN w b ON a.n = b.n + 1", "SELECT n, x FROM w WHERE n > (SELECT AVG(n) FROM w)")

    def windowed(self):
        name = self.one(*self.tables)
        scope = self.scope_of(name, "t")
        over = f"OVER (PARTITION BY {self.column(scope, self.one(NUMBER, TEXT))} ORDER BY t.id)"
        call = self.one("ROW_NUMBER()", "RANK()", f"SUM({self.column(scope, NUMBER)})", f"COUNT({self.column(scope, TEXT)})", f"LAG(t.id, {self.one(1, 2)})", f"FIRST_VALUE({self.column(scope, NUMBER)})", f"MAX({self.column(scope, NUMBER)})")
        return f"SELECT t.id, {call} {over} FROM {name} t WHERE {self.condition(scope, 1)}"

    def change(self):
        name = self.one(*self.tables)
        columns = self.tables[name]
        scope = self.scope_of(name, name)
        rows = lambda: ", ".join(self.values(name) for _ in range(self.one(1, 1, 2, 4)))
        # Rows are changed in the order of their numbers: whether numbers collide on the way may not hang on the plan.
        assigned = self.random.sample(columns[1:], self.one(1, 2))
        sets = ", ".join(f"{c[0]} = {self.expression(scope, c[2], 1) if self.chance(0.6) else self.value(c)}" for c in assigned)
        return self.one(
            lambda: f"INSERT INTO {name} VALUES {rows()}", lambda: f"INSERT INTO {name} VALUES {rows()}", lambda: f"INSERT IGNORE INTO {name} VALUES {rows()}", lambda: f"REPLACE INTO {name} VALUES {rows()}",
            lambda: f"INSERT INTO {name} VALUES {rows()} ON DUPLICATE KEY UPDATE {', '.join(f'{c[0]} = VALUES({c[0]})' for c in assigned)}",
            lambda: f"UPDATE {name} SET {sets} WHERE {self.condition(scope, 1)} ORDER BY id", lambda: f"UPDATE {name} SET {sets} WHERE id = {self.random.randrange(40)}",
            lambda: f"UPDATE {name} SET {sets} WHERE {self.match(scope, 's', 1, name)} ORDER BY id", lambda: f"DELETE FROM {name} WHERE {self.match(scope, 's', 1, name)} AND id > {self.random.randrange(40)}",
            # A division by zero where rows are deleted is an error of MySQL's strict modes, and a warning of MariaDB's.
            lambda: f"DELETE FROM {name} WHERE {self.undivided(lambda: self.condition(scope, 2))} AND id > {self.random.randrange(40)}", lambda: f"DELETE FROM {name} ORDER BY id LIMIT {self.one(1, 2)}")()

    def undivided(self, draw):
        while re.search(r" (/|%|DIV) ", text := draw()):
            pass
        return text


def shown(value):
    if isinstance(value, float):
        return "0" if value == 0 else f"{value:.11g}"
    if isinstance(value, decimal.Decimal):
        return str(value)
    return repr(value)


class Side:
    def __init__(self, port):
        self.connection = pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4", autocommit=True, read_timeout=120, connect_timeout=60)
        for statement in (f"SET SESSION sql_mode = '{MODE}'", f"SET NAMES utf8mb4 COLLATE {COLLATION}", "SET SESSION group_concat_max_len = 100000",
                          # MariaDB finds no NULL in a materialized answer when it looks for a value that the column cannot hold: (-1, 3) is then not in ((NULL, 3)).
                          "SET SESSION optimizer_switch = 'materialization=off'"):
            self.ask(statement)

    def ask(self, statement):
        """Rows, sorted, or what has changed, or an error."""
        with self.connection.cursor() as cursor:
            try:
                affected = cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                return f"error {error.args[0]}", str(error.args[1:])
            if cursor.description is None:
                return f"ok {affected}", ""
            return "rows", sorted(tuple(shown(value) for value in row) for row in cursor.fetchall())


def known(statement, one, two):
    return any(re.search(a, statement) and re.search(b, one) and re.search(c, two) for a, b, c, _ in KNOWN)


class Round:
    def __init__(self, seed, number, beluga, maria, arguments):
        self.draw = Draw(f"{seed} {number}")
        self.sides = (beluga, maria)
        self.history = []
        self.canary = arguments.canary
        self.name = f"round {number} of seed {seed}"

    def both(self, statement):
        self.history.append(statement)
        one, two = (side.ask(statement) for side in self.sides)
        if self.canary and self.draw.chance(0.01):
            one = ("rows", [("spoilt",)])
        same = one[0] == two[0] and (one[0] != "rows" or one[1] == two[1])
        if same or known(statement, str(one), str(two)):
            return True
        print(f"FAILED {self.name}, statement {len(self.history)}\n  {statement}\n  Beluga:  {str(one)[:600]}\n  MariaDB: {str(two)[:600]}")
        return False

    def play(self, count):
        draw = self.draw
        for side in self.sides:
            side.ask("DROP DATABASE IF EXISTS d")
            side.ask(f"CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4 COLLATE {COLLATION}")
            side.ask("USE d")
        failed = 0
        for name in ("one", "two", "three"):
            failed += not self.both(draw.table(name))
            for _ in range(draw.one(0, 3, 12)):
                self.both(f"INSERT IGNORE INTO {name} VALUES {draw.values(name)}")
        for at in range(count):
            is_change = draw.chance(0.35)
            if not self.both(draw.change() if is_change else draw.select()):
                failed += 1
                if is_change:
                    # Later results would differ for this reason alone.
                    break
            if at % 10 == 9:
                same = [self.both(f"SELECT * FROM {name}") for name in draw.tables]
                if not all(same):
                    failed += 1
                    break
        return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--round", type=int)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--statements", type=int, default=200)
    parser.add_argument("--canary", action="store_true")
    parser.add_argument("--maria", type=int, help="the port of one that runs")
    arguments = parser.parse_args()
    tally = Tally()
    if not arguments.maria and not shutil.which("mariadbd"):
        tally.skip("no MariaDB server is installed")
        tally.close()
    print(f"seed {arguments.seed}", flush=True)
    peer = MariaDB() if not arguments.maria else None
    try:
        with Server(mysql=True) as server:
            maria_port = arguments.maria or peer.__enter__().port
            beluga, maria = Side(server.mysql_port), Side(maria_port)
            until = time.monotonic() + arguments.seconds
            numbers = [arguments.round] if arguments.round is not None else range(arguments.rounds or 1 << 30)
            statements = 0
            for number in numbers:
                if arguments.rounds == 0 and time.monotonic() > until:
                    break
                one = Round(arguments.seed, number, beluga, maria, arguments)
                failed = one.play(arguments.statements)
                statements += len(one.history)
                tally.check(f"round {number}", failed == 0, f"{failed} differences")
            print(f"{statements} statements", flush=True)
    finally:
        if peer:
            peer.__exit__()
    tally.close()


main()
