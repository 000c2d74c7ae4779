//! Commands of one pipeline that run under one set of key locks (`engine::Keyspace::write_pipeline`).
//!
//! ```text
//!   window    GET a | LPUSH l x | LPUSH l y | GET a | INCR n | EXPIRE ... | MULTI | ...
//!   runs      alone | one pipeline, up to the last command that writes    | alone
//! ```
//! Each command has the effect and the reply that it has alone. So a pipeline ends before whatever concerns more than keys that its arguments name, or takes long;
//! and nothing runs as a pipeline while a session's state asks for something between two commands (DR-20).

use engine::{Error, KeyTransaction};
use stdx::sync::atomic::Ordering;

use super::{Replies, Session};
use crate::call::Call;
use crate::command::keys::asks_to_wait;
use crate::command::{Command, KeyScope, category, flag};
use crate::errors;
use crate::functions::{self, Run};
use crate::parser::Request;
use crate::reply::Reply;
use crate::spool::Spooling;
use crate::table;
use reactor::Io;

/// Bytes of requests, and of replies, from which on a pipeline takes no further command.
const REQUEST_BYTES_MAX: usize = 64 << 10;
const REPLY_BYTES_MAX: usize = 256 << 10;

/// A command of a pipeline.
struct Piped {
    command: &'static Command,
    run: Run,
    /// Where its arguments and its keys end among those of all.
    args_end: usize,
    keys_end: usize,
    several: bool,
    /// Where its reply begins, and the nanoseconds that it took.
    mark: usize,
    took: u64,
    is_begun: bool,
}

/// The outcome of a pipeline.
pub(super) struct PipelineRan {
    /// Number of requests that have run.
    pub count: usize,
    /// The requests before this one must run alone.
    pub alone_until: usize,
}

/// Returns whether a request may be a part of a pipeline.
fn is_piped(command: &'static Command, run: Run, args: &[&[u8]]) -> bool {
    let is_short = command.is(flag::FAST);
    let names_keys = command.scope == KeyScope::Keys && !command.keys.is_empty();
    names_keys
        && match run {
            Run::Read(_) => is_short,
            Run::Write(_) => is_short || command.own_categories & category::STRING != 0,
            Run::Block(_) => command.name == "xreadgroup" && !asks_to_wait(args),
            _ => false,
        }
}

/// Returns whether a request of so many arguments takes the fast path, which a pipeline would only slow down.
fn is_fast(name: &[u8], count: usize) -> bool {
    match count {
        2 => name.eq_ignore_ascii_case(b"get"),
        3 => name.eq_ignore_ascii_case(b"set"),
        _ => false,
    }
}

impl Session {
    /// Returns whether nothing has to happen between two commands, such as a message, an invalidation or a queue of MULTI.
    fn may_pipe(&self) -> bool {
        self.multi.is_none()
            && self.replies == Replies::On
            && !self.is_restricted()
            && !self.client.is_subscriber()
            && !self.client.monitors.load(Ordering::Relaxed)
            && self.shared.tracking.client_count() == 0
            && !self.shared.replica.is_following()
            && self.identity.is_some()
            && self.shared.clients.pause_at(0).is_none()
    }

    /// Runs the first requests as a pipeline, if there are several that may. Otherwise it has done nothing. `refused` is the name of a command with which none
    /// begins, the last one that was met.
    pub(super) fn run_pipeline<'a>(
        &mut self,
        input: &'a [u8],
        requests: &[Request],
        refused: &mut &'a [u8],
        io: &mut Io<'_>,
    ) -> Option<PipelineRan> {
        let first = &requests[0];
        let name = self.parser.spans(first).first()?;
        let name = &input[first.start + name.start as usize..][..name.len as usize];
        if first.inline || name == *refused || is_fast(name, first.count as usize) {
            return None;
        }
        // A command that reads needs no locks, so no pipeline begins with it.
        if !matches!(functions::of(table::find(name)?), Run::Write(_) | Run::Block(_)) {
            *refused = name;
            return None;
        }
        if !self.may_pipe() {
            return None;
        }
        let (mut args, mut keys, mut piped) = (Vec::new(), Vec::new(), Vec::new());
        // The pipeline ends with the last command that changes keys: reads alone need no locks.
        let mut count = 0;
        for request in requests {
            let start = args.len();
            if request.inline || request.end - first.start > REQUEST_BYTES_MAX {
                break;
            }
            self.push_args(input, request, &mut args);
            let own = &args[start..];
            let Some((command, run)) = self.piped(own) else { break };
            let is_fast = is_fast(own[0], own.len());
            let before = keys.len();
            keys.extend(command.key_positions(own).map(|at| (self.db, own[at])));
            let (args_end, keys_end) = (args.len(), keys.len());
            let several = keys_end - before > 1 && !matches!(run, Run::Read(_));
            piped.push(Piped { command, run, args_end, keys_end, several, mark: 0, took: 0, is_begun: false });
            match run {
                Run::Read(_) if count == 0 => break,
                Run::Read(_) => {}
                _ if is_fast => {}
                _ => count = piped.len(),
            }
        }
        piped.truncate(count);
        if count < super::PIPELINE_MIN {
            return None;
        }
        keys.truncate(piped[count - 1].keys_end);
        self.run_piped(&args, &keys, &mut piped, io)
    }

    /// Returns the command of a request and its function, if it may be a part of a pipeline.
    fn piped(&self, args: &[&[u8]]) -> Option<(&'static Command, Run)> {
        let command = table::find(args.first()?).filter(|command| command.takes(args.len()))?;
        let run = functions::of(command);
        let user = &self.identity.as_ref()?.user;
        let is_allowed = || user.is_unrestricted() || user.check(command, args).is_ok();
        (is_piped(command, run, args) && is_allowed() && self.slot_error(command, args).is_none())
            .then_some((command, run))
    }

    fn run_piped(
        &mut self,
        args: &[&[u8]],
        keys: &[(u8, &[u8])],
        piped: &mut [Piped],
        io: &mut Io<'_>,
    ) -> Option<PipelineRan> {
        let (query_bytes, out) = (io.input().len() as u64, io.out());
        let args_of = |piped: &[Piped], nth: usize| {
            let start = if nth == 0 { 0 } else { piped[nth - 1].args_end };
            &args[start..piped[nth].args_end]
        };
        let (db, resp3, begin) = (self.db, self.resp3, out.len());
        let last = args_of(piped, piped.len() - 1);
        self.client.state.lock().command = piped[piped.len() - 1].command.name;
        self.client.show_running(query_bytes, last);
        let (shared, mut spool, mut next) = (self.shared.clone(), None, 0);
        let ended = shared.keyspace.write_pipeline(keys, |txn: &mut KeyTransaction<'_>| {
            let own = args_of(piped, next);
            let one = &mut piped[next];
            let ahead = self.ahead.get(self.at + next).copied().unwrap_or_default();
            txn.begin_command(next, one.several, ahead);
            (one.mark, one.is_begun) = (out.len(), true);
            let mut spooling = Spooling::new(shared.engine.pager().folder(), one.mark);
            let reply = Reply { out: &mut *out, resp3 };
            let mut call = Call {
                args: own,
                db,
                reply,
                command: one.command,
                spooling: &mut spooling,
                limits: &shared.pack_limits,
            };
            match one.run {
                Run::Read(f) | Run::Write(f) => f(txn, &mut call)?,
                Run::Block(f) => {
                    let wait = f(txn, &mut call)?;
                    assert!(wait.is_none(), "DR-20: a command of a pipeline does not wait");
                }
                _ => return Err(Error::Misuse("a command that is no part of a pipeline")),
            }
            spool = spooling.finish(out)?;
            next += 1;
            one.took = self.lap();
            Ok(next < piped.len() && spool.is_none() && out.len() - begin < REPLY_BYTES_MAX)
        });
        let Ok(Some(end)) = ended else {
            // Alone each command waits for what is in the way, or replies with the error.
            out.truncate(begin);
            return Some(PipelineRan { count: 0, alone_until: piped.len() });
        };
        let settled = end.settled;
        // `next` commands have ended without an error of the engine. One more may have failed.
        if let Some(error) = &end.error {
            let failed = &mut piped[settled - 1];
            out.truncate(failed.mark);
            Reply { out: &mut *out, resp3 }.error(&errors::of_engine(error));
            failed.took = self.lap();
        } else if settled < next {
            out.truncate(piped[settled].mark);
        } else if let Some(failed) = piped.get(next).filter(|failed| failed.is_begun) {
            out.truncate(failed.mark);
        }
        self.durability_lsn = self.durability_lsn.max(end.lsn);
        for (nth, one) in piped[..settled].iter().enumerate() {
            let reply_end = piped[..settled].get(nth + 1).map_or(out.len(), |next| next.mark);
            // A spooled reply is not an error.
            let reply = out.get(one.mark..reply_end).unwrap_or_default();
            self.count_run(one.command.index(), args_of(piped, nth), reply, one.took);
        }
        if settled < next {
            return Some(PipelineRan { count: settled, alone_until: next + 1 });
        }
        self.spool = spool;
        let has_failed = piped.get(next).is_some_and(|failed| failed.is_begun);
        Some(PipelineRan { count: settled, alone_until: settled + usize::from(has_failed) })
    }
}
