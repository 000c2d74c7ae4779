//! Variables and accounts of the session, as the binder asks for them.

use std::sync::Arc;

use engine::rows::SeenMaps;

use crate::error::Result;
use crate::parse::statement;
use crate::rights::Rights;
use crate::types::Type;
use crate::value::Value;
use query::plan::statistics::Statistics;

pub trait Variables: Statistics {
    /// Returns the value and the type of a system variable.
    fn system(&self, scope: Option<statement::Scope>, name: &str) -> Result<(Value, Type)>;
    /// Returns the type of the variable `@name`, in lower case.
    fn user(&self, name: &str) -> Type;
    /// Returns what tells the maps apart that the transaction's snapshot sees; `None` if it sees all.
    fn seen_maps(&self) -> Option<SeenMaps>;
    /// Returns an error if the statement was cancelled.
    fn check_interrupts(&self) -> Result<()>;
    /// Returns the privileges of an account, and `None` if there is no such account.
    fn rights_of(&self, account: &str) -> Result<Option<Arc<Rights>>>;
}
