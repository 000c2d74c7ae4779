//! Changes of rows, which are parts of queries too.

use std::fmt::{self, Display, Formatter};

use super::{Clause, Clauses, Commas, Listed, when};
use crate::postgres::tree::*;

/// Writes the statement of a common table expression or of PREPARE: a query or a change of rows. Others have no text here.
pub(super) fn preparable(f: &mut Formatter, statement: &Statement) -> fmt::Result {
    match statement {
        Statement::Select(query) => query.fmt(f),
        Statement::Insert(insert) => insert.fmt(f),
        Statement::Update(update) => update.fmt(f),
        Statement::Delete(delete) => delete.fmt(f),
        Statement::Merge(merge) => merge.fmt(f),
        _ => Err(fmt::Error),
    }
}

impl Display for InsertStmt {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let InsertStmt { with, relation, alias, columns, overriding, source, on_conflict, returning } = self;
        write!(f, "{}INSERT INTO {relation}{}", Clause("", with.as_ref()), Clause(" AS ", alias.as_ref()))?;
        write!(f, "{}{}", Listed(" ", columns), Clause(" ", overriding.as_ref()))?;
        match source {
            Some(source) => write!(f, " {source}")?,
            None => f.write_str(" DEFAULT VALUES")?,
        }
        write!(f, "{}{}", Clause(" ", on_conflict.as_ref()), Clauses(" RETURNING ", returning))
    }
}

impl Display for InsertColumn {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let InsertColumn { name, indirection } = self;
        name.fmt(f)?;
        indirection.iter().try_for_each(|link| link.fmt(f))
    }
}

impl Display for Overriding {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Overriding::User => "OVERRIDING USER VALUE",
            Overriding::System => "OVERRIDING SYSTEM VALUE",
        })
    }
}

impl Display for OnConflictClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let OnConflictClause { target, action, at: _ } = self;
        f.write_str("ON CONFLICT")?;
        match target {
            Some(ConflictTarget::Columns { elements, selection, at: _ }) => {
                write!(f, " ({}){}", Commas(elements), Clause(" WHERE ", selection.as_ref()))?;
            }
            Some(ConflictTarget::Constraint(name)) => write!(f, " ON CONSTRAINT {name}")?,
            None => {}
        }
        match action {
            ConflictAction::Nothing => f.write_str(" DO NOTHING"),
            ConflictAction::Update { set, selection } => {
                write!(f, " DO UPDATE SET {}{}", Commas(set), Clause(" WHERE ", selection.as_ref()))
            }
        }
    }
}

impl Display for IndexElem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let IndexElem { key, collation, opclass, opclass_options, direction, nulls } = self;
        match key {
            IndexKey::Column(name) => name.fmt(f)?,
            IndexKey::Expr(expr) => write!(f, "({expr})")?,
        }
        write!(f, "{}{}", Clause(" COLLATE ", collation.as_ref()), Clause(" ", opclass.as_ref()))?;
        write!(f, "{}{direction}{nulls}", Listed(" ", opclass_options))
    }
}

impl Display for DefElem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let DefElem { namespace, name, value, at: _ } = self;
        namespace.iter().try_for_each(|namespace| write!(f, "{}.", super::Identifier(namespace)))?;
        write!(f, "{}{}", super::Identifier(name), Clause(" = ", value.as_ref()))
    }
}

impl Display for DefArg {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            DefArg::String(text) => super::Text(text).fmt(f),
            DefArg::Type(ty) => ty.fmt(f),
            DefArg::Integer(number) => number.fmt(f),
            DefArg::Float(digits) => f.write_str(digits),
            DefArg::Bool(value) => f.write_str(if *value { "true" } else { "false" }),
            DefArg::Star => f.write_str("*"),
            DefArg::Keyword(word) => f.write_str(word),
            DefArg::Operator(op) => op.fmt(f),
            DefArg::List(list) => write!(f, "({})", Commas(list)),
            DefArg::Name(name) => name.fmt(f),
            DefArg::Roles(roles) => Commas(roles).fmt(f),
        }
    }
}

impl Display for RoleSpec {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RoleSpec { kind, at: _ } = self;
        match kind {
            RoleSpecKind::Name(name) => super::Identifier(name).fmt(f),
            RoleSpecKind::Public => f.write_str("PUBLIC"),
            RoleSpecKind::CurrentRole => f.write_str("CURRENT_ROLE"),
            RoleSpecKind::CurrentUser => f.write_str("CURRENT_USER"),
            RoleSpecKind::SessionUser => f.write_str("SESSION_USER"),
        }
    }
}

impl Display for SetClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            SetClause::Single { target, value } => write!(f, "{target} = {value}"),
            SetClause::Multiple { targets, source } => write!(f, "({}) = {source}", Commas(targets)),
        }
    }
}

impl Display for UpdateStmt {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let UpdateStmt { with, relation, alias, set, from, selection, returning } = self;
        write!(f, "{}UPDATE {relation}{}", Clause("", with.as_ref()), Clause(" AS ", alias.as_ref()))?;
        write!(f, " SET {}{}", Commas(set), Clauses(" FROM ", from))?;
        write!(f, "{}{}", Clause(" WHERE ", selection.as_ref()), Clauses(" RETURNING ", returning))
    }
}

impl Display for DeleteStmt {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let DeleteStmt { with, relation, alias, using, selection, returning } = self;
        write!(f, "{}DELETE FROM {relation}{}", Clause("", with.as_ref()), Clause(" AS ", alias.as_ref()))?;
        write!(f, "{}{}", Clauses(" USING ", using), Clause(" WHERE ", selection.as_ref()))?;
        Clauses(" RETURNING ", returning).fmt(f)
    }
}

impl Display for MergeStmt {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let MergeStmt { with, relation, alias, source, condition, whens } = self;
        write!(f, "{}MERGE INTO {relation}{}", Clause("", with.as_ref()), Clause(" AS ", alias.as_ref()))?;
        write!(f, " USING {source} ON {condition}")?;
        whens.iter().try_for_each(|clause| clause.fmt(f))
    }
}

impl Display for MergeWhenClause {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let MergeWhenClause { matched, condition, action } = self;
        let not = when(!matched, "NOT ");
        write!(f, " WHEN {not}MATCHED{} THEN ", Clause(" AND ", condition.as_ref()))?;
        match action {
            MergeAction::Nothing => f.write_str("DO NOTHING"),
            MergeAction::Update(set) => write!(f, "UPDATE SET {}", Commas(set)),
            MergeAction::Delete => f.write_str("DELETE"),
            MergeAction::Insert { columns, overriding, values } => {
                write!(f, "INSERT{}{}", Listed(" ", columns), Clause(" ", overriding.as_ref()))?;
                if values.is_empty() {
                    return f.write_str(" DEFAULT VALUES");
                }
                write!(f, " VALUES ({})", Commas(values))
            }
        }
    }
}
