//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.

use std::fmt::{self, Display, Formatter};

use super::query::{FileFormat, Hints};
use super::{Clause, Clauses, Commas, Identifier, Listed, Text, Variable, separated, when};
use crate::tree::*;

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Insert { replace, ignore, hints, table, partitions, columns, source, row_alias, on_duplicate, returning } =
            self;
        f.write_str(if *replace { "replace " } else { "insert " })?;
        write!(f, "{}{}into {table}", Hints(hints), when(*ignore, "ignore "))?;
        write!(f, "{}{} {source}", Listed(" partition ", partitions), Listed(" ", columns))?;
        Clause(" as ", row_alias.as_ref()).fmt(f)?;
        Clauses(" on duplicate key update ", on_duplicate).fmt(f)?;
        Clauses(" returning ", returning.as_deref().unwrap_or(&[])).fmt(f)
    }
}

impl Display for InsertSource {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            InsertSource::Values(rows) => {
                f.write_str("values ")?;
                separated(f, ",", rows, |f, row| write!(f, "({})", Commas(row)))
            }
            InsertSource::Set(assignments) => write!(f, "set {}", Commas(assignments)),
            InsertSource::Query(query) => query.fmt(f),
        }
    }
}

impl Display for RowAlias {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let RowAlias { name, columns } = self;
        write!(f, "{name}{}", Listed(" ", columns))
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Assignment { column, value } = self;
        write!(f, "{column} = {value}")
    }
}

/// The clauses behind the tables of UPDATE and DELETE.
fn rest(
    f: &mut Formatter,
    selection: Option<&Expr>,
    order_by: &[OrderItem],
    limit: Option<&Limit>,
    returning: Option<&[SelectItem]>,
) -> fmt::Result {
    Clause(" where ", selection).fmt(f)?;
    Clauses(" order by ", order_by).fmt(f)?;
    Clause("", limit).fmt(f)?;
    Clauses(" returning ", returning.unwrap_or(&[])).fmt(f)
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Update { with, hints, ignore, tables, assignments, selection, order_by, limit, returning } = self;
        with.iter().try_for_each(|with| write!(f, "{with} "))?;
        write!(f, "update {}{}{}", Hints(hints), when(*ignore, "ignore "), Commas(tables))?;
        write!(f, " set {}", Commas(assignments))?;
        rest(f, selection.as_ref(), order_by, limit.as_ref(), returning.as_deref())
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Delete { with, hints, ignore, targets, tables, selection, order_by, limit, returning } = self;
        with.iter().try_for_each(|with| write!(f, "{with} "))?;
        write!(f, "delete {}{}", Hints(hints), when(*ignore, "ignore "))?;
        match &tables[..] {
            [Joined { first: TableRef::Table(table), joins }] if targets.is_empty() && joins.is_empty() => {
                only_table(f, table)?;
            }
            _ => write!(f, "{}{}from {}", Commas(targets), when(!targets.is_empty(), " "), Commas(tables))?,
        }
        rest(f, selection.as_ref(), order_by, limit.as_ref(), returning.as_deref())
    }
}

/// DELETE of one table has its alias before the partitions.
fn only_table(f: &mut Formatter, table: &TableName) -> fmt::Result {
    let TableName { name, partitions, alias, hints, span: _ } = table;
    write!(f, "from {name}{}{}", Clause(" as ", alias.as_ref()), Listed(" partition ", partitions))?;
    hints.iter().try_for_each(|hint| write!(f, " {hint}"))
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Load { is_local, file, duplicates, table, charset, format, skip, fields, sets } = self;
        write!(f, "load data {}infile {}", when(*is_local, "local "), Text(file))?;
        write!(f, "{duplicates} into table {table}{}", FileFormat(charset.as_deref(), format))?;
        if *skip > 0 {
            write!(f, " ignore {skip} lines")?;
        }
        write!(f, "{}{}", Listed(" ", fields), Clauses(" set ", sets))
    }
}

/// The word before INTO or AS, with a space before it.
impl Display for Duplicates {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Duplicates::Fail => "",
            Duplicates::Ignore => " ignore",
            Duplicates::Replace => " replace",
        })
    }
}

impl Display for FieldTarget {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            FieldTarget::Column(name) => Identifier(name).fmt(f),
            FieldTarget::Variable(name) => Variable(name).fmt(f),
        }
    }
}
