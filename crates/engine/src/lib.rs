//! Transactions over keys and rows, durable by one WAL: what every door talks to. Start with the README.md of this crate.

#![forbid(unsafe_code)]

mod accounts;
mod catalog;
mod check;
mod database;
mod digest;
mod error;
mod keyspace;
mod metrics;
mod recovery;
pub mod rows;
mod store;
mod txn;

pub use accounts::attempts::{Attempt, Attempts, Turn};
pub use accounts::pending::PendingAccounts;
pub use accounts::role::RoleAttributes;
pub use accounts::scram::ScramVerifier;
pub use accounts::verifier::{PASSWORD_MAX, Verifier};
pub use accounts::{Account, AccountChange, Accounts, DEFAULT_ACCOUNT, FIRST_ACCOUNT_ID, Scram};
pub use catalog::{Documents, Settings};
pub use check::Report;
pub use database::{Engine, Opened, Options, Recovering};
pub use digest::{sha1, sha256};
pub use error::{Error, Result};
pub use keyspace::{
    Ahead, Build, Claim, Consumer, DATABASES, Deferred, DocumentChanges, EffectBatch, EffectPart, EncodeEffect,
    EncodingLimits, End, Entry, Expire, FIELD_TIME_MAX, FieldChange, FollowWriter, Form, Found, Got, Group, ItemValue,
    KeyEffect, KeyEffects, KeyEvent, KeyEvents, KeySet, KeySnapshot, KeyTransaction, KeyWait, Keyspace, Kind,
    LevelSizes, LimitNumbers, ListWalk, MemberItem, MemberWalk, NODE_BYTES_MAX, NamedWalk, NodeLimits, PackLimits,
    Pending, PendingWalk, PipelineEnd, Progress, Replace, ScoreBound, ScoresPut, Serving, SortedWalk, Staging, Stream,
    StreamField, StreamId, StreamItem, StreamWalk, TakeEffects, Trim, TrimTo, VALUE_MAX, WaitTicket, WatchSet,
    event_class,
};
pub use metrics::Metrics;
pub use pager::{
    CopyOptions, CopyTarget, DATA_FILE, DOUBLE_WRITE_FILE, EndHook, Error as StorageError, Lsn, PAGE_BYTES,
    PreparedCopy, SharedStorage, ThreadCounts, copy_backup,
};
