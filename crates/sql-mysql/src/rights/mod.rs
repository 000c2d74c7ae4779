//! MySQL's privileges over the engine's list of accounts.
//!
//! ```text
//!   GRANT, REVOKE ──► Grants: the privileges of an account    ┐
//!                     (bytes in its record)                   ├─► Rights: those of a session ──► bind, needs, show
//!   SET ROLE ───────► active roles                            ┘
//! ```
//! Privileges are checked while a statement is bound, or before a command runs, but never row by row and never for a
//! cached plan. The account list has a version that changes with each change, and a session whose privileges have
//! changed leaves its plan-cache context (MY-16).
//!
//! Files: `privilege` (the table of privileges), `identity` (names and hosts), `grants` (stored grants), `effective`
//! (privileges of a session), `needs` (required privileges).

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
