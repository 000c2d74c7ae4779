//! The pager on a simulated disk: durable changes are there after a crash, whole and in order.

mod backup;
mod buffer_pool;
mod copy;
mod crash;
mod damage;
mod read_queue;
mod recovery;
mod shared;
mod snapshot;
mod support;
