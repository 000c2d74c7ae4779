//! `pg_catalog`: rows of the relations that describe the objects of the session's database.

pub mod attribute;
pub mod class;
pub mod constraint;
pub mod depend;
pub mod describe;
pub mod index;
pub mod role;
pub mod schema;
pub mod sequence;
pub mod setting;
pub mod user_type;
pub mod views;

use std::sync::Arc;

use query::catalog::objects::Object;
use query::catalog::table::Table;

use crate::system::view::Shown;
use crate::types::oid::Oid;

/// Returns the tables in question: that of an OID, of it or of its index or constraint, or all.
fn tables(shown: &Shown, of: Option<Oid>) -> Vec<Arc<Table>> {
    let Some(oid) = of else { return shown.tables().cloned().collect() };
    match shown.object(oid) {
        Some(
            Object::Table(table)
            | Object::PrimaryKey(table)
            | Object::Index(table, _)
            | Object::Check(table, _)
            | Object::ForeignKey(table, _),
        ) => vec![table],
        _ => Vec::new(),
    }
}
