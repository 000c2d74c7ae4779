mod support;

mod collections;
mod cross_door;
mod full_disk;
mod key_events;
mod key_transactions;
mod large;
mod lock_queues;
mod rename;
mod rows;
mod seen_rows;
mod serializable;
mod stress;
mod strings;
mod undo;
mod versions;
