"""GIN indexes over random arrays and documents, beside a table without indexes and a PostgreSQL 16, under changes at both SQL doors and kill -9.

Three tables get the same changes: one with indexes that come and go, one without, and one with the same indexes of a PostgreSQL (scripts/postgres.sh; without it the two are compared). Each query must give the same rows of all, or fail
alike; some are prepared, and some join with a table of other sides. Some changes are written at the MySQL door. After a kill -9 the tables hold what was acknowledged, and `beluga check` finds each entry that there must be, and no other.

    postgres_gin.py [--seed N] [--rounds N]
"""

import os
import random
import subprocess
import tempfile
import threading

import psycopg
import pymysql

from beluga import Server, Tally, free_port, rounds_and_seed
from sql import come

rounds, seed = rounds_and_seed(2)
tally = Tally()
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/postgres.sh")
STEPS = 150
NAMES = ["a", "b", "c", "", "ä", "a b"]
NUMBERS = ["0", "1", "1.0", "1.00", "-1", "10", "1e1", "1.5", "12345678901234567890"]
ARRAYS = {"tags": ("int[]", ["1", "2", "3", "4", "05", "null"]), "words": ("text[]", ["a", "b", '"a b"', '""', "NULL", '"NULL"', "ä"]), "amounts": ("numeric[]", ["1", "1.0", "1.00", "2", "NaN", "null", "0", "-0"])}
CLASSES = ["(tags)", "(tags array_ops)", "(words)", "(amounts)", "(doc)", "(doc jsonb_ops)", "(doc jsonb_path_ops)", "((doc -> 'a'))", "((doc -> 'a') jsonb_path_ops)", "(doc) where id > 30", "(tags) where mod(id, 2) = 0"]
# The MySQL door writes no rows of a table whose indexes have expressions or predicates of the other door.
PLAIN_CLASSES = [text for text in CLASSES if "->" not in text and "where" not in text]


def string(rng):
    return '"' + rng.choice(NAMES) + '"'


def scalar(rng, plain=False):
    kind = rng.random()
    if kind < 0.4:
        return string(rng)
    if kind < 0.8:
        return str(rng.randrange(4)) if plain else rng.choice(NUMBERS)
    return rng.choice(["null", "true", "false"])


def document(rng, depth=3, plain=False):
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return scalar(rng, plain)
    parts = [document(rng, depth - 1, plain) for _ in range(rng.randrange(4))]
    if kind < 0.5:
        return "[" + ", ".join(parts) + "]"
    return "{" + ", ".join(f"{string(rng)}: {part}" for part in parts) + "}"


def array(rng, column):
    values = ARRAYS[column][1]
    parts = [rng.choice(values) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5]))]
    if len(parts) == 2 and rng.random() < 0.2:
        return "{{%s},{%s}}" % tuple(parts)
    return "{" + ",".join(parts) + "}"


def name(rng):
    return rng.choice(NAMES)


def names(rng):
    parts = [f"'{name(rng)}'" if rng.random() < 0.9 else "null" for _ in range(rng.randrange(4))]
    return f"array[{', '.join(parts)}]::text[]"


def path(rng, depth=2):
    text = "$" if depth == 2 or rng.random() < 0.2 else "@"
    for _ in range(rng.randrange(4)):
        kind = rng.random()
        if kind < 0.5:
            text += "." + string(rng)
        elif kind < 0.8:
            text += rng.choice(["[*]", "[0]", "[last]", ".*", ".**", ".**{1 to 2}"])
        elif kind < 0.95 and depth:
            text += f" ? ({path_condition(rng, depth - 1)})"
        else:
            text += rng.choice([".size()", ".type()", ".double()"])
    return text


def path_condition(rng, depth):
    if depth and rng.random() < 0.4:
        sides = path_condition(rng, depth - 1), path_condition(rng, depth - 1)
        return rng.choice(["({} && {})", "({} || {})", "!({})", "({}) is unknown"]).format(*sides)
    side, kind = path(rng, depth), rng.random()
    if kind < 0.6:
        return rng.choice(["{} == {}", "{1} == {0}"]).format(side, scalar(rng))
    if kind < 0.8:
        return f"{side} {rng.choice(['<', '<=', '>', '!='])} {scalar(rng)}"
    return rng.choice(["exists({})", '{} starts with "a"', '{} like_regex "^a"']).format(side)


def whole_path(rng):
    mode = rng.choice(["", "", "", "strict "])
    if rng.random() < 0.5:
        return mode + path(rng)
    return mode + path_condition(rng, 2).replace("@", "$")


def test(rng):
    """Returns a test as (text with a place for the other side, the other side, its type)."""
    if rng.random() < 0.4:
        column = rng.choice(list(ARRAYS))
        operator = rng.choice(["@>", "<@", "&&", "="])
        text = f"{{}} {operator} {column}" if rng.random() < 0.15 else f"{column} {operator} {{}}"
        return text, array(rng, column), ARRAYS[column][0]
    side = "(doc -> 'a')" if rng.random() < 0.3 else "doc"
    match rng.choice(["@>", "@>", "<@", "turned", "?", "?|", "?&", "@?", "@?", "@@", "@@"]):
        case "turned":
            return f"{{}} <@ {side}", document(rng, 2), "jsonb"
        case "?":
            return f"{side} ? {{}}", name(rng), "text"
        case "?|" | "?&" as operator:
            return f"{side} {operator} {names(rng)}", None, None
        case "@?" | "@@" as operator:
            return f"{side} {operator} {{}}", whole_path(rng), "jsonpath"
        case operator:
            return f"{side} {operator} {{}}", document(rng, 2), "jsonb"


def condition(rng, depth=1):
    """Returns a condition as (text, the values of its places)."""
    kind = rng.random()
    if depth and kind < 0.35:
        (one, some), (other, more) = condition(rng, 0), condition(rng, 0)
        return f"({one} {rng.choice(['and', 'or'])} {other})", some + more
    if kind < 0.42:
        return rng.choice(["mod(id, 2) = 0", "id > 30", "tags is null", "id < 10", "not doc ? 'a'"]), []
    text, other, ty = test(rng)
    return (text.format(f"%s::{ty}"), [other]) if ty else (text, [])


def filled(text, values):
    return text % tuple("'" + value.replace("'", "''") + "'" for value in values) if values else text


class Play:
    """The tables at each side: (connection, name)."""

    def __init__(self, rng, wires, mysql, classes=CLASSES):
        self.classes = classes
        self.rng, self.ours, self.mysql, self.indexes, self.made, self.used = rng, wires[0], mysql, [], 0, 0
        self.tables = [(wires[0], "keyed"), (wires[0], "plain"), *((wire, "keyed") for wire in wires[1:])]
        self.keyed = [wire for wire, table in self.tables if table == "keyed"]

    @staticmethod
    def ask(wire, text, values=None, **more):
        try:
            cursor = wire.execute(text, values or None, **more)
            return (cursor.fetchall() if cursor.description else cursor.rowcount), None
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            return None, error.sqlstate

    def all(self, text, values=None, **more):
        """Returns the answers of all tables, which must be the same."""
        answers = [self.ask(wire, text.replace("TABLE", table), values, **more) for wire, table in self.tables]
        tally.check(f"{text} {values or ''}", all(answer == answers[0] for answer in answers), answers)
        return answers[0]

    def begin(self):
        columns = ", ".join(f"{column} {ty}" for column, (ty, _) in ARRAYS.items())
        self.all("drop table if exists TABLE")
        self.all(f"create table TABLE (id int primary key, note text, doc jsonb, {columns})")
        for wire in {id(wire): wire for wire in self.keyed}.values():
            wire.execute("drop table if exists asked")
            wire.execute("create table asked (n int primary key, doc jsonb, tags int[])")
        for n in range(12):
            row = f"({n}, {self.document()}, {self.array('tags')})"
            for wire in self.keyed:
                wire.execute(f"insert into asked values {row}")

    def create_index(self):
        self.made += 1
        text = f"create index {self.rng.choice(['', '', 'concurrently '])}i{self.made} on keyed using gin {self.rng.choice(self.classes)}"
        for wire in self.keyed:
            wire.execute(text)
        self.indexes.append(f"i{self.made}")

    def drop_index(self):
        if self.indexes:
            index = self.indexes.pop(self.rng.randrange(len(self.indexes)))
            for wire in self.keyed:
                wire.execute(f"drop index {index}")

    def document(self):
        return "null" if self.rng.random() < 0.1 else f"'{document(self.rng)}'"

    def array(self, column):
        return "null" if self.rng.random() < 0.1 else f"'{array(self.rng, column)}'"

    def row(self):
        return ", ".join([str(self.rng.randrange(80)), "'n'", self.document(), *(self.array(column) for column in ARRAYS)])

    def change(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.1 and self.mysql:
            return self.change_at_mysql()
        if kind < 0.5:
            conflict = rng.choice(["do nothing", "do update set doc = excluded.doc", "do update set tags = excluded.tags, note = 'o'"])
            text = f"insert into TABLE values ({self.row()}) on conflict (id) {conflict}"
        elif kind < 0.85:
            sets = rng.choice([f"doc = {self.document()}", f"tags = {self.array('tags')}, words = {self.array('words')}", "tags = case when array_ndims(tags) = 1 then tags || 3 end", "note = note || 'x'", f"amounts = {self.array('amounts')}", "id = id + 200"])
            text = f"update TABLE set {sets} where {filled(*condition(rng))} and id < 200"
            if "id + 200" in sets:
                text += f" and id = {rng.randrange(80)} and not exists (select 1 from TABLE o where o.id = TABLE.id + 200)"
        else:
            text = f"delete from TABLE where {filled(*condition(rng))} and id % 3 = {rng.randrange(3)}"
        end = "rollback" if rng.random() < 0.15 else "commit"
        for wire in self.keyed:
            wire.execute("begin")
        self.all(text)
        if end == "rollback":
            self.query()
        for wire in self.keyed:
            wire.execute(end)

    def change_at_mysql(self):
        """Writes at the MySQL door; the PostgreSQL gets the same as its own statement. The door has no arrays, but keeps those of the rows that it changes."""
        rng = self.rng
        number, text = rng.randrange(80), document(rng, plain=True)
        of_mysql, of_postgres = rng.choice([
            (f"update TABLE set doc = '{text}' where id = {number}",) * 2,
            (f"update TABLE set note = 'mine' where id < {number}",) * 2,
            (f"update TABLE set doc = null, note = 'mine' where id = {number}",) * 2,
            (f"delete from TABLE where id = {number}",) * 2,
            (f"insert into TABLE (id, doc) values ({number}, '{text}') on duplicate key update doc = values(doc)", f"insert into TABLE (id, doc) values ({number}, '{text}') on conflict (id) do update set doc = excluded.doc"),
        ])
        for wire, table in self.tables:
            if wire is not self.ours:
                wire.execute(of_postgres.replace("TABLE", table))
                continue
            with self.mysql.cursor() as cursor:
                try:
                    cursor.execute(of_mysql.replace("TABLE", table))
                except pymysql.Error as error:
                    tally.check(f"{of_mysql}: {error}", error.args[0] == 1235 and table == "keyed" and self.classes is CLASSES)
                    wire.execute(of_postgres.replace("TABLE", table))

    def query(self):
        rng = self.rng
        text, values = condition(rng)
        kind = rng.random()
        if kind < 0.15:
            side = rng.choice(["t.doc @> q.doc", "t.tags @> q.tags", "t.tags && q.tags", "q.doc <@ t.doc", "t.tags = q.tags", "t.tags <@ q.tags"])
            self.all(f"select t.id, q.n from asked q join TABLE t on {side} order by 1, 2")
        elif kind < 0.4:
            for _ in range(3):
                self.all(f"select id, note from TABLE where {text} order by id", values, prepare=True)
        elif kind < 0.5:
            self.all(f"select count(*), min(id) from TABLE where {filled(text, values)}")
        else:
            self.all(f"select id from TABLE where {filled(text, values)} order by id{rng.choice(['', '', ' desc', ' limit 3', ' for update'])}")
        if rng.random() < 0.2:
            plan, _ = self.ask(self.ours, "explain select id from keyed where " + filled(text, values))
            self.used += any("Bitmap Index Scan on i" in line for (line,) in plan or [])

    def step(self):
        kind = self.rng.random()
        if kind < 0.03 and len(self.indexes) < 8:
            self.create_index()
        elif kind < 0.05:
            self.drop_index()
        elif kind < 0.5:
            self.change()
        else:
            self.query()

    def same(self):
        self.all("select id, note, doc::text, tags::text, words::text, amounts::text from TABLE order by id")
        wires = [self.ask(wire, "select indexdef from pg_indexes where tablename = 'keyed' order by 1") for wire in self.keyed]
        tally.check("the definitions are the same", all(found == wires[0] for found in wires), wires)


def connect(port, database="gin"):
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname=database, autocommit=True, sslmode="disable")


def play(server, theirs, number):
    rng = random.Random(f"{seed} {number}")
    wires = [connect(server.postgres_port), *([connect(theirs)] if theirs else [])]
    mysql = come(server, database="gin")
    one = Play(rng, wires, mysql, CLASSES if number % 2 else PLAIN_CLASSES)
    one.begin()
    # Plans are those of many rows.
    one.all("insert into TABLE (id, note, doc, tags, words) select g, 'many', jsonb_build_object('n', g, 'a', jsonb_build_array(g % 7)), array[g], array['w' || g % 90] from generate_series(1000, 2000) g")
    for _ in range(6):
        one.create_index()
    for wire in one.keyed:
        wire.execute("analyze keyed")
    for _ in range(STEPS):
        one.step()
    one.same()
    for wire in wires:
        wire.close()
    mysql.close()
    return one.used


def check(server, name):
    checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=300)
    tally.check(f"{name}: beluga check", checked.returncode == 0, checked.stdout[-700:] + checked.stderr[-500:])


def crash(server, number):
    """Changes both tables, and makes and drops indexes, until the server is killed; both must have the same afterwards."""
    rng = random.Random(f"{seed} {number} crash")
    one = Play(rng, [connect(server.postgres_port)], None)
    one.begin()
    for table in ("keyed", "plain"):
        one.ours.execute(f"insert into {table} (id, doc, tags) select g, jsonb_build_object('n', g, 'a', array[g, g + 1]), array[g, g + 1, g + 2] from generate_series(1000, 1600) g")
    for _ in range(4):
        one.create_index()
    reached, changes, wanted = threading.Event(), 0, rng.randrange(20, 80)

    def work():
        nonlocal changes
        try:
            while True:
                changes += 1
                if changes == wanted:
                    reached.set()
                if rng.random() < 0.3 or changes >= wanted:
                    one.create_index()
                    one.drop_index()
                one.change()
        except psycopg.Error as error:
            if error.sqlstate is not None:
                tally.check(f"crash {number}", False, error)
        finally:
            reached.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    reached.wait(60)
    # In the middle of an index, a change, or between them.
    threading.Event().wait(rng.random() * 0.05)
    server.kill()
    thread.join(20)
    check(server, f"crash {number}")
    server.start()
    after = Play(rng, [connect(server.postgres_port)], None)
    after.same()
    for _ in range(60):
        after.query()
    after.create_index()
    for _ in range(30):
        after.change()
        after.query()


def main():
    used = 0
    with Server(mysql=True, postgres=True) as server, tempfile.TemporaryDirectory(prefix="beluga-postgres-") as folder:
        theirs = None
        if subprocess.run([SCRIPT, "install"], check=False).returncode == 0:
            theirs = free_port()
            subprocess.run([SCRIPT, "start", folder, str(theirs)], check=True, stdout=subprocess.DEVNULL)
        try:
            for port in [server.postgres_port, *([theirs] if theirs else [])]:
                with connect(port, "postgres") as wire:
                    wire.execute("create database gin")
            for number in range(rounds):
                used += play(server, theirs, number)
                crash(server, number)
            server.terminate()
            check(server, "at the end")
        finally:
            if theirs:
                subprocess.run([SCRIPT, "stop", folder], check=False, stdout=subprocess.DEVNULL)
    print(f"{used} of the plans that were looked at use an index" + ("" if theirs else "; no PostgreSQL to compare with"))
    tally.check("plans use the indexes", used > 0, used)
    tally.close()


main()
