"""Random values and expressions of PostgreSQL's range and multirange types, for postgres_beside.

A statement evaluates one expression, or reads one table whose expressions cannot fail, so that both servers meet the same error."""

# By the beginning of the types' names: the subtype, and texts of its values from the least to the greatest.
INTEGERS = ["-5", "-1", "0", "1", "2", "3", "5", "7", "10"]
TIMESTAMPS = ["-infinity", "1999-12-31 23:59:59.5", "2000-01-01", "2024-02-29 12:30:00", "2024-02-29 12:30:00.000001", "294276-12-31 23:59:59.999999", "infinity"]
SUBTYPES = {
    "int4": ("int4", ["-2147483648", *INTEGERS, "2147483646", "2147483647"]),
    "int8": ("int8", ["-9223372036854775808", *INTEGERS, "9223372036854775807"]),
    "num": ("numeric", ["-Infinity", "-12345678901234567890123", "-3.125", "0", "0.0000000000000000000000001", "1", "1.0", "1.00", "2.5", "1e3", "Infinity", "NaN"]),
    "date": ("date", ["-infinity", "4714-11-24 BC", "1999-12-31", "2000-01-01", "2024-02-28", "2024-02-29", "2024-03-01", "5874897-12-31", "infinity"]),
    "ts": ("timestamp", TIMESTAMPS),
    "tstz": ("timestamptz", [*TIMESTAMPS[:2], "2000-01-01 00:00:00-05", "2024-02-29 12:30:00+02", *TIMESTAMPS[4:]]),
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
PLACES = ["&&", "<<", ">>", "&<", "&>", "-|-", "@>", "<@"]
PARTS = ["lower_inc", "upper_inc", "lower_inf", "upper_inf", "isempty"]


class RangeQueries:
    def __init__(self, draw, name=None):
        self.draw = draw
        self.name = name or draw.choice(list(SUBTYPES))
        self.subtype, self.values = SUBTYPES[self.name]
        self.range, self.multirange = f"{self.name}range", f"{self.name}multirange"

    def bound(self, value):
        """Returns a text of a bound in one of the ways in which it can be written."""
        pick, roll = self.draw.choice, self.draw.random()
        if roll < 0.7:
            return f'"{value}"' if roll < 0.2 else value
        spaced = f"{pick(['', ' ', '  '])}{value}{pick(['', ' '])}"
        return pick([spaced, f'"{spaced}"', "\\" + value, value[:1] + '"' + value[1:] + '"'])

    def bounds(self):
        """Returns values of a lower and an upper bound, mostly in that order."""
        places = [self.draw.randrange(len(self.values)) for _ in range(2)]
        low, high = (self.values[at] for at in (sorted(places) if self.draw.random() < 0.93 else places))
        return ("" if self.draw.random() < 0.15 else low), ("" if self.draw.random() < 0.15 else high)

    def text(self):
        """Returns a text of a range, whose bounds may be in the wrong order."""
        pick, roll = self.draw.choice, self.draw.random()
        if roll < 0.08:
            return pick(["empty", " EMPTY ", "Empty"])
        text = f"{pick('[(')}{','.join(value and self.bound(value) for value in self.bounds())}{pick(')]')}"
        return f"{pick(['', ' '])}{text}{pick(['', ' '])}" if roll < 0.3 else text

    def texts(self):
        pick = self.draw.choice
        ranges = [pick([self.text, self.sorted_text])().strip() for _ in range(self.draw.randrange(0, 4))]
        return "{" + pick([",", ", ", " ,"]).join(ranges) + "}"

    def spoilt(self, text):
        """Returns a text with a letter less, more, or another."""
        at, letter = self.draw.randrange(len(text) + 1), self.draw.choice('[](),"\\{} x1e')
        kind = self.draw.randrange(3)
        return text[:at] + (letter if kind else "") + text[at + (kind != 1) :]

    def sorted_text(self):
        """Returns a text of a range that is a value of its type: not of the last dates and numbers, which no other follow."""
        values = self.values[1:-2]
        low, high = sorted(self.draw.randrange(len(values)) for _ in range(2))
        low, high = self.draw.choice([(values[low], values[high])] * 4 + [("", values[high]), (values[low], "")])
        return f"{self.draw.choice('[(')}{low},{high}{self.draw.choice(')]')}"

    def quoted(self, text, ty):
        return "'" + text.replace("'", "''") + f"'::{ty}"

    def element(self, depth):
        if depth and self.draw.random() < 0.3:
            return f"{self.draw.choice(['lower', 'upper'])}({self.of_any(depth - 1)})"
        return "null" + f"::{self.subtype}" if self.draw.random() < 0.06 else self.quoted(self.draw.choice(self.values), self.subtype)

    def of_range(self, depth):
        pick, roll = self.draw.choice, self.draw.random()
        if not depth or roll < 0.35:
            return f"null::{self.range}" if roll < 0.02 else self.quoted(pick([self.text, self.sorted_text, self.sorted_text])(), self.range)
        inner = lambda: self.of_range(depth - 1)
        if roll < 0.55:
            flags = "" if self.draw.random() < 0.4 else f", '{pick(['[]', '[)', '(]', '()', '()', '[', '[[', ''])}'"
            low, high = (self.quoted(value, self.subtype) if value else "null" for value in self.bounds())
            return f"{self.range}({low}, {high}{flags})"
        if roll < 0.85:
            return f"({inner()} {pick('+-*')} {inner()})"
        return pick([f"range_merge({inner()}, {inner()})", f"range_merge({self.of_multirange(depth - 1)})"])

    def of_multirange(self, depth):
        pick, roll = self.draw.choice, self.draw.random()
        if not depth or roll < 0.35:
            return self.quoted(self.texts(), self.multirange)
        inner = lambda: self.of_multirange(depth - 1)
        ranges = lambda: ", ".join(self.of_range(depth - 1) for _ in range(self.draw.randrange(0, 3)))
        if roll < 0.5:
            return f"{self.multirange}({ranges()})"
        if roll < 0.56:
            return f"{self.multirange}(variadic array[{ranges()}]::{self.range}[])"
        if roll < 0.64:
            return pick([f"multirange({self.of_range(depth - 1)})", f"({self.of_range(depth - 1)})::{self.multirange}"])
        return f"({inner()} {pick('+-*')} {inner()})"

    def of_any(self, depth):
        return self.draw.choice([self.of_range, self.of_multirange])(depth)

    def truth(self, depth):
        pick, roll = self.draw.choice, self.draw.random()
        if roll < 0.25:
            of = pick([self.of_range, self.of_multirange])
            return f"{of(depth)} {pick(COMPARISONS)} {of(depth)}"
        if roll < 0.65:
            return f"{self.of_any(depth)} {pick(PLACES)} {self.of_any(depth)}"
        if roll < 0.75:
            return f"{self.of_any(depth)} @> {self.element(depth)}"
        if roll < 0.85:
            return f"{self.element(depth)} <@ {self.of_any(depth)}"
        return f"{pick(PARTS)}({self.of_any(depth)})"

    def expression(self):
        pick, depth = self.draw.choice, self.draw.randrange(1, 3)
        return pick([self.truth, self.truth, self.of_range, self.of_multirange, self.element])(depth)

    def statement(self):
        pick, roll = self.draw.choice, self.draw.random()
        if roll < 0.12:
            return f"select '{self.spoilt(self.text())}'::{self.range}"
        if roll < 0.22:
            return f"select '{self.spoilt(self.texts())}'::{self.multirange}"
        if roll < 0.3:
            # What is unknown takes its type from the other side.
            return f"select {self.of_any(1)} {pick(PLACES + COMPARISONS)} '{pick([self.text(), self.texts(), pick(self.values)])}'"
        if roll < 0.34:
            return f"select * from unnest({self.of_multirange(1)})"
        if roll < 0.38:
            return f"select array[{self.of_range(1)}, {self.of_range(0)}]"
        if roll < 0.42:
            other = RangeQueries(self.draw)
            return f"select {self.of_any(0)} {pick(PLACES + COMPARISONS)} {other.of_any(0)}"
        return f"select {self.expression()}"

    def table(self):
        """Yields statements that fill a table of ranges and multiranges."""
        name = f"ranges_{self.name}"
        yield f"drop table if exists {name}"
        yield f"create table {name} (id int primary key, r {self.range}, m {self.multirange}, a {self.range}[])"
        text = lambda: self.quoted(self.sorted_text(), self.range)
        rows = [f"({at}, {text()}, {self.multirange}({text()}, {text()}), array[{text()}, {text()}])" for at in range(30)]
        yield f"insert into {name} values {', '.join(rows)}"
        yield f"create index on {name} (r, id)"
        yield f"create index on {name} (m desc)"
        yield f"insert into {name} select id + 100, r, m, a from {name} where id % 3 = 0"
        yield f"insert into {name} values (200, null, null, null), (201, 'empty', '{{}}', '{{}}'), (202, '(,)', '{{(,)}}', '{{NULL}}')"

    def readings(self):
        """Yields queries over the table, and whether their rows have an order."""
        name, pick = f"ranges_{self.name}", self.draw.choice
        one = self.quoted(self.sorted_text(), self.range)
        yield f"select id, r, m, a from {name} order by r, m, id", True
        yield f"select id, r from {name} order by r desc nulls last, id", True
        yield f"select id from {name} order by a, id", True
        yield f"select count(*), count(distinct r), count(distinct m), count(distinct a) from {name}", True
        yield f"select count(*) from {name} group by r order by r", True
        yield f"select a.id, b.id from {name} a join {name} b on a.r = b.r order by 1, 2", True
        yield f"select a.id, b.id from {name} a join {name} b on a.m = b.m and a.id < b.id order by 1, 2", True
        yield f"select id from {name} where r {pick(COMPARISONS)} {one} order by id", True
        yield f"select id from {name} where r between {one} and {self.quoted(self.sorted_text(), self.range)} order by id", True
        yield f"select id from {name} where r {pick(PLACES)} {one} order by id", True
        yield f"select id from {name} where m {pick(PLACES)} {one} order by id", True
        yield f"select id from {name} where {self.quoted(pick(self.values), self.subtype)} <@ r order by id", True
        yield f"select id from {name} where r in ({one}, 'empty', null) order by id", True
        yield f"select id from {name} where r = any(a) or {one} = any (a) order by id", True
        yield f"select id, (select count(*) from {name} i where i.r && o.r) from {name} o order by id", True
        yield f"select id % 4, range_agg(r order by id), range_agg(m order by id), range_intersect_agg(m order by id), range_intersect_agg(r order by id) from {name} group by 1 order by 1", True
        yield f"select range_agg(r) filter (where id < 0), range_agg(r order by id desc) from {name}", True
        yield f"select id, u from {name}, unnest(m) u order by id, u", True
        yield f"select id, unnest(m) from {name} order by 1, 2", True
        yield f"select id, lower(r), upper(r), lower(m), upper(m), {', '.join(f'{part}(r), {part}(m)' for part in PARTS)} from {name} order by id", True
        yield f"select id, array_position(a, r), array_agg(r) over (order by id rows 2 preceding) from {name} order by id", True
        yield f"select a.r from {name} a intersect select b.r from {name} b where b.id < 20", False
        yield f"select m from {name} union select multirange(r) from {name} where r is not null", False
        yield f"select distinct on (r) r, id from {name} order by r, id", True
        yield f"select json_agg(r order by id), to_json(min(id)), string_agg(m::text, ';' order by id) from {name}", True
        yield f"update {name} set r = {one} where id = {self.draw.randrange(30)} returning id, r", True
        yield f"delete from {name} where r = {one} returning id", False
