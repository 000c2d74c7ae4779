"""Queries at the PostgreSQL door beside a real PostgreSQL 16: rows, column names, types, command tags and errors (SQLSTATE, message, detail, hint, position) must agree.

    postgres_beside.py [--seed N] [--seconds N]     random queries over random rows, and TPC-H's 22 queries
    postgres_beside.py --ours PORT --theirs PORT    the same between servers that run
    postgres_beside.py --canary                     spoils one answer: must fail

Rows without an order are compared as sets. SQL leaves open which expressions of a query are evaluated, so a query that fails at a value (class 22) at one server and not, or otherwise, at the other says nothing; nor does a
prepared statement with two faults of which each server names the one that it finds first. Where no PostgreSQL can be had (scripts/postgres.sh), nothing is compared."""

import argparse
import datetime
import os
import random
import re
import subprocess
import tempfile
import time

from psycopg import pq

from beluga import Server, Tally, free_port
from range_queries import SUBTYPES, RangeQueries

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
SCRIPT = os.path.join(ROOT, "scripts/postgres.sh")
TPCH = os.path.join(ROOT, "crates/bench/src/tpch")
DATABASE = "beside"
FIELDS = {
    "state": pq.DiagnosticField.SQLSTATE,
    "message": pq.DiagnosticField.MESSAGE_PRIMARY,
    "detail": pq.DiagnosticField.MESSAGE_DETAIL,
    "hint": pq.DiagnosticField.MESSAGE_HINT,
    "position": pq.DiagnosticField.STATEMENT_POSITION,
}
# How rows are compared: in their order, in it but for which of some equal values stands for them, or as sets.
ORDERED, DISTINCT, UNORDERED = "ordered", "distinct", "unordered"
NUMERIC, FLOAT8 = 1700, 701


class Side:
    """One server, by the protocol's own fields."""

    def __init__(self, port, database):
        self.conn = pq.PGconn.connect(f"host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable".encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise RuntimeError(self.conn.error_message.decode())

    def ask(self, text, values=None):
        """Asks by the simple protocol; with values, by the extended one, as parameters of undeclared types."""
        if values is None:
            return self.read(self.conn.exec_(text.encode()))
        return self.read(self.conn.exec_params(text.encode(), [None if value is None else value.encode() for value in values]))

    def described(self, text):
        """Returns the columns before the plan is made: PostgreSQL folds constants in it, and modifiers may change."""
        self.conn.prepare(b"", text.encode())
        return self.columns(self.conn.describe_prepared(b""))

    @staticmethod
    def columns(result):
        return [(result.fname(at).decode(), result.ftype(at), result.fmod(at)) for at in range(result.nfields)]

    def binary(self, text, values=()):
        """Asks for values in the binary form. Parameters are pairs of a type and bytes in that form."""
        given = [value for _, value in values], [ty for ty, _ in values], [1] * len(values)
        return self.read(self.conn.exec_params(text.encode(), *given, result_format=1))

    def read(self, result):
        if result.status == pq.ExecStatus.TUPLES_OK:
            rows = [tuple(result.get_value(row, at) for at in range(result.nfields)) for row in range(result.ntuples)]
            return "rows", self.columns(result), rows
        if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
            return "done", (result.command_status or b"").decode(), None
        told = {name: (result.error_field(field) or b"").decode() for name, field in FIELDS.items()}
        if not told["state"]:
            raise RuntimeError(f"connection lost: {self.conn.error_message.decode()}")
        return "error", told, None


def fails_at_a_value(answer):
    return answer[0] == "error" and answer[1]["state"].startswith("22")


def plain(columns, row):
    """Returns a row with one text for equal values: 1.50 and 1.5, 0 and -0."""
    def cell(ty, value):
        if value is None or ty not in (NUMERIC, FLOAT8):
            return value
        if ty == NUMERIC and b"." in value:
            value = value.rstrip(b"0").rstrip(b".")
        return b"0" if value == b"-0" else value

    return tuple(cell(ty, value) for (_, ty, _), value in zip(columns, row))


def rows_agree(columns, ours, theirs, order):
    if ours == theirs:
        return True
    if order == ORDERED and sorted(map(repr, ours)) != sorted(map(repr, theirs)):
        return False
    ours, theirs = ([plain(columns, row) for row in rows] for rows in (ours, theirs))
    return sorted(map(repr, ours)) == sorted(map(repr, theirs)) if order == UNORDERED else ours == theirs


COLUMNS = [("a", "int4"), ("b", "int8"), ("c", "int2"), ("n", "numeric(12,3)"), ("f", "float8"), ("s", "text"), ("v", "varchar(8)"), ("t", "bool"), ("d", "date"), ("m", "timestamp")]
KIND = {"numeric(12,3)": "numeric", "varchar(8)": "text"}


class Generator:
    """Typed random queries over the tables r1, r2, r3."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        # In a prepared statement, the values of its parameters.
        self.parameters = None

    def prepared(self):
        """Returns a query whose literals are parameters of undeclared types, and their values."""
        self.parameters = []
        # The types of parameters follow from their surroundings, and a set operation has few.
        text, order = self.plain()
        values, self.parameters = self.parameters, None
        return text, order, values

    def parameter(self, kind):
        pick = self.random.choice
        value = None if self.random.random() < 0.08 else pick(PARAMETERS[kind])
        self.parameters.append(value)
        place = f"${len(self.parameters)}"
        return f"{place}::{kind}" if self.random.random() < 0.3 else place

    def literal(self, kind):
        pick = self.random.choice
        if self.parameters is not None:
            return self.parameter(kind)
        if self.random.random() < 0.08:
            return "null"
        if kind in ("int4", "int8", "int2"):
            return pick(["0", "1", "2", "3", "5", "-1", "7", "10", "100", "-7"])
        if kind == "numeric":
            return pick(["0.0", "1.5", "2.25", "-3.125", "10.000", "99.9", "0.001", "1e2", "12345.678"])
        if kind == "float8":
            return pick(["0::float8", "1.5::float8", "'-2.25'::float8", "1e10::float8", "'NaN'::float8", "3::float8"])
        if kind == "text":
            return pick(["'a'", "'b'", "'ab'", "''", "'A'", "'abc'", "'x y'", "'ä'", "'10'", "'é%'"])
        if kind == "bool":
            return pick(["true", "false"])
        if kind == "date":
            return pick(["date '2024-02-29'", "date '2000-01-01'", "date '1999-12-31'", "'2024-03-01'::date"])
        return pick(["timestamp '2024-02-29 12:30:00'", "timestamp '2000-01-01'", "timestamp '1999-12-31 23:59:59.5'"])

    def column(self, kind, scope):
        found = [f"{alias}.{name}" for alias, columns in scope for name, ty in columns if KIND.get(ty, ty) == kind]
        return self.random.choice(found) if found else self.literal(kind)

    def value(self, kind, scope, depth=2):
        roll = self.random.random()
        if depth == 0 or roll < 0.35:
            return self.column(kind, scope) if scope and self.random.random() < 0.75 else self.literal(kind)
        inner = lambda of: self.value(of, scope, depth - 1)
        pick = self.random.choice
        if roll < 0.45:
            return f"case when {self.condition(scope, depth - 1)} then {inner(kind)} else {inner(kind)} end"
        if roll < 0.52:
            return f"coalesce({inner(kind)}, {inner(kind)})"
        if roll < 0.56:
            return f"nullif({inner(kind)}, {inner(kind)})"
        if roll < 0.60:
            return f"{pick(['greatest', 'least'])}({inner(kind)}, {inner(kind)})"
        if kind in ("int4", "int8"):
            return pick(
                [
                    lambda: f"({inner(kind)} {pick(['+', '-', '*', '/', '%'])} {inner(pick(['int4', 'int2', kind]))})::{kind}",
                    lambda: f"abs({inner(kind)})",
                    lambda: f"length({inner('text')})::{kind}",
                    lambda: f"extract({pick(['year', 'month', 'day', 'dow', 'doy'])} from {inner('date')})::{kind}",
                    lambda: f"({inner('date')} - {inner('date')})::{kind}",
                    lambda: f"(- {inner(kind)})",
                    lambda: f"position({inner('text')} in {inner('text')})::{kind}",
                ]
            )()
        if kind == "int2":
            return f"({inner('int4')} % 1000)::int2"
        if kind == "numeric":
            return pick(
                [
                    lambda: f"({inner('numeric')} {pick(['+', '-', '*', '/', '%'])} {inner(pick(['numeric', 'int4', 'int8']))})",
                    lambda: f"round({inner('numeric')}, {self.random.randrange(0, 4)})",
                    lambda: f"{pick(['abs', 'ceil', 'floor', 'sign'])}({inner('numeric')})",
                    lambda: f"({inner('int4')})::numeric",
                ]
            )()
        if kind == "float8":
            return pick(
                [
                    lambda: f"({inner('float8')} {pick(['+', '-', '*'])} {inner(pick(['float8', 'int4', 'numeric']))})",
                    lambda: f"abs({inner('float8')})",
                    lambda: f"({inner('numeric')})::float8",
                ]
            )()
        if kind == "text":
            return pick(
                [
                    lambda: f"({inner('text')} || {inner(pick(['text', 'int4', 'numeric', 'date']))})",
                    lambda: f"{pick(['upper', 'lower', 'trim', 'reverse', 'initcap', 'md5'])}({inner('text')})",
                    lambda: f"substring({inner('text')} from {self.random.randrange(-1, 4)} for {self.random.randrange(0, 4)})",
                    lambda: f"lpad({inner('text')}, {self.random.randrange(0, 6)}, 'xy')",
                    lambda: f"({inner(pick(['int4', 'numeric', 'bool', 'date', 'timestamp']))})::text",
                    lambda: f"replace({inner('text')}, 'a', {inner('text')})",
                    lambda: f"to_char({inner('date')}, 'YYYY-MM-DD Dy')",
                ]
            )()
        if kind == "bool":
            return f"({self.condition(scope, depth - 1)})"
        if kind == "date":
            return pick(
                [
                    lambda: f"({inner('date')} + ({inner('int2')}))",
                    lambda: f"({inner('timestamp')})::date",
                    lambda: f"date_trunc('month', {inner('date')})::date",
                ]
            )()
        return pick(
            [
                lambda: f"({inner('timestamp')} {pick(['+', '-'])} interval '{self.random.randrange(0, 40)} {pick(['days', 'months', 'hours', 'seconds'])}')",
                lambda: f"date_trunc('{pick(['year', 'month', 'day', 'hour', 'week'])}', {inner('timestamp')})",
                lambda: f"({inner('date')})::timestamp",
            ]
        )()

    def condition(self, scope, depth=2):
        pick = self.random.choice
        kind = pick(["int4", "int8", "numeric", "float8", "text", "date", "timestamp"])
        value = lambda of=kind: self.value(of, scope, max(depth - 1, 0))
        roll = self.random.random()
        if depth > 0 and roll < 0.25:
            return f"({self.condition(scope, depth - 1)} {pick(['and', 'or'])} {self.condition(scope, depth - 1)})"
        if depth > 0 and roll < 0.30:
            return f"not ({self.condition(scope, depth - 1)})"
        if roll < 0.55:
            other = pick(["int4", "int8", "numeric", "int2"]) if kind in ("int4", "int8", "numeric") else kind
            return f"{value()} {pick(['=', '<>', '<', '<=', '>', '>='])} {value(other)}"
        if roll < 0.62:
            return f"{value()} is {pick(['', 'not '])}null"
        if roll < 0.69:
            return f"{value()} {pick(['', 'not '])}between {value()} and {value()}"
        if roll < 0.77:
            return f"{value()} {pick(['', 'not '])}in ({', '.join(value() for _ in range(self.random.randrange(1, 4)))})"
        if roll < 0.83:
            return f"{value('text')} {pick(['like', 'not like', 'ilike'])} '{pick(PATTERNS)}'"
        if roll < 0.87:
            return f"{value()} is {pick(['', 'not '])}distinct from {value()}"
        if roll < 0.91:
            return f"({self.value('bool', scope, 0)}) is {pick(['', 'not '])}{pick(['true', 'false', 'unknown'])}"
        if depth > 0:
            return self.subquery_condition(scope, kind)
        return self.value("bool", scope, 0)

    def subquery_condition(self, scope, kind):
        pick = self.random.choice
        table, alias = pick(["r1", "r2", "r3"]), f"q{self.random.randrange(1000)}"
        inner = [(alias, COLUMNS)] + scope
        where = self.condition(inner, 1)
        roll = self.random.random()
        if roll < 0.4:
            return f"{pick(['', 'not '])}exists (select 1 from {table} {alias} where {alias}.a = {self.column('int4', scope)} and {where})"
        if roll < 0.75:
            return f"{self.value(kind, scope, 0)} {pick(['', 'not '])}in (select {self.column(kind, [(alias, COLUMNS)])} from {table} {alias} where {where})"
        return f"{self.value('int4', scope, 0)} {pick(['=', '<', '>'])} {pick(['any', 'all'])} (select {alias}.a from {table} {alias} where {where})"

    def source(self):
        count = self.random.choice([1, 1, 2, 2, 3])
        scope, text = [], ""
        for at in range(count):
            alias = f"x{at}"
            table = self.random.choice(["r1", "r2", "r3"])
            if at == 0:
                scope.append((alias, COLUMNS))
                text = f"{table} {alias}"
                continue
            kind = self.random.choice(["join", "left join", "right join", "full join", "cross join"])
            scope.append((alias, COLUMNS))
            before = self.random.randrange(at)
            on = f"x{before}.a = {alias}.{self.random.choice(['a', 'b', 'c'])}"
            if kind not in ("full join", "cross join") and self.random.random() < 0.3:
                on += f" and {self.condition(scope, 1)}"
            text += f" {kind} {table} {alias}" + ("" if kind == "cross join" else f" on {on}")
        return scope, text

    def query(self):
        roll = self.random.random()
        if roll < 0.12:
            one, other = self.plain(width=2, bare=True), self.plain(width=2, bare=True)
            return f"{one} {self.random.choice(['union', 'union all', 'intersect', 'except', 'except all', 'intersect all'])} {other}", UNORDERED
        if roll < 0.40:
            return self.grouped()
        if roll < 0.50:
            return self.windowed()
        return self.plain()

    def kinds(self, count):
        return [self.random.choice(["int4", "int8", "numeric", "float8", "text", "bool", "date", "timestamp"]) for _ in range(count)]

    def plain(self, width=None, bare=False):
        scope, text = self.source()
        kinds = ["int4", "text"] if bare else self.kinds(self.random.randrange(1, 5))
        items = [self.value(kind, scope) for kind in kinds]
        where = f" where {self.condition(scope)}" if self.random.random() < 0.7 else ""
        if bare:
            return f"select {', '.join(items)} from {text}{where}"
        distinct = "distinct " if self.random.random() < 0.15 else ""
        order = ", ".join(f"{at + 1}{self.random.choice(['', ' desc', ' nulls first', ' desc nulls last'])}" for at in range(len(items)))
        return f"select {distinct}{', '.join(items)} from {text}{where} order by {order}", ORDERED if distinct == "" else DISTINCT

    def aggregate(self, scope):
        pick = self.random.choice
        kind = pick(["int4", "int8", "numeric", "int2"])
        of, text = self.value(kind, scope, 1), self.column("text", scope)
        call = pick(
            [
                "count(*)",
                f"count({of})",
                f"count(distinct {of})",
                f"sum({of})",
                f"avg({of})",
                f"min({self.value(pick(['int4', 'text', 'date', 'numeric', 'timestamp']), scope, 1)})",
                f"max({self.value(pick(['int4', 'text', 'date', 'numeric', 'timestamp']), scope, 1)})",
                f"bool_and({self.condition(scope, 1)})",
                f"bool_or({self.condition(scope, 1)})",
                f"sum(distinct {of})",
                f"string_agg(distinct {text}, ',' order by {text})",
            ]
        )
        if call.startswith("string_agg"):
            return call
        return call + (f" filter (where {self.condition(scope, 1)})" if self.random.random() < 0.15 else "")

    def grouped(self):
        scope, text = self.source()
        keys = [self.value(kind, scope, 1) for kind in self.kinds(self.random.randrange(0, 3))]
        items = keys + [self.aggregate(scope) for _ in range(self.random.randrange(1, 4))]
        where = f" where {self.condition(scope)}" if self.random.random() < 0.5 else ""
        group = f" group by {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
        having = f" having {self.aggregate(scope)} is not null" if self.random.random() < 0.2 else ""
        return f"select {', '.join(items)} from {text}{where}{group}{having}", UNORDERED

    def windowed(self):
        table = self.random.choice(["r1", "r2", "r3"])
        scope = [("x0", COLUMNS)]
        pick = self.random.choice
        calls = [
            pick(["row_number()", "rank()", "dense_rank()", "ntile(3)", "sum(x0.a)", "count(*)", "lag(x0.a)", "lead(x0.s, 2)", "first_value(x0.a)", "last_value(x0.n)", "min(x0.n)", "max(x0.d)"])
            for _ in range(2)
        ]
        frame = pick(["", "", " rows between 1 preceding and 1 following", " rows between unbounded preceding and current row", " range between unbounded preceding and current row"])
        partition = f"partition by {self.column('int2', scope)} " if self.random.random() < 0.6 else ""
        items = [f"{call} over ({partition}order by x0.id{frame if '(' in call and not call.startswith(('row', 'rank', 'dense', 'ntile', 'lag', 'lead')) else ''})" for call in calls]
        return f"select x0.id, {', '.join(items)} from {table} x0 order by x0.id", ORDERED

    def row(self):
        values = [self.literal(KIND.get(ty, ty)) for _, ty in COLUMNS]
        return "(" + ", ".join(f"({value})::{ty}" for value, (_, ty) in zip(values, COLUMNS)) + ")"


# By kind, the texts of parameters.
PARAMETERS = {
    **dict.fromkeys(["int4", "int8", "int2"], ["0", "1", "2", "-7", "100", " 5 "]),
    "numeric": ["0.0", "1.5", "-3.125", "1e2", "12345.678"],
    "float8": ["0", "-2.25", "1e10", "NaN"],
    "text": ["a", "ab", "", "A", "ä", "10", "x'y"],
    "bool": ["true", "f", "on", "0"],
    "date": ["2024-02-29", "2000-01-01", "1999-12-31"],
    "timestamp": ["2024-02-29 12:30:00", "2000-01-01", "1999-12-31 23:59:59.5"],
}
PATTERNS = ["a%", "%b", "%", "_", "%a_%", "x y", "", "A%", "é\\%"]


def random_tables(generator):
    yield "drop table if exists r1, r2, r3"
    for at, rows in ((1, 40), (2, 25), (3, 60)):
        columns = ", ".join(f"{name} {ty}" for name, ty in COLUMNS)
        yield f"create table r{at} (id serial primary key, {columns})"
        yield f"insert into r{at} ({', '.join(name for name, _ in COLUMNS)}) values {', '.join(generator.row() for _ in range(rows))}"
    yield "create index on r1 (a)"
    yield "create index on r2 (a, b)"
    yield "create index on r3 (s)"
    yield "create index on r3 (n desc, d)"


def tpch_tables():
    """The tables and their indexes, in PostgreSQL's words."""
    with open(os.path.join(TPCH, "tables.sql")) as file:
        text = file.read()
    for name, body in re.findall(r"create table (\w+) \((.*)\);", text):
        yield f"drop table if exists {name}"
        yield f"create table {name} ({re.sub(r', key [(][^)]*[)]', '', body)})"
        for columns in re.findall(r", key (\([^)]*\))", body):
            yield f"create index on {name} {columns}"


def tpch_queries():
    with open(os.path.join(TPCH, "queries.rs")) as file:
        text = file.read()
    for query in re.findall(r'^    "([^"]*)",$', text, re.MULTILINE):
        query = re.sub(r"\\\n\s*", "", query)
        yield query.replace("{fraction}", "0.005").replace("{quantity}", "150")


def tpch_rows(draw):
    """Statements that fill the tables with few rows, many of which the queries look for."""
    def insert(table, rows):
        def shown(value):
            return str(value) if isinstance(value, (int, float)) else f"'{value}'"

        return f"insert into {table} values " + ", ".join("(" + ", ".join(map(shown, row)) + ")" for row in rows)

    pick, number = draw.choice, draw.randint
    money = lambda low, high: number(low * 100, high * 100) / 100
    day = lambda days: str(datetime.date(1992, 1, 1) + datetime.timedelta(days=days))
    nations = ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA", "INDIA", "PERU"]
    region_of = [3, 3, 1, 1, 4, 2, 2, 1]
    phone = lambda nation: f"{nation + 10 + 3 * (nation % 2)}-{number(100, 999)}-{number(100, 999)}-{number(1000, 9999)}"
    yield insert("region", [(at, name, "") for at, name in enumerate(["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"])])
    yield insert("nation", [(at, name, region_of[at], "quick") for at, name in enumerate(nations)])
    suppliers = [(key, number(0, 7)) for key in range(1, 25)]
    comment = lambda: pick(["sly foxes", "Customer bold Complaints", "special pinto requests", "quick ideas"])
    yield insert("supplier", [(key, f"Supplier#{key:09}", "street", nation, phone(nation), money(-999, 9999), comment()) for key, nation in suppliers])
    parts = range(1, 121)
    kinds = ["ECONOMY ANODIZED STEEL", "PROMO BRUSHED BRASS", "MEDIUM POLISHED TIN", "LARGE PLATED BRASS"]
    part = lambda key: (key, pick(["forest green", "blue green rose", "forest plum", "red tan"]), f"Manufacturer#{number(1, 5)}", pick(["Brand#12", "Brand#23", "Brand#34", "Brand#45"]), pick(kinds), pick([15, 49, 3, 9, 14, 23]), pick(["SM CASE", "MED BOX", "LG PKG", "MED BAG", "SM BOX"]), money(900, 2000), "ideas")
    yield insert("part", [part(key) for key in parts])
    yield insert("partsupp", [(key, (key + nth * 7) % 24 + 1, number(1, 9999), money(1, 1000), "even") for key in parts for nth in range(3)])
    segments = ["AUTOMOBILE", "BUILDING", "MACHINERY"]
    customers = [(key, number(0, 7)) for key in range(1, 61)]
    yield insert("customer", [(key, f"Customer#{key:09}", "street", nation, phone(nation), money(-999, 9999), pick(segments), comment()) for key, nation in customers])
    orders, lines = [], []
    for key in range(1, 401):
        ordered = number(0, 2400)
        orders.append((key, number(1, 40), pick("FOP"), money(1000, 300000), day(ordered), pick(["1-URGENT", "2-HIGH", "5-LOW"]), f"Clerk#{number(1, 9):09}", 0, comment()))
        for line in range(1, number(2, 8)):
            bought, shipped = number(1, 120), ordered + number(1, 120)
            sold_by = (bought + number(0, 2) * 7) % 24 + 1
            words = (pick(["DELIVER IN PERSON", "NONE"]), pick(["AIR", "REG AIR", "MAIL", "SHIP"]), "bold")
            lines.append((key, bought, sold_by, line, number(1, 50), money(900, 90000), number(0, 10) / 100, number(0, 8) / 100, pick("RAN"), pick("OF"), day(shipped), day(ordered + number(30, 90)), day(shipped + number(1, 30)), *words))
    yield insert("orders", orders)
    yield insert("lineitem", lines)
    yield "analyze"


# Dates and timestamps with and without time zone are compared with each other.
TEMPORAL = """
drop table if exists moments
create table moments (id int primary key, d date, m timestamp, z timestamptz)
insert into moments values (1, '2000-01-01', '2000-01-01', '2000-01-01 00:00+00'), (2, 'infinity', 'infinity', 'infinity'), (3, '-infinity', '-infinity', '-infinity')
insert into moments values (4, '5874897-12-31', '294276-12-31 23:59:59', '294276-12-31 23:00+00'), (5, null, null, null), (6, '2024-07-01', '2024-07-01', '2024-07-01 02:00+00')
create index on moments (m)
create index on moments (z)
set timezone = 'Europe/Berlin'
select a.id, b.id, a.d = b.m, a.d < b.m, b.m > a.d, a.d = b.z, a.d <= b.z, a.m = b.z, b.z >= a.m, a.d is distinct from b.m, a.m is distinct from b.z from moments a, moments b order by 1, 2
select a.id, b.id from moments a join moments b on a.d = b.m order by 1, 2
select a.id, b.id from moments a left join moments b on b.z >= a.m order by 1, 2
select id from moments where m >= date '2000-01-01' order by 1
select id from moments where z between date '2000-01-01' and timestamp '2024-07-01' order by 1
select id, nullif(d, m), nullif(m, d), nullif(z, d), coalesce(nullif(d, z), d) from moments order by 1
select id from moments where d in (select m from moments) order by 1
select id from moments where d not in (select m from moments where m is not null) order by 1
select id from moments where d = any (select z from moments) order by 1
select id from moments where (d, m) = (m, d) or (d, m) < (m, z) order by 1
select id from moments where d in ('2000-01-01'::timestamp, timestamp '2024-07-01', null) order by 1
select case d when m then 'same' else 'other' end from moments order by id
set timezone = 'UTC'
select a.id, b.id from moments a join moments b on a.m = b.z order by 1, 2
"""


class Beside:
    """Plays statements at both servers and counts where they agree."""

    def __init__(self, ours, theirs, canary):
        self.ours, self.theirs, self.tally, self.canary = ours, theirs, Tally(), canary
        self.undecided = 0

    def play(self, text, order=ORDERED, values=None):
        ours, theirs = self.ours.ask(text, values), self.theirs.ask(text, values)
        if self.canary and ours[0] == "rows" and ours[2]:
            ours, self.canary = ("rows", ours[1], ours[2][1:]), False
        has_two_faults = values is not None and ours[0] == theirs[0] == "error" and ours[1]["position"] != theirs[1]["position"] and ours[1]["message"] != theirs[1]["message"]
        if ours != theirs and (fails_at_a_value(ours) or fails_at_a_value(theirs) or has_two_faults):
            self.undecided += 1
            return
        self.tally.check(text, self.agree(text, ours, theirs, order), f"{values or ''}\n  ours   {self.shown(ours)}\n  theirs {self.shown(theirs)}")

    def agree(self, text, ours, theirs, order):
        if ours[0] != "rows" or theirs[0] != "rows":
            return ours == theirs
        if ours[1] != theirs[1] and ours[1] != self.theirs.described(text):
            return False
        return rows_agree(ours[1], ours[2], theirs[2], order)

    @staticmethod
    def shown(answer):
        return str((answer[0], answer[1], answer[2] and answer[2][:6]))[:700]

    def play_tpch(self, seed):
        for text in [*tpch_tables(), *tpch_rows(random.Random(seed))]:
            self.play(text)
        queries = list(tpch_queries())
        self.tally.equal("queries of TPC-H", len(queries), 22)
        for query in queries:
            self.play(query)

    def play_temporal(self):
        for text in TEMPORAL.strip().splitlines():
            self.play(text)

    def play_ranges(self, seed):
        """Plays range types: all texts, rows and errors must be equal, whatever the values; of the binary form too."""
        draw = random.Random(seed)
        for name in SUBTYPES:
            queries = RangeQueries(draw, name)
            for text in queries.table():
                self.compare(text)
            for text, is_ordered in queries.readings():
                self.compare(text, is_ordered)
            for column in ("r", "m", "a"):
                self.play_binary(f"select {column} from ranges_{name} where {column} is not null order by id")
        for _ in range(300):
            self.compare(RangeQueries(draw).statement())
        for _ in range(40):
            queries = RangeQueries(draw)
            self.play_binary(f"select {queries.quoted(queries.sorted_text(), queries.range)}")

    def compare(self, text, is_ordered=True):
        ours, theirs = self.ours.ask(text), self.theirs.ask(text)
        same = ours == theirs
        if theirs[0] == "error" and ours[0] == "rows" and ours[2] == [(None,)]:
            # What is NULL needs no other operand.
            self.undecided += 1
            return
        if not is_ordered and ours[0] == theirs[0] == "rows":
            # Of equal values either may stand for both.
            same = ours[1] == theirs[1] and len(ours[2]) == len(theirs[2])
        self.tally.check(text, same, f"\n  ours   {self.shown(ours)}\n  theirs {self.shown(theirs)}")

    def play_binary(self, text):
        """Plays a query of one column in the binary form, and sends its values back."""
        ours, theirs = self.ours.binary(text), self.theirs.binary(text)
        self.tally.check(f"binary: {text}", ours == theirs, f"\n  ours   {self.shown(ours)}\n  theirs {self.shown(theirs)}")
        if theirs[0] == "rows":
            ty = theirs[1][0][1]
            for at, (value,) in enumerate(theirs[2]):
                # Arrays name other faults of damaged elements.
                damaged = [] if at > 3 or text.startswith("select a ") else [value[:-1], value + b"x"]
                for sent in [value, *damaged]:
                    ours, theirs_again = (side.binary("select $1", [(ty, sent)]) for side in (self.ours, self.theirs))
                    self.tally.check(f"{ty} of {sent!r}", ours == theirs_again, f"\n  ours   {self.shown(ours)}\n  theirs {self.shown(theirs_again)}")

    def play_round(self, seed):
        self.play_ranges(seed)
        generator = Generator(seed)
        for text in random_tables(generator):
            self.play(text)
        for _ in range(300):
            self.play(*generator.query())
        for _ in range(100):
            self.play(*generator.prepared())


def compare(ports, given):
    sides = []
    # Letters are those of Unicode, and texts are ordered by their bytes.
    for port, options in zip(ports, ("", " template template0 lc_collate 'C' lc_ctype 'C.UTF-8'")):
        # A database of earlier runs is used again, where there is one.
        Side(port, "postgres").ask(f"create database {DATABASE}{options}")
        sides.append(Side(port, DATABASE))
    beside = Beside(*sides, given.canary)
    until = time.monotonic() + given.seconds
    beside.play_tpch(given.seed)
    beside.play_temporal()
    seed = given.seed
    while seed == given.seed or time.monotonic() < until and not given.canary:
        beside.play_round(seed)
        seed += 1
    played = beside.tally.passed + beside.tally.failed
    print(f"seeds {given.seed} to {seed - 1}; {beside.undecided} failed at a value")
    beside.tally.check("few queries fail at a value", beside.undecided * 8 < played, beside.undecided)
    beside.tally.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--ours", type=int)
    parser.add_argument("--theirs", type=int)
    parser.add_argument("--canary", action="store_true")
    given = parser.parse_args()
    if given.ours:
        compare((given.ours, given.theirs), given)
    if subprocess.run([SCRIPT, "install"]).returncode:
        tally = Tally()
        tally.skip("no PostgreSQL to compare with")
        tally.failed = int(given.canary)
        tally.close()
    with tempfile.TemporaryDirectory(prefix="beluga-postgres-") as folder, Server(postgres=True) as server:
        port = free_port()
        subprocess.run([SCRIPT, "start", folder, str(port)], check=True, stdout=subprocess.DEVNULL)
        try:
            compare((server.postgres_port, port), given)
        finally:
            subprocess.run([SCRIPT, "stop", folder], check=True)


main()
