"""Statements that repeat or nest one construct of PostgreSQL's SQL a hundred to a million times, giant values, and bytes that are no protocol, at the PostgreSQL door of a server with little memory: the server lives, each
answer is right or a clear error, and each comes in bounded time.

Every shape is a function of a count. It goes as a simple query, by the extended protocol, by PREPARE and EXECUTE, and within a view where it is a query. A shape says what it answers where that is known. A count that is
refused must be refused with one of the states in ERRORS, and so must every larger one: a limit is a limit and no accident of the stack. Between two shapes another session must get an answer.

Statements that are long in one stage each (parsing, binding, planning, running, sorting, copying, dropping) are cancelled there, timed out by statement_timeout, or left by their client, and must end soon.

    postgres_hostile.py            two counts of each shape, a sample of the rest: a part of `make test`
    postgres_hostile.py --all      more counts, by each way, and every stage that is ended
    postgres_hostile.py --soak     every count, every cut, random compositions of the shapes
    postgres_hostile.py --only X   shapes and parts whose name has X in it
    postgres_hostile.py --port N   beside a server that runs (PostgreSQL itself: its answers, not its limits, are compared)
"""

import argparse
import random
import socket
import struct
import subprocess
import threading
import time

import psycopg
from psycopg import pq

from beluga import Server, Tally

# Not served, sizes and counts, names, syntax, regular expressions, recursion, memory, stack, program limits, columns, arguments.
ERRORS = {"0A000", "22001", "22003", "22007", "22008", "22015", "22023", "22025", "2201B", "22P02", "2202E", "42601", "42602", "42622", "42701", "42704", "42712", "42803", "42804", "42809", "42P10", "42P16", "42P19", "42P20", "42846", "42883", "53200", "54000", "54001", "54011", "54023", "54P01"}
# The slowest answer that is taken, in seconds, of a build with assertions on a machine that does other things too.
SLOWEST = 20.0
# An answer that takes as long as this is printed.
SLOW = 3.0
# From a cancel request or the client's departure to the end of the statement. A change that is cancelled undoes its rows first.
ENDED, UNDONE = 0.5, 20.0
COUNTS = (100, 3_000)
COUNTS_ALL = (100, 1_000, 20_000)
COUNTS_SOAK = (10, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MEMORY = "256mb"

tally = Tally()


class Shape:
    """`make(n)` is the text; `expected(n)` the first value of its first row, None where there is none to know. `always`: no count may be refused up to this one."""

    def __init__(self, name, make, expected=None, always=0, largest=100_000, view=True, prepare=True):
        self.name, self.make, self.expected, self.always = name, make, expected, always
        self.largest, self.view, self.prepare = largest, view, prepare


def nested(opens, inner, closes):
    return lambda n: "select " + opens * n + inner + closes * n


def chain(link, first="1"):
    return lambda n: "select " + first + link * n


def listed(head, each, tail="", joint=","):
    return lambda n: head + joint.join(each.format(i=i, before=i - 1) for i in range(1, n + 1)) + tail.format(n=n)


one, count, seven = (lambda n: 1), (lambda n: n + 1), (lambda n: 7)
NESTED = [
    Shape("parentheses", nested("(", "7", ")"), seven, always=100),
    Shape("parentheses left open", lambda n: "select " + "(" * n + "7", view=False, prepare=False),
    Shape("parentheses closed only", lambda n: "select 7" + ")" * n, view=False, prepare=False),
    Shape("calls", nested("abs(", "7", ")"), seven, always=100),
    Shape("casts in words", nested("cast(", "7", " as int8)"), seven, always=100),
    Shape("casts by function", nested("int8(", "7", ")"), seven, always=100),
    Shape("case", nested("case when true then ", "7", " end"), seven, always=100),
    Shape("case of", nested("case ", "7", " when 7 then 7 end"), seven, always=30),
    Shape("else", nested("case when false then 1 else ", "7", " end"), seven, always=100),
    Shape("minus", nested("- ", "7", ""), lambda n: 7 if n % 2 == 0 else -7, always=100),
    Shape("plus", nested("+ ", "7", ""), seven, always=100),
    Shape("not", nested("not ", "true", ""), lambda n: n % 2 == 0, always=100),
    Shape("tilde", nested("~ ", "7", ""), lambda n: 7 if n % 2 == 0 else -8, always=100),
    Shape("at", nested("@ ", "7", ""), seven, always=100),
    Shape("coalesce", nested("coalesce(null, ", "7", ")"), seven, always=100),
    Shape("nullif", nested("nullif(", "7", ", 0)"), seven, always=30),
    Shape("greatest", nested("greatest(", "7", ", 0)"), seven, always=30),
    Shape("between", nested("(", "7", " between 0 and 9)::int4"), always=20),
    Shape("distinct from", nested("(", "7", " is distinct from 2)::int4"), always=20),
    Shape("in", nested("(7 in (", "7", "))::int4"), always=20),
    Shape("concatenation to the right", nested("'a' || (", "'b'", ")"), lambda n: "a" * n + "b", always=50),
    Shape("substring", nested("substring(", "'7'", " from 1)"), lambda n: "7", always=100),
    Shape("trim", nested("trim(both from ", "'7'", ")"), lambda n: "7", always=100),
    Shape("extract", nested("extract(year from date '2020-01-01' + ", "7", "::int4)"), view=False),
    Shape("position", nested("position('7' in ", "'7'", ")::text"), always=20),
    Shape("overlay", nested("overlay(", "'7'", " placing '7' from 1)"), lambda n: "7", always=50),
    Shape("at time zone", nested("(", "timestamptz '2020-01-01 00:00+00'", " at time zone 'UTC' at time zone 'UTC')"), always=20),
    Shape("collate", nested("(", "'7'::text", ' collate "C")'), always=20),
    Shape("row", nested("row(", "7", ")"), view=False),
    Shape("rows of pairs", nested("(7, ", "7", ")"), view=False),
    Shape("array", nested("array[", "7", "]"), view=False),
    Shape("subscripts", lambda n: "select a" + "[1]" * n + " from (select 7 a) s", view=False),
    Shape("fields", lambda n: "select " + "(" * n + "s" + ").a" * n + " from (select 7 a) s", view=False),
    Shape("json", lambda n: "select '" + "[" * n + "]" * n + "'::json", always=100),
    Shape("json objects", lambda n: "select '" + '{"a":' * n + "1" + "}" * n + "'::json", always=100),
    Shape("jsonb", lambda n: "select '" + "[" * n + "]" * n + "'::jsonb"),
    Shape("array text", lambda n: "select '" + "{" * n + "}" * n + "'::int4[]"),
    Shape("scalar subqueries", nested("(select ", "7", ")"), seven, always=50),
    Shape("exists", lambda n: "select 7 where " + "exists (select 7 where " * n + "true" + ")" * n, seven, always=50),
    Shape("in subqueries", nested("7 in (select ", "7", ")")),
    Shape("any", nested("7 = any (select ", "7", ")")),
    Shape("array of subqueries", nested("array(select ", "7", ")"), view=False),
    Shape("selects in parentheses", lambda n: "(" * n + "select 7" + ")" * n, seven, always=100),
    Shape("derived tables", lambda n: "select * from " + "(select * from " * n + "(select 7 a) d0" + "".join(f") d{i}" for i in range(1, n + 1)), seven, always=50),
    Shape("derived tables that add", lambda n: "select a from " + "(select a + a a from " * n + "(select 0 a) d0" + "".join(f") d{i}" for i in range(1, n + 1))),
    Shape("derived tables of joins", lambda n: "select count(*) from " + "(select 7 from " * n + "t a0" + "".join("".join(f" left join t j{j} on false" for j in range(50)) + f") d{i}" for i in range(1, n + 1)), one, always=10, largest=1_000),
    Shape("lateral", lambda n: "select 7 from t a0, " + "lateral (select 7 from t b, " * n + "lateral (select 7 c) d0" + "".join(f") d{i}" for i in range(1, n + 1)), view=False),
    Shape("joins to the right", lambda n: "select count(*) from t a0" + "".join(f" join (t a{i}" for i in range(1, n + 1)) + "".join(f" on true{')'}" if i < n else ") on true" for i in range(1, n + 1)), view=False),
    Shape("joins in parentheses", lambda n: "select count(*) from " + "(" * n + "t a0" + "".join(f" cross join t a{i})" for i in range(1, n + 1))),
    Shape("unions to the right", lambda n: "select 7" + " union (select 7" * n + ")" * n, seven, always=50),
    Shape("unions to the left", lambda n: "(" * n + "select 7" + " union select 7)" * n, seven, always=50),
    Shape("with in with", lambda n: "with c as (" * n + "select 7 a" + ") select * from c" * n, seven, always=40),
    Shape("with in subqueries", nested("(with c as (select 7 a) select a + 0 * ", "7", " from c)"), seven, always=30),
    Shape("windows in windows", nested("sum(", "7", ") over ()"), view=False),
    Shape("explain", lambda n: "explain " * n + "select 7", view=False),
    Shape("comments", lambda n: "select " + "/*" * n + "*/" * n + "7", seven, view=False),
    Shape("comments left open", lambda n: "select 7 " + "/*" * n, view=False, prepare=False),
    Shape("types of arrays", lambda n: "select null::int4" + "[]" * n, view=False),
    Shape("intervals of intervals", nested("interval '1 day' * (", "7", ")"), view=False),
    Shape("regular expression in depth", lambda n: "select 'a' ~ '" + "(" * n + "a" + ")" * n + "'", lambda n: True, always=30),
    Shape("regular expression of stars", lambda n: "select 'b' ~ '" + "(" * n + "a" + ")*" * n + "'"),
    Shape("similar in depth", lambda n: "select 'a' similar to '" + "(" * n + "a" + ")" * n + "'"),
]
CHAINS = [
    Shape("1+1", chain("+1"), count, always=1_000),
    Shape("1-1", chain("-1"), lambda n: 1 - n, always=1_000),
    Shape("1*1", chain("*1"), one, always=1_000),
    Shape("1/1", chain("/1"), one, always=1_000),
    Shape("%", chain("%2"), one, always=1_000),
    Shape("^", chain("^1"), one, always=1_000),
    Shape("numeric sums", chain("+0.1", "0.1"), always=1_000),
    Shape("|", chain("|1"), one, always=1_000),
    Shape("&", chain("&1"), one, always=1_000),
    Shape("#", chain("#1"), always=1_000),
    Shape("<<", chain("<<0"), one, always=1_000),
    Shape("||", chain("||'a'", "'a'"), lambda n: "a" * (n + 1), always=1_000),
    Shape("or", chain(" or true", "false"), lambda n: True, always=20_000),
    Shape("or of comparisons", chain(" or 2=3", "1=1"), lambda n: True, always=20_000),
    Shape("and", chain(" and true", "true"), lambda n: True, always=20_000),
    Shape("and, or", chain(" and 1=1 or 2=2", "true"), lambda n: True, always=1_000),
    Shape("and of a column", lambda n: "select id from t where id = 1" + " and id = 1" * n, one, always=1_000),
    Shape("=", chain("=true", "true")),
    Shape("<>", chain("<>1")),
    Shape("is null", chain(" is null", "7 ")),
    Shape("is true", chain(" is true", "true ")),
    Shape("like", chain(" like 'a'", "'a'")),
    Shape("between, and", chain(" and 5 between 0 and 10", "true"), lambda n: True, always=1_000),
    Shape("::", chain("::int8"), one, always=100),
    Shape("collate", chain(' collate "C"', "'a'")),
    Shape("at time zone", chain(" at time zone 'UTC'", "now()"), view=False),
    Shape("postfix", chain(" isnull", "7 ")),
    Shape("operator()", chain(" operator(pg_catalog.+) 1"), count, always=100),
    Shape("strings side by side", chain("\n'a'", "'a'"), lambda n: "a" * (n + 1), always=1_000),
    Shape("arrows", chain("->'a'", "'{}'::json")),
    Shape("json paths", chain("#>'{a}'", "'{}'::json")),
    Shape("overlaps", chain(" and (date '2020-01-01', date '2020-01-02') overlaps (date '2020-01-01', date '2020-01-02')", "true")),
    Shape("names in a name", lambda n: "select t" + ".t" * n + " from t", view=False, prepare=False),
    Shape("days to a date", chain(" + 1", "date '2020-01-01'")),
]
LISTS = [
    Shape("select list", lambda n: "select 1" + ",1" * n, one, always=1_600),
    Shape("select list of a table", lambda n: "select id" + ",id" * n + " from t", one, always=1_600, view=False),
    Shape("stars", lambda n: "select *" + ", *" * n + " from t", view=False),
    Shape("in", lambda n: "select 1 in (0" + ",1" * n + ")", lambda n: True, always=100_000, largest=1_000_000),
    Shape("in of a column", lambda n: "select count(*) from t where id in (0" + "".join(f",{i}" for i in range(1, n + 1)) + ")", one, always=20_000),
    Shape("not in of texts", lambda n: "select 'x' not in ('a'" + ",'b'" * n + ")", lambda n: True, always=20_000),
    Shape("in of rows", lambda n: "select (1,1) in ((0,0)" + ",(1,1)" * n + ")"),
    Shape("concat", lambda n: "select length(concat('a'" + ",'a'" * n + "))", count, always=90),
    Shape("coalesce", lambda n: "select coalesce(null" + ",null" * n + ", 7)", seven, always=10_000),
    Shape("greatest", lambda n: "select greatest(1" + ",1" * n + ")", one, always=10_000),
    Shape("when", lambda n: "select case " + "when false then 1 " * n + "else 7 end", seven, always=10_000),
    Shape("when of", lambda n: "select case 7 " + "when 0 then 1 " * n + "else 7 end", seven, always=10_000),
    Shape("array", lambda n: "select array[1" + ",1" * n + "]", view=False),
    Shape("array text", lambda n: "select '{1" + ",1" * n + "}'::int4[]", view=False),
    Shape("json document", lambda n: "select length('[1" + ",1" * n + "]'::json::text)", lambda n: 2 * n + 3, always=20_000),
    Shape("values", lambda n: "select count(*) from (values (1)" + ",(1)" * n + ") v", count, always=100_000, largest=1_000_000),
    Shape("values of sums", lambda n: "select count(*) from (values (1+1)" + ",(1+1)" * n + ") v", count, always=20_000),
    Shape("values of columns", lambda n: "select count(*) from (values (1" + ",1" * n + ")) v", one, always=1_600),
    Shape("order by", lambda n: "select 7 from t order by id" + ",id" * n, seven, always=1_600),
    Shape("order by sums", lambda n: "select 7 from t order by id" + "".join(f",id+{i}" for i in range(n)), seven, always=100),
    Shape("group by", lambda n: "select 7 from t group by id" + ",id" * n, seven, always=1_600),
    Shape("grouping sets", lambda n: "select 7 from t group by grouping sets ((id)" + ",(id)" * n + ")", view=False),
    Shape("cube", lambda n: "select 7 from t group by cube (id" + ",id" * n + ")", view=False),
    Shape("aggregates", lambda n: "select " + ",".join(f"sum({i})" for i in range(n)) + " from t", view=False),
    Shape("distinct aggregates", lambda n: "select " + ",".join(f"count(distinct id + {i})" for i in range(n)) + " from t", view=False, largest=1_000),
    Shape("windows", lambda n: "select 7" + ", sum(1) over (order by id)" * n + " from t", seven, view=False, largest=20_000),
    Shape("windows of their own", lambda n: "select 7" + "".join(f", sum(1) over (order by id + {i})" for i in range(n)) + " from t", seven, view=False, largest=1_000),
    Shape("named windows", lambda n: "select 7, sum(1) over w0 from t window w0 as ()" + "".join(f", w{i} as (w{i - 1})" for i in range(1, n + 1)), view=False),
    Shape("union", lambda n: "select 7" + " union select 7" * n, seven, always=1_000, largest=100_000),
    Shape("union all", lambda n: "select count(*) from (select 7" + " union all select 7" * n + ") u", count, always=1_000, largest=100_000),
    Shape("union and union all", lambda n: "select 7" + " union all select 7 union select 7" * n, seven, always=1_000, largest=20_000),
    Shape("intersect", lambda n: "select 7" + " intersect select 7" * n, seven, always=100, largest=20_000),
    Shape("except", lambda n: "select 7" + " except select 8" * n, seven, always=100, largest=20_000),
    Shape("cross joins", lambda n: "select count(*) from t a0" + "".join(f" cross join t a{i}" for i in range(1, n + 1)), one, always=50),
    Shape("left joins", lambda n: "select count(*) from t a0" + "".join(f" left join t a{i} on a{i}.id = a{i - 1}.id" for i in range(1, n + 1)), one, always=50),
    Shape("natural joins", lambda n: "select count(*) from t a0" + "".join(f" natural join t a{i}" for i in range(1, n + 1))),
    Shape("joins by USING", lambda n: "select count(*) from t a0" + "".join(f" join t a{i} using (id)" for i in range(1, n + 1))),
    Shape("full joins", lambda n: "select count(*) from t a0" + "".join(f" full join t a{i} on a{i}.id = a{i - 1}.id" for i in range(1, n + 1)), largest=1_000),
    Shape("commas", lambda n: "select count(*) from t a0" + "".join(f", t a{i}" for i in range(1, n + 1)), one, always=50),
    Shape("semi-joins", lambda n: "select count(*) from t where id in (select id from t)" + " and id in (select id from t)" * n, largest=1_000),
    Shape("common tables in a chain", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select a from c{i - 1})" for i in range(1, n + 1)) + f" select * from c{n}", seven, always=100),
    Shape("common tables read twice", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select p.a from c{i - 1} p, c{i - 1} q)" for i in range(1, n + 1)) + f" select * from c{n}", seven, largest=1_000),
    Shape("materialized tables", lambda n: "with c0 as materialized (select 7 a)" + "".join(f", c{i} as materialized (select a from c{i - 1})" for i in range(1, n + 1)) + f" select * from c{n}", seven, always=100),
    Shape("common tables side by side", lambda n: "with c0 as (select 7 a)" + "".join(f", c{i} as (select 7)" for i in range(1, n + 1)) + " select * from c0", seven, always=300, largest=20_000),
    Shape("like pattern", lambda n: "select 'a' like '" + "%" * n + "a'", lambda n: True, always=20_000),
    Shape("like of pieces", lambda n: f"select repeat('a', {n}) like '" + "%a" * min(n, 2_000) + "b'", lambda n: False, always=20_000),
    Shape("regular expression of choices", lambda n: "select 'a' ~ '" + "b|" * n + "a'", always=100),
    Shape("regular expression of counts", lambda n: "select 'a' ~ '" + "a{0,100}" * n + "'"),
    Shape("regular expression of groups", lambda n: "select 'a' ~ '" + "(a?)" * n + "'"),
    Shape("regular expression of a long text", lambda n: f"select repeat('a', {n}) ~ '(a*)*b'", lambda n: False, always=1_000),
    Shape("regular expression that branches", lambda n: f"select repeat('a', {n}) ~ '^(a|aa)*$'", lambda n: True, always=20),
    Shape("replacements", lambda n: f"select length(regexp_replace(repeat('a', {n}), 'a', 'bb', 'g'))", lambda n: 2 * n, always=20_000),
    Shape("backslashes", lambda n: "select length(E'" + "\\\\" * n + "')", lambda n: n, always=20_000),
    Shape("bytes", lambda n: "select length('\\x" + "00" * n + "'::bytea)", lambda n: n, always=20_000),
    Shape("digits", lambda n: "select length((" + "9" * n + ")::text)", lambda n: n, always=20_000),
    Shape("digits behind the point", lambda n: "select length((0." + "9" * min(n, 100_000) + ")::text)", view=False),
    Shape("identifier", lambda n: "select 7 as " + "a" * n, seven, always=100_000, view=False),
    Shape("quoted identifier", lambda n: 'select 7 as "' + '""' * n + '"', seven, always=100_000, view=False),
    Shape("dollar quotes", lambda n: "select length($" + "a" * n + "$7$" + "a" * n + "$)", view=False),
    Shape("line comments", lambda n: "select 7" + "--\n" * n, seven, always=100_000, view=False, prepare=False),
    Shape("block comments", lambda n: "select " + "/**/ " * n + "7", seven, always=100_000, view=False),
    Shape("interval words", lambda n: "select interval '" + "1 day " * n + "'"),
    Shape("interval of many digits", lambda n: "select interval '" + "1" * n + " days'"),
    Shape("timestamp of many digits", lambda n: "select timestamp '" + "1" * n + "'"),
    Shape("time zone", lambda n: "select now() at time zone '" + "a/" * n + "'"),
    Shape("parameters of set", lambda n: "set search_path to a" + ",a" * n, view=False, prepare=False, largest=20_000),
    Shape("format", lambda n: "select length(format('" + "%s" * n + "'" + ",1" * min(n, 90) + "))", view=False),
    Shape("to_char", lambda n: "select length(to_char(timestamp '2020-01-01', '" + "YYYY" * n + "'))", lambda n: 4 * n, always=1_000),
    Shape("to_number", lambda n: "select to_number('" + "9" * n + "', '" + "9" * n + "')"),
    Shape("semicolons", lambda n: ";" * n + "select 7", seven, view=False, prepare=False, always=20_000),
]
CHANGES = [
    Shape("rows", lambda n: "insert into v values (1)" + ",(1)" * n, always=100_000, view=False, largest=1_000_000),
    Shape("rows of sums", lambda n: "insert into v values (1+1)" + ",(1+1)" * n, always=20_000, view=False),
    Shape("rows returned", lambda n: "insert into v values (7)" + ",(7)" * n + " returning a", seven, always=20_000, view=False),
    Shape("columns", lambda n: "create table q (c0 int4" + "".join(f",c{i} int4" for i in range(1, n + 1)) + ")", view=False, prepare=False),
    Shape("checks", lambda n: "create table q (a int4" + ", check (a > 0)" * n + ")", view=False, prepare=False, largest=1_000),
    Shape("keys", lambda n: "create table q (a int4" + ", unique (a)" * n + ")", view=False, prepare=False, largest=1_000),
    Shape("parts of a key", lambda n: "create table q (a int4, unique (a" + ",a" * n + "))", view=False, prepare=False),
    Shape("a default in depth", lambda n: "create table q (a int4 default " + "(" * n + "1" + ")" * n + ")", view=False, prepare=False),
    Shape("a check of a chain", lambda n: "create table q (a int4, check (a" + "+1" * n + " > 0))", view=False, prepare=False),
    Shape("a generated column in depth", lambda n: "create table q (a int4, b int4 generated always as (" + "abs(" * n + "a" + ")" * n + ") stored)", view=False, prepare=False),
    Shape("operations", lambda n: "alter table q2 alter a set default 1" + ", alter a set default 1" * n, view=False, prepare=False, largest=1_000),
    Shape("tables dropped", lambda n: "drop table if exists x0" + "".join(f",x{i}" for i in range(1, n + 1)), view=False, prepare=False, largest=20_000),
    Shape("assignments", lambda n: "update q2 set a = a" + ", a = a" * n, view=False),
    Shape("assignment in depth", lambda n: "update q2 set a = " + "(" * n + "1" + ")" * n, view=False),
    Shape("tables of an update", lambda n: "update q2 set a = 1 from t a0" + "".join(f", t a{i}" for i in range(1, n + 1)), view=False),
    Shape("a condition of a change", lambda n: "delete from q2 where a = 5" + " or a = 5" * n, always=20_000, view=False),
    Shape("returning", lambda n: "update q2 set a = a returning a" + ", a" * n, view=False),
    Shape("prepare", lambda n: "prepare p as select " + "(" * n + "7" + ")" * n, view=False, prepare=False),
    Shape("statements", lambda n: "select 7" + ";select 7" * n, seven, view=False, prepare=False, always=10_000, largest=20_000),
    Shape("savepoints", lambda n: "begin" + "".join(f";savepoint s{i}" for i in range(n)) + ";rollback", view=False, prepare=False, largest=20_000),
    Shape("prepared statements", lambda n: "deallocate all" + "".join(f";prepare q{i} as select {i}" for i in range(n)) + ";deallocate all", view=False, prepare=False, largest=20_000),
]
GIANTS = [
    Shape("repeat", lambda n: f"select length(repeat('x', {n}))", lambda n: n, always=1_000_000),
    Shape("repeat of repeat", lambda n: f"select length(repeat(repeat('x', {n}), {n}))"),
    Shape("lpad", lambda n: f"select length(lpad('x', {n}))", lambda n: n, always=1_000_000),
    Shape("rpad of a pattern", lambda n: f"select length(rpad('x', {n}, 'abc'))", lambda n: n, always=1_000_000),
    Shape("width of format", lambda n: f"select length(format('%{n}s', 'a'))", lambda n: n, always=1_000_000),
    Shape("series", lambda n: f"select count(*) from generate_series(1, {min(n, 10**5)})", lambda n: min(n, 10**5), always=10**12),
    Shape("powers", lambda n: f"select length((9::numeric ^ {n})::text)"),
    Shape("exponentials", lambda n: f"select length(exp({n}::numeric)::text)"),
    Shape("factorials", lambda n: f"select length(factorial({n})::text)"),
    Shape("products", lambda n: f"select length((repeat('9', {n})::numeric * repeat('9', {n})::numeric)::text)"),
    Shape("quotients", lambda n: f"select length((1::numeric / repeat('9', {n})::numeric)::text)"),
    Shape("logarithms", lambda n: f"select length(ln(repeat('9', {n})::numeric)::text)"),
    Shape("roots", lambda n: f"select length(sqrt(repeat('9', {n})::numeric)::text)"),
    Shape("texts that are gathered", lambda n: f"select length(string_agg(repeat('x', 1000), ',')) from generate_series(1, {n // 1000 + 1})"),
    Shape("distinct texts", lambda n: f"select count(distinct repeat('x', 100) || i) from generate_series(1, {min(n, 10**5)}) i", lambda n: min(n, 10**5), always=1_000),
    Shape("sorted texts", lambda n: f"select count(*) from (select repeat('x', 100) || i from generate_series(1, {min(n, 10**5)}) i order by 1 desc) s", lambda n: min(n, 10**5), always=10**12),
    Shape("replace", lambda n: f"select length(replace(repeat('a', {n}), 'a', repeat('b', 1000)))"),
    Shape("translate", lambda n: f"select length(translate(repeat('a', {n}), 'a', 'b'))", lambda n: n, always=1_000_000),
    Shape("encode", lambda n: f"select length(encode(convert_to(repeat('a', {n}), 'UTF8'), 'hex'))", lambda n: 2 * n, always=1_000_000),
    Shape("round", lambda n: f"select length(round(1::numeric, {n})::text)"),
    Shape("limit", lambda n: f"select 7 limit {n}", seven, always=10**12),
    Shape("offset", lambda n: f"select count(*) from (select 7 offset {n}) s", lambda n: 0, always=10**12),
]
GIANT_COUNTS = (1_000, 10**9)
GIANT_COUNTS_ALL = (1_000, 1_000_000, 10**9, 10**12)


class Door:
    """A server, and a connection that is made anew where it is lost. `other` asks between two shapes whether the server lives."""

    def __init__(self, port, server=None):
        self.port, self.server, self.slowest = port, server, (0.0, "")
        self.connection = self.connect()
        self.other = self.connect()
        self.connection.exec_(b"set statement_timeout = '15s'")

    def connect(self):
        connection = pq.PGconn.connect(f"host=127.0.0.1 port={self.port} user=postgres dbname=hostile sslmode=disable connect_timeout=60".encode())
        if connection.status != pq.ConnStatus.OK:
            raise RuntimeError(connection.error_message.decode())
        return connection

    def lives(self):
        return self.server is None or self.server.process.poll() is None

    def answer(self, result):
        """(the state of the error or None, the message or the first value). A lost connection is the state "lost"."""
        if self.connection.status != pq.ConnStatus.OK:
            message = self.connection.error_message.decode(errors="replace")
            if self.server is not None:
                # A process that is about to end takes a moment.
                try:
                    self.server.process.wait(1)
                except subprocess.TimeoutExpired:
                    pass
            if self.lives():
                self.connection = self.connect()
                self.connection.exec_(b"set statement_timeout = '15s'")
            return "lost", message
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        if state is not None:
            return state.decode(), (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
        return None, result.get_value(0, 0) if result.ntuples > 0 else None

    def text(self, sql):
        return self.answer(self.connection.exec_(sql.encode()))

    def extended(self, sql):
        return self.answer(self.connection.exec_params(sql.encode(), []))

    def prepared(self, sql):
        self.connection.exec_(b"deallocate all")
        found = self.text("prepare h as " + sql)
        return found if found[0] else self.text("execute h")

    def viewed(self, sql):
        self.connection.exec_(b"drop view if exists hv")
        found = self.text("create view hv as " + sql)
        return found if found[0] else self.text("select * from hv")

    def timed(self, name, ask):
        began = time.monotonic()
        found = ask()
        took = time.monotonic() - began
        self.slowest = max(self.slowest, (took, name))
        if took > SLOW:
            print(f"{name}: {took:.1f} s", flush=True)
        return found, took

    def others_are_served(self, name):
        found = self.other.exec_(b"select 1")
        tally.check(f"another session after {name}", found.status == pq.ExecStatus.TUPLES_OK and self.lives(), self.other.error_message)


def shown(value):
    """A value as the server's text."""
    if isinstance(value, bool):
        return b"t" if value else b"f"
    return str(value).encode()


def judge(door, shape, how, n, found, took, refused):
    name = f"{shape.name} x {n:,} {how}"
    state, answer = found
    if not door.lives():
        tally.check(name, False, "the server ended:\n" + door.server.output())
        tally.close()
    tally.check(f"{name}: in bounded time", took < SLOWEST, f"{took:.1f} s")
    if state:
        # Time is a limit too, for what takes long by its nature.
        known = state in ERRORS or (state == "57014" and n >= 10_000)
        tally.check(f"{name}: a clear error", known and str(answer).strip() != "", found)
        tally.check(f"{name}: not refused", n > shape.always or state == "57014", found)
        return state != "57014"
    tally.check(f"{name}: no limit that has been passed before", not refused)
    if shape.expected is not None:
        expected = shown(shape.expected(n))
        tally.check(f"{name}: the answer", answer == expected, (answer and answer[:50], expected[:50]))
    return False


def play(door, shape, counts, ways):
    for how in ways:
        if (how == "view" and not shape.view) or (how == "prepared" and not shape.prepare) or (how == "extended" and ";" in shape.make(2)):
            continue
        ask = {"text": door.text, "extended": door.extended, "prepared": door.prepared, "view": door.viewed}[how]
        refused = False
        for n in counts:
            # Beside the first way limits are enough.
            if how != "text" and (n > 20_000 or refused):
                continue
            text = shape.make(n)
            if len(text) > 24 << 20:
                continue
            if "table q " in text[:20]:
                door.text("drop table if exists q")
            found, took = door.timed(f"{shape.name} x {n:,} {how}", lambda: ask(text))
            refused = judge(door, shape, how, n, found, took, refused)
    door.text("rollback")
    door.text("drop table if exists q")
    door.text("reset search_path")
    door.others_are_served(shape.name)


def views_of_views(door, counts):
    largest, doublings = counts
    door.text("drop view if exists w0 cascade")
    door.text("create view w0 as select 7 a")
    refused = None
    for n in range(1, largest):
        found = door.text(f"create view w{n} as select a + 0 a from w{n - 1}")
        found = found if found[0] else door.text(f"select a from w{n}")
        if found[0]:
            refused = n
            tally.check("views of views: a clear error", found[0] in ERRORS, (n, *found))
            break
        if found[1] != b"7":
            tally.check(f"views of views x {n}", False, found)
    tally.check("views of views: enough", refused is None or refused >= 20, refused)
    door.text("drop view if exists y0 cascade")
    door.text("create view y0 as select 1 a")
    for n in range(1, doublings):
        found = door.text(f"create view y{n} as select p.a + q.a a from y{n - 1} p, y{n - 1} q")
        found, took = door.timed(f"views that double x {n}", lambda found=found: found if found[0] else door.text(f"explain select a from y{n}"))
        tally.check(f"views that double x {n}: in bounded time", took < SLOWEST, took)
        if found[0]:
            tally.check("views that double: a clear error", found[0] in ERRORS, (n, *found))
            break


def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


def startup(**pairs):
    body = struct.pack(">I", 3 << 16) + b"".join(name.encode() + b"\0" + value.encode() + b"\0" for name, value in pairs.items()) + b"\0"
    return struct.pack(">I", len(body) + 4) + body


HELLO = startup(user="postgres", database="hostile")
SYNC = message(b"S")


def parse(name, text, types=()):
    return message(b"P", name + b"\0" + text + b"\0" + struct.pack(f">H{len(types)}I", len(types), *types))


def bind(portal, statement, values=(), formats=(), results=()):
    parts = [struct.pack(f">H{len(formats)}H", len(formats), *formats), struct.pack(">H", len(values))]
    parts += [struct.pack(">i", -1) if value is None else struct.pack(">I", len(value)) + value for value in values]
    return message(b"B", portal + b"\0" + statement + b"\0" + b"".join(parts) + struct.pack(f">H{len(results)}H", len(results), *results))


def execute(portal, rows=0):
    return message(b"E", portal + b"\0" + struct.pack(">I", rows))


class Wire:
    """The protocol by hand."""

    def __init__(self, port, hello=HELLO, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.buffer = b""
        if hello:
            self.socket.sendall(hello)
            self.until(b"Z")

    def exactly(self, count):
        while len(self.buffer) < count:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def one(self):
        kind, size = struct.unpack(">cI", self.exactly(5))
        return kind, self.exactly(size - 4)

    def until(self, last):
        """The kinds of the messages up to `last`, and the states of the errors among them."""
        kinds, states = b"", []
        while True:
            kind, body = self.one()
            kinds += kind
            if kind == b"E":
                states += [field[1:].decode() for field in body.split(b"\0") if field[:1] == b"C"]
            if kind == last:
                return kinds, states

    def ask(self, data):
        self.socket.sendall(data)
        return self.until(b"Z")

    def close(self):
        self.socket.close()


# A conversation with every kind of message.
CONVERSATION = [
    parse(b"s", b"select $1::int4 + 1, $2", [23, 25]),
    message(b"D", b"Ss\0"),
    bind(b"p", b"s", [b"\0\0\0\1", b"x"], [1, 0], [1, 0]),
    message(b"D", b"Pp\0"),
    execute(b"p", 1),
    message(b"C", b"Pp\0"),
    message(b"H"),
    SYNC,
    message(b"Q", b"copy v from stdin\0"),
    message(b"d", b"1\n"),
    message(b"c"),
    message(b"Q", b"select 1; select 2\0"),
]


def cuts(door, every):
    """A conversation that ends, or is silent for the rest, at each of its bytes; and each of its bytes spoilt."""
    whole = b"".join(CONVERSATION)
    for at in range(0, len(whole), 1 if every else 11):
        wire = Wire(door.port)
        wire.socket.sendall(whole[:at])
        wire.close()
    for at in range(1, len(HELLO), 1 if every else 5):
        wire = Wire(door.port, None)
        wire.socket.sendall(HELLO[:at])
        wire.close()
    draw = random.Random(1)
    for at in range(0, len(whole), 1 if every else 7):
        wire = Wire(door.port, timeout=5)
        wire.socket.sendall(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        wire.socket.shutdown(socket.SHUT_WR)
        try:
            while wire.one():
                pass
        except (EOFError, OSError):
            pass
        wire.close()
    door.others_are_served("conversations that are cut")


def lies(door):
    """Lengths that are not those of what follows."""
    huge, negative = struct.pack(">i", 0x7FFFFFFF), struct.pack(">i", -1)
    for kind in b"QPBDECdcfHSXpF?\0\xff":
        for length in (huge, negative, struct.pack(">i", 0), struct.pack(">i", 3), struct.pack(">i", 4), struct.pack(">i", 1 << 20)):
            wire = Wire(door.port, timeout=10)
            wire.socket.sendall(bytes([kind]) + length + b"\0" * 64 + SYNC)
            wire.socket.shutdown(socket.SHUT_WR)
            try:
                while wire.one():
                    pass
            except (EOFError, OSError):
                pass
            wire.close()
    for length in (0, 4, 7, 8, 9, 10_001, 0x7FFFFFFF, 0xFFFFFFFF):
        wire = Wire(door.port, None, timeout=15)
        wire.socket.sendall(struct.pack(">I", length) + HELLO[4:])
        wire.socket.shutdown(socket.SHUT_WR)
        try:
            while wire.one()[0] != b"E":
                pass
        except (EOFError, OSError):
            pass
        wire.close()
    cases = {
        "a value longer than its message": message(b"B", b"\0s\0\0\0\0\1" + struct.pack(">I", 1000) + b"1\0\0"),
        "a negative length": message(b"B", b"\0s\0\0\0\0\1" + struct.pack(">i", -2) + b"\0\0"),
        "more values than there are": message(b"B", b"\0s\0\0\0\xff\xff\0\0"),
        "more formats than values": bind(b"", b"s", [b"1"], [0, 0, 0]),
        "a format that is none": bind(b"", b"s", [b"1"], [7]),
        "fewer values than parameters": bind(b"", b"s"),
        "a name without an end": message(b"D", b"Sno end"),
        "more types than there are": message(b"P", b"x\0select 1\0\xff\xff"),
        "an unknown type": parse(b"", b"select $1", [4_000_000_000]),
        "bytes behind the end": message(b"E", b"\0\0\0\0\0more"),
    }
    wire = Wire(door.port)
    wire.ask(parse(b"s", b"select $1::int4") + SYNC)
    for name, data in cases.items():
        kinds, states = wire.ask(data + SYNC)
        tally.check(name, len(states) == 1 and states[0] in {"08P01", "42704", "22023", "22P03", "0A000"}, (kinds, states))
    tally.equal("and on", wire.ask(bind(b"", b"s", [b"1"]) + execute(b"") + SYNC)[0], b"2DCZ")
    wire.close()
    door.others_are_served("lengths that lie")


def silence(door):
    """Clients that stop in the middle hold nobody up, and those that have not logged in are sent away."""
    quiet = []
    for data in (b"", HELLO[:1], HELLO[:9]):
        wire = Wire(door.port, None)
        wire.socket.sendall(data)
        quiet.append(wire)
    for data in (b"Q", b"Q\0\0", message(b"Q", b"select 1\0")[:8], message(b"Q", b"copy v from stdin\0") + b"d\0\0\1\0abc", parse(b"", b"select 1")):
        wire = Wire(door.port)
        wire.socket.sendall(data)
        quiet.append(wire)
    # One that never reads.
    wire = Wire(door.port)
    wire.socket.sendall(message(b"Q", b"select repeat('x', 1000) from generate_series(1, 10000000)\0"))
    quiet.append(wire)
    door.others_are_served("silent clients")
    began = time.monotonic()
    for wire in quiet[:3]:
        try:
            while wire.one():
                pass
        except (EOFError, OSError):
            pass
    tally.check("who has not logged in is sent away", time.monotonic() - began < 20)
    for wire in quiet:
        wire.close()
    door.others_are_served("silent clients that have left")


def many(door, count):
    """Prepared statements, portals, parameters and messages without end in one session."""
    wire = Wire(door.port)

    def states_of(data, name):
        # A thread writes, so that replies do not fill the sockets.
        writer = threading.Thread(target=wire.socket.sendall, args=(data,))
        writer.start()
        found = wire.until(b"Z")
        writer.join()
        tally.check(f"{name}: clear", set(found[1]) <= ERRORS and door.lives(), found[1][:3])
        return found

    for total in (1_000, count):
        wire.ask(message(b"Q", b"deallocate all\0"))
        kinds, states = states_of(b"".join(parse(b"s%d" % i, b"select %d" % i) for i in range(total)) + SYNC, f"{total:,} prepared statements")
        if not states:
            tally.equal(f"{total:,} prepared statements", kinds.count(b"1"), total)
            tally.equal("the last of them", wire.ask(bind(b"", b"s%d" % (total - 1)) + execute(b"") + SYNC)[0], b"2DCZ")
        kinds, states = states_of(parse(b"p", b"select 1") + b"".join(bind(b"p%d" % i, b"p") for i in range(total)) + execute(b"p0") + SYNC, f"{total:,} portals")
        if not states:
            tally.equal(f"{total:,} portals", (kinds.count(b"2"), kinds.count(b"D")), (total, 1))
        wire.ask(message(b"Q", b"deallocate all\0"))
        kinds, states = states_of(parse(b"p", b"select i from generate_series(1, 100) i") + b"".join(bind(b"p%d" % i, b"p") + execute(b"p%d" % i, 1) for i in range(min(total, 3_000))) + SYNC, f"{total:,} suspended portals")
        if not states:
            tally.equal(f"{total:,} suspended portals", kinds.count(b"s"), min(total, 3_000))
        wire.ask(message(b"Q", b"deallocate all\0"))
        kinds, states = states_of((parse(b"", b"select 1") + bind(b"", b"") + execute(b"")) * total + SYNC, f"{total:,} statements in one pipeline")
        tally.equal(f"{total:,} statements in one pipeline", kinds.count(b"D"), total)
        kinds, states = states_of(message(b"H") * total + message(b"C", b"Snone\0") * total + SYNC, f"{total:,} flushes and closes")
        tally.equal(f"{total:,} flushes and closes", kinds.count(b"3"), total)
    text = b"select " + b"+".join(b"$%d::int8" % i for i in range(1, 1_000))
    tally.equal("a sum of parameters", wire.ask(parse(b"", text) + bind(b"", b"", [b"1"] * 999) + execute(b"") + SYNC)[0], b"12DCZ")
    text = b"select count(*) from (values " + b",".join(b"($%d::int4)" % i for i in range(1, 65_536)) + b") v"
    kinds, states = wire.ask(parse(b"", text) + bind(b"", b"", [b"1"] * 65_535) + execute(b"") + SYNC)
    tally.equal("65,535 parameters", (kinds, states), (b"12DCZ", []))
    kinds, states = wire.ask(parse(b"", b"select $65536::int4") + SYNC)
    tally.check("one parameter more", len(states) == 1 and states[0] in ERRORS | {"42P02", "42P18"}, states)
    tally.check("a parameter of a great number", wire.ask(parse(b"", b"select $2147483648") + SYNC)[1] != [], "")
    wire.close()
    door.others_are_served("many statements and portals")


def copies(door, megabytes):
    """COPY of lines without an end, of lines without a meaning, of data that never ends."""
    door.text("drop table if exists c")
    door.text("create table c (a text, b int4)")
    piece = message(b"d", b"x" * (1 << 20))
    long = {
        "a line without an end": [piece] * megabytes,
        "a field of backslashes": [message(b"d", b"\\\\" * (1 << 19))] * min(megabytes, 300),
        "delimiters alone": [message(b"d", b"\t" * (1 << 20))] * min(megabytes, 50),
        "empty lines": [message(b"d", b"\n" * (1 << 20))] * 4,
        "a byte in a message": [message(b"d", b"1")] * 100_000,
        "empty messages": [message(b"d")] * 100_000,
    }
    for options in (b"", b" (format csv)", b" (format binary)"):
        for name, data in long.items():
            wire = Wire(door.port)
            wire.socket.sendall(message(b"Q", b"copy c from stdin" + options + b"\0"))
            wire.until(b"G")
            failed = []

            def write():
                try:
                    for one in data:
                        wire.socket.sendall(one)
                    wire.socket.sendall(message(b"c"))
                except OSError as error:
                    failed.append(error)

            writer = threading.Thread(target=write)
            began = time.monotonic()
            writer.start()
            try:
                kinds, states = wire.until(b"Z")
                known = {"22P04", "22P02", "53200", "54000", "22021"}
                tally.check(f"COPY{options.decode()} of {name}", len(states) == 1 and states[0] in known or kinds == b"CZ", (kinds, states))
            except (EOFError, OSError) as error:
                tally.check(f"COPY{options.decode()} of {name}", False, repr(error))
            writer.join()
            wire.close()
            tally.check(f"COPY{options.decode()} of {name}: in bounded time", time.monotonic() - began < SLOWEST, time.monotonic() - began)
            door.others_are_served(f"COPY of {name}")
    draw = random.Random(3)
    for options, header in ((b"", b""), (b" (format csv, header)", b"a,b\n"), (b" (format binary)", b"PGCOPY\n\xff\r\n\0" + b"\0" * 8)):
        for _ in range(60):
            wire = Wire(door.port)
            wire.socket.sendall(message(b"Q", b"copy c from stdin" + options + b"\0"))
            wire.until(b"G")
            body = header + bytes(draw.choice(b"\0\1\2\xff\t\n\r\\\",.N1a") for _ in range(draw.randrange(60)))
            kinds, states = wire.ask(message(b"d", body) + message(b"c"))
            tally.check("COPY of anything", kinds in (b"CZ", b"EZ"), (kinds, states, body))
            wire.close()
    door.text("drop table c")


# Statements that are long in one stage each: parsing, binding, planning, running, sorting, sending, dropping.
LONG = [
    ("parse", lambda: "select " + "1 in (1), " * 1_000_000 + ")"),
    ("bind a select list", lambda: "select id" + ", id + 1" * 500_000 + " from t"),
    ("bind a list", lambda: "select 1 in (0" + ",1+1" * 600_000 + ")"),
    ("bind a condition", lambda: "select 7 from t where id = 0" + " or id + 1 = 3" * 300_000),
    ("plan ranges", lambda: "select 7 from t where id in (0" + ",1" * 1_500_000 + ")"),
    ("plan joins", lambda: "select count(*) from t a0" + "".join(f" join t a{i} on a{i}.id = a{i // 2}.id + {i}" for i in range(1, 60))),
    ("plan unions", lambda: "select 7" + " union select 7" * 60_000),
    ("run rows", lambda: "select count(*) from k a, k b, k c, k d"),
    ("run a series", lambda: "select count(*) from generate_series(1, 1000000000000)"),
    ("run a regular expression", lambda: "select repeat('a', 200000) ~ '(a|b|ab)*(bc|a)*c' from k a, k b, k c"),
    ("run a like", lambda: "select count(*) from k a, k b, k c where repeat('a', 20000) || a.a like '%a%a%a%b'"),
    ("run a numeric", lambda: "select length((repeat('9', 60000)::numeric * repeat('9', 60000)::numeric)::text) from k a, k b"),
    ("run a power", lambda: "select 1.000001::numeric ^ (100000 + a.a) from k a, k b, k c"),
    ("run a string", lambda: "select max(length(replace(repeat('ab', 4000000), 'b', 'cd'))) from k a, k b"),
    ("run an aggregate", lambda: "select a.a % 7, count(distinct b.a), string_agg(c.a::text, ',') from k a, k b, k c group by 1"),
    ("run a window", lambda: "select max(s) from (select sum(b.a) over (partition by a.a order by b.a, c.a) s from k a, k b, k c) w"),
    ("sort", lambda: "select a.a from k a, k b, k c order by a.a::text || b.a || c.a limit 1"),
    ("join by hash", lambda: "select count(*) from (select a.a, b.a c from k a, k b) x join (select a.a, b.a c from k a, k b) y on x.c = y.c"),
    ("recurse", lambda: "with recursive c(a) as (select 1 union all select a + 1 from c) select count(*) from c"),
    ("recurse to a set", lambda: "with recursive c(a) as (select 1 union select a + 1 from c) select count(*) from c"),
    ("sleep", lambda: "select pg_sleep(3600)"),
    ("send", lambda: "select repeat('x', 1000) from k a, k b, k c"),
    ("copy out", lambda: "copy (select repeat('x', 1000) from k a, k b, k c) to stdout"),
    ("insert", lambda: "insert into v values (1)" + ",(1)" * 1_500_000),
    ("insert and select", lambda: "insert into v select a.a from k a, k b, k c"),
    ("update", lambda: "update v set a = a + 1 where exists (select from k a, k b, k c where a.a + b.a + c.a < 0)"),
    ("create a table of rows", lambda: "create table q as select a.a from k a, k b, k c"),
    ("create an index", lambda: "begin; insert into big select a.a, b.a from k a, k b; create index on big (b, a)"),
    ("drop a tree", lambda: "select " + "(1+1)," * 600_000 + "7 from nowhere"),
]


def ended(door, long, delays):
    """A cancel request, statement_timeout and the client's departure end a statement in any of its stages."""
    door.text("drop table if exists k")
    door.text("create table k (a int4)")
    door.text("insert into k select generate_series(1, 1000)")
    door.text("create table if not exists big (a int4, b int4)")
    worst = (0.0, "")
    for name, make in long:
        text = make()
        changes = text.startswith(("insert", "update", "create", "begin"))
        # Rows that are on their way are read by the client first.
        bound = UNDONE if changes else 10 * ENDED if name in ("send", "copy out") else ENDED
        for after in delays:
            victim = psycopg.connect(host="127.0.0.1", port=door.port, user="postgres", dbname="hostile", sslmode="disable", autocommit=True)
            found = []

            def run(connection=victim, text=text):
                try:
                    if text.startswith("copy"):
                        with connection.cursor().copy(text) as copy:
                            for _ in copy:
                                pass
                    else:
                        connection.execute(text)
                    found.append((None, time.monotonic()))
                except psycopg.Error as error:
                    found.append((error.sqlstate, time.monotonic()))

            runs = threading.Thread(target=run)
            runs.start()
            runs.join(after)
            began = time.monotonic()
            # A request may come before the statement: it is sent until the statement has ended.
            while runs.is_alive() and time.monotonic() - began < 60:
                began = min(began, time.monotonic()) if found else time.monotonic()
                victim.cancel_safe(timeout=10)
                runs.join(0.2 if not changes else 2)
                if runs.is_alive() and time.monotonic() - began > bound:
                    runs.join(60)
            tally.check(f"{name}, cancelled after {after} s: an answer", bool(found))
            if not found:
                continue
            state, end = found[0]
            took = max(end - began, 0.0)
            tally.check(f"{name}, cancelled after {after} s: its state", state in {None, "57014"} | ERRORS | {"42P01"}, state)
            if state == "57014" and not changes:
                worst = max(worst, (took, f"{name}, cancelled after {after} s"))
            tally.check(f"{name}, cancelled after {after} s: ends soon", took < bound, f"{took:.3f} s")
            victim.close()
        began = time.monotonic()
        door.connection.exec_(b"set statement_timeout = 200")
        state, answer = door.answer(door.connection.exec_(text.encode())) if not text.startswith("copy") else ("57014", "")
        took = time.monotonic() - began
        tally.check(f"{name}, by statement_timeout", state in {None, "57014"} | ERRORS | {"42P01"}, (state, answer))
        tally.check(f"{name}, by statement_timeout: ends soon", took < 5 + (UNDONE if changes else 0), f"{took:.3f} s")
        door.connection.exec_(b"rollback")
        door.connection.exec_(b"set statement_timeout = '15s'")
        leave(door, name, text, changes)
        door.text("drop table if exists q")
        door.text("truncate v, big")
        door.others_are_served(name)
    print(f"slowest end: {worst[1]}, {worst[0]:.3f} s", flush=True)


def leave(door, name, text, changes):
    """The client leaves without a word in the middle of its statement."""
    wire = Wire(door.port)
    pid = wire_pid(wire)
    threading.Thread(target=lambda: quietly(wire.socket.sendall, message(b"Q", text.encode() + b"\0")), daemon=True).start()
    until = time.monotonic() + 10
    while time.monotonic() < until and door.text(f"select count(*) from pg_stat_activity where pid = {pid} and state = 'active'")[1] != b"1":
        time.sleep(0.01)
    began = time.monotonic()
    quietly(wire.socket.shutdown, socket.SHUT_RDWR)
    wire.close()
    # A statement that changes rows goes on without its client, so it is ended.
    if changes:
        door.text(f"select pg_terminate_backend({pid})")
    while time.monotonic() - began < 60 and door.text(f"select count(*) from pg_stat_activity where pid = {pid}")[1] != b"0":
        time.sleep(0.005)
    took = time.monotonic() - began
    tally.check(f"{name}, client gone: ends soon", took < (UNDONE if changes else 4 * ENDED), f"{took:.3f} s")


def wire_pid(wire):
    wire.socket.sendall(message(b"Q", b"select pg_backend_pid()\0"))
    pid = None
    while True:
        kind, body = wire.one()
        if kind == b"D":
            pid = int(body[6:])
        if kind == b"Z":
            return pid


def quietly(action, *values):
    try:
        action(*values)
    except OSError:
        pass


def mixed(door, seed, rounds):
    """Nestings within each other, chained and listed: whatever limit is met first, the process lives and the answer is an error or 7."""
    draw = random.Random(seed)
    wraps = [("(", ")"), ("abs(", ")"), ("coalesce(null, ", ")"), ("case when true then ", " end"), ("+ ", ""), ("(select ", ")"), ("cast(", " as int8)"), ("(select a from (select ", " a) d)"), ("0+", ""), ("", "+0"), ("", "*1"), ("", "::int8"), ("(with c as (select ", " a) select a from c)"), ("(select max(a) from (values (", ")) v(a))"), ("nullif(", ", 0)")]
    for turn in range(rounds):
        text = "7"
        for _ in range(draw.randrange(2, 40)):
            opens, closes = draw.choice(wraps)
            times = draw.choice((1, 1, 2, 3, 10, 30, 60, 500))
            if len(text) + times * (len(opens) + len(closes)) > 200_000:
                break
            text = opens * times + text + closes * times
        found, took = door.timed("mixed", lambda: door.text("select " + text))
        if not door.lives():
            print(text[:2000])
        judge(door, Shape(f"mixed, seed {seed} turn {turn}", None, seven), "text", len(text), found, took, False)


def prepare(port):
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", autocommit=True) as connection:
        connection.execute("drop database if exists hostile")
        connection.execute("create database hostile")
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="hostile", sslmode="disable", autocommit=True) as connection:
        for text in ("create table t (id int4 primary key)", "insert into t values (1)", "create table v (a int4)", "create table q2 (a int4)"):
            connection.execute(text)


def run(door, arguments):
    soak, only = arguments.soak, arguments.only
    whole = soak or arguments.all or only != ""
    counts = COUNTS_SOAK if soak else COUNTS_ALL if whole else COUNTS
    ways = ("text", "extended", "prepared", "view") if whole else ("text",)
    for shape in NESTED + CHAINS + LISTS + CHANGES:
        if only in shape.name:
            play(door, shape, [n for n in counts if n <= shape.largest], ways if shape not in CHANGES else ways[:2])
    for shape in GIANTS:
        if only in shape.name:
            play(door, shape, GIANT_COUNTS_ALL if whole else GIANT_COUNTS, ways[:1])
    parts = {
        "views of views": lambda: views_of_views(door, (300, 40) if soak else (60, 14) if whole else (30, 9)),
        "cuts": lambda: cuts(door, soak),
        "lies": lambda: lies(door),
        "silence": lambda: silence(door),
        "many": lambda: many(door, 100_000 if soak else 5_000 if whole else 1_000),
        "copies": lambda: copies(door, 600 if soak else 80 if whole else 10),
        "ended": lambda: ended(door, LONG if whole else LONG[::4], (0.02, 0.3, 1.5) if soak else (0.3,)),
        "mixed": lambda: mixed(door, arguments.seed, 3_000 if soak else 100 if whole else 40),
    }
    for name, part in parts.items():
        # Logins are given ten seconds.
        if only in name and (whole or name != "silence"):
            began = time.monotonic()
            part()
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    print(f"slowest: {door.slowest[1]}, {door.slowest[0]:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--only", default="")
    parser.add_argument("--port", type=int)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    if arguments.port:
        prepare(arguments.port)
        run(Door(arguments.port), arguments)
        tally.close()
    with Server("--memory", MEMORY, postgres=True) as server:
        prepare(server.postgres_port)
        run(Door(server.postgres_port, server), arguments)
        tally.check("the server stops by itself", server.terminate() == 0)
    tally.close()


if __name__ == "__main__":
    main()
