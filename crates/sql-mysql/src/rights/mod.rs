//! Who may do what: MySQL's privileges over the engine's one list of accounts.
//!
//! ```text
//!   GRANT, REVOKE ──► Grants: what one account was given      ┐
//!                     (bytes in its record)                   ├─► Rights: what a session may do ──► bind, needs, show
//!   SET ROLE ───────► which roles count                       ┘
//! ```
//! Every check is made while a statement is bound, or before a command runs, never row by row and never for a plan that is kept: `Rights` change rarely, the account list has a number
//! that moves with each change, and a session whose rights have changed leaves the ground of its plans (MY-16).
//!
//! Files: `privilege` (the table of privileges), `identity` (names and hosts), `grants` (what is stored), `effective` (what counts), `needs` (which statement needs what).

pub mod effective;
pub mod grants;
pub mod identity;
pub mod needs;
pub mod privilege;

pub use effective::Rights;
pub use grants::Grants;
pub use identity::{Who, find};
pub use privilege::Privileges;

use engine::{Account, Accounts};

/// True if the account holds SYSTEM_USER, itself or through a role. Grants that cannot be read count as holding it.
pub fn is_system_account(accounts: &Accounts, account: &Account) -> bool {
    let is_system = |grants: Grants| grants.are_of_system_user(|name| accounts.get(name));
    Grants::of(account).and_then(is_system).unwrap_or(true)
}

/// The account with grants of its own that are empty, whatever its Redis rules would imply.
pub fn without_privileges(account: Account) -> Account {
    Account { grants: Some(Grants::default().encode()), ..account }
}
