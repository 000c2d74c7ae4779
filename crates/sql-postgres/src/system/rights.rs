//! Rights as arrays of `aclitem`.

use crate::system::arrays;
use crate::value::Value;

/// Returns those of `pg_catalog` and `information_schema`: everybody may use them.
pub fn of_system_schema() -> Value {
    arrays::rights(&["postgres=UC/postgres".to_owned(), "=U/postgres".to_owned()])
}

/// Returns those of the schema `public`: the owner of the database may create there, everybody may use it.
pub fn of_public() -> Value {
    let owner = "pg_database_owner=UC/pg_database_owner".to_owned();
    arrays::rights(&[owner, "=U/pg_database_owner".to_owned()])
}
