#!/usr/bin/env python3
"""Collects SQL statements, asks a MySQL server which of them follow its grammar, and writes the verdicts for the tests of crates/syntax.

    scripts/syntax_corpus.py PORT [--all FOLDER]      (root without a password on loopback)

Statements come from the repository, from the templates in scripts/syntax_corpus/*.txt, from every keyword in several places, and from damaging all those. A statement is sent as a prepared
statement: the server reads it and runs nothing. Error 1064 is a refusal, everything else is not.

A line of a corpus file is `+ STATEMENT` or `-AT STATEMENT`: AT is the byte that the server's message names. \\n, \\r, \\0 and \\\\ are escaped.
--all writes all statements to a folder; otherwise a selection goes to crates/syntax/tests/corpus.
"""
import os
import random
import re
import socket
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "crates/syntax/tests/corpus"
LONGEST = 1200


class Connection:
    """As much of MySQL's protocol as PREPARE needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.packet()
        # LONG_PASSWORD, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH
        flags = 1 | 4 | 8 | 0x200 | 0x2000 | 0x8000 | 0x80000
        body = struct.pack("<IIB23x", flags, 1 << 24, 255) + b"root\0\0mysql\0caching_sha2_password\0"
        self.send(body, 1)
        while True:
            answer = self.packet()
            if answer[0] == 0:
                break
            if answer[0] == 0xFF:
                raise SystemExit(answer)
            if answer[0] == 0xFE:
                self.send(b"", self.sequence + 1)

    def packet(self):
        head = self.file.read(4)
        self.sequence = head[3]
        return self.file.read(int.from_bytes(head[:3], "little"))

    def send(self, body, sequence=0):
        self.socket.sendall(len(body).to_bytes(3, "little") + bytes([sequence]) + body)

    def prepare(self, text):
        """The number of the error and its message; 0: none."""
        self.send(b"\x16" + text.encode())
        answer = self.packet()
        if answer[0] == 0xFF:
            return int.from_bytes(answer[1:3], "little"), answer[9:].decode("utf8", "replace")
        statement, columns, parameters = struct.unpack("<IHH", answer[1:9])
        for count in (parameters, columns):
            for _ in range(count + 1 if count else 0):
                self.packet()
        self.send(b"\x19" + struct.pack("<I", statement))
        return 0, ""


def offset(text, message):
    """The byte of the text that the message names; None: unknown."""
    found = re.search(r"right syntax to use near '(.*)' at line (\d+)$", message, re.S)
    if not found:
        return None
    near, line = found.group(1), int(found.group(2))
    trimmed = text.rstrip("; \t\n\r")
    if trimmed.endswith(near) and len(near) < 80:
        return len(trimmed[: len(trimmed) - len(near)].encode())
    places = [at for at in range(len(text)) if text.startswith(near, at) and text.count("\n", 0, at) + 1 == line]
    return len(text[: places[0]].encode()) if places and len(near) == 80 else None


# Templates: «optional», ‹one|other›.

def parse_template(text, at=0, closes=""):
    parts, plain = [], ""
    alternatives = []
    while at < len(text):
        letter = text[at]
        if letter in closes:
            break
        if letter == "|" and closes == "›":
            parts.append(plain)
            alternatives.append(parts)
            parts, plain = [], ""
            at += 1
        elif letter in "«‹":
            parts.append(plain)
            plain = ""
            inner, at = parse_template(text, at + 1, "»" if letter == "«" else "›")
            parts.append(("optional", inner[0]) if letter == "«" else ("one", inner))
            at += 1
        else:
            plain += letter
            at += 1
    parts.append(plain)
    alternatives.append(parts)
    return alternatives, at


def points(parts, path=()):
    for nth, part in enumerate(parts):
        if isinstance(part, tuple):
            kind, inner = part
            here = path + (nth,)
            if kind == "optional":
                yield here, "optional", 1
                yield from points(inner, here)
            else:
                yield here, "one", len(inner)
                for which, each in enumerate(inner):
                    yield from points(each, here + (f"a{which}",))


def render(parts, choices, default, path=()):
    out = ""
    nth = 0
    while nth < len(parts):
        part = parts[nth]
        here = path + (nth,)
        if isinstance(part, str):
            out += part
        elif part[0] == "optional":
            times = choices.get(here, default)
            text = render(part[1], choices, default, here)
            if times == "swap":
                others = [n for n in range(nth + 1, len(parts)) if isinstance(parts[n], tuple)]
                if others:
                    other = others[0]
                    kind, inner = parts[other]
                    later = render(inner if kind == "optional" else inner[0], choices, default, path + (other,))
                    out += " " + later + " " + "".join(p for p in parts[nth + 1 : other] if isinstance(p, str)) + " " + text + " "
                    nth = other
            else:
                out += (text + " ") * int(times)
        else:
            which = choices.get(here, 0)
            out += render(part[1][which], choices, default, here + (f"a{which}",))
        nth += 1
    return out


def expand(template):
    if "«" not in template and "‹" not in template:
        return [template]
    (parts, *_), _ = parse_template(template)
    found = list(points(parts))
    out = [render(parts, {}, 0), render(parts, {}, 1)]
    for path, kind, count in found:
        # Its enclosing construct must exist.
        around = {}
        for length in range(1, len(path)):
            step = path[length]
            around[path[:length]] = int(step[1:]) if isinstance(step, str) else 1
        if kind == "optional":
            out.append(render(parts, {**around, path: 1}, 0))
            out.append(render(parts, {**around, path: 0}, 1))
            out.append(render(parts, {**around, path: 2}, 0))
            out.append(render(parts, {**around, path: "swap"}, 0))
        else:
            for which in range(count):
                out.append(render(parts, {**around, path: which}, 0))
                out.append(render(parts, {**around, path: which}, 1))
    return [re.sub(r"[ \t]+", " ", text).strip() if "'" not in text and '"' not in text else text.strip() for text in out]


def templates(folder):
    for path in sorted(folder.glob("*.txt")):
        raw = path.stem.startswith("raw")
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("## "):
                line = line.replace("\\n", "\n")
                yield from ((path.stem, text) for text in ([line] if raw else expand(line)))


FIRST = "SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|SET|SHOW|BEGIN|START|COMMIT|ROLLBACK|GRANT|REVOKE|LOAD|WITH|REPLACE|EXPLAIN|DESCRIBE|DESC|CALL|LOCK|" \
        "UNLOCK|ANALYZE|FLUSH|TRUNCATE|RENAME|USE|PREPARE|EXECUTE|DEALLOCATE|KILL|SAVEPOINT|RELEASE|DO|TABLE|VALUES|CHECK|OPTIMIZE|REPAIR|CHECKSUM|XA|HANDLER|RESET"
IS_SQL = re.compile(rf"\s*\(?\s*({FIRST})\b[\s*(]", re.I)


def repository():
    for path in sorted((ROOT / "crates/sql-mysql/tests/scenarios").glob("*.txt")):
        for block in path.read_text().split("\n\n"):
            lines = [line for line in block.splitlines() if not line.startswith("# ")]
            statement = []
            for line in lines:
                statement.append(line)
                if line.rstrip().endswith(";"):
                    text = "\n".join(statement)
                    yield "scenarios", re.sub(r"^\w+: ", "", text).rstrip(";")
                    break
    for path in sorted(ROOT.glob("tests/clients/**/*")) + sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("crates/bench/src/**/*")) \
            + sorted(ROOT.glob("crates/*/src/**/*.rs")) + sorted(ROOT.glob("crates/*/tests/it/**/*.rs")):
        if not path.is_file() or "node_modules" in path.parts or "syntax" in path.parts:
            continue
        if path.suffix in {".sql", ".slt"}:
            text = path.read_text()
            for piece in re.split(r";[ \t]*\n|\n\n|\n(?:query|statement)[^\n]*\n|\n----\n", text):
                piece = re.sub(r"^(--|#)[^\n]*\n", "", piece, flags=re.M).strip()
                if IS_SQL.match(piece):
                    yield "repository", piece.rstrip(";")
        elif path.suffix in {".py", ".java", ".go", ".js", ".mjs", ".php", ".rs", ".md", ".txt"}:
            text = path.read_text(errors="replace")
            for found in re.finditer(r'"""(.*?)"""|"((?:[^"\\\n]|\\.|\\\n)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`([^`]*)`', text, re.S):
                piece = next(group for group in found.groups() if group is not None)
                piece = piece.replace('\\"', '"').replace("\\'", "'").replace("\\n", "\n").replace("\\\\", "\\")
                piece = re.sub(r"\\\n\s*", "", piece)
                if IS_SQL.match(piece):
                    piece = re.sub(r"\{\w*\}|\$\{[^}]*\}|%[sd]", "x", piece) if random.random() < 0.9 else piece
                    yield "repository", piece.strip().rstrip(";")


WORD_PLACES = ["SELECT {}", "SELECT 1 {}", "SELECT 1 AS {}", "SELECT * FROM {}", "SELECT * FROM t {}", "SELECT * FROM t AS {}", "SELECT t.{} FROM t",
               "SELECT {}.a FROM t", "CREATE TABLE t ({} INT)", "CREATE TABLE {} (a INT)", "SELECT {}(1)", "SELECT {}()", "SELECT {} (1, 2)", "UPDATE t SET {} = 1",
               "INSERT INTO t ({}) VALUES (1)", "SET {} = 1", "SELECT @@{}", "SET @@{} = 1", "SELECT @{}", "SAVEPOINT {}", "ALTER TABLE t ADD {} INT",
               "ALTER TABLE t DROP {}", "CREATE INDEX {} ON t (a)", "CREATE USER {}", "CREATE ROLE {}", "SET ROLE {}", "WITH {} AS (SELECT 1) SELECT * FROM {}", "SELECT a {} FROM t",
               "SHOW {}", "CREATE {} x", "DROP {} x", "ALTER {} x", "{}", "{} x", "{} TABLE t", "FLUSH {}", "GRANT {} ON *.* TO u", "GRANT {} TO u", "SELECT * FROM t WHERE {} = 1 AND {} > 2",
               "SELECT COUNT(*) OVER {} FROM t WINDOW {} AS ()", "CREATE TABLE t (a {})", "ALTER TABLE t {} x", "CREATE TABLE t (a INT {})", "CREATE TABLE t (a INT) {}",
               "SELECT 1 FROM t {} x", "SELECT 1 + INTERVAL 1 {}", "SELECT CAST(1 AS {})", "SELECT EXTRACT({} FROM a)", "SELECT {} 'x'", "SET GLOBAL {} = ON", "SET x = {}", "USE {}",
               "EXPLAIN {} SELECT 1", "SHOW CREATE {} x", "SHOW {} STATUS", "SELECT 1 {} 2", "SELECT {} 2", "RESET {}", "START {}", "CALL {}", "CALL {}()", "KILL {} 1",
               "SELECT * FROM t PARTITION ({})", "CREATE TABLE t (a INT, KEY {} (a))", "CREATE TABLE t (a INT, CONSTRAINT {} CHECK (a))", "SELECT a COLLATE {} FROM t",
               "CREATE DATABASE {}", "DESCRIBE {}", "DESCRIBE t {}", "LOCK TABLES t {}", "DELETE FROM {}", "ANALYZE {} t", "BEGIN {}", "COMMIT {}", "PREPARE {} FROM 'x'", "EXECUTE {}"]


def words(connection):
    # Keywords of the server and of crates/syntax.
    text = (ROOT / "crates/syntax/src/mysql/keyword.rs").read_text()
    ours = re.search(r"keywords! \{(.*?)\n\}", text, re.S).group(1)
    all_words = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", ours))
    connection.send(b"\x03SELECT word FROM information_schema.keywords")
    columns = connection.packet()[0]
    for _ in range(columns + 1):
        connection.packet()
    while True:
        row = connection.packet()
        if row[0] == 0xFE and len(row) < 9:
            break
        all_words.add(row[1 : 1 + row[0]].decode())
    for word in sorted(all_words):
        for place in WORD_PLACES:
            yield "words", place.replace("{}", word)


TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|@@?[\w.$]+|/\*.*?\*/|\w+|<=>|<<|>>|<=|>=|<>|!=|:=|->>|->|&&|\|\||\S", re.S)


def damaged(text, pool):
    tokens = TOKEN.findall(text)
    if not tokens or len(tokens) > 120:
        return None
    at = random.randrange(len(tokens))
    how = random.randrange(7)
    if how == 0:
        del tokens[at]
    elif how == 1:
        tokens.insert(at, tokens[at])
    elif how == 2:
        other = min(at + 1, len(tokens) - 1)
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif how == 3:
        tokens = tokens[: at + 1]
    elif how == 4:
        tokens.insert(at, random.choice(pool))
    elif how == 5:
        tokens[at] = random.choice(pool)
    else:
        del tokens[at : at + random.randrange(1, 4)]
    return " ".join(tokens) if tokens else None


def escaped(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")


def main():
    random.seed(7)
    port, everything = int(sys.argv[1]), None
    if "--all" in sys.argv:
        everything = Path(sys.argv[sys.argv.index("--all") + 1])
    damages = int(os.environ.get("DAMAGES", "20000"))
    random.seed(int(os.environ.get("SEED", "7")))
    connection = Connection(port)
    found = {}

    def add(origin, text):
        text = text.strip()
        if text and len(text) <= LONGEST and not re.search(r"[\ud800-\udfff]", text):
            found.setdefault(text, origin)

    for origin, text in repository():
        add(origin, text)
    for origin, text in templates(ROOT / "scripts/syntax_corpus"):
        add(origin, text)
    sources = [text for text in found if len(text) < 400]
    pool = [token for text in sources for token in TOKEN.findall(text)]
    for _ in range(damages):
        text = damaged(random.choice(sources), pool)
        if text:
            add("damaged", text)
    if not os.environ.get("NO_WORDS"):
        for origin, text in words(connection):
            add(origin, text)
    kept = os.environ.get("KEEP")
    keep = set()
    if kept and Path(kept).exists():
        for line in Path(kept).read_text().split("\n"):
            if line:
                keep.add(unescaped(line))
                add("damaged", unescaped(line))
    lines, numbers = {}, {}
    for text, origin in found.items():
        if everything is None and text not in keep and origin in {"damaged", "words", "generated"}:
            share = {"damaged": 0.10, "words": 0.02, "generated": 1}[origin]
            if random.random() > share:
                continue
        number, message = connection.prepare(text)
        numbers[number] = numbers.get(number, 0) + 1
        # Errors that the server finds while it reads: what follows in a damaged statement is not read.
        if number == 1065 or origin == "damaged" and number in {1115, 1193, 1273, 1286, 1791, 3953}:
            continue
        mark = "+"
        if number == 1064:
            at = offset(text, message)
            mark = "-" if at is None else f"-{at}"
        lines.setdefault(origin, []).append(f"{mark} {escaped(text)}")
    folder = everything or TARGET
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for origin, each in lines.items():
        (folder / f"{origin}.txt").write_text("\n".join(sorted(each, key=lambda line: line.split(" ", 1)[1])) + "\n")
        print(origin, len(each), sum(line[0] == "+" for line in each), "accepted")
    print(sorted(numbers.items(), key=lambda pair: -pair[1])[:25])


def unescaped(line):
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r", "0": "\0"}.get(found.group(1), found.group(1)), line)


main()
