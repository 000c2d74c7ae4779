#!/usr/bin/env python3
"""Takes the character sets and collations of MySQL that have a byte a character from a running MySQL server, and writes the tables that
`datum` is built with: crates/datum/src/collation/charsets.bin and the pairs that its test compares, charsets_golden.txt.

    scripts/charsets.py PORT        (PyMySQL; root without a password on loopback)

charsets.bin is a list of tables, each behind its name (a length and ASCII; `identifier`) and the length of its bytes (four bytes, little-endian). That of a character set has
the code point of each of its 256 bytes (two bytes, little-endian; 0xFFFD: none). That of a collation lists characters in the order of their code points, as
`table.rs` says. A weight is a byte of MySQL's weight string, and one more: none is zero.
"""
import random
import sys

import pymysql

from packing import container, packed

SINGLE = ["dec8", "cp850", "hp8", "koi8r", "latin1", "latin2", "hebrew", "koi8u", "greek", "cp1250", "latin5", "armscii8", "cp866", "keybcs2", "macce",
          "macroman", "cp852", "latin7", "cp1251", "cp1256", "cp1257", "geostd8", "swe7"]
# Orders that no list of weights for each character gives.
# latin1_bin keeps the order of code points: indexes on disk have it.
WITHOUT = ["latin2_czech_cs", "cp1250_czech_cs", "tis620_thai_ci", "latin1_bin"]
FOLDER = "crates/datum/src/collation/"

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()


def ask(text):
    cursor.execute(text)
    return cursor.fetchall()


def identifier(name):
    """The variant of `Charset` or `Collation`."""
    return "".join(part.capitalize() for part in name.split("_"))


ask("set session sql_mode=''")
ask("create database if not exists apps_charsets")
ask("use apps_charsets")
ask("drop table if exists n")
ask("create table n (n int primary key)")
ask("insert into n with recursive n (n) as (select 0 union all select n + 1 from n where n < 65535) select /*+ set_var(cte_max_recursion_depth=70000) */ n from n where n not between 0xd800 and 0xdfff")
tables, golden, rows = [], [], []
dice = random.Random(1)
for charset in SINGLE:
    found = dict(ask(f"select n, hex(convert(convert(char(n using {charset}) using utf8mb4) using utf32)) from n where n < 256"))
    codes = [int(found[n], 16) if found[n] else 0xFFFD for n in range(256)]
    codes = [0xFFFD if code == 0x3F and n != 0x3F or code > 0xFFFF else code for n, code in enumerate(codes)]
    assert codes[:128] == list(range(128)) or charset == "swe7", charset
    tables.append((identifier(charset), b"".join(code.to_bytes(2, "little") for code in codes)))
    characters = sorted({code: bytes([n]) for n, code in reversed(list(enumerate(codes))) if code != 0xFFFD}.items())
    for name, number, default in ask(f"select collation_name, id, is_default from information_schema.collations where character_set_name = '{charset}' order by id"):
        rows.append((name, number, charset, default))
        if name in WITHOUT:
            continue
        key = f"weight_string(convert(char(n using utf32) using {charset}) collate {name})"
        of = dict(ask(f"select n, {key} from n"))
        tables.append((identifier(name), packed([(code, [byte + 1 for byte in of[code]]) for code, _ in characters])))
        letters = [code for code, text in characters if code >= 0x20 and code != 0x7F]
        common = [code for code in letters if code < 0x180] or letters
        for _ in range(40):
            pair = ["".join(chr(dice.choice(dice.choice([letters, common]))) for _ in range(dice.randint(1, 4))).strip() or "a" for _ in range(2)]
            if dice.random() < 0.3:
                pair[1] = pair[0].swapcase()
            try:
                pair_bytes = [next(text for code, text in characters if code == ord(c)) for c in "".join(pair)]
            except StopIteration:
                continue
            one, two = (connection.escape(text) for text in pair)
            convert = lambda text: f"convert({text} using {charset}) collate {name}"
            (order,), = ask(f"select strcmp({convert(one)}, {convert(two)})")
            golden.append(f"{identifier(name)}\t{pair[0].encode().hex()}\t{pair[1].encode().hex()}\t{order}")
with open(FOLDER + "charsets.bin", "wb") as file:
    file.write(container(tables))
with open(FOLDER + "charsets_golden.txt", "w") as file:
    file.write("\n".join(golden) + "\n")
ask("drop database apps_charsets")
for row in rows:
    print(*row, sep="\t")
