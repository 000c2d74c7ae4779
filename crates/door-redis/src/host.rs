//! The door's questions to the server around it: settings, facts for INFO, and which accounts SQL protects.

use engine::Account;

/// Why a setting was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Unknown(String),
    /// It takes effect at a start only.
    Fixed(String),
    /// The name, and what is expected.
    Bad(String, String),
}

pub trait Host: Send + Sync {
    /// Names and values under the names that CONFIG uses.
    fn settings(&self) -> Vec<(String, String)>;
    /// All of the changes or none.
    fn change(&self, changes: &[(&str, &str)]) -> Result<(), Refused>;
    /// Writes the present settings into the settings file.
    fn rewrite(&self) -> Result<(), String>;
    /// Version of the product.
    fn version(&self) -> &str;
    /// Further lines for an INFO section in lower case, such as `memory` or `persistence`: names and values.
    fn facts(&self, section: &str) -> Vec<(String, String)>;
    /// A line for the log, about a client at this address.
    fn warn(&self, what: &str, from: &str);
    /// True if the account holds SYSTEM_USER in SQL: only accounts that hold it may change it.
    fn is_system_account(&self, account: &Account) -> bool;
    /// The account with no SQL privileges of its own, where its Redis rules would imply all of them.
    fn without_privileges(&self, account: Account) -> Account;
}
