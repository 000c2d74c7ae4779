"""Writes random expressions, one a line: python3 random_expressions.py SEED COUNT > file. What is done with them stands in differ.py."""
import random
import sys

NUMBERS = """0 1 -1 2 7 10 -3 255 1.5 -2.25 0.001 100.00 3.14159 9223372036854775807 -9223372036854775808 18446744073709551615
99999999999.99999 1e0 2.5e0 -1e3 1e-3 1.5e10 0.0 0e0""".split()
STRINGS = ["''", "'a'", "'A'", "'abc'", "'ABC '", "'12'", "'12abc'", "'-5.5'", "'1e2'", "' 7'", "'é'", "'ß'", "'ab%'", "'2026-11-21'",
           "'2026-11-21 10:20:30'", "'10:20:30'", "'x,y,z'", "'Hello World'", "'日本語'"]
DATES = ["date '2026-11-21'", "date '2024-02-29'", "date '1999-12-31'", "timestamp '2026-11-21 10:20:30'", "timestamp '2000-01-01 00:00:00'"]
TIMES = ["time '10:20:30'", "time '-01:00:00'", "time '100:00:00.25'"]

# In a pattern N stands for a number, S for a string, D for a date or time, C for a date, X for any; a list in braces for one of its words.
NUMERIC = """(N {+ - * / div %} N)|(N {+ - * / %} N)|(- N)|abs(N)|round(N, {0 1 2 -1})|round(N)|floor(N)|ceil(N)|truncate(N, {0 1 -1})|sign(N)|length(S)
|char_length(S)|instr(S, S)|locate(S, S)|ascii(S)|strcmp(S, S)|(N {= < > <= >= <> <=>} N)|(S {= < > <= >= <> <=>} N)|(X {and or xor} X)
|(N {& | ^ << >>} {1 3 64 7})|if(X, N, N)|coalesce(null, N)|coalesce(N, N)|cast(X as {signed decimal(10,2) decimal(30,6) double})|greatest(N, N)|(S + N)
|{year month day hour minute second dayofyear weekday to_days quarter}(D)|(N between N and N)|(N in (N, N, N))|find_in_set(S, S)"""
STRING = """concat(X, X)|concat(S, N)|upper(S)|lower(S)|substring(S, {-4 -1 0 1 2 3}, {-1 0 1 2 4})|left(S, {-1 0 1 3})|right(S, {-1 0 1 3})|trim(S)|replace(S, S, S)
|reverse(S)|lpad(S, {0 3 6}, 'xy')|repeat(S, {-1 0 1 2})|hex(X)|ifnull(X, S)|case when X then X else S end|cast(X as char)|substring_index(S, ',', {-2 -1 0 1 2})
|concat_ws('-', X, X)|nullif(S, S)|elt({0 1 2}, S, X)"""
DATED = """(C + interval {-40 -1 0 3 40} {day month hour minute year week})|date_sub(C, interval {0 1 40} {day month second quarter})|date(D)|last_day(C)
|coalesce(null, D)|cast(C as {date datetime})"""


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.patterns = {"N": patterns(NUMERIC), "S": patterns(STRING), "D": patterns(DATED)}
        self.leaves = {"N": NUMBERS, "S": STRINGS, "D": DATES + TIMES, "C": DATES}

    def make(self, kind, depth):
        if kind == "X":
            kind = self.random.choice("NNNSSD")
        if kind == "C" or depth <= 0 or self.random.random() < 0.25:
            return self.random.choice(self.leaves[kind])
        return self.fill(self.random.choice(self.patterns[kind]), depth - 1)

    def fill(self, pattern, depth):
        out, place = "", 0
        while place < len(pattern):
            letter = pattern[place]
            if letter == "{":
                end = pattern.index("}", place)
                out += self.random.choice(pattern[place + 1:end].split())
                place = end
            elif letter in "NSDCX":
                out += self.make(letter, depth)
            else:
                out += letter
            place += 1
        return out


def patterns(text):
    """Cut at bars that stand outside of brackets."""
    found, depth, last = [], 0, ""
    for letter in text.replace("\n", ""):
        depth += (letter in "({") - (letter in ")}")
        if letter == "|" and depth == 0:
            found.append(last)
            last = ""
        else:
            last += letter
    return found + [last]


def main(seed, count):
    grammar, seen = Grammar(int(seed)), set()
    print(f"-- seed {seed}")
    while len(seen) < int(count):
        expression = grammar.make("X", grammar.random.choice([1, 1, 2, 2, 3]))
        if expression not in seen and len(expression) < 250:
            seen.add(expression)
            print(expression)


if __name__ == "__main__":
    main(*sys.argv[1:])
