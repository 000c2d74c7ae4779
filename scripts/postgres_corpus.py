#!/usr/bin/env python3
"""Asks a PostgreSQL 16 server which statements follow its grammar, and writes the answers for the tests of crates/syntax.

    scripts/postgres_corpus.py PORT [--all FOLDER] [--texts FILE]      (user postgres, trust, on loopback)

Statements come from scripts/postgres_corpus/forms.txt, from every keyword in several places, and from damaging all those. A statement is sent in a Parse message: the server reads and analyses it, and runs nothing.

A line of a corpus file is `+<TAB>STATEMENT` for one that is accepted, else `STATE POSITION MESSAGE<TAB>STATEMENT`: POSITION is a character from 1, or 0 for none. \\n, \\t, \\r and \\\\ are escaped; in forms.txt a line
break is ⏎. Errors of the analysis (unknown tables and so on) are in the files too: the test tells them from those of the grammar.
--texts adds 1,500 lines of a file: the test `printed_random_statements_parse_to_themselves` writes the one that SYNTAX_TEXTS names. --all writes all statements to a folder; otherwise a selection goes to crates/syntax/tests/corpus_postgres.
"""
import random
import re
import socket
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "crates/syntax/tests/corpus_postgres"


class Connection:
    """As much of the wire protocol as Parse needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")
        body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.until_ready()

    def until_ready(self):
        error = None
        while True:
            kind = self.file.read(1)
            body = self.file.read(struct.unpack("!I", self.file.read(4))[0] - 4)
            if kind == b"E":
                fields = (field.decode() for field in body.split(b"\0") if field)
                error = {field[0]: field[1:] for field in fields}
            elif kind == b"Z":
                return error

    def parse(self, text):
        """The fields of the error; None: accepted."""
        body = b"\0" + text.encode() + b"\0" + struct.pack("!H", 0)
        self.socket.sendall(b"P" + struct.pack("!I", len(body) + 4) + body + b"S" + struct.pack("!I", 4))
        return self.until_ready()

    def keywords(self):
        """Asks for pg_get_keywords()."""
        self.socket.sendall(b"Q" + (lambda body: struct.pack("!I", len(body) + 4) + body)(b"select word from pg_get_keywords()\0"))
        words = []
        while True:
            kind = self.file.read(1)
            body = self.file.read(struct.unpack("!I", self.file.read(4))[0] - 4)
            if kind == b"D":
                words.append(body[6:].decode())
            elif kind == b"Z":
                return sorted(words)


PLACES = [
    "select {}", "select 1 {}", "select 1 as {}", "select a.{}", "select {}.a", "select {}(1)", "select {} 'x'", "select 1::{}",
    "select 1 from {}", "select 1 from t {}", "select 1 from t as {}", "select 1 from {}.t", "select 1 from {}(1)", "insert into t ({}) values (1)",
    "update t set {} = 1", "update {} set a = 1", "update t {} set a = 1", "delete from t {}", "create table {} (a int)", "create table t ({} int)",
    "alter table t drop {}", "alter table t add {} int", "alter table t alter {} drop default", "set {} = 1", "set a = {}", "show {}", "reset {}",
    "fetch {} from c", "fetch {}", "declare {} cursor for select 1", "create role {}", "grant {} to b", "grant select on {} to b", "drop table {}", "drop function {}",
    "create index {} on t (a)", "create index on t ({})", "create index on t (a {})", "copy t from stdin {}", "copy t from stdin ({})",
    "explain ({}) select 1", "savepoint {}", "prepare {} as select 1", "create schema {}", "create view {} as select 1", "select f({} => 1)",
    "select extract({} from a)", "{}", "{} a", "with {} as (select 1) select 1", "select sum(1) over {}", "select 1 from t order by a {}",
    "create table t (a int {})", "create table t (a {})", "create {}", "alter {}", "drop {}", "comment on {}", "grant select on {} a to b", "create table t (a int) with ({})",
    "create table t (a int) with (a = {})", "create sequence s {}", "alter table t {}", "create database d {}", "cluster {}", "vacuum {}", "select 1 where a {} b", "select {} a",
]


def words_in_places(keywords):
    for word in keywords + ["word", '"quoted"', "5", "1.5", "'string'", "(", ")", "*", "+", "||", "=", "$1", "[", ",", "."]:
        for place in PLACES:
            yield place.replace("{}", word)


TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+|::|:=|=>|<=|>=|<>|!=|\$\$|.", re.S)


def damaged(texts, dice, times):
    """Statements with a token that is gone, twice, moved, or another one."""
    pool = [token for text in texts for token in TOKEN.findall(text) if not token.isspace()]
    for text in texts:
        for _ in range(times):
            tokens = [token for token in TOKEN.findall(text)]
            solid = [place for place, token in enumerate(tokens) if not token.isspace()]
            if not solid:
                continue
            place = dice.choice(solid)
            match dice.randrange(6):
                case 0:
                    tokens[place] = ""
                case 1:
                    tokens[place] += " " + tokens[place]
                case 2:
                    tokens[place] = dice.choice(pool)
                case 3:
                    tokens[place] += " " + dice.choice(pool)
                case 4:
                    other = dice.choice(solid)
                    tokens[place], tokens[other] = tokens[other], tokens[place]
                case _:
                    tokens = tokens[:place]
            yield "".join(tokens)


def escaped(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def main():
    connection = Connection(int(sys.argv[1]))
    everything = "--all" in sys.argv
    folder = Path(sys.argv[sys.argv.index("--all") + 1]) if everything else TARGET
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(16)
    forms = [line.replace("⏎", "\n") for line in (ROOT / "scripts/postgres_corpus/forms.txt").read_text().splitlines() if line]
    words = list(dict.fromkeys(words_in_places(connection.keywords())))
    if not everything:
        words = dice.sample(words, 4000)
    origins = {"forms": forms, "words": words, "damaged": list(damaged(forms, dice, 30 if everything else 3))}
    if "--texts" in sys.argv:
        lines = Path(sys.argv[sys.argv.index("--texts") + 1]).read_text().splitlines()
        origins["random"] = lines if everything else dice.sample(lines, 1500)
    for origin, texts in origins.items():
        lines = []
        for text in dict.fromkeys(texts):
            error = connection.parse(text)
            answer = "+" if error is None else f"{error['C']} {error.get('P', 0)} {escaped(error['M'])}"
            lines.append(f"{answer}\t{escaped(text)}")
        (folder / f"{origin}.txt").write_text("\n".join(lines) + "\n")
        print(origin, len(lines))


if __name__ == "__main__":
    main()
