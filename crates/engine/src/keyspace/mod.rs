//! Keys and values of sixteen Redis databases in one tree. `access` has what a door calls, `key_txn` what a command sees. The crate's README lists the files in
//! reading order.

mod access;
mod background;
pub(crate) mod background_signal;
mod build;
mod counts;
pub(crate) mod cross_door_commit;
mod cursors;
pub(crate) mod databases;
mod expire;
mod expiry;
mod flush;
pub(crate) mod key;
mod key_events;
mod key_lock_wait;
pub(crate) mod key_locks;
mod key_ops;
pub(crate) mod key_txn;
mod key_write;
mod member_hash;
mod members;
mod members_write;
mod packed;
pub(crate) mod purge;
pub(crate) mod record;
mod record_change;
mod scan;
pub(crate) mod segments;
pub(crate) mod state;
mod stripes;
pub(crate) mod value;
mod watch;
mod watch_registry;

pub use access::{Ahead, Found, Got};
pub use background_signal::Progress;
pub use build::Build;
pub use key::{DATABASES, KeySet, VALUE_MAX};
pub use key_events::{KeyEvent, KeyEvents, event_class};
pub use key_ops::Form;
pub use key_txn::{Entry, KeyTransaction};
pub use members::{ItemValue, MemberItem, MemberWalk};
pub use packed::PackLimits;
pub use record::Kind;
pub use record_change::Expire;
pub use state::Keyspace;
pub use watch::WatchSet;
