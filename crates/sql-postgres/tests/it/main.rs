//! Integration tests of PostgreSQL's dialect.

mod catalog;
mod changes;
mod composites;
mod cursors;
mod deferred;
mod definitions;
mod durability;
mod gin_indexes;
mod grouped_joins;
mod indexes;
mod indexes_in_use;
mod limits;
mod locks;
mod maintenance;
mod moved_relations;
mod notifications;
mod older_snapshots;
mod prepared;
mod recorded;
mod roles;
mod session;
mod table_waits;
mod temporary_objects;
mod transactional_definitions;
mod user_types;
mod world;
