//! The interface to the server: settings, fields of INFO, and the accounts that SQL protects.

use std::path::PathBuf;

use engine::Account;

/// Why a setting was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Unknown(String),
    /// It can only be set at the start.
    Fixed(String),
    /// The name, and the expected value.
    Bad(String, String),
}

pub trait Host: Send + Sync {
    /// Returns names and values under the names that CONFIG uses.
    fn settings(&self) -> Vec<(String, String)>;
    /// Makes all of the changes or none.
    fn change(&self, changes: &[(&str, &str)]) -> Result<(), Refused>;
    /// Writes the current settings to the settings file.
    fn rewrite(&self) -> Result<(), String>;
    /// Returns the folder of files that commands write.
    fn data_folder(&self) -> PathBuf;
    /// Returns the version of Beluga.
    fn version(&self) -> &str;
    /// Returns additional fields of an INFO section, such as `memory` or `persistence` (lower case): names and values.
    fn facts(&self, section: &str) -> Vec<(String, String)>;
    /// Lets the server stop, as a signal does: it will call `RedisDoor::prepare_stop`.
    fn request_stop(&self);
    /// Describes the allocator: its name, its options and what they mean.
    fn allocator(&self) -> String;
    /// Logs a warning about a client at this address.
    fn warn(&self, what: &str, from: &str);
    /// Logs something about a server at this address.
    fn inform(&self, what: &str, from: &str);
    /// Logs a warning about the door's own work.
    fn report(&self, text: &str);
    /// Logs a message of a script, with Redis' number of its level: 0 debug to 3 warning.
    fn log(&self, level: i64, text: &str);
    /// Returns whether the account holds SYSTEM_USER in SQL. Only accounts that hold it may change such an account.
    fn is_system_account(&self, account: &Account) -> bool;
    /// Returns the account without SQL privileges of its own where its Redis rules would imply all of them.
    fn without_privileges(&self, account: Account) -> Account;
}
