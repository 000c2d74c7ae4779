"""Statements and plans that repeat or nest one construct of SQL a hundred to a million times, at each door that takes SQL: the server lives, each answer is right or a clear error, and each comes in bounded time.

Every shape is a function of a count. It goes as text to the MySQL door (directly, by PREPARE ... FROM, within a view where it is a query) and to the XRPC door; XRPC's plans repeat operators, operands, projections and keys. A
shape says what it answers where that is known; a count that is refused must be refused by one of the numbers in ERRORS, and so must every larger one (except where a shape says otherwise): a limit is a
limit and no accident of the stack. Between two shapes PING must answer.

Statements that are long in one stage each (parsing, binding, planning, running, dropping) are killed there, or left by their client, and must end.

`--soak` adds more counts, and random compositions of the shapes within each other.
"""

import argparse
import random
import sys
import threading
import time

import pymysql

from beluga import Server, Tally, Wire
from sql import come
from xrpc import Connection, scalar, x

# Syntax, too many tables, stack, nesting of SELECT, parser's memory, packet, not served, JSON depth, regular expressions, columns and keys, arguments, names, views of views, variables of CTE, sizes.
ERRORS = {1054, 1295, 3504, 1059, 1060, 1064, 1065, 1241, 1068, 1069, 1070, 1116, 1117, 1118, 1153, 1235, 1300, 1436, 1462, 1473, 1582, 3005, 3141, 3143, 3150, 3157, 3170, 3593, 3670, 3684, 3685, 3691, 3699}
# The slowest answer that is taken, in seconds, of a build with assertions on a machine that does other things too.
SLOWEST = 20.0
COUNTS = (20, 60, 100, 1_000, 10_000, 100_000)
# Small constructs of linear cost are repeated a million times too.
LARGEST = 1_000_000

tally = Tally()


class Shape:
    """`make(n)` is the text; `expected(n)` the value of its first row and column, None where there is none to know. `always`: no count may be refused up to this one."""

    def __init__(self, name, make, expected=None, always=0, largest=100_000, view=True, prepare=True):
        self.name, self.make, self.expected, self.always = name, make, expected, always
        self.largest, self.view, self.prepare = largest, view, prepare


def nested(opens, inner, closes):
    return lambda n: "select " + opens * n + inner + closes * n


def chain(link, first="1"):
    return lambda n: "select " + first + link * n


def numbered(head, each, tail="", joint=""):
    return lambda n: head + joint.join(each.format(i=i, before=i - 1) for i in range(1, n + 1)) + tail.format(n=n)


def broken(shape):
    """The same with an error inside: whoever tries alternatives at each level must not do so for all of them."""
    return Shape(shape.name + ", broken", lambda n: shape.make(n).replace("7", "7 + )", 1), view=False, prepare=False, largest=1_000)


one, count = (lambda n: 1), (lambda n: n + 1)
NESTED = [
    Shape("parentheses", nested("(", "7", ")"), lambda n: 7, always=100),
    Shape("parentheses left open", lambda n: "select " + "(" * n + "7", view=False),
    Shape("parentheses closed only", lambda n: "select 7" + ")" * n, view=False),
    Shape("calls", nested("abs(", "7", ")"), lambda n: 7, always=100),
    Shape("two arguments", nested("ifnull(7, ", "7", ")"), lambda n: 7, always=100),
    Shape("casts", nested("cast(", "7", " as signed)"), lambda n: 7, always=100),
    Shape("converts", nested("convert(", "7", ", signed)"), lambda n: 7, always=100),
    Shape("case", nested("case when 1 then ", "7", " end"), lambda n: 7, always=100),
    Shape("case of", nested("case ", "7", " when 7 then 7 end"), lambda n: 7, always=100),
    Shape("minus", nested("- ", "7", ""), lambda n: 7 if n % 2 == 0 else -7, always=100),
    Shape("minus of parentheses", nested("-(", "7", ")"), lambda n: 7 if n % 2 == 0 else -7, always=50),
    Shape("plus", nested("+ ", "7", ""), lambda n: 7, always=100),
    Shape("not", nested("not ", "7", ""), lambda n: n % 2 == 0, always=100),
    Shape("bang", nested("! ", "7", ""), lambda n: n % 2 == 0, always=100),
    Shape("tilde", nested("~ ", "7", ""), lambda n: 7 if n % 2 == 0 else (1 << 64) - 8, always=100),
    Shape("binary", nested("binary ", "7", ""), always=50),
    Shape("interval", nested("interval ", "7", " day"), view=False),
    Shape("rows", nested("(7, ", "7", ")"), view=False),
    Shape("braces", nested("{", "7", "}"), view=False),
    Shape("brackets", nested("[", "7", "]"), view=False),
    Shape("array type", lambda n: "select cast(7 as " + "array<" * n + "int" + ">" * n + ")", view=False),
    Shape("struct column", lambda n: "create table q (a " + "struct<a " * n + "int" + ">" * n + ")", view=False),
    Shape("tuple column", lambda n: "create table q (a " + "tuple(" * n + "int" + ")" * n + ")", view=False),
    Shape("match", nested("match (a) against (", "7", ")"), view=False),
    Shape("in", nested("7 in (", "7", ")"), always=30),
    Shape("trim", nested("trim(", "'7'", ")"), lambda n: "7", always=100),
    Shape("extract", nested("extract(year from ", "7", ")"), view=False),
    Shape("position", nested("position(7 in ", "7", ")"), view=False),
    Shape("json_array", nested("json_array(", "7", ")"), always=90),
    Shape("json_object", nested("json_object('a', ", "7", ")"), always=90),
    Shape("scalar subqueries", nested("(select ", "7", ")"), lambda n: 7, always=60),
    Shape("exists", lambda n: "select 7 where " + "exists (select 7 where " * n + "1" + ")" * n, lambda n: 7, always=60),
    Shape("in subqueries", nested("7 in (select ", "7", ")")),
    Shape("any", nested("7 = any (select ", "7", ")")),
    Shape("selects in parentheses", lambda n: "(" * n + "select 7" + ")" * n, lambda n: 7, always=100),
    Shape("derived tables", lambda n: "select * from " + "(select * from " * n + "(select 7 a) d0" + "".join(f") d{i}" for i in range(1, n + 1)), lambda n: 7, always=60),
    Shape("derived tables that add", lambda n: "select a from " + "(select a + a a from " * n + "(select 1 a) d0" + "".join(f") d{i}" for i in range(1, n + 1))),
    Shape("derived tables of many joins", lambda n: "select count(*) from " + "(select 7 from " * n + "t a0" + "".join("".join(f" left join t j{j} on 0" for j in range(60)) + f") d{i}" for i in range(1, n + 1)), one, always=20, largest=1_000, prepare=False),
    Shape("views' worth of common tables and joins", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select b.a from c{i - 1} b" + "".join(f" left join t j{j} on 0" for j in range(20)) + ")" for i in range(1, n + 1)) + f" select * from c{n}", lambda n: 7, always=60, largest=1_000, prepare=False),
    Shape("lateral", lambda n: "select 7 from t a0, " + "lateral (select 7 from t b, " * n + "lateral (select 7 c) d0" + "".join(f") d{i}" for i in range(1, n + 1)), view=False),
    Shape("parentheses in FROM", lambda n: "select 7 from " + "(" * n + "t a join t b" + ")" * n),
    Shape("joins to the right", lambda n: "select count(*) from t a0" + "".join(f" join (t a{i}" for i in range(1, n + 1)) + ")" * n),
    Shape("ON at the end", lambda n: "select count(*) from t a0" + "".join(f" join t a{i}" for i in range(1, n + 1)) + " on 1" * n),
    Shape("unions to the right", lambda n: "select 7" + " union (select 7" * n + ")" * n, lambda n: 7, always=60),
    Shape("recursive tables", lambda n: "with recursive c as (select 7 a union " * min(n, 20_000) + "select 7" + ")" * n + " select * from c", view=False),
    Shape("with in with", lambda n: "with c as (" * n + "select 7" + ") select * from c" * n, lambda n: 7, always=50),
    Shape("json_table", lambda n: "select * from json_table('[]', '$[*]' columns (" + "nested path '$[*]' columns (" * n + "a int path '$'" + ")" * n + ")) j", view=False),
    Shape("windows", nested("sum(", "7", ") over ()"), view=False),
    Shape("explain", lambda n: "explain " * n + "select 7", view=False),
    Shape("describe", lambda n: "desc " * n + "select 7", view=False),
    Shape("version comments", lambda n: "select " + "/*!50000 " * n + "7" + " */" * n, view=False, prepare=False),
    Shape("not equal not", lambda n: "select 1" + " = not 1" * n),
    Shape("braces of joins", lambda n: "select 7 from " + "{oj " * n + "t a left join t b on 1" + "}" * n, view=False),
]
CHAINS = [
    Shape("1+1", chain("+1"), count, always=1_000),
    Shape("1-1", chain("-1"), lambda n: 1 - n, always=1_000),
    Shape("1*1", chain("*1"), one, always=1_000),
    Shape("1/1", chain("/1"), view=False),
    Shape("div", chain(" div 1"), one, always=1_000),
    Shape("mod", chain(" mod 2"), one, always=1_000),
    Shape("%", chain("%2"), one, always=1_000),
    Shape("|", chain("|1"), one, always=1_000),
    Shape("&", chain("&1"), one, always=1_000),
    Shape("^", chain("^1"), always=1_000),
    Shape("<<", chain("<<0"), one, always=1_000),
    Shape("||", chain("||1"), one, always=20_000),
    Shape("or", chain(" or 1"), one, always=20_000),
    Shape("or of comparisons", chain(" or 2=3"), one, always=20_000),
    Shape("and", chain(" and 1"), one, always=20_000),
    Shape("and, or", chain(" and 1=1 or 2=2"), one, always=10_000),
    Shape("xor", chain(" xor 0"), one),
    Shape("=", chain("=1"), one),
    Shape("<=>", chain("<=>1"), one),
    Shape("is null", chain(" is null"), lambda n: 0),
    Shape("is not null", chain(" is not null"), one),
    Shape("is true", chain(" is true"), one),
    Shape("like", chain(" like 1"), one),
    Shape("regexp", chain(" regexp 1"), one),
    Shape("sounds like", chain(" sounds like 'a'", "'a'"), view=False),
    Shape("between", chain(" between 0 and 1"), one),
    Shape("between, and", chain(" and 5 between 0 and 10"), one, always=10_000),
    Shape("in list", chain(" in (1)"), one),
    Shape("collate", chain(" collate utf8mb4_bin", "_utf8mb4'a'"), view=False),
    Shape("arrows of a column", lambda n: "select j" + "->'$.a'" * n + " from t", view=False),
    Shape("member of", chain(" member of ('[1]')"), view=False),
    Shape("casts of Postgres", chain("::int"), view=False),
    Shape("isnull of Postgres", chain(" isnull"), view=False),
    Shape("subscripts", chain("[1]", "a"), view=False),
    Shape("assignments", lambda n: "select " + "@a := " * n + "7", lambda n: 7, view=False),
    Shape("interval sums", lambda n: "select '2020-01-01'" + " + interval 1 day" * n, view=False),
    Shape("strings side by side", lambda n: "select length('a'" + " 'a'" * n + ")", count, always=1_000),
    Shape("distinct from", chain(" is distinct from 1"), view=False),
]
LISTS = [
    Shape("select list", lambda n: "select 1" + ",1" * n, one, always=10_000, view=False),
    Shape("select list of a table", lambda n: "select id" + ",id" * n + " from t", view=False),
    Shape("in", lambda n: "select 1 in (0" + ",1" * n + ")", one, always=100_000, largest=LARGEST),
    Shape("not in of strings", lambda n: "select 'x' not in ('a'" + ",'b'" * n + ")", one, always=100_000),
    Shape("in of rows", lambda n: "select (1,1) in ((0,0)" + ",(1,1)" * n + ")", one, always=10_000),
    Shape("concat", lambda n: "select length(concat('a'" + ",'a'" * n + "))", count, always=10_000),
    Shape("coalesce", lambda n: "select coalesce(null" + ",null" * n + ", 7)", lambda n: 7, always=10_000),
    Shape("greatest", lambda n: "select greatest(1" + ",1" * n + ")", one, always=10_000),
    Shape("when", lambda n: "select case " + "when 0 then 1 " * n + "else 7 end", lambda n: 7, always=10_000),
    Shape("when of", lambda n: "select case 7 " + "when 0 then 1 " * n + "else 7 end", lambda n: 7, always=10_000),
    Shape("json_array", lambda n: "select json_length(json_array(1" + ",1" * n + "))", count, always=10_000),
    Shape("json document", lambda n: "select json_length('[1" + ",1" * n + "]')", count, always=100_000),
    Shape("json document in depth", lambda n: "select json_depth('" + "[" * n + "]" * n + "')", lambda n: n, always=100),
    Shape("json objects in depth", lambda n: "select json_depth('" + '{"a":' * n + "1" + "}" * n + "')", always=99),
    Shape("json path", lambda n: "select json_extract('{}', '$" + ".a" * n + "')", lambda n: None, always=100),
    Shape("json path of stars", lambda n: "select json_extract('{}', '$" + "**.a" * n + "')", lambda n: None),
    Shape("json path of cells", lambda n: "select json_extract('[]', '$" + "[0]" * n + "')"),
    Shape("regular expression in depth", lambda n: "select 'a' regexp '" + "(" * n + "a" + ")" * n + "'"),
    Shape("regular expression of choices", lambda n: "select 'a' regexp '" + "b|" * n + "a'"),
    Shape("regular expression of stars", lambda n: "select 'a' regexp '" + "(a*)*" * n + "'"),
    Shape("regular expression of counts", lambda n: "select 'a' regexp '" + "a{0,100}" * n + "'"),
    Shape("like pattern", lambda n: "select 'a' like '" + "%" * n + "a'", one, always=100_000),
    Shape("order by", lambda n: "select 7 from t order by id" + ",id" * n, always=1_000),
    Shape("group by", lambda n: "select 7 from t group by id" + ",id" * n, always=1_000),
    Shape("union", lambda n: "select 7" + " union select 7" * n, lambda n: 7, always=1_000, largest=20_000),
    Shape("union all", lambda n: "select count(*) from (select 7" + " union all select 7" * n + ") u", count, always=1_000, largest=20_000),
    Shape("union and union all", lambda n: "select 7" + " union all select 7 union select 7" * n, lambda n: 7, always=1_000, largest=20_000),
    Shape("intersect", lambda n: "select 7" + " intersect select 7" * n, lambda n: 7, always=100, largest=20_000),
    Shape("except", lambda n: "select 7" + " except select 8" * n, lambda n: 7, always=100, largest=20_000),
    Shape("values", lambda n: "values row(7)" + ",row(7)" * n, lambda n: 7, always=10_000),
    Shape("tables by TABLE", lambda n: "table t" + " union table t" * n, largest=20_000),
    Shape("cross joins", lambda n: "select count(*) from t a0" + "".join(f" join t a{i}" for i in range(1, n + 1)), lambda n: 1),
    Shape("left joins", lambda n: "select count(*) from t a0" + "".join(f" left join t a{i} on a{i}.id = a{i - 1}.id" for i in range(1, n + 1)), lambda n: 1),
    Shape("natural joins", lambda n: "select count(*) from t a0" + "".join(f" natural join t a{i}" for i in range(1, n + 1))),
    Shape("commas", lambda n: "select count(*) from t a0" + "".join(f", t a{i}" for i in range(1, n + 1)), lambda n: 1),
    Shape("commas in brackets", lambda n: "select count(*) from (t a0" + "".join(f", t a{i}" for i in range(1, n + 1)) + ")"),
    Shape("semi-joins", lambda n: "select count(*) from t where id in (select id from t)" + " and id in (select id from t)" * n, largest=1_000),
    Shape("common tables in a chain", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select a from c{i - 1})" for i in range(1, n + 1)) + f" select * from c{n}", lambda n: 7, always=300),
    Shape("common tables read twice", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select p.a from c{i - 1} p, c{i - 1} q)" for i in range(1, n + 1)) + f" select * from c{n}", lambda n: 7, largest=1_000),
    Shape("common tables side by side", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select 7)" for i in range(1, n + 1)) + " select * from c0", lambda n: 7, always=300, largest=10_000),
    Shape("named windows", lambda n: "select 7, sum(1) over w0 from t window w0 as ()" + "".join(f", w{i} as (w{i - 1})" for i in range(1, n + 1)), view=False),
    Shape("windows", lambda n: "select 7" + ", sum(1) over (order by id)" * n + " from t", view=False, largest=1_000),
    Shape("windows of orders of their own", lambda n: "select 7" + "".join(f", sum(1) over (order by id + {i})" for i in range(n)) + " from t", lambda n: 7, always=100, view=False, largest=1_000),
    Shape("index hints", lambda n: "select 7 from t" + " use index (PRIMARY)" * n),
    Shape("optimizer hints", lambda n: "select /*+ " + "BKA(t) " * n + "*/ 7", lambda n: 7, view=False),
    Shape("comments", lambda n: "select " + "/**/ " * n + "7", lambda n: 7, always=100_000),
    Shape("statements of nothing", lambda n: ";" * n, view=False, prepare=False),
    Shape("users' variables", lambda n: "set @a = 1" + ", @a = 1" * n, view=False, largest=10_000),
]
CHANGES = [
    Shape("rows", lambda n: "replace into v values (1)" + ",(1)" * n, always=100_000, view=False),
    Shape("rows of sums", lambda n: "replace into v values (1+1)" + ",(1+1)" * n, always=10_000, view=False),
    Shape("columns", lambda n: "create table q (c0 int" + "".join(f",c{i} int" for i in range(1, n + 1)) + ")", view=False),
    Shape("keys", lambda n: "create table q (a int" + ", key (a)" * n + ")", view=False),
    Shape("parts of a key", lambda n: "create table q (a int, key (a" + ",a" * n + "))", view=False),
    Shape("checks", lambda n: "create table q (a int" + ", check (a > 0)" * n + ")", view=False, largest=100),
    Shape("members", lambda n: "create table q (a enum('m'" + "".join(f",'m{i}'" for i in range(1, n + 1)) + "))", view=False),
    Shape("zerofill", lambda n: "create table q (a int" + " zerofill" * n + ")", view=False),
    Shape("a default in depth", lambda n: "create table q (a int default (" + "(" * n + "1" + ")" * n + "))", view=False),
    Shape("a generated column in depth", lambda n: "create table q (a int, b int as (" + "abs(" * n + "a" + ")" * n + "))", view=False),
    Shape("a check of a chain", lambda n: "create table q (a int, check (a" + "+1" * n + " > 0))", view=False),
    Shape("operations", lambda n: "alter table q2 comment 'x'" + ", comment 'x'" * n, view=False, largest=10_000),
    Shape("tables dropped", lambda n: "drop table if exists x0" + "".join(f",x{i}" for i in range(1, n + 1)), view=False, largest=10_000),
    Shape("assignments", lambda n: "update q2 set a = a" + ", a = a" * n, view=False, largest=10_000),
    Shape("tables updated", lambda n: "update t a0" + "".join(f", t a{i}" for i in range(1, n + 1)) + " set a0.id = 1", view=False),
    Shape("a condition of a change", lambda n: "delete from q2 where a = 5" + " or a = 5" * n, always=20_000, view=False),
    Shape("low priority", lambda n: "update " + "low_priority " * n + "q2 set a = a", view=False),
    Shape("rights", lambda n: "grant select" + ", select" * n + " on *.* to root", view=False, largest=10_000),
    Shape("prepare", lambda n: "prepare p from '" + "select (" * n + "7" + ")" * n + "'", view=False),
]
# Where a construct may be written wrong at its innermost place.
BROKEN = [broken(shape) for shape in NESTED if "7" in shape.make(1)]


class Doors:
    """One server, and connections that are made anew where one is lost."""

    def __init__(self, server):
        self.server = server
        self.slowest = (0.0, "")
        self.open()

    def open(self):
        self.sql = self.connection()
        self.xrpc = Connection(self.server.xrpc_port)
        self.xrpc.begin(1)
        self.xrpc.done(1, "use hostile")
        self.redis = Wire(self.server.port)

    def connection(self):
        return pymysql.connect(host="127.0.0.1", port=self.server.mysql_port, user="root", database="hostile", connect_timeout=60, read_timeout=90, ssl_disabled=True, autocommit=True, max_allowed_packet=64 << 20)

    @staticmethod
    def ask(connection, sql):
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return 0, None
        except (pymysql.Error, OSError, ValueError) as error:
            return error.args[0] if error.args else 0, ""

    def runs(self, number):
        """Whether the session is there, and the statement that it runs."""
        with self.sql.cursor() as cursor:
            cursor.execute(f"select info from information_schema.processlist where id = {number}")
            row = cursor.fetchone()
            return row is not None, row[0] if row else None

    def shows(self, number, is_over, timeout=60):
        until = time.monotonic() + timeout
        while time.monotonic() < until and not is_over():
            if self.runs(number)[1] is not None:
                return True
        return False

    def gone(self, number, timeout=60):
        """When the session had left the process list."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and self.runs(number)[0]:
            pass
        return time.monotonic()

    def lives(self):
        return self.server.process.poll() is None

    def text(self, sql):
        """(number of the error or 0, first value)."""
        try:
            with self.sql.cursor() as cursor:
                cursor.execute(sql)
                row = cursor.fetchone()
                return 0, row[0] if row else None
        except pymysql.Error as error:
            return error.args[0], error.args[1] if len(error.args) > 1 else ""

    def prepared(self, sql):
        found = self.text("prepare h from " + self.sql.escape(sql))
        return found if found[0] else self.text("execute h")

    def viewed(self, sql):
        found = self.text("create or replace view hv as " + sql)
        return found if found[0] else self.text("select * from hv")

    def xrpc_text(self, sql):
        answer = self.xrpc.run(1, sql)
        return (answer.error.code, answer.error.msg) if answer.error is not None else (0, None)

    def timed(self, name, ask):
        began = time.monotonic()
        found = ask()
        took = time.monotonic() - began
        self.slowest = max(self.slowest, (took, name))
        return found, took


def value(found):
    """Texts and numbers alike, as far as they are told apart by no more than their type."""
    return str(int(found)) if isinstance(found, (bool, int)) or str(found).lstrip("-").isdigit() else found


def judge(doors, shape, how, n, found, took, refused):
    name = f"{shape.name} x {n:,} {how}"
    code, answer = found
    if not doors.lives():
        tally.check(name, False, "the server ended:\n" + doors.server.output())
        tally.close()
    tally.check(f"{name}: in bounded time", took < SLOWEST, f"{took:.1f} s")
    if code:
        # A plan of ten thousand blocks may be beyond what the setting leaves to requests.
        known = code in ERRORS or code == 1041 and n >= 10_000
        tally.check(f"{name}: a clear error", known and str(answer).strip() != "", found)
        tally.check(f"{name}: not refused", n > shape.always, found)
        return True
    tally.check(f"{name}: no limit that has been passed before", not refused)
    if shape.expected is not None and how != "xrpc":
        tally.check(f"{name}: the answer", value(answer) == value(shape.expected(n)), (answer, shape.expected(n)))
    return False


def play(doors, shape, counts):
    ways = [("text", doors.text), ("xrpc", doors.xrpc_text)]
    ways += [("prepared", doors.prepared)] if shape.prepare else []
    ways += [("view", doors.viewed)] if shape.view else []
    for how, ask in ways:
        refused = False
        for n in counts:
            # Beside the first door limits are enough.
            if n > shape.largest or (how != "text" and (n > 10_000 or refused)):
                continue
            text = shape.make(n)
            if len(text) > 24 << 20:
                continue
            if "table q " in text[:20]:
                doors.text("drop table if exists q")
            found, took = doors.timed(f"{shape.name} x {n}", lambda: ask(text))
            if found[0] in (0, 2006, 2013) and how != "xrpc" and (found[0] or found[1] == ""):
                tally.check(f"{shape.name} x {n} {how}: an answer", False, found)
                if doors.lives():
                    doors.open()
            refused = judge(doors, shape, how, n, found, took, refused)
    doors.text("drop table if exists q")
    tally.check(f"PING after {shape.name}", doors.redis.call("PING") == b"+PONG\r\n")


def views_of_views(doors):
    doors.text("create or replace view w0 as select 7 a")
    refused = 0
    for n in range(1, 200):
        code, answer = doors.text(f"create or replace view w{n} as select a + 0 a from w{n - 1}")
        if not code:
            code, answer = doors.text(f"select a from w{n}")
        if code:
            refused = n
            tally.check("views of views: a clear error", code in ERRORS | {1146}, (n, code, answer))
            break
        tally.check(f"views of views x {n}", answer == 7, answer)
    tally.check("views of views end somewhere", 20 <= refused < 200, refused)
    # Each doubles what it reads.
    doors.text("create or replace view y0 as select 1 a")
    for n in range(1, 70):
        code, answer = doors.text(f"create or replace view y{n} as select p.a + q.a a from y{n - 1} p, y{n - 1} q")
        (code, answer), took = doors.timed(f"views that double x {n}", lambda: (code, answer) if code else doors.text(f"explain select a from y{n}"))
        tally.check(f"views that double x {n}: in bounded time", took < SLOWEST, took)
        if code:
            tally.check("views that double: a clear error", code in ERRORS, (n, code, answer))
            break


def plans(doors, counts):
    wire = doors.xrpc
    ref = lambda at: x.Expr(type=x.Expr.REF, ref_id=at)
    literal = lambda of: x.Expr(type=x.Expr.LITERAL, literal=scalar(of))
    operator = lambda name, *of: x.Expr(type=x.Expr.OPERATOR, operator=x.Operator(name=name, param=of))
    info = x.TableInfo(name=scalar("t"), schema_name=scalar("hostile"))
    scan = x.AnyPlan(plan_type=x.AnyPlan.TABLE_SCAN, table_scan_plan=x.TableScanPlan(table_info=info))

    def filtered(expr):
        return x.AnyPlan(plan_type=x.AnyPlan.FILTER, filter=x.Filter(sub_read_plan=scan, expr=expr))

    # The library copies no message of more than a hundred levels, so these are put together from bytes.
    def field(of, name, raw):
        size, varint = len(raw), b""
        while size > 127:
            varint, size = varint + bytes([size & 127 | 128]), size >> 7
        return bytes([of.DESCRIPTOR.fields_by_name[name].number << 3 | 2]) + varint + bytes([size]) + raw

    def called(name, *of):
        parts = x.Operator(name=name).SerializePartialToString() + b"".join(field(x.Operator, "param", raw) for raw in of)
        return x.Expr(type=x.Expr.OPERATOR).SerializePartialToString() + field(x.Expr, "operator", parts)

    def deep(n):
        expr, one = literal(1).SerializeToString(), literal(1).SerializeToString()
        for _ in range(n):
            expr = called("+", expr, one)
        expr = called("==", expr, literal(n + 1).SerializeToString())
        inner = field(x.Filter, "sub_read_plan", scan.SerializeToString()) + field(x.Filter, "expr", expr)
        plan = x.AnyPlan(plan_type=x.AnyPlan.FILTER).SerializePartialToString() + field(x.AnyPlan, "filter", inner)
        return request(plan)

    def request(plan):
        return x.ExecPlan(reset_error=True, token=10240).SerializePartialToString() + field(x.ExecPlan, "plan", plan)

    def doubled(n):
        plan = scan.SerializeToString()
        parts = x.Project(fields=[scalar("a")], exprs=[operator("+", ref(0), ref(0))]).SerializePartialToString()
        for _ in range(n):
            plan = x.AnyPlan(plan_type=x.AnyPlan.PROJECT).SerializePartialToString() + field(x.AnyPlan, "project", field(x.Project, "sub_read_plan", plan) + parts)
        return request(plan)

    def filters(n):
        plan = scan.SerializeToString()
        condition = field(x.Filter, "expr", operator("==", ref(0), literal(1)).SerializeToString())
        for _ in range(n):
            plan = x.AnyPlan(plan_type=x.AnyPlan.FILTER).SerializePartialToString() + field(x.AnyPlan, "filter", field(x.Filter, "sub_read_plan", plan) + condition)
        return request(plan)

    def get(n, parts):
        keys = [x.GetExpr(keys=[x.KeyExpr(field=scalar("id"), value=scalar(1)) for _ in range(parts)]) for _ in range(n)]
        return x.AnyPlan(plan_type=x.AnyPlan.GET, get_plan=x.GetPlan(table_info=info, keys=keys))

    kinds = {
        "&&": (lambda n: filtered(operator("&&", *[literal(1)] * n)), 1, 5_000),
        "||": (lambda n: filtered(operator("||", *[literal(1)] * n)), 1, 5_000),
        "in": (lambda n: filtered(operator("in", ref(0), *[literal(1)] * n)), 1, 5_000),
        "+ in depth": (deep, 1, 20),
        "projections that double": (doubled, None, 5),
        "filters": (filters, 1, 30),
        "keys": (lambda n: get(n, 1), 1, 5_000),
        "keys of two parts": (lambda n: get(n, 2), 1, 1_000),
        "parts of a key": (lambda n: get(1, n), None, 1),
    }
    # Malformed, a frame too long, no such plan, and what a plan may not be.
    errors = ERRORS | {1210, 8000, 8001, 8002, 8003}
    for name, (make, rows, always) in kinds.items():
        for n in sorted({1, 5, 20, 30, 62, 63, 64, 65, *counts}):
            if n > 20_000 or (name in ("+ in depth", "filters", "projections that double") and n > 90):
                continue
            made = make(n)
            asked = made if isinstance(made, bytes) else x.ExecPlan(plan=made, reset_error=True, token=10240)

            def run():
                wire.send(1, x.ASK_EXECUTE_PLAN, asked)
                return wire.answer(1)

            try:
                answer, took = doors.timed(f"plan {name} x {n}", run)
            except (EOFError, OSError):
                tally.check(f"plan {name} x {n}: the server lives", doors.lives(), doors.server.output())
                if not doors.lives():
                    tally.close()
                # A message that cannot be read ends the connection.
                tally.check(f"plan {name} x {n}: not refused", n > always)
                doors.open()
                wire = doors.xrpc
                continue
            tally.check(f"plan {name} x {n}: in bounded time", took < SLOWEST, took)
            if answer.error is not None:
                tally.check(f"plan {name} x {n}: a clear error", answer.error.code in errors and n > always, answer.error)
            elif rows is not None:
                tally.check(f"plan {name} x {n}: rows", len(answer.rows) == rows, len(answer.rows))
        tally.check(f"PING after plans of {name}", doors.redis.call("PING") == b"+PONG\r\n")


# Statements that are long in one stage each: parsing, binding, planning, running, dropping.
LONG = [
    ("parse", lambda: "select " + "1 in (1), " * 2_000_000 + ")"),
    ("bind a select list", lambda: "select id" + ", id + 1" * 800_000 + " from t"),
    ("bind a list", lambda: "select 1 in (0" + ",1+1" * 1_000_000 + ")"),
    ("bind a condition", lambda: "select 7 from t where id = 0" + " or id + 1 = 3" * 500_000),
    ("plan ranges", lambda: "select 7 from t where id in (0" + ",1" * 2_000_000 + ")"),
    ("plan joins", lambda: "select count(*) from t a0" + "".join(f" join t a{i} on a{i}.id = a{i // 2}.id + {i}" for i in range(1, 61))),
    ("run calls", lambda: "select length(concat('a'" + ",'a'" * 1_000_000 + "))"),
    ("run rows", lambda: "select count(*) from k a, k b, k c, k d"),
    ("run a regular expression", lambda: "select repeat('a', 200000) regexp '(a|b|ab)*(bc|a)*c' from k a, k b, k c"),
    ("run documents", lambda: "select max(json_length(json_merge(json_array(a.a, b.a), json_array(c.a)))) from k a, k b, k c"),
    ("run a benchmark", lambda: "select benchmark(1000000000, sha2('a', 512))"),
    ("run a string", lambda: "select max(length(replace(repeat('ab', 4000000), 'b', 'cd'))) from k a, k b"),
    ("sort", lambda: "select a.a from k a, k b, k c order by concat(a.a, b.a, c.a) limit 1"),
    ("recurse", lambda: "with recursive c as (select 1 a union all select a + 1 from c where a < 1000000) select count(*) from c x, c y"),
    ("insert", lambda: "insert into v values (1)" + ",(1)" * 3_000_000),
    ("insert and select", lambda: "insert into v select a.a from k a, k b, k c"),
    ("update", lambda: "update v set a = a + 1 where exists (select * from k a, k b, k c where a.a + b.a + c.a < 0)"),
    ("create a table of rows", lambda: "create table q as select a.a from k a, k b, k c"),
    ("drop a tree", lambda: "select " + "(1+1)," * 1_000_000 + "7 from nowhere"),
]
# From KILL or the client's departure to the end of the statement, in seconds. A build with assertions on a machine that does other things too is given five times what a release is held to.
KILLED = 0.5
# A change that is killed undoes its rows first.
UNDONE = 20


def killed(doors):
    """KILL QUERY ends a statement in any of its stages, and so does the departure of the client."""
    doors.text("create table if not exists k (a int)")
    doors.text("insert into k with recursive c as (select 1 a union all select a + 1 from c where a < 1000) select a from c")
    worst = (0.0, "")
    for name, make in LONG:
        text = make()
        changes = text.startswith(("insert", "update", "create"))
        for after in (0.02, 0.3, 1.5):
            victim = doors.connection()
            number = victim.thread_id()
            found = []
            runs = threading.Thread(target=lambda: found.append((doors.ask(victim, text), time.monotonic())))
            runs.start()
            # The statement may still be on its way: a KILL counts from when the process list shows it.
            shown = doors.shows(number, lambda: not runs.is_alive())
            runs.join(after)
            began = time.monotonic()
            doors.text(f"kill query {number}")
            runs.join(60)
            tally.check(f"{name}, killed after {after} s: an answer", bool(found))
            if not found:
                continue
            (code, _), ended = found[0]
            took = max(ended - began, 0.0)
            if shown and code == 1317 and not changes:
                worst = max(worst, (took, f"{name}, killed after {after} s"))
            tally.check(f"{name}, killed after {after} s: ends soon", took < (UNDONE if changes else KILLED), f"{took:.3f} s")
            victim.close()
        # The client leaves without a word.
        victim = doors.connection()
        number = victim.thread_id()
        threading.Thread(target=doors.ask, args=(victim, text), daemon=True).start()
        if doors.shows(number, lambda: False):
            began = time.monotonic()
            victim._sock.shutdown(2)
            # A statement that changes rows goes on without its client, so it is killed.
            if changes:
                doors.text(f"kill {number}")
            took = doors.gone(number) - began
            tally.check(f"{name}, client gone: ends soon", took < (UNDONE if changes else KILLED), f"{took:.3f} s")
        victim._force_close()
        doors.text("drop table if exists q")
        tally.check(f"PING after {name}", doors.redis.call("PING") == b"+PONG\r\n")
    print(f"slowest end: {worst[1]}, {worst[0]:.3f} s", flush=True)


def mixed(doors, seed, rounds):
    """Nestings within each other, chained and listed: whatever limit is met first, the process lives and the answer is an error or 7."""
    draw = random.Random(seed)
    wraps = [("(", ")"), ("abs(", ")"), ("ifnull(7,", ")"), ("case when 1 then ", " end"), ("+ ", ""), ("(select ", ")"), ("cast(", " as signed)"), ("(select a from (select ", " a) d)"), ("coalesce(null,", ")"), ("0+", ""), ("", "+0"), ("", "*1"), ("(with c as (select ", " a) select a from c)")]
    for turn in range(rounds):
        text = "7"
        for _ in range(draw.randrange(2, 40)):
            opens, closes = draw.choice(wraps)
            times = draw.choice((1, 1, 2, 3, 10, 30, 60, 500))
            if len(text) + times * (len(opens) + len(closes)) > 200_000:
                break
            text = opens * times + text + closes * times
        (code, answer), took = doors.timed("mixed", lambda: doors.text("select " + text))
        if not doors.lives():
            print(text[:2000])
        judge(doors, Shape(f"mixed, seed {seed} turn {turn}", None, lambda n: 7), "text", len(text), (code, answer), took, False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--killed", action="store_true", help="only the statements that are killed")
    parser.add_argument("--only", default="", help="shapes whose name has this in it")
    arguments = parser.parse_args()
    counts = (20, 59, 60, 61, 62, 63, 64, 99, 100, 118, 119, 120, 121, 300, 399, 1_000, 3_000, 10_000, 20_000, 24_000, 100_000, 300_000, LARGEST) if arguments.soak else COUNTS
    print(f"seed {arguments.seed}", flush=True)
    with Server("--memory", "512mb", mysql=True, xrpc=True) as server:
        sql = come(server)
        for text in ("create database hostile", "create table hostile.t (id int primary key, j json)", "insert into hostile.t values (1, '{}')", "create table hostile.v (a int)", "create table hostile.q2 (a int)"):
            sql.cursor().execute(text)
        doors = Doors(server)
        if arguments.killed:
            killed(doors)
            tally.close()
        for shape in NESTED + CHAINS + LISTS + CHANGES + BROKEN:
            if arguments.only in shape.name:
                play(doors, shape, sorted({*counts, shape.largest} if shape.largest > counts[-1] else counts))
        if not arguments.only:
            views_of_views(doors)
            plans(doors, counts)
            killed(doors)
            mixed(doors, arguments.seed, 3_000 if arguments.soak else 150)
        tally.check("the server stops by itself", server.terminate() == 0)
        print(f"slowest: {doors.slowest[1]}, {doors.slowest[0]:.2f} s", flush=True)
    tally.close()


main()
