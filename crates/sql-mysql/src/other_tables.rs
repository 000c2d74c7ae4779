//! Tables that another dialect made, as MySQL sees them.
//!
//! Their columns have PostgreSQL's types: an object identifier as number, and the bits of a type modifier as length. `table_view` gives each column the type of MySQL that has the same values in rows and
//! keys, so everything behind the binder works as with a table of MySQL's own. A type whose values have a form that MySQL reads otherwise stays, and the binder refuses its column by name (MY-28). Texts
//! of the definition are the other dialect's and are never bound.

use std::sync::Arc;

use datum::Storage;
use query::catalog::foreign_key::Deferral;
use query::catalog::table::Table;

use crate::error::{Result, SqlError};
use crate::other_dialects::{
    BOOL, BPCHAR, JSON, MAKER, NAME, NUMERIC, VARCHAR, form_of, is_domain, is_of_others, opaque_name,
};
use crate::other_values::seen_type;
use crate::types::{BOOLEAN, CONSTRAINED, Collation, Kind, MysqlType as _, Type, UNASSIGNABLE};

/// Returns MySQL's type for another dialect's. Opaque types, the core's and MySQL's own stay.
pub fn type_view(ty: &Type) -> Type {
    if !is_of_others(ty) || opaque_name(ty).is_some() || is_converted(ty) {
        return ty.clone();
    }
    // -1 is no modifier; those of texts and decimals begin at 4.
    let modifier = (ty.length as i32).checked_sub(4).filter(|modifier| *modifier >= 0).map(|modifier| modifier as u32);
    let seen = match (form_of(ty), modifier) {
        (BOOL, _) => Type { length: 1, attributes: BOOLEAN, ..Type::of_kind(Kind::TinyInt) },
        (VARCHAR, Some(length)) => Type { length, ..Type::of_kind(Kind::VarChar) },
        (BPCHAR, Some(length)) => Type { length, attributes: UNASSIGNABLE, ..Type::of_kind(Kind::VarChar) },
        (NAME, _) => Type { length: 63, ..Type::of_kind(Kind::VarChar) },
        (JSON | BPCHAR, _) => Type { attributes: UNASSIGNABLE, ..Type::of_kind(Kind::LongText) },
        (NUMERIC, Some(modifier)) => Type::decimal(modifier >> 16, (modifier & 0x7ff) as u8),
        _ => of_storage(ty.storage),
    };
    let collation = match (ty.storage, ty.collation) {
        // Both order texts by their bytes and have the same keys.
        (Storage::Text, Collation::Binary) => Collation::Utf8Bin,
        (_, collation) => collation,
    };
    let attributes = seen.attributes | if is_domain(ty) { UNASSIGNABLE | CONSTRAINED } else { 0 };
    Type { nullable: ty.nullable, collation, attributes, ..seen }
}

/// Returns whether the column keeps its stored type and its values are converted. A numeric with the digits of a
/// DECIMAL is not.
fn is_converted(ty: &Type) -> bool {
    let is_decimal = form_of(ty) == NUMERIC && {
        let modifier = (ty.length as i32).checked_sub(4).and_then(|modifier| u32::try_from(modifier).ok());
        let digits = modifier.map(|modifier| (modifier >> 16, modifier & 0x7ff));
        matches!(digits, Some((precision @ 1..=65, scale @ 0..=30)) if scale <= precision)
    };
    !is_decimal && seen_type(ty).is_some()
}

fn of_storage(storage: Storage) -> Type {
    let (kind, unsigned) = match storage {
        Storage::Int { bytes: 1, signed } => (Kind::TinyInt, !signed),
        Storage::Int { bytes: 2, signed } => (Kind::SmallInt, !signed),
        Storage::Int { bytes: 4, signed } => (Kind::Int, !signed),
        Storage::Int { bytes: _, signed } => (Kind::BigInt, !signed),
        Storage::Float4 => (Kind::Float, false),
        Storage::Float8 => (Kind::Double, false),
        Storage::Bytes => (Kind::LongBlob, false),
        _ => (Kind::LongText, false),
    };
    Type::of_kind(kind).with_unsigned(unsigned)
}

/// Returns the table with MySQL's types. Equal to the stored definition in all that the core reads, so the two have one
/// version.
pub fn table_view(table: &Arc<Table>) -> Arc<Table> {
    if table.maker == MAKER {
        return table.clone();
    }
    let mut seen = Table { version: table.version, ..table.copy() };
    seen.columns.iter_mut().for_each(|column| column.ty = type_view(&column.ty));
    let seen = seen.with_derived_fields();
    // A statement that would need one is refused.
    seen.keep_formulas(Vec::new());
    Arc::new(seen)
}

/// Refuses to read a column whose type is opaque or whose expression is another dialect's. The table is of `table_view`.
pub fn check_read(table: &Table, column: usize) -> Result<()> {
    if table.maker == MAKER {
        return Ok(());
    }
    let column = &table.columns[column];
    if column.is_computed() {
        return Err(refused("generated column", &column.name));
    }
    match opaque_name(&column.ty) {
        Some(name) => Err(SqlError::unsupported(format!("column '{}' of type {name}", column.name))),
        None => Ok(()),
    }
}

/// Refuses to assign a value to a column of a type that takes none from MySQL.
pub fn check_assign(table: &Table, column: usize) -> Result<()> {
    check_read(table, column)?;
    let column = &table.columns[column];
    // The modifier of a numeric that is no DECIMAL is PostgreSQL's to apply.
    let is_bound = form_of(&column.ty) == NUMERIC && column.ty.length != u32::MAX;
    if table.maker != MAKER && (is_bound || column.ty.attributes & UNASSIGNABLE != 0) {
        let what = format!("a value for column '{}', whose type another dialect declared", column.name);
        return Err(SqlError::unsupported(what));
    }
    Ok(())
}

/// Refuses to change the rows of a table that keeps those of a query.
pub fn check_change(table: &Table) -> Result<()> {
    match table.query {
        None => Ok(()),
        Some(_) => Err(refused("materialized view", &table.name)),
    }
}

/// Refuses to read a table that keeps the rows of a query and has none yet.
pub fn check_populated(table: &Table) -> Result<()> {
    match &table.query {
        Some(query) if !query.is_populated => {
            let what = format!("materialized view '{}', which has not been populated", table.name);
            Err(SqlError::unsupported(what))
        }
        _ => Ok(()),
    }
}

/// Refuses to write rows whose checks or generated columns are another dialect's.
pub fn check_write(table: &Table) -> Result<()> {
    if table.maker == MAKER {
        return Ok(());
    }
    if let Some(check) = table.checks.iter().find(|check| check.enforced) {
        return Err(refused("check constraint", &check.name));
    }
    if let Some(column) =
        table.columns.iter().find(|column| column.ty.attributes & CONSTRAINED != 0 || is_domain(&column.ty))
    {
        return Err(refused("domain of column", &column.name));
    }
    // Its checks wait for the end of the statement or of the transaction.
    if let Some(key) = table.indexes.iter().find(|index| index.deferral != Deferral::Never) {
        return Err(refused("deferrable key", &key.name));
    }
    match table.columns.iter().find(|column| column.generated.is_some()) {
        Some(column) if column.is_hidden() => Err(refused("index", of_hidden(table, &column.name))),
        Some(column) => Err(refused("generated column", &column.name)),
        None => Ok(()),
    }
}

/// Returns the name of the first index that has a hidden column.
fn of_hidden<'t>(table: &'t Table, name: &'t str) -> &'t str {
    let has_one = |index: &&query::catalog::table::Index| index.columns().any(|at| table.columns[at].is_hidden());
    table.indexes.iter().find(has_one).map_or(name, |index| &index.name)
}

/// Refuses to change the definition of another dialect's table.
pub fn check_definition(table: &Table) -> Result<()> {
    match table.maker == MAKER {
        true => Ok(()),
        false => Err(refused("definition of table", &table.name)),
    }
}

/// Names a part of a definition that another dialect would have to read.
pub fn of_another(what: &str, name: &str) -> String {
    format!("{what} '{name}' of another dialect")
}

pub fn refused(what: &str, name: &str) -> SqlError {
    SqlError::unsupported(of_another(what, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::TypeId;

    fn of(id: u32, storage: Storage, modifier: i32) -> Type {
        Type::plain(storage, TypeId(id), (modifier as u32, 0), true, Collation::Binary)
    }

    #[test]
    fn a_domain_is_read_as_its_base_type_and_written_at_its_own_door_alone() {
        let domain = |form: u32| 1 << 30 | form << 24 | 20000;
        let int = |bytes| Storage::Int { bytes, signed: true };
        for (ty, name) in [
            (of(domain(0), int(1), -1), "tinyint(1)"),
            (of(domain(6), int(4), -1), "int"),
            (of(domain(7), Storage::Text, -1), "longtext"),
            (of(domain(20), Storage::Decimal, -1), "decimal(65,30)"),
            (of(domain(14), int(4), -1), "date"),
            (of(domain(26), Storage::Array, -1), "domain of another dialect"),
            (of(3 << 29 | 20000, Storage::Array, -1), "array of another dialect"),
        ] {
            let seen = type_view(&ty);
            assert_eq!(&*seen.name(), name);
            let column = query::catalog::table::TableColumn::new("c".into(), seen, 0);
            let table = Table { maker: query::catalog::object_id::Maker(1), ..Table::draft("t", &[column]) };
            // Arrays take no values either, but may be left out.
            if name.starts_with("array") {
                continue;
            }
            let error = check_write(&table).unwrap_err();
            assert_eq!(error.code, 1235, "{}", error.message);
        }
    }

    #[test]
    fn types_of_the_other_dialect_have_names_of_mysql() {
        let int = |bytes| Storage::Int { bytes, signed: true };
        for (ty, name) in [
            (of(16, int(1), -1), "tinyint(1)"),
            (of(20, int(8), -1), "bigint"),
            (of(23, int(4), -1), "int"),
            (of(26, Storage::Int { bytes: 4, signed: false }, -1), "int unsigned"),
            (of(25, Storage::Text, -1), "longtext"),
            (of(1043, Storage::Text, 14), "varchar(10)"),
            (of(1043, Storage::Text, -1), "longtext"),
            (of(1042, Storage::Text, 9), "varchar(5)"),
            (of(1700, Storage::Decimal, (12 << 16 | 2) + 4), "decimal(12,2)"),
            (of(1700, Storage::Decimal, -1), "decimal(65,30)"),
            (of(701, Storage::Float8, -1), "double"),
            (of(17, Storage::Bytes, -1), "longblob"),
            (of(1082, int(4), -1), "date"),
            (of(1184, int(8), -1), "timestamp(6)"),
            (of(1114, int(8), 3), "datetime(3)"),
            (of(1083, int(8), 0), "time"),
            (of(1186, Storage::Interval, -1), "interval"),
            (of(2950, Storage::Bytes, -1), "char(36)"),
            (of(3802, Storage::Jsonb, -1), "json"),
            (of(869, Storage::Bytes, -1), "inet"),
            (of(1562, Storage::Bytes, 5), "bit varying"),
            (of(4711, Storage::Bytes, -1), "type 4711"),
            (of((1 << 28) + 16384, Storage::Bytes, -1), "enum of another dialect"),
            (of((1 << 27) + 16384, Storage::Record, -1), "row of another dialect"),
            (of((3 << 26) + 16384, Storage::Array, -1), "row of another dialect"),
        ] {
            let seen = type_view(&ty);
            assert_eq!((&*seen.name(), seen.storage, seen.nullable), (name, ty.storage, true));
        }
    }

    #[test]
    fn texts_keep_their_keys() {
        let seen = type_view(&of(25, Storage::Text, -1));
        assert_eq!(seen.collation, Collation::Utf8Bin);
        for text in ["", "a", "a ", "A", "ä\u{1}", "\u{10ffff}"] {
            let key = |collation: Collation| {
                let mut key = Vec::new();
                collation.sort_key(text.as_bytes(), &mut key);
                key
            };
            assert_eq!(key(Collation::Binary), key(Collation::Utf8Bin));
        }
    }
}
