//! GIN indexes: indexes of terms (`query::term`) by PostgreSQL's operator classes.

use query::nodes::term_test::TermForm;
use query::types::Type;
use syntax::postgres::tree::{DefElem, IndexElem, IndexStmt, NullsOrder, SortDirection};

use crate::error::{PgError, Result, state};
use crate::system::operator_class::{GIN_CLASSES, gin_class};
use crate::types::registry::{format_type, oid_of};

/// Refuses the parts of a statement that the access method does not have.
pub(super) fn check(create: &IndexStmt) -> Result<()> {
    let lacks = |what: &str| {
        let message = format!("access method \"gin\" does not support {what}");
        Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
    };
    match () {
        () if create.unique => lacks("unique indexes"),
        () if !create.include.is_empty() => lacks("included columns"),
        () if create.elements.len() > 1 => Err(PgError::unsupported("a GIN index of several columns")),
        () => Ok(()),
    }
}

/// Checks storage parameters. Entries are always in the index at once, so both describe a list that there is not.
pub(super) fn check_options(options: &[DefElem]) -> Result<()> {
    options.iter().try_for_each(|option| match &*option.name {
        "fastupdate" | "gin_pending_list_limit" => Ok(()),
        name => {
            let message = format!("unrecognized parameter \"{name}\"");
            Err(PgError::new(state::INVALID_PARAMETER_VALUE, message))
        }
    })
}

/// Returns the terms of a column of that type by its operator class.
pub(super) fn form_of(element: &IndexElem, ty: &Type) -> Result<TermForm> {
    let IndexElem { key: _, collation, opclass, opclass_options, direction, nulls } = element;
    let lacks = |what: &str| {
        let message = format!("access method \"gin\" does not support {what} options");
        Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
    };
    if let Some(collation) = collation.as_ref().filter(|name| !matches!(name.last(), "C" | "POSIX" | "default")) {
        return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
    }
    let form = match opclass {
        None => default_form(ty)?,
        Some(name) => match GIN_CLASSES.iter().find(|class| class.name == name.last()) {
            Some(class) if gin_class(class.form, oid_of(ty)).is_some() => class.form,
            Some(class) => {
                let shown = format_type(oid_of(ty), None);
                let message = format!("operator class \"{}\" does not accept data type {shown}", class.name);
                return Err(PgError::new(state::DATATYPE_MISMATCH, message));
            }
            None if name.last() == "tsvector_ops" => return Err(PgError::unsupported("operator class tsvector_ops")),
            None => {
                let message = format!("operator class \"{}\" does not exist for access method \"gin\"", name.dotted());
                return Err(PgError::new(state::UNDEFINED_OBJECT, message));
            }
        },
    };
    if !opclass_options.is_empty() {
        return Err(PgError::unsupported("options of an operator class"));
    }
    match () {
        () if *direction != SortDirection::Default => lacks("ASC/DESC"),
        () if *nulls != NullsOrder::Default => lacks("NULLS FIRST/LAST"),
        () => Ok(form),
    }
}

/// Returns the terms by the default operator class of the type.
fn default_form(ty: &Type) -> Result<TermForm> {
    let oid = oid_of(ty);
    let class = GIN_CLASSES.iter().find(|class| class.is_default && gin_class(class.form, oid).is_some());
    if let Some(class) = class {
        return Ok(class.form);
    }
    let shown = format_type(oid, None);
    let message = format!("data type {shown} has no default operator class for access method \"gin\"");
    let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
    Err(PgError::new(state::UNDEFINED_OBJECT, message).hint(hint))
}

/// Fails if a column's new type does not fit an index of its terms.
pub(super) fn check_type(form: TermForm, ty: &Type) -> Result<()> {
    match gin_class(form, oid_of(ty)) {
        Some(_) => Ok(()),
        None => default_form(ty).and_then(|_| Err(PgError::unsupported("ALTER TYPE of a column of a GIN index"))),
    }
}
