"""Clients, columns and files of other character sets than UTF-8, beside a real MySQL server: statements in the bytes of a client's set, with second bytes that are quotes and backslashes elsewhere; what columns take, how they
order, compare and show it; introducers, CONVERT, LOAD DATA, results in other sets; random texts of each set.

sql/charsets.golden holds what MySQL answered, for machines without one.

    mysql_charsets.py --record --mysql PORT     asks MySQL and writes sql/charsets.golden
    mysql_charsets.py --mysql PORT --seed N     other random texts; needs MySQL
    mysql_charsets.py --canary                  spoils one answer: must fail"""

import argparse
import json
import os
import random
import tempfile

import pymysql

from beluga import Server, Tally

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sql", "charsets.golden")
SEED = 20261126
# MySQL's set, Python's codec, words: of each set with characters whose second byte is a backslash, a quote or a letter where there are any.
SETS = {
    "gbk": ("gbk", ["中文", "誠", "運", "縗", "表", "镕", "Ａａ", "αΑ", "é", "abc", "Z"]), "gb2312": ("gb2312", ["中文", "表", "Ａａ", "あ", "abc"]), "gb18030": ("gb18030", ["中文", "誠", "€", "é", "😀", "㐂", "ǹ", "abc"]),
    "big5": ("big5", ["中文", "功", "許", "蓋", "愧", "餐", "abc"]), "sjis": ("shift_jis", ["表", "ソ", "能", "予", "ｱｲｳ", "あア", "ＡａAa", "abc"]), "cp932": ("cp932", ["表", "ソ", "①", "ｱｲｳ", "～", "abc"]),
    "ujis": ("euc_jp", ["表", "ソ", "丂", "ｱｲ", "あア", "abc"]), "eucjpms": ("euc_jp", ["表", "ソ", "丂", "ｱｲ", "abc"]), "euckr": ("euc_kr", ["한글", "가각", "漢字", "abc"]),
    "cp1250": ("cp1250", ["ąć", "Žž", "abc"]), "cp1251": ("cp1251", ["Привет", "Ёё", "abc"]), "cp1256": ("cp1256", ["سلام", "abc"]), "cp1257": ("cp1257", ["ąčę", "abc"]), "latin2": ("iso8859-2", ["ąć", "Ľľ", "abc"]),
    "latin5": ("iso8859-9", ["İıŞş", "abc"]), "latin7": ("iso8859-13", ["ąčę", "abc"]), "koi8r": ("koi8-r", ["Привет", "Ёё", "abc"]), "koi8u": ("koi8-u", ["Їжак", "abc"]), "greek": ("iso8859-7", ["Αθήνα", "abc"]),
    "hebrew": ("iso8859-8", ["שלום", "abc"]), "latin1": ("cp1252", ["é€", "ß", "abc"]),
}
# Sets of columns and results alone.
WIDE = {"utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be", "ucs2": "utf_16_be"}


class Connection:
    """A session whose statements and answers are bytes."""

    def __init__(self, port):
        self.connection = pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4", autocommit=True, local_infile=True, read_timeout=60, connect_timeout=60)
        for statement in (b"SET GLOBAL local_infile = 1", b"DROP DATABASE IF EXISTS charsets", b"CREATE DATABASE charsets", b"USE charsets"):
            self.ask(statement)

    def ask(self, statement):
        """Rows as hexadecimal, or the number of an error."""
        try:
            self.connection._execute_command(3, statement)
            result = pymysql.connections.MySQLResult(self.connection)
            result._decode_row = lambda row: row
            result._read_rowdata_packet = lambda: None
            result.read = result.read
            self.connection._result = result
            result._get_descriptions = lambda: self.skip_columns(result)
            result._read_rowdata_packet = lambda: self.read_rows(result)
            result.read()
            if result.field_count == 0:
                return result.affected_rows
            return result.rows
        except pymysql.err.MySQLError as error:
            return f"error {error.args[0]}"

    def skip_columns(self, result):
        self.labels = []
        for _ in range(result.field_count):
            packet = self.connection._read_packet()
            for _ in range(4):
                packet.read_length_coded_string()
            self.labels.append((packet.read_length_coded_string() or b"").hex())
        self.connection._read_packet()
        result.description = ()

    def read_rows(self, result):
        result.rows = [self.labels]
        while True:
            packet = self.connection._read_packet()
            if packet.is_eof_packet():
                result.warning_count = 0
                return
            row = [packet.read_length_coded_string() for _ in range(result.field_count)]
            result.rows.append([None if value is None else value.hex() for value in row])


def random_words(dice, codec, words, count):
    """Texts of characters near those of the words, that the codec has."""
    near = []
    for c in "".join(words):
        for at in range(ord(c) - 60, ord(c) + 60):
            try:
                chr(at).encode(codec)
                near.append(chr(at))
            except (UnicodeEncodeError, ValueError):
                pass
    # MySQL's greek has no U+037A, and its cp1256 none of these letters of Urdu.
    near = [c for c in near if c.isprintable() and c not in "\\'\"`%_?~\u203e\u00a5\uff3c\uff5e\u037a\u0679\u0688\u0691\u06a9\u06ba\u06be\u06c1\u06d2"]
    return ["".join(dice.choice(near) for _ in range(dice.randint(1, 4))) for _ in range(count)]


def escaped(word):
    return word.replace("\\", "\\\\").replace("'", "\\'")


def statements(seed):
    """(what, statement in bytes) for each set."""
    dice = random.Random(seed)
    for name, (codec, words) in SETS.items():
        words = words + random_words(dice, codec, words, 12)
        encode = lambda text: text.encode(codec)
        say = lambda text: (name, encode(text))
        yield say(f"SET NAMES {name}")
        yield say("DROP TABLE IF EXISTS t, u, b")
        yield say(f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20) CHARACTER SET {name}, KEY (s))")
        yield say(f"CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20) CHARACTER SET {name} COLLATE {name}_bin, w VARCHAR(20) CHARACTER SET utf8mb4, x VARBINARY(60))")
        for word in words:
            yield say(f"INSERT INTO t (s) VALUES ('{escaped(word)}')")
            yield say(f"INSERT INTO u (s, w, x) VALUES ('{escaped(word)}', '{escaped(word)}', '{escaped(word)}')")
            # MySQL's names of columns end at the Basic Multilingual Plane, and its backslash becomes another one in sjis.
            backslash = "a" if name == "sjis" else "a\\\\"
            if max(word) > "\uffff":
                continue
            yield say(f"SELECT '{escaped(word)}' AS a, HEX('{escaped(word)}'), LENGTH('{escaped(word)}'), CHAR_LENGTH('{escaped(word)}'), HEX(CONVERT('{escaped(word)}' USING utf8mb4)), ORD('{escaped(word)}'), '\\'', '{backslash}'")
            yield say(f"SELECT HEX(REVERSE('{escaped(word)}')), HEX(LEFT('{escaped(word)}', 1)), HEX(CONCAT('{escaped(word)}', 1)), HEX(LPAD('{escaped(word)}', 6, '{escaped(words[0])}')), '{escaped(word)}' LIKE '_%', '{escaped(word)}' = CONVERT('{escaped(word)}' USING utf8mb4)")
        yield say("SELECT id, s, HEX(s), LENGTH(s), CHAR_LENGTH(s) FROM t ORDER BY id")
        yield say("SELECT id, HEX(w), HEX(x), s = w, BIT_LENGTH(s) FROM u ORDER BY id")
        yield say("SELECT HEX(s) FROM u ORDER BY s, id")
        yield say("SELECT COUNT(DISTINCT s), HEX(MIN(s)), HEX(MAX(s)) FROM u")
        if name != "big5":
            yield say("SELECT id FROM t ORDER BY s, id")
            yield say("SELECT t.id, COUNT(*) FROM t JOIN t other ON other.s = t.s GROUP BY t.id ORDER BY t.id")
        for _ in range(20):
            one, other = (dice.choice([word for word in words if max(word) <= "\uffff"]) for _ in range(2))
            if dice.random() < 0.3:
                other = one.swapcase() if name != "gb18030" else one
            try:
                yield say(f"SELECT '{escaped(one)}' < '{escaped(other)}', '{escaped(one)}' = '{escaped(other)}', STRCMP('{escaped(one)}' COLLATE {name}_bin, '{escaped(other)}')")
                yield say(f"SELECT id FROM t WHERE s > '{escaped(one)}' AND s <= '{escaped(other)}' ORDER BY id")
            except UnicodeEncodeError:
                pass
        # What the set lacks, and what is no character of it.
        yield name, b"SET NAMES utf8mb4"
        yield name, "INSERT INTO t (s) VALUES ('☃𝄞')".encode()
        yield name, f"SELECT HEX(CONVERT('a☃' USING {name})), CONVERT(CONVERT('{escaped(words[0])}' USING {name}) USING utf8mb4)".encode()
        yield name, f"SELECT HEX(_{name} x'{encode(words[0]).hex()}'), CONVERT(_{name} x'{encode(words[0]).hex()}' USING utf8mb4), CHARSET(_{name}'a'), COLLATION(_{name}'a'), HEX(CHAR(0x{encode(words[0][0]).hex()} USING {name}))".encode()
        yield name, b"SELECT s FROM u ORDER BY id"
        yield name, b"SELECT COUNT(*) FROM u WHERE s = w"
        yield name, f"INSERT INTO t (s) VALUES (x'{encode(words[0]).hex()}')".encode()
        yield name, f"UPDATE u SET s = x WHERE x = x'{encode(words[0]).hex()}'".encode()
        yield name, f"SET character_set_results = {name}".encode()
        yield name, "SELECT s, w, '中é' FROM u ORDER BY id".encode()
        yield name, b"SET NAMES utf8mb4"
        yield name, f"SELECT CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'charsets' AND TABLE_NAME = 'u' ORDER BY ORDINAL_POSITION".encode()
        yield name, f"SHOW CHARACTER SET LIKE '{name}'".encode()
        yield name, f"CREATE TABLE k (s VARCHAR(1600) CHARACTER SET {name}, KEY (s))".encode()
        yield name, b"DROP TABLE IF EXISTS k"
        file = os.path.join(tempfile.gettempdir(), f"charsets-{os.getpid()}-{name}.txt")
        with open(file, "wb") as out:
            out.write(encode("".join(f"{at + 1},{word}\n" for at, word in enumerate(words) if "," not in word)))
        yield name, b"TRUNCATE t"
        yield f"{name} file", f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t CHARACTER SET {name} FIELDS TERMINATED BY ',' (id, s)".encode()
        yield name, b"SELECT id, HEX(s) FROM t ORDER BY id"
        os.remove(file)
    for name, codec in WIDE.items():
        yield name, b"SET NAMES utf8mb4"
        yield name, f"SET character_set_client = {name}".encode()
        yield name, b"DROP TABLE IF EXISTS t"
        yield name, f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20) CHARACTER SET {name}, c CHAR(3) CHARACTER SET {name} COLLATE {name}_bin, KEY (s))".encode()
        for word in ("中文", "éÉ", "a", "Ab", "", "Ж", "～") + (() if name == "ucs2" else ("😀", "a😀")):
            yield name, f"INSERT INTO t (s, c) VALUES ('{word}', '{word[:3]}')".encode()
        yield name, b"SELECT id, s, HEX(s), LENGTH(s), CHAR_LENGTH(s), HEX(c), ORD(s), BIT_LENGTH(c) FROM t ORDER BY id"
        yield name, b"SELECT id FROM t ORDER BY s, id"
        yield name, b"SELECT id FROM t ORDER BY c, id"
        yield name, b"SELECT id FROM t WHERE s = 'AB' OR s LIKE '_' ORDER BY id"
        yield name, f"INSERT INTO t (s) VALUES (x'{'中'.encode(codec).hex()}'), (x'61')".encode()
        yield name, f"SELECT HEX(_{name} x'61'), HEX(CHAR(0x{'中'.encode(codec).hex()} USING {name})), HEX(CONCAT(s, 1)), CHARSET(CONCAT(s, 1)), HEX(UPPER(s)) FROM t ORDER BY id".encode()
        yield name, f"SET character_set_results = {name}".encode()
        yield name, b"SELECT s FROM t ORDER BY id"
        yield name, b"SET NAMES utf8mb4"


def file_of(statement):
    return statement.split(b"'")[1].decode() if statement.startswith(b"LOAD") else None


def shown(statement):
    """The statement as it stands in the golden file: without the name of a temporary file."""
    return "LOAD" if statement.startswith(b"LOAD") else statement.hex()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--mysql", type=int)
    parser.add_argument("--beluga", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--canary", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        mysql = Connection(arguments.mysql)
        with open(GOLDEN, "w", encoding="ascii") as file:
            for name, statement in statements(SEED):
                file.write(json.dumps([name, shown(statement), mysql.ask(statement)]) + "\n")
        return
    tally = Tally()
    if arguments.beluga:
        play(tally, arguments.beluga, arguments)
    else:
        with Server("--local-infile", "yes", mysql=True) as server:
            play(tally, server.mysql_port, arguments)
    tally.close()


def play(tally, port, arguments):
    beluga = Connection(port)
    if arguments.seed is None:
        with open(GOLDEN, encoding="ascii") as file:
            expected = [json.loads(line) for line in file]
        told = ((name, sql, answer) for name, sql, answer in expected)
        ask = lambda statement: next(told)[2]
    else:
        mysql = Connection(arguments.mysql)
        ask = mysql.ask
    spoilt = arguments.canary
    for name, statement in statements(SEED if arguments.seed is None else arguments.seed):
        wanted, found = ask(statement), beluga.ask(statement)
        if spoilt and isinstance(wanted, list):
            wanted, spoilt = wanted[1:], False
        tally.check(f"{name}: {statement!r}", found == wanted, f"\n  Beluga: {str(found)[:600]}\n  MySQL:  {str(wanted)[:600]}")


main()
