"""Records what a PostgreSQL server answers to random calls of the functions of numbers.

    python record.py "host=127.0.0.1 port=5432 user=postgres" SEED CASES > answers.txt

The unit test of `functions::numeric` plays the file `answers.txt` beside it, or the one that BELUGA_NUMERIC_ANSWERS names. Fields are separated by tabs:

    call OID argument ...           a function
    agg  OID row ...                an aggregate; a row is its arguments with | between
    in   TYPE typmod text           the text form, read and shown
    out  TYPE digits text           the text form with extra_float_digits
    send TYPE text                  the binary form, in hexadecimal

and then `=` and the result (\\N is NULL), or `!`, SQLSTATE, message and detail. A long result is its ends and its length.
"""
import random
import re
import sys

import psycopg

conninfo, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = psycopg.connect(conninfo, autocommit=True)
rng = random.Random(seed)
TYPES = {20: "int8", 21: "int2", 23: "int4", 700: "float4", 701: "float8", 1700: "numeric"}
BITS = {20: 64, 21: 16, 23: 32}


def served():
    """The OIDs of the rows, read from the table of this crate."""
    import pathlib

    text = (pathlib.Path(__file__).parents[2] / "src/functions/numeric/rows.rs").read_text()
    return [int(oid) for oid in re.findall(r'^    (\d+) "\w+" \(', text, re.M)]


def integer(oid):
    bits = BITS[oid]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    kind = rng.random()
    if kind < 0.15:
        return str(rng.choice([low, low + 1, high, high - 1, 0, -1, 1]))
    if kind < 0.5:
        return str(rng.randint(-20, 40))
    width = rng.randint(1, bits - 1)
    return str(rng.randint(-(1 << width), (1 << width) - 1))


def digits(count):
    return "".join(rng.choice("0123456789") for _ in range(count))


def numeric():
    kind = rng.random()
    sign = rng.choice(["", "", "-"])
    if kind < 0.05:
        return rng.choice(["NaN", "Infinity", "-Infinity"])
    if kind < 0.12:
        return rng.choice(["0", "0.00", "1", "1.0000", "-1", "0.5", "-0.5", "1.5", "2.5", "10", "100.00", "9999", "10000", "0.0001"])
    if kind < 0.3:
        return f"{sign}{rng.randint(0, 200)}"
    if kind < 0.6:
        return f"{sign}{digits(rng.randint(1, 6))}.{digits(rng.randint(1, 8))}"
    if kind < 0.7:
        return f"{sign}{rng.choice(['0.99', '1.00', '1.000', '0.9999999'])}{digits(rng.randint(1, 20))}"
    if kind < 0.85:
        return f"{sign}{digits(rng.randint(1, 45))}.{digits(rng.randint(1, 45))}"
    if kind < 0.95:
        return f"{sign}{digits(rng.randint(1, 9))}e{rng.randint(-60, 60)}"
    return f"{sign}{digits(rng.randint(1, 9))}e{rng.randint(-400, 600)}"


def floating(oid):
    import struct

    kind = rng.random()
    if kind < 0.06:
        return rng.choice(["NaN", "Infinity", "-Infinity", "0", "-0"])
    if kind < 0.25:
        return repr(rng.randint(-400, 400) / rng.choice([1, 1, 2, 4, 10]))
    if kind < 0.5:
        return repr(rng.uniform(-1.5, 1.5))
    if kind < 0.6:
        return repr(rng.choice([30, 45, 60, 90, 120, 135, 150, 180, 270, 360, 0.5, 1.0, 720]) * rng.choice([1, -1]))
    if kind < 0.75:
        return repr(rng.uniform(-10, 10) * 10.0 ** rng.randint(-30, 30))
    while True:
        number = struct.unpack("<f", rng.randbytes(4))[0] if oid == 700 else struct.unpack("<d", rng.randbytes(8))[0]
        if number == number and abs(number) != float("inf"):
            return repr(number)


def value(oid):
    if oid in BITS:
        return integer(oid)
    if oid == 1700:
        return numeric()
    return floating(oid)


def accepted(text, oid):
    """The value as the server shows it, or None where it is no value of the type."""
    kind, fields = ask(f"select '{text}'::{TYPES[oid]}::text")
    return fields[0] if kind == "=" and ".." not in fields[0] else None


def short(text):
    return text if len(text) <= 300 else f"{text[:60]}..{text[-60:]}/{len(text)}"


def ask(query, parameters=None):
    try:
        row = connection.execute(query, parameters).fetchone()
        return "=", ["\\N" if row[0] is None else short(row[0])]
    except psycopg.Error as error:
        diag = error.diag
        return "!", [diag.sqlstate, diag.message_primary, diag.message_detail or ""]


def tell(fields, answer):
    sign, result = answer
    print("\t".join([*fields, sign, *result]))


def settle(oids):
    """Random arguments of these types, as the server shows them."""
    while True:
        found = [accepted(value(oid), oid) for oid in oids]
        if all(text is not None for text in found):
            return found


def calls():
    rows = connection.execute(
        "select oid::int8, proname, proargtypes::text, prorettype::int8 from pg_proc where prokind = 'f' and oid = any(%s)"
        " and provolatile = 'i' order by oid", (served(),)
    ).fetchall()
    for oid, name, types, _ in rows:
        types = [int(text) for text in types.split()]
        count = cases if types else 1
        for _ in range(count):
            arguments = settle(types)
            if name in ("round", "trunc") and len(types) == 2 and rng.random() < 0.9:
                arguments[1] = str(rng.randint(-12, 40))
            if name == "factorial":
                arguments[0] = str(rng.choice([-1, 0, 1, 5, 20, 33, 100, 300, 1000, 32177, 32178]))
            if name == "width_bucket" and rng.random() < 0.9:
                arguments[3] = str(rng.randint(-1, 100))
            if oid == 1703:
                precision = rng.randint(1, 40)
                arguments[1] = str((precision << 16 | rng.randint(-5, 30) & 0x7FF) + 4)
            if name in ("power", "pow", "numeric_power") and types[0] == 1700 and rng.random() < 0.8:
                arguments = settle_power()
            listed = ", ".join(f"'{text}'::{TYPES[ty]}" for text, ty in zip(arguments, types))
            tell(["call", str(oid), *arguments], ask(f'select pg_catalog."{name}"({listed})::text'))


def settle_power():
    base = rng.choice([str(rng.randint(0, 50)), f"{rng.randint(0, 9)}.{digits(rng.randint(1, 12))}", f"0.{digits(6)}", "-2.5", "1.0001", "-3"])
    exponent = rng.choice([str(rng.randint(-30, 60)), f"{rng.randint(-9, 9)}.{digits(rng.randint(1, 8))}", "0.5", "-0.5", "0.33333", str(rng.randint(-2000, 2000)), "3.00"])
    return [base, exponent]


def aggregates():
    rows = connection.execute(
        "select p.oid::int8, proname, proargtypes::text from pg_proc p where prokind = 'a' and oid = any(%s) order by oid",
        (served(),),
    ).fetchall()
    for oid, name, types in rows:
        types = [int(text) for text in types.split()]
        if 2276 in types or not types:
            continue
        for _ in range(max(3, cases // 3)):
            length = rng.choice([0, 1, 2, 3, 5, 10])
            calm = rng.random() < 0.8
            listed = []
            for _ in range(length):
                row = settle(types)
                if calm:
                    row = [text if re.fullmatch(r"-?\d{1,12}(\.\d{1,12})?", text) else str(rng.randint(0, 99)) for text in row]
                listed.append(["\\N" if rng.random() < 0.1 else text for text in row])
            arrays = ", ".join(
                "array[" + ", ".join("null" if row[at] == "\\N" else f"'{row[at]}'" for row in listed) + f"]::{TYPES[ty]}[]"
                for at, ty in enumerate(types)
            )
            names = ", ".join("ab"[: len(types)])
            answer = ask(f'select pg_catalog."{name}"({names})::text from unnest({arrays}) as t({names})')
            tell(["agg", str(oid), *["|".join(row) for row in listed]], answer)


TEXTS = [
    "", " ", "x", "1", " 1 ", "+1", "-1", "+-1", "1.", ".5", ".", "-.5", "1.5.2", "1e5", "1e", "1e+", "1E-5", "1e5x", "1_000", "1__0", "_1", "1_", "1_.5", "1._5",
    "1.5_5", "1e1_0", "0x1F", "0X1f", "0x", "0x_1F", "0x1_F", "0x1G", "-0x10", "0o17", "0o18", "0b101", "0b102", "0b", "NaN", "nan", "+NaN", "-NaN", " nan ", "nanx",
    "inf", "-inf", "Infinity", "+Infinity", "-INFINITY", "infinit", "infinityx", "1e400", "-1e400", "1e-400", "0e-400", "1e39", "1e-46", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "2147483647", "2147483648", "-2147483648", "32767", "32768", "-32768", "-32769",
    "99999999999999999999", "99999999999999999999x", "2147483648x", "0x7FFFFFFF", "0x80000000", "-0x80000000", "-0x80000001", "0xFFFFFFFFFFFFFFFFF", "1e131071",
    "1e131072", "1e-16383", "1e-16384", "0.1e-16382", "1e1073741823", "1e1073741824", "1e99999999999", "1e99999999999x", "0e5", "00012", "-0", "-0.00", "1 2", "1.0e-2",
    "0x1p3", "0x1.8p1", "1e15", "1e14", "123456789012345678", "0.0001", "0.00001", "1e21", "5e-324", "2.5e-324", "2.4e-324", "1.7976931348623157e308", "1.7976931348623159e308",
    "3.4028235e38", "3.4028236e38", "1e-45", "9007199254740993", "0.1", "0.3", "1e22", "1e23", "123456.7", "1234567", "999999.95",
]


def forms():
    for oid, name in TYPES.items():
        for text in TEXTS:
            reading = "numeric_in(%s::cstring, 0, -1)" if oid == 1700 else f"{name}in(%s::cstring)"
            tell(["in", name, "-1", text], ask(f"select {reading}::text", (text,)))
    for _ in range(cases * 4):
        precision, scale = rng.randint(1, 20), rng.randint(-6, 24)
        typmod = (precision << 16 | scale & 0x7FF) + 4
        text = numeric()
        tell(["in", "numeric", str(typmod), text], ask(f"select numeric_in(%s::cstring, 0, {typmod})::text", (text,)))
    powers = [repr(2.0 ** power) for power in range(-1074, 1024, 3 if cases < 50 else 1)]
    for oid in (700, 701):
        name = TYPES[oid]
        texts = [settle([oid])[0] for _ in range(cases * 10)] + powers
        for text in texts:
            for extra in (1, 0, -3) if rng.random() < 0.3 else (1,):
                connection.execute(f"set extra_float_digits = {extra}")
                tell(["out", name, str(extra), text], ask(f"select '{text}'::{name}::text"))
        connection.execute("set extra_float_digits = 1")
    for oid, name in TYPES.items():
        for _ in range(cases):
            text = settle([oid])[0]
            send = "numeric_send" if oid == 1700 else f"{name}send"
            tell(["send", name, text], ask(f"select encode({send}('{text}'::{name}), 'hex')"))


connection.execute("set client_min_messages = error")
calls()
aggregates()
forms()
