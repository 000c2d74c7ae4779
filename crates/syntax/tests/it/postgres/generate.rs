//! Random texts from templates: each names what stands in its places.

/// Templates of each kind. A place in one holds a kind: `{e}` an expression, `{b}` one without logic, `{q}` a query, `{f}` an item of FROM, `{o}` an item of ORDER BY, `{w}` a window, `{t}` a type, `{n}` a name, `{s}` a statement, `{g}` an
/// item of GROUP BY.
const TEMPLATES: &[(char, &[&str], &[&str])] = &[
    (
        'e',
        &[
            "1",
            "-5",
            "1.5",
            "-.5e3",
            "'a''b'",
            "E'a\\\\b'",
            "null",
            "true",
            "$1",
            "{n}",
            "{n}.{n}",
            "b'101'",
            "x'1f'",
            "current_date",
            "localtimestamp(3)",
            "'x'::{t}",
            "user",
        ],
        &[
            "{e} + {e}",
            "{e} - {e}",
            "{e} * {e} / {e}",
            "{e} ^ {e}",
            "{e} % {e}",
            "{e} || {e}",
            "{e} = {e}",
            "({e}) < ({e})",
            "{e} and {e}",
            "{e} or {e} or {e}",
            "not {e}",
            "- {e}",
            "+ {e}",
            "@ {e}",
            "({e})",
            "({e} = {e}) = {e}",
            "{e} operator(pg_catalog.+) {e}",
            "({e}) is null",
            "({e}) is not distinct from ({e})",
            "({e}) is not true",
            "({e}) is unknown",
            "({e}) isnull",
            "({e}) between {b} and ({e})",
            "({e}) not between symmetric {b} and ({e})",
            "({e}) in ({e}, {e})",
            "({e}) not in ({q})",
            "({e}) like ({e})",
            "({e}) not ilike ({e}) escape ({e})",
            "({e}) similar to ({e})",
            "({e}) = any ({e})",
            "({e}) <> all ({q})",
            "({e}) like any ({q})",
            "({e}) not ilike all ({e}::text[])",
            "({e})::{t}",
            "cast({e} as {t})",
            "({e}) collate \"C\"",
            "({e}) at time zone ({e})",
            "case when {e} then {e} else {e} end",
            "case {e} when {e} then {e} when {e} then {e} end",
            "row({e}, {e})",
            "({e}, {e})",
            "row()",
            "array[{e}, {e}]",
            "array[[{e}], [{e}]]",
            "array({q})",
            "({e})[{e}]",
            "({e}).{n}",
            "{n}[{e}:{e}]",
            "{n}.{n}[:{e}].{n}",
            "({n}).{n}[{e}:]",
            "$2[1].{n}",
            "({q}).{n}",
            "{n}({e}, {e})",
            "{n}.{n}()",
            "count(*)",
            "{n}(distinct {e} order by {o}, {o})",
            "{n}(variadic {e})",
            "{n}({n} => {e}, {n} := {e})",
            "{n}({e}) filter (where {e})",
            "{n}({e}) over {n}",
            "{n}({e}) over ({w})",
            "{n}({e}) within group (order by {o})",
            "coalesce({e}, {e})",
            "nullif({e}, {e})",
            "greatest({e})",
            "least({e}, {e})",
            "grouping({e})",
            "exists ({q})",
            "({q})",
            "extract(epoch from {e})",
            "extract('Odd one' from {e})",
            "extract(year from {e})",
            "overlay({e} placing {e} from {e} for {e})",
            "overlay({e} placing {e} from {e})",
            "position({b} in {b})",
            "substring({e} from {e} for {e})",
            "substring({e} for {e})",
            "substring({e}, {e})",
            "substring({n} similar {n} escape {e})",
            "trim({e})",
            "trim(leading {e} from {e})",
            "trim(trailing from {e}, {e})",
            "trim({e}, {e})",
            "normalize({e}, nfkc)",
            "({e}) is not nfd normalized",
            "collation for ({e})",
            "({e}, {e}) overlaps ({e}, {e})",
            "treat({e} as {t})",
            "interval '1' day to second(3)",
            "interval(3) '1'",
            "{n} '1'",
            "numeric(3, 1) '1.5'",
        ],
    ),
    ('b', &["1", "{n}", "-2"], &["{b} + {b}", "({e})", "{b}::{t}", "{b} || {b}", "- {b}"]),
    (
        'q',
        &["select 1", "select {n} from {n}", "values (1)", "table {n}", "select", "select *"],
        &[
            "select {e}, {e} as {n} from {f}",
            "select distinct {e} from {f} where {e}",
            "select distinct on ({e}, {e}) {e}, {n}.* from {f}, {f} group by {g}, {g} having {e}",
            "select {e} from {f} group by distinct {g} window {n} as ({w}), {n} as ({w})",
            "select ({e}).* from {f} order by {o}, {o} limit {e} offset {e}",
            "select {e} offset {n} rows fetch first ({e}) rows only",
            "select {e} order by {o} fetch next {n} rows with ties",
            "select {e} from {f} for update of {n} skip locked for key share",
            "{q} limit all",
            "({q}) union ({q})",
            "({q}) union all ({q}) except ({q}) intersect ({q})",
            "({q} limit 1) order by {o}",
            "with {n} as ({q}) {q}",
            "with recursive {n} ({n}, {n}) as materialized ({s}), {n} as not materialized ({q}) select {e}",
            "values ({e}, {e}), ({e}, default)",
            "(({q}))",
            "select {e} into temp {n} from {f}",
            "select {e} from {f} for no key update nowait",
        ],
    ),
    (
        'f',
        &["{n}", "{n}.{n} as {n}", "only {n}"],
        &[
            "{f} join {f} on {e}",
            "{n} left join {f} using ({n}, {n}) as {n}",
            "{f} natural full join {n}",
            "{f} cross join ({q}) as {n}",
            "({f} right join {f} on {e}) as {n} ({n})",
            "({q}) as {n} ({n}, {n})",
            "lateral ({q}) {n}",
            "{n}({e}) with ordinality as {n} ({n})",
            "{n}({e}) as {n} ({n} {t}, {n} {t} collate \"C\")",
            "{n}({e}) as ({n} {t})",
            "rows from ({n}({e}), {n}() as ({n} {t})) as {n}",
            "{n} join {n} join {n} on {e} on {e}",
            "(({n} join {n} on {e}) join {f} on {e})",
            "lateral {n}({e}) {n}",
            "cast({e} as {t}) as {n}",
            "coalesce({e}, {e}) {n}",
            "current_date {n}",
            "trim({e})",
        ],
    ),
    (
        'o',
        &["{n}", "1"],
        &[
            "{e} desc",
            "{e} asc nulls first",
            "{e} nulls last",
            "{e} using <",
            "{e} using operator(pg_catalog.>) nulls first",
        ],
    ),
    (
        'w',
        &["", "{n}"],
        &[
            "partition by {e}, {e} order by {o}",
            "{n} order by {o} rows {e} preceding",
            "range between unbounded preceding and {e} following exclude ties",
            "partition by {e} groups between current row and unbounded following exclude group",
            "rows between {e} following and {e} following exclude current row",
            "rows current row",
        ],
    ),
    (
        't',
        &[
            "int",
            "text",
            "{n}",
            "{n}.{n}",
            "bigint",
            "double precision",
            "boolean",
            "char",
            "varchar",
            "bit",
            "timestamptz",
            "real",
            "smallint",
            "pg_catalog.bpchar",
            "\"char\"",
        ],
        &[
            "numeric(10, 2)",
            "varchar(5)",
            "char(3)",
            "bit(3)",
            "bit varying(3)",
            "timestamp(3) with time zone",
            "timestamp",
            "time with time zone",
            "time(2)",
            "interval",
            "interval(3)",
            "interval year to month",
            "interval day to second(2)",
            "{t}[]",
            "int[3][]",
            "{n}(1, 2)",
            "int array[4]",
            "setof {n}",
            "float(10)",
        ],
    ),
    (
        'n',
        &[
            "a",
            "b",
            "tbl",
            "\"Odd one\"",
            "\"select\"",
            "\"a\"\"b\"",
            "\"coalesce\"",
            "\"left\"",
            "cube",
            "\"ä\"",
            "value",
            "\"current_date\"",
            "\"interval\"",
            "x1",
        ],
        &["partition", "rows", "rollup", "operator", "nulls", "format", "set", "recursive"],
    ),
    ('g', &["{e}", "()"], &["rollup ({e}, {e})", "cube ({e})", "grouping sets ({g}, {g})", "({e}, {e})"]),
    (
        's',
        &["{q}"],
        &[
            "insert into {n}.{n} as {n} ({n}, {n}[1].{n}) overriding user value {q} on conflict ({n} collate \"C\" {n} desc nulls last, ({e})) where {e} do update set {n} = {e}, ({n}, {n}) = ({q}) where {e} returning {e} as {n}, *",
            "insert into {n} values ({e}, default) on conflict on constraint {n} do nothing",
            "insert into {n} default values returning {e}",
            "update only {n} as {n} set {n} = {e}, ({n}, {n}) = row({e}, default), {n}.{n} = default from {f} where {e} returning {e}",
            "update {n} set {n} = {e} where current of {n}",
            "delete from {n} as {n} using {f}, {f} where {e} returning *",
            "with {n} as ({s}) {s2}",
            "insert into {n} ({n}) {q}",
            "merge into {n} as {n} using {f} on {e} when matched and {e} then update set {n} = {e} when matched then delete when not matched then insert ({n}) overriding system value values ({e}, default) when not matched then do nothing",
            "merge into {n} using {f} on {e} when not matched then insert default values",
        ],
    ),
];

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % count
    }

    /// A text of that kind whose templates nest at most that deep.
    pub fn text(&mut self, kind: char, height: usize) -> String {
        let (_, leaves, nodes) = TEMPLATES.iter().find(|(known, ..)| *known == kind).expect("a kind");
        let template = if height == 0 || self.below(6) == 0 {
            leaves[self.below(leaves.len())]
        } else {
            nodes[self.below(nodes.len())]
        };
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            let (before, place) = rest.split_at(at);
            out.push_str(before);
            let end = place.find('}').expect("the end of a place");
            let kind = place[1..end].chars().next().expect("a kind");
            let text = match &place[1..end] {
                // A change behind WITH, without a WITH of its own.
                "s2" => format!("delete from {}", self.text('n', 0)),
                _ => self.text(kind, height.saturating_sub(1)),
            };
            out.push_str(&text);
            rest = &place[end + 1..];
        }
        out + rest
    }
}
