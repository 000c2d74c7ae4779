//! One change of the keyspace, as the engine and the oracle apply it.

use engine::{Error, Expire, KeyTransaction};
use stdx::prng::Prng;

/// Number of databases that histories use.
pub const DATABASES: u8 = 3;

/// A database and a key.
pub type Name = (u8, Vec<u8>);

/// One change within a key transaction.
#[derive(Clone)]
pub enum Op {
    Put(Name, Vec<u8>, Expire),
    Patch(Name, u64, Vec<u8>),
    Delete(Name),
    Expire(Name, Option<u64>),
    Rename(Name, Name),
    Copy(Name, Name),
    Flush(u8),
    FlushAll,
    Swap(u8, u8),
}

impl Op {
    pub fn names(&self) -> Vec<Name> {
        match self {
            Op::Put(name, ..) | Op::Patch(name, ..) | Op::Delete(name) | Op::Expire(name, _) => vec![name.clone()],
            Op::Rename(from, to) | Op::Copy(from, to) => vec![from.clone(), to.clone()],
            Op::Flush(_) | Op::FlushAll | Op::Swap(..) => Vec::new(),
        }
    }

    pub fn needs_all(&self) -> bool {
        matches!(self, Op::Flush(_) | Op::FlushAll | Op::Swap(..))
    }

    pub fn run(&self, txn: &mut KeyTransaction<'_>) -> Result<(), Error> {
        match self {
            Op::Put((db, key), value, expire) => txn.put_string(*db, key, value, *expire),
            Op::Patch((db, key), at, with) => txn.patch_string(*db, key, *at, with).map(drop),
            Op::Delete((db, key)) => txn.delete(*db, key).map(drop),
            Op::Expire((db, key), time) => txn.set_expire(*db, key, *time).map(drop),
            Op::Rename(from, to) => txn.rename((from.0, &from.1), (to.0, &to.1)).map(drop),
            Op::Copy(from, to) => txn.copy((from.0, &from.1), (to.0, &to.1)).map(drop),
            Op::Flush(db) => txn.flush(*db),
            Op::FlushAll => txn.flush_all(),
            Op::Swap(a, b) => txn.swap(*a, *b),
        }
    }

    pub fn brief(&self) -> String {
        match self {
            Op::Put(name, value, expire) => format!("put {} {}b {expire:?}", show(name), value.len()),
            Op::Patch(name, at, with) => format!("patch {} at {at} {}b", show(name), with.len()),
            Op::Delete(name) => format!("delete {}", show(name)),
            Op::Expire(name, time) => format!("expire {} {time:?}", show(name)),
            Op::Rename(from, to) => format!("rename {} {}", show(from), show(to)),
            Op::Copy(from, to) => format!("copy {} {}", show(from), show(to)),
            Op::Flush(db) => format!("flush {db}"),
            Op::FlushAll => "flush all".into(),
            Op::Swap(a, b) => format!("swap {a} {b}"),
        }
    }
}

pub fn show(name: &Name) -> String {
    format!("{}:{}", name.0, String::from_utf8_lossy(&name.1[..name.1.len().min(12)]))
}

/// Returns bytes that do not repeat, so that a misplaced piece is detected.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut prng = Prng::new(seed);
    let mut bytes = vec![0; len];
    prng.fill(&mut bytes);
    bytes
}
