//! Queries, blocks, joins.

use std::fmt::{self, Display, Formatter};
use std::slice::from_ref;

use super::expr::{Missing, Parenthesised};
use super::{Bytes, Clause, Clauses, Commas, Identifier, Listed, Text, Variables, Word, separated, when};
use crate::tree::*;

impl Display for Query {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Query { with, body, order_by, limit, locks, into, span: _ } = self;
        with.iter().try_for_each(|with| write!(f, "{with} "))?;
        body.fmt(f)?;
        Clauses(" order by ", order_by).fmt(f)?;
        Clause("", limit.as_ref()).fmt(f)?;
        locks.iter().try_for_each(|lock| write!(f, " {lock}"))?;
        Clause(" into ", into.as_deref()).fmt(f)
    }
}

impl Display for With {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let With { recursive, tables } = self;
        write!(f, "with {}{}", when(*recursive, "recursive "), Commas(tables))
    }
}

impl Display for CommonTable {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CommonTable { name, columns, query } = self;
        write!(f, "{name}{} as ({query})", Listed(" ", columns))
    }
}

impl Display for QueryBody {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            QueryBody::Select(select) => select.fmt(f),
            QueryBody::Values(rows) => values(f, rows),
            QueryBody::Table(table) => write!(f, "table {table}"),
            QueryBody::Query(query) => write!(f, "({query})"),
            QueryBody::SetOperations { first, links } => {
                first.fmt(f)?;
                links.iter().try_for_each(|link| link.fmt(f))
            }
        }
    }
}

fn values(f: &mut Formatter, rows: &[Vec<Expr>]) -> fmt::Result {
    f.write_str("values ")?;
    separated(f, ",", rows, |f, row| write!(f, "row({})", Commas(row)))
}

impl Display for SetLink {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SetLink { op, all, operand } = self;
        write!(f, " {op} {}{operand}", when(*all, "all "))
    }
}

impl Display for SetOp {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            SetOp::Union => "union",
            SetOp::Except => "except",
            SetOp::Intersect => "intersect",
        })
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Select {
            hints,
            distinct,
            straight_join,
            calc_found_rows,
            items,
            from,
            selection,
            group_by,
            rollup,
            having,
            windows,
        } = self;
        write!(f, "select {}", Hints(hints))?;
        f.write_str(when(*distinct, "distinct "))?;
        f.write_str(when(*straight_join, "straight_join "))?;
        f.write_str(when(*calc_found_rows, "sql_calc_found_rows "))?;
        Commas(items).fmt(f)?;
        Clauses(" from ", from).fmt(f)?;
        Clause(" where ", selection.as_ref()).fmt(f)?;
        Clauses(" group by ", group_by).fmt(f)?;
        f.write_str(when(*rollup, " with rollup"))?;
        Clause(" having ", having.as_ref()).fmt(f)?;
        Clauses(" window ", windows).fmt(f)
    }
}

/// Comments of hints, each with a space behind it.
pub(super) struct Hints<'a>(pub &'a [String]);

impl Display for Hints<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Hints(hints) = *self;
        hints.iter().try_for_each(|hint| write!(f, "/*+ {hint} */ "))
    }
}

impl Display for NamedWindow {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let NamedWindow { name, window } = self;
        write!(f, "{name} as {window}")
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            SelectItem::All(_) => f.write_str("*"),
            SelectItem::AllOf(name, _) => write!(f, "{name}.*"),
            SelectItem::Expr(item) => item.fmt(f),
        }
    }
}

impl Display for SelectExpr {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SelectExpr { expr, alias, text: _ } = self;
        let alias = alias.as_deref().map(Identifier);
        write!(f, "{expr}{}", Clause(" AS ", alias.as_ref()))
    }
}

/// LIMIT with the space before it. Parameters are numbered in the order of the text, which decides between the two notations.
impl Display for Limit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Limit { count, offset } = self;
        let Some(offset) = offset else { return write!(f, " limit {count}") };
        match (&count.kind, &offset.kind) {
            (ExprKind::Parameter(first), ExprKind::Parameter(second)) if first < second => {
                write!(f, " limit {count} offset {offset}")
            }
            _ => write!(f, " limit {offset},{count}"),
        }
    }
}

impl Display for Locking {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Locking { update, of, wait } = self;
        f.write_str(if *update { "for update" } else { "for share" })?;
        Clauses(" of ", of).fmt(f)?;
        f.write_str(match wait {
            LockingWait::Wait => "",
            LockingWait::NoWait => " nowait",
            LockingWait::SkipLocked => " skip locked",
        })
    }
}

impl Display for Joined {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Joined { first, joins } = self;
        first.fmt(f)?;
        joins.iter().try_for_each(|join| join.fmt(f))
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Join { kind, table, constraint } = self;
        f.write_str(when(*constraint == JoinConstraint::Natural, " natural"))?;
        f.write_str(match kind {
            JoinKind::Inner => " join ",
            JoinKind::Straight => " straight_join ",
            JoinKind::Left => " left join ",
            JoinKind::Right => " right join ",
        })?;
        table.fmt(f)?;
        match constraint {
            JoinConstraint::None | JoinConstraint::Natural => Ok(()),
            JoinConstraint::On(condition) => write!(f, " on{}", Parenthesised(condition)),
            JoinConstraint::Using(columns) => write!(f, " using ({})", Commas(columns)),
        }
    }
}

impl Display for TableRef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            TableRef::Table(table) => table.fmt(f),
            TableRef::Derived(derived) => derived.fmt(f),
            TableRef::JsonTable(table) => table.fmt(f),
            TableRef::Nested(list) => write!(f, "({})", Commas(list)),
        }
    }
}

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TableName { name, partitions, alias, hints, span: _ } = self;
        write!(f, "{name}{}{}", Listed(" partition ", partitions), Clause(" ", alias.as_ref()))?;
        hints.iter().try_for_each(|hint| write!(f, " {hint}"))
    }
}

impl Display for Derived {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Derived { lateral, query, alias, columns } = self;
        write!(f, "{}({query})", when(*lateral, "lateral "))?;
        write!(f, "{}{}", Clause(" ", alias.as_ref()), Listed(" ", columns))
    }
}

impl Display for IndexHint {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let IndexHint { action, scope, indexes } = self;
        f.write_str(match action {
            HintAction::Use => "use index ",
            HintAction::Ignore => "ignore index ",
            HintAction::Force => "force index ",
        })?;
        f.write_str(match scope {
            None => "",
            Some(HintScope::Join) => "for join ",
            Some(HintScope::OrderBy) => "for order by ",
            Some(HintScope::GroupBy) => "for group by ",
        })?;
        write!(f, "({})", Commas(indexes))
    }
}

impl Display for JsonTable {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonTable { document, path, columns, alias } = self;
        write!(f, "json_table({document},{} columns ({}))", Text(path), Commas(columns))?;
        Clause(" ", alias.as_ref()).fmt(f)
    }
}

impl Display for JsonColumn {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            JsonColumn::Ordinality(name) => write!(f, "{name} for ordinality"),
            JsonColumn::Value(column) => column.fmt(f),
            JsonColumn::Nested { path, columns } => {
                write!(f, "nested path {} columns ({})", Text(path), Commas(columns))
            }
        }
    }
}

impl Display for JsonValueColumn {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonValueColumn { name, ty, exists, path, on_empty, on_error } = self;
        write!(f, "{name} {ty}{} path {}", when(*exists, " exists"), Text(path))?;
        Missing(on_empty.as_ref(), on_error.as_ref()).fmt(f)
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Target::Variables(names) => Variables(names).fmt(f),
            Target::File { file, charset: _, format: None } => write!(f, "dumpfile {}", Text(file)),
            Target::File { file, charset, format: Some(format) } => {
                write!(f, "outfile {}{}", Text(file), FileFormat(charset.as_deref(), format))
            }
        }
    }
}

/// The clauses behind the name of a file or table: the character set, and the format unless it is the default.
pub(super) struct FileFormat<'a>(pub Option<&'a str>, pub &'a Format);

impl Display for FileFormat<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let FileFormat(charset, format) = *self;
        Clause(" character set ", charset.map(Word).as_ref()).fmt(f)?;
        if *format == Format::default() { Ok(()) } else { write!(f, " {format}") }
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Format { field_end, enclosed, optionally, escape, line_start, line_end } = self;
        let one = |byte| Bytes(Option::map_or(byte, &[][..], from_ref));
        write!(f, "fields terminated by {}{}", Bytes(field_end), when(*optionally, " optionally"))?;
        write!(f, " enclosed by {} escaped by {}", one(enclosed.as_ref()), one(escape.as_ref()))?;
        write!(f, " lines starting by {} terminated by {}", Bytes(line_start), Bytes(line_end))
    }
}
