//! The pager on a simulated disk: what was durable is there after a crash, whole and in order.

mod backup;
mod crash;
mod damage;
mod pool;
mod read_queue;
mod support;
