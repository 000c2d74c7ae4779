//! Queries.

use std::fmt::{self, Display, Formatter};

use super::{Clause, Clauses, Commas, Listed, when};
use crate::postgres::tree::*;

impl Display for SelectStmt {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SelectStmt { with, body, order_by, limit, locking, span: _ } = self;
        write!(f, "{}{body}{}", Clause("", with.as_ref()), Clauses(" ORDER BY ", order_by))?;
        limit.iter().try_for_each(|limit| limit.fmt(f))?;
        locking.iter().try_for_each(|clause| clause.fmt(f))
    }
}

impl Display for WithClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let WithClause { recursive, tables, at: _ } = self;
        write!(f, "WITH {}{} ", when(*recursive, "RECURSIVE "), Commas(tables))
    }
}

impl Display for CommonTableExpr {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CommonTableExpr { name, columns, materialized, statement, search, cycle } = self;
        let materialized = match materialized {
            Some(true) => " MATERIALIZED",
            Some(false) => " NOT MATERIALIZED",
            None => "",
        };
        write!(f, "{name}{} AS{materialized} (", Listed("", columns))?;
        super::change::preparable(f, statement)?;
        f.write_str(")")?;
        search.iter().try_for_each(|search| search.fmt(f))?;
        cycle.iter().try_for_each(|cycle| cycle.fmt(f))
    }
}

impl Display for SearchClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SearchClause { breadth_first, columns, sequence, at: _ } = self;
        let order = if *breadth_first { "BREADTH" } else { "DEPTH" };
        write!(f, " SEARCH {order} FIRST BY {} SET {sequence}", Commas(columns))
    }
}

/// Writes a constant, whose type stands before its string.
fn constant(f: &mut Formatter, expr: &Expr) -> fmt::Result {
    let ExprKind::Cast { operand, to, at: _ } = &expr.kind else { return expr.fmt(f) };
    let name = to.to_string();
    match name.strip_prefix("interval ") {
        Some(fields) => write!(f, "interval {operand} {fields}"),
        None => write!(f, "{name} {operand}"),
    }
}

impl Display for CycleClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let CycleClause { columns, mark, value, otherwise, path, at: _ } = self;
        write!(f, " CYCLE {} SET {mark}", Commas(columns))?;
        let are_plain =
            value.kind == ExprKind::Const(Const::Bool(true)) && otherwise.kind == ExprKind::Const(Const::Bool(false));
        if !are_plain {
            f.write_str(" TO ")?;
            constant(f, value)?;
            f.write_str(" DEFAULT ")?;
            constant(f, otherwise)?;
        }
        write!(f, " USING {path}")
    }
}

impl Display for SelectBody {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            SelectBody::Select(select) => select.fmt(f),
            SelectBody::Values(rows) => {
                f.write_str("VALUES ")?;
                for (i, row) in rows.iter().enumerate() {
                    write!(f, "{}({})", when(i > 0, ", "), Commas(row))?;
                }
                Ok(())
            }
            SelectBody::SetOperations { first, links } => {
                first.fmt(f)?;
                links.iter().try_for_each(|link| link.fmt(f))
            }
            SelectBody::Nested(query) => write!(f, "({query})"),
        }
    }
}

impl Display for SetLink {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SetLink { op, all, operand, at: _ } = self;
        let op = match op {
            SetOp::Union => "UNION",
            SetOp::Except => "EXCEPT",
            SetOp::Intersect => "INTERSECT",
        };
        write!(f, " {op}{} {operand}", when(*all, " ALL"))
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Select { distinct, targets, into, from, selection, group_by, group_distinct, having, windows } = self;
        f.write_str("SELECT")?;
        match distinct {
            Some(Distinct::Rows) => f.write_str(" DISTINCT")?,
            Some(Distinct::On(list)) => write!(f, " DISTINCT ON ({})", Commas(list))?,
            None => {}
        }
        write!(f, "{}{}{}", Clauses(" ", targets), Clause(" INTO ", into.as_deref()), Clauses(" FROM ", from))?;
        Clause(" WHERE ", selection.as_ref()).fmt(f)?;
        Clauses(if *group_distinct { " GROUP BY DISTINCT " } else { " GROUP BY " }, group_by).fmt(f)?;
        write!(f, "{}{}", Clause(" HAVING ", having.as_ref()), Clauses(" WINDOW ", windows))
    }
}

impl Display for ResTarget {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ResTarget { expr, alias } = self;
        write!(f, "{expr}{}", Clause(" AS ", alias.as_ref()))
    }
}

/// The table of SELECT INTO, which has a name and a persistence alone.
impl Display for IntoClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let IntoClause { relation, persistence, columns: _, access_method: _, options: _, on_commit: _, tablespace: _ } =
            self;
        let kind = match persistence {
            Persistence::Permanent => "TABLE ",
            Persistence::Temporary => "TEMPORARY TABLE ",
            Persistence::Unlogged => "UNLOGGED TABLE ",
        };
        write!(f, "{kind}{relation}")
    }
}

impl Display for NamedWindow {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let NamedWindow { name, window } = self;
        write!(f, "{name} AS {window}")
    }
}

impl Display for GroupItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            GroupItem::Expr(expr) => expr.fmt(f),
            GroupItem::Empty(_) => f.write_str("()"),
            GroupItem::Rollup(list, _) => write!(f, "ROLLUP({})", Commas(list)),
            GroupItem::Cube(list, _) => write!(f, "CUBE({})", Commas(list)),
            GroupItem::GroupingSets(sets, _) => write!(f, "GROUPING SETS ({})", Commas(sets)),
        }
    }
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Limit { count, with_ties, offset } = self;
        Clause(" OFFSET ", offset.as_ref()).fmt(f)?;
        match count {
            Some(count) if *with_ties => write!(f, " FETCH FIRST ({count}) ROWS WITH TIES"),
            Some(Expr { kind: ExprKind::Const(Const::Null), span: _ }) => f.write_str(" LIMIT ALL"),
            Some(count) => write!(f, " LIMIT {count}"),
            None => Ok(()),
        }
    }
}

impl Display for LockingClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let LockingClause { strength, of, wait } = self;
        f.write_str(match strength {
            LockStrength::KeyShare => " FOR KEY SHARE",
            LockStrength::Share => " FOR SHARE",
            LockStrength::NoKeyUpdate => " FOR NO KEY UPDATE",
            LockStrength::Update => " FOR UPDATE",
        })?;
        Clauses(" OF ", of).fmt(f)?;
        f.write_str(match wait {
            LockWait::Wait => "",
            LockWait::NoWait => " NOWAIT",
            LockWait::SkipLocked => " SKIP LOCKED",
        })
    }
}

impl Display for FromItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let FromItem { first, joins } = self;
        first.fmt(f)?;
        joins.iter().try_for_each(|join| join.fmt(f))
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Join { kind, right, qual, at: _ } = self;
        let natural = when(*qual == JoinQual::Natural, "NATURAL ");
        let kind = match kind {
            JoinKind::Inner if *qual == JoinQual::Cross => "CROSS ",
            JoinKind::Inner => "",
            JoinKind::Left => "LEFT ",
            JoinKind::Right => "RIGHT ",
            JoinKind::Full => "FULL ",
        };
        write!(f, " {natural}{kind}JOIN {right}")?;
        match qual {
            JoinQual::Cross | JoinQual::Natural => Ok(()),
            JoinQual::On(condition) => write!(f, " ON {condition}"),
            JoinQual::Using { columns, alias } => {
                write!(f, " USING ({}){}", Commas(columns), Clause(" AS ", alias.as_ref()))
            }
        }
    }
}

impl Display for TableRef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            TableRef::Relation(relation) => {
                let Relation { name, alias, sample } = &**relation;
                write!(f, "{name}{}{}", Clause(" AS ", alias.as_ref()), Clause(" TABLESAMPLE ", sample.as_ref()))
            }
            TableRef::Subselect(select) => {
                let RangeSubselect { lateral, query, alias, at: _ } = &**select;
                write!(f, "{}({query}){}", when(*lateral, "LATERAL "), Clause(" AS ", alias.as_ref()))
            }
            TableRef::Function(function) => function.fmt(f),
            TableRef::Joined(joined) => {
                let JoinedTable { item, alias } = &**joined;
                write!(f, "({item}){}", Clause(" AS ", alias.as_ref()))
            }
        }
    }
}

impl Display for TableSample {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TableSample { method, arguments, repeatable, at: _ } = self;
        write!(f, "{method} ({})", Commas(arguments))?;
        match repeatable {
            Some(seed) => write!(f, " REPEATABLE ({seed})"),
            None => Ok(()),
        }
    }
}

impl Display for RangeFunction {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RangeFunction { lateral, rows_from, functions, ordinality, alias, columns, at: _ } = self;
        f.write_str(when(*lateral, "LATERAL "))?;
        if *rows_from {
            write!(f, "ROWS FROM({})", Commas(functions))?
        } else {
            Commas(functions).fmt(f)?
        }
        f.write_str(when(*ordinality, " WITH ORDINALITY"))?;
        match alias {
            Some(alias) => write!(f, " AS {alias}{}", Listed("", columns)),
            None => Listed(" AS ", columns).fmt(f),
        }
    }
}

impl Display for RowsFromItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RowsFromItem { call, columns } = self;
        match &call.kind {
            // The other notation of a cast is none of a function.
            ExprKind::Cast { operand, to, at: _ } => write!(f, "CAST({operand} AS {to})")?,
            _ => call.fmt(f)?,
        }
        Listed(" AS ", columns).fmt(f)
    }
}

impl Display for TableFuncColumn {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TableFuncColumn { name, ty, collation } = self;
        write!(f, "{name} {ty}{}", Clause(" COLLATE ", collation.as_ref()))
    }
}
