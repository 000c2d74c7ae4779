//! What the door asks of the server around it: settings, and facts for INFO.

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
}
