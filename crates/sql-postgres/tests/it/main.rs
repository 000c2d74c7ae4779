//! Integration tests of PostgreSQL's dialect.

mod catalog;
mod changes;
mod cursors;
mod deferred;
mod definitions;
mod durability;
mod grouped_joins;
mod indexes;
mod indexes_in_use;
mod limits;
mod locks;
mod notifications;
mod older_snapshots;
mod prepared;
mod recorded;
mod roles;
mod session;
mod table_waits;
mod transactional_definitions;
mod user_types;
mod world;
