#!/usr/bin/env python3
"""Takes the second and third weights of characters in MySQL's utf8mb4_0900_as_cs from a running MySQL server, and writes the tables that `datum` is built with,
crates/datum/src/collation/uca900_accents.bin and uca900_cases.bin, and the pairs that its test compares, uca900_golden.txt.

    scripts/uca900.py PORT        (PyMySQL; root without a password on loopback)

A table lists the characters whose weights of its level are others than the one that most characters have, as `table.rs` says.
"""
import random
import sys

import pymysql

from packing import packed

FOLDER = "crates/datum/src/collation/"
# By name, the variant of `Collation`.
VARIANTS = {"utf8mb4_0900_as_ci": "Utf8Uca900AsCi", "utf8mb4_0900_as_cs": "Utf8Uca900AsCs"}
# The weight of nearly every character, at the second and third level.
COMMON = [[0x20], [0x02]]

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()


def ask(text):
    cursor.execute(text)
    return cursor.fetchall()


def levels(key):
    """The weights of a key by level: a zero is between two levels."""
    found = [[]]
    for at in range(0, len(key), 2):
        weight = int.from_bytes(key[at : at + 2], "big")
        if weight:
            found[-1].append(weight)
        else:
            found.append([])
    assert len(found) == 3, key
    return found[1:]


def is_hangul(code):
    """Syllables have the weights of their letters."""
    return 0xAC00 <= code <= 0xD7A3


entries = [[], []]
for start in range(0, 0x110000, 0x4000):
    codes = [code for code in range(start, start + 0x4000) if not 0xD800 <= code <= 0xDFFF]
    if not codes:
        continue
    union = f"with recursive n (n) as (select {codes[0]} union all select n + 1 from n where n < {codes[-1]}) select /*+ set_var(cte_max_recursion_depth=20000) */"
    for code, key in ask(f"{union} n, weight_string(convert(char(n using utf32) using utf8mb4) collate utf8mb4_0900_as_cs) from n"):
        if 0xD800 <= code <= 0xDFFF or is_hangul(code):
            continue
        for table, common, weights in zip(entries, COMMON, levels(key)):
            if weights != common:
                table.append((code, weights))
for name, table in zip(["accents", "cases"], entries):
    with open(f"{FOLDER}uca900_{name}.bin", "wb") as file:
        file.write(packed(table))
    print(name, len(table))

dice = random.Random(9)
PLANES = [range(0x20, 0x7F), range(0xA0, 0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x1E00, 0x2000), range(0x3040, 0x3100), range(0xFF00, 0xFFF0), range(0xAC00, 0xAC80), range(0x4E00, 0x4E20),
          range(0x1F600, 0x1F620), range(0x1D400, 0x1D460), range(0, 0x20)]
lines = []
while len(lines) < 2400:
    size = dice.randint(1, 4)
    one = "".join(chr(dice.choice(dice.choice(PLANES))) for _ in range(size))
    # Mostly the same letters in another form: they are what the further levels tell apart.
    other = "".join(dice.choice([c, c, c.swapcase(), c.upper(), c + "\u0301", c.lower()]) for c in one) if dice.random() < 0.8 else "".join(chr(dice.choice(PLANES[0])) for _ in range(size))
    for name in VARIANTS:
        (order,), = ask(f"select strcmp(convert(_utf8mb4 x'{one.encode().hex()}' using utf8mb4) collate {name}, convert(_utf8mb4 x'{other.encode().hex()}' using utf8mb4) collate {name})")
        lines.append(f"{VARIANTS[name]}\t{one.encode().hex()}\t{other.encode().hex()}\t{order}")
with open(FOLDER + "uca900_golden.txt", "w") as file:
    file.write("\n".join(lines) + "\n")
