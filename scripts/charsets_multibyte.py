#!/usr/bin/env python3
"""Takes the character sets of MySQL that have several bytes a character from a running MySQL server, and writes the tables that `datum` is built
with: crates/datum/src/collation/multibyte.bin and the pairs that its test compares, multibyte_golden.txt.

    scripts/charsets_multibyte.py PORT        (PyMySQL; root without a password on loopback)

multibyte.bin is a container of tables (packing.py). That of a character set lists its characters of two and three bytes, that of a collation the weights that
differ from the characters' own bytes; `multibyte.rs` says how.
"""
import random
import sys

import pymysql

from packing import container, runs, varint

# With the set whose table predicts this one's.
SETS = {"gbk": None, "gb2312": "gbk", "big5": None, "sjis": None, "cp932": "sjis", "ujis": None, "eucjpms": "ujis", "euckr": None, "gb18030": "gbk"}
# Codes whose character is ASCII's in MySQL: read as the wide character, so that no backslash comes out of a character of two bytes.
WIDE = {("sjis", 0x815F): 0xFF3C, ("ujis", 0xA1C0): 0xFF3C, ("ujis", 0xA237): 0xFF5E}
FOLDER = "crates/datum/src/collation/"

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()


def ask(text):
    cursor.execute(text)
    return cursor.fetchall()


def identifier(name):
    """The variant of `Charset` or `Collation`."""
    return "".join(part.capitalize() for part in name.split("_"))


def code_of(text):
    """The number of a character's bytes: of three, the second and the third without its high bit."""
    if len(text) == 3:
        assert text[0] == 0x8F
        return text[1] << 8 | text[2] & 0x7F
    return int.from_bytes(text, "big")


def linear(text):
    """The place of a four-byte code of gb18030."""
    a, b, c, d = text
    return ((a - 0x81) * 10 + b - 0x30) * 1260 + (c - 0x81) * 10 + d - 0x30


def weight_of(text):
    """A weight of one byte is the high half of a unit, one of four is two units."""
    return text[0] << 8 if len(text) == 1 else int.from_bytes(text, "big")


ask("set session sql_mode=''")
ask("set session cte_max_recursion_depth=2000000")
ask("create database if not exists apps_charsets")
ask("use apps_charsets")
ask("drop table if exists n")
ask("create table n (n int primary key)")
ask("insert into n with recursive n (n) as (select 0 union all select n + 1 from n where n < 1114111) select n from n")
tables, golden, decoded = [], [], {}
dice = random.Random(1)
for charset, base in SETS.items():
    plane = "n not between 0xd800 and 0xdfff" + ("" if charset == "gb18030" else " and n < 65536")
    written = {code: text for code, text in ask(f"select n, convert(convert(char(n using utf32) using {charset}) using binary) from n where {plane}") if text and (text != b"?" or code == 0x3F)}
    written.pop(0xFFFD, None)
    read = {}
    for prefix in (b"", b"\x8f") if charset in ("ujis", "eucjpms") else (b"",):
        for n, text in ask(f"select n, convert(convert(concat(x'{prefix.hex()}', unhex(hex(n))) using {charset}) using utf32) from n where n between 0x8000 and 0xffff"):
            if text and len(text) == 1 and text not in "?\ufffd":
                read[code_of(prefix + n.to_bytes(2, "big"))] = ord(text)
    if charset in ("sjis", "cp932"):
        # One byte and another: a Katakana letter and no character.
        read = {code: character for code, character in read.items() if not 0xA1 <= code >> 8 <= 0xDF}
    for (owner, code), character in WIDE.items():
        if owner == charset:
            read[code] = character
    # Of several codes of a character, the one that MySQL writes.
    chosen = {character: code_of(text) for character, text in written.items() if len(text) in (2, 3)}
    first = {character: code for code, character in sorted(read.items(), reverse=True)}
    several = sorted(code for character, code in chosen.items() if code != first.get(character, code))
    decoded[charset] = read
    predicted = decoded[base] if base else {}
    content = runs(sorted(read.items()), predicted) + b"".join(varint(code) for code in several)
    tables.append((identifier(charset), content))
    print(charset, len(read), len(several), len(content))
    for name, number, default in ask(f"select collation_name, id, is_default from information_schema.collations where character_set_name = '{charset}' order by id"):
        print(name, number, charset, default, sep="\t")
        if "unicode" in name:
            continue
        weights = dict(ask(f"select n, weight_string(convert(char(n using utf32) using {charset}) collate {name}) from n where {plane}"))
        if charset == "gb18030":
            own = lambda text: 0xFF000000 + linear(text) if len(text) == 4 and name.endswith("_ci") else weight_of(text)
            differing = [(character, weight_of(weights[character])) for character, text in sorted(written.items()) if weight_of(weights[character]) != own(text)]
        else:
            differing = sorted((code_of(text), weight_of(weights[character])) for character, text in written.items() if weights[character] != text and (charset, code_of(text)) not in WIDE)
        if charset == "big5":
            # MySQL sorts by strokes where it has no index, but compares, and orders indexes, by codes.
            differing = [(code, weight) for code, weight in differing if code < 0x100]
        if name.endswith("_bin"):
            assert not differing, name
        else:
            content = runs(differing, {})
            tables.append((identifier(name), content))
            print(name, len(differing), len(content))
        letters = [character for character in written if character >= 0x20 and character not in (0x5C, 0x7E, 0x7F, 0xFF3C, 0xFF5E)]
        common = [character for character in letters if character < 0x3100]
        for _ in range(250):
            pair = ["".join(chr(dice.choice(dice.choice([letters, common]))) for _ in range(dice.randint(1, 4))).strip() or "a" for _ in range(2)]
            if dice.random() < 0.3:
                pair[1] = pair[0].swapcase()
            if not all(ord(c) in written for c in "".join(pair)):
                continue
            one, two = (connection.escape(text) for text in pair)
            convert = lambda text: f"convert({text} using {charset}) collate {name}"
            (order,), = ask(f"select strcmp({convert(one)}, {convert(two)})")
            golden.append(f"{identifier(name)}\t{pair[0].encode().hex()}\t{pair[1].encode().hex()}\t{order}")
with open(FOLDER + "multibyte.bin", "wb") as file:
    file.write(container(tables))
with open(FOLDER + "multibyte_golden.txt", "w") as file:
    file.write("\n".join(golden) + "\n")
ask("drop database apps_charsets")
