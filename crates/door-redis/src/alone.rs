//! Runs a command that no client has sent: of an append-only file, or of a server that is followed.

use std::sync::Arc;

use engine::{Error, KeyTransaction};

use crate::call::{Call, NamedKeys};
use crate::command::Command;
use crate::functions::{self, Run};
use crate::reply::Reply;
use crate::shared::Shared;
use crate::spool::Spooling;

/// A command, and the database in which it runs.
#[derive(Clone, Copy)]
pub(crate) struct Alone<'a> {
    pub command: &'static Command,
    pub args: &'a [&'a [u8]],
    pub db: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Its reply may be an error.
    Replied,
    /// It needs a session.
    NotServed,
}

/// Runs a command in a key transaction, with the rights of nobody. One that could wait does not wait.
pub(crate) fn run_alone(
    shared: &Arc<Shared>,
    txn: &mut KeyTransaction<'_>,
    Alone { command, args, db }: Alone<'_>,
    reply: &mut Vec<u8>,
) -> Result<Ran, Error> {
    reply.clear();
    let mut spooling = Spooling::new(shared.engine.pager().folder(), 0);
    let reply = Reply { out: reply, resp3: true };
    let mut call = Call { args, db, reply, command, spooling: &mut spooling, limits: &shared.pack_limits };
    match functions::of(command) {
        Run::Read(f) | Run::Write(f) => f(txn, &mut call)?,
        Run::Block(f) | Run::ReadOrBlock(f) => f(txn, &mut call).map(drop)?,
        Run::Grow(f) => {
            let named = NamedKeys { all_allowed: true, in_cluster: shared.is_cluster, in_script: false };
            f(named, txn, &mut call)?;
        }
        Run::Script(_) | Run::Session(_) | Run::Container => return Ok(Ran::NotServed),
    }
    Ok(Ran::Replied)
}
