//! How a command runs: the check of permissions, and the key transaction over its keys, alone or in EXEC.

use engine::{KeySet, KeyTransaction};
use stdx::sync::atomic::Ordering;

use super::{Queued, Session};
use crate::call::{self, Call, NamedKeys};
use crate::command::Command;
use crate::command::keys::{asks_to_wait, sort_needs_more};
use crate::functions::{self, Run, ScriptFunction};
use crate::number;
use crate::reply::Reply;
use crate::spool::Spooling;
use crate::users::Denied;
use crate::users::log::Access;

impl Session {
    /// Checks the account's permissions (DR-5). Records a refusal in ACL LOG.
    pub(crate) fn denied(&self, command: &'static Command, args: &[&[u8]]) -> Option<Denied> {
        let identity = self.identity.as_ref()?;
        let denied = identity.user.check(command, args).err()?;
        match denied {
            Denied::Command => self.log_access("command", command.name.as_bytes(), self.user_name()),
            Denied::Key(at) => self.log_access("key", args[at], self.user_name()),
            Denied::Channel(at) => self.log_access("channel", args[at], self.user_name()),
        }
        Some(denied)
    }

    /// Returns which keys a command may use that it names by patterns.
    fn named_keys(&self, command: &'static Command, args: &[&[u8]]) -> NamedKeys {
        let user = self.identity.as_ref().map(|identity| &identity.user);
        NamedKeys {
            all_allowed: user.is_some_and(|user| user.reads_all_keys(command, args)),
            in_cluster: self.shared.is_cluster,
            in_script: self.runs_script,
        }
    }

    pub(crate) fn log_access(&self, reason: &'static str, object: &[u8], user: &str) {
        let now = self.now_ms();
        let context = match () {
            () if self.runs_script => "lua",
            () if self.multi.is_some() || self.in_exec() => "multi",
            () => "toplevel",
        };
        let access = Access {
            count: 1,
            reason,
            context,
            object: object.to_vec(),
            user: user.to_owned(),
            at_ms: now,
            client: self.client.line(now),
        };
        self.shared.access_log.add(access, self.shared.parameters.number("acllog-max-len") as usize);
    }

    /// Runs a command outside of EXEC, in a key transaction of its own if it has keys.
    pub(super) fn run(&mut self, command: &'static Command, args: &[&[u8]], out: &mut Vec<u8>) -> call::Result {
        if let Some(text) = self.database_error(command, args) {
            self.reply(out).error(text);
            return Ok(());
        }
        let shared = self.shared.clone();
        let (db, resp3, mark) = (self.db, self.resp3, out.len());
        let keys = command.keys_of(db, args);
        let locks = keys.as_deref().map_or(KeySet::All, KeySet::Keys);
        let mut spooling = Spooling::new(self.shared.engine.pager().folder(), mark);
        let function = functions::of(command);
        if !matches!(function, Run::Script(_)) {
            self.enter_reads(command, args, None);
        }
        let lsn = match function {
            Run::Script(f) => self.run_script(f, command, args, keys.as_deref(), out, &mut spooling)?,
            Run::Session(f) => {
                let mut call = Call {
                    args,
                    db,
                    reply: Reply { out: &mut *out, resp3 },
                    command,
                    spooling: &mut spooling,
                    limits: &shared.pack_limits,
                };
                f(self, &mut call)?;
                0
            }
            Run::Container => unreachable!("arity asks for a subcommand"),
            Run::Grow(f) => {
                let keyspace = self.shared.keyspace.clone();
                let (needs_more, named) = (sort_needs_more(args), self.named_keys(command, args));
                let run = |txn: &mut KeyTransaction<'_>| {
                    // It may be a later run, with more keys: nothing is left of the one before.
                    self.begin_tracked_run();
                    out.truncate(mark);
                    spooling.reset();
                    let reply = Reply { out: &mut *out, resp3 };
                    let spooling = &mut spooling;
                    f(named, txn, &mut Call { args, db, reply, command, spooling, limits: &shared.pack_limits })
                };
                let ((), lsn) =
                    if needs_more { keyspace.write_growing(keys, run)? } else { keyspace.read(locks, run)? };
                lsn
            }
            Run::Block(f) => {
                let several = keys.as_ref().is_none_or(|keys| keys.len() > 1);
                let keyspace = self.shared.keyspace.clone();
                let (blocked, lsn) = keyspace.write(locks, several, |txn| {
                    let reply = Reply { out: &mut *out, resp3 };
                    let mut call =
                        Call { args, db, reply, command, spooling: &mut spooling, limits: &shared.pack_limits };
                    let blocking = f(txn, &mut call)?;
                    blocking.map(|blocking| self.block(txn, command, blocking)).transpose()
                })?;
                self.blocked = blocked;
                lsn
            }
            Run::ReadOrBlock(f) => {
                let keyspace = self.shared.keyspace.clone();
                let run = |txn: &mut KeyTransaction<'_>| {
                    out.truncate(mark);
                    spooling.reset();
                    let reply = Reply { out: &mut *out, resp3 };
                    let mut call =
                        Call { args, db, reply, command, spooling: &mut spooling, limits: &shared.pack_limits };
                    let blocking = f(txn, &mut call)?;
                    blocking.map(|blocking| self.block(txn, command, blocking)).transpose()
                };
                // A wait is registered under the stripes under which nothing was found.
                let asked =
                    if asks_to_wait(args) { keyspace.read_locked(locks, run) } else { keyspace.read(locks, run) };
                let (blocked, lsn) = asked?;
                self.blocked = blocked;
                lsn
            }
            Run::Read(f) => {
                let keyspace = self.shared.keyspace.clone();
                let ((), lsn) = keyspace.read(locks, |txn| {
                    out.truncate(mark);
                    spooling.reset();
                    let reply = Reply { out: &mut *out, resp3 };
                    f(txn, &mut Call { args, db, reply, command, spooling: &mut spooling, limits: &shared.pack_limits })
                })?;
                lsn
            }
            Run::Write(f) => {
                let several = keys.as_ref().is_none_or(|keys| keys.len() > 1);
                let keyspace = self.shared.keyspace.clone();
                let ((), lsn) = keyspace.write(locks, several, |txn| {
                    let reply = Reply { out: &mut *out, resp3 };
                    f(txn, &mut Call { args, db, reply, command, spooling: &mut spooling, limits: &shared.pack_limits })
                })?;
                lsn
            }
        };
        self.durability_lsn = self.durability_lsn.max(lsn);
        self.spool = spooling.finish(out)?;
        Ok(())
    }

    /// Runs a script in a key transaction of its own, which takes more keys as the script names them.
    fn run_script(
        &mut self,
        f: ScriptFunction,
        command: &'static Command,
        args: &[&[u8]],
        keys: Option<&[(u8, &[u8])]>,
        out: &mut Vec<u8>,
        spooling: &mut Spooling,
    ) -> Result<u64, engine::Error> {
        if self.shared.monitors.see(command) {
            self.show_to_monitors(args);
        }
        self.client.watch_departure();
        let (shared, keyspace) = (self.shared.clone(), self.shared.keyspace.clone());
        let (db, resp3, mark) = (self.db, self.resp3, out.len());
        self.running_queue.store(true, Ordering::Relaxed);
        let result = keyspace.write_growing(keys.map(<[_]>::to_vec), |txn| {
            self.begin_tracked_run();
            // It may be the second run: nothing is left of the first.
            out.truncate(mark);
            self.unsent.clear();
            let reply = Reply { out: &mut *out, resp3 };
            let spooling = &mut *spooling;
            let mut call = Call { args, db, reply, command, spooling, limits: &shared.pack_limits };
            f(self, txn, &mut call, run_in)
        });
        self.running_queue.store(false, Ordering::Relaxed);
        match result {
            Ok(((), lsn)) => {
                self.durability_lsn = self.durability_lsn.max(lsn);
                self.send_published();
                Ok(lsn)
            }
            Err(error) => {
                self.unsent.clear();
                Err(error)
            }
        }
    }

    /// Runs EXEC: all queued commands in one key transaction over the union of their keys and the watched ones (DR-3). Returns false if a watched key has
    /// changed.
    pub(crate) fn run_queued(
        &mut self,
        queue: &[Queued],
        out: &mut Vec<u8>,
        spooling: &mut Spooling,
    ) -> Result<bool, engine::Error> {
        let args: Vec<Vec<&[u8]>> =
            queue.iter().map(|queued| queued.args.iter().map(Vec::as_slice).collect()).collect();
        let watch = std::mem::replace(&mut self.watch, self.shared.keyspace.watch_set());
        let mut keys: Option<Vec<(u8, &[u8])>> = Some(watch.keys().collect());
        let mut db = self.db;
        for (queued, args) in queue.iter().zip(&args) {
            if queued.command.name == "select" {
                db = number::database(args[1]).unwrap_or(db);
            }
            // A scan of keys while others are locked could deadlock with a transaction that waits for our locks. Such a transaction locks all keys.
            let walks = matches!(queued.command.name, "scan" | "randomkey");
            let named = if walks { None } else { queued.command.keys_of(db, args) };
            keys = keys.zip(named).map(|(mut all, more)| {
                all.extend(more);
                all
            });
        }
        let keyspace = self.shared.keyspace.clone();
        let mark = out.len();
        let (db, resp3) = (self.db, self.resp3);
        self.running_queue.store(true, Ordering::Relaxed);
        let result = keyspace.write_growing(keys, |txn| {
            self.begin_tracked_run();
            // It may be the second run, with more keys: nothing is left of the first.
            out.truncate(mark);
            spooling.reset();
            self.unsent.clear();
            (self.db, self.resp3) = (db, resp3);
            if watch.dirty(txn.now_ms()) {
                return Ok(false);
            }
            Reply { out: &mut *out, resp3 }.array(queue.len());
            for (queued, args) in queue.iter().zip(&args) {
                self.run_one(txn, queued.command, args, (out, spooling))?;
            }
            Ok::<bool, engine::Error>(true)
        });
        self.running_queue.store(false, Ordering::Relaxed);
        match result {
            Ok((done, lsn)) => {
                self.durability_lsn = self.durability_lsn.max(lsn);
                self.send_published();
                Ok(done)
            }
            Err(error) => {
                // Nothing of it happened: neither the changes nor a SELECT or HELLO among the commands.
                out.truncate(mark);
                self.unsent.clear();
                (self.db, self.resp3) = (db, resp3);
                Err(error)
            }
        }
    }

    /// Sends the messages that EXEC has published.
    fn send_published(&mut self) {
        let lsn = self.publishing_lsn();
        for message in std::mem::take(&mut self.unsent) {
            self.shared.publish(message.topic, &message.channel, &message.payload, lsn);
        }
    }

    fn run_one(
        &mut self,
        txn: &mut KeyTransaction<'_>,
        command: &'static Command,
        args: &[&[u8]],
        (out, spooling): (&mut Vec<u8>, &mut Spooling),
    ) -> call::Result {
        let mark = out.len();
        let shared = self.shared.clone();
        let reply = Reply { out: &mut *out, resp3: self.resp3 };
        let mut call = Call { args, db: self.db, reply, command, spooling, limits: &shared.pack_limits };
        if let Some(denied) = self.denied(command, args) {
            call.reply.error(denied.text_in_exec());
            self.shared.stats.count_error(&out[mark..]);
            return Ok(());
        }
        run_in(self, txn, &mut call)?;
        // A spooled reply is not an error.
        self.finish(command.index(), args, out.get(mark..).unwrap_or_default());
        Ok(())
    }
}

/// Runs a command in a transaction that is under way, of EXEC or of a script.
fn run_in(session: &mut Session, txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> call::Result {
    if let Some(text) = session.database_error(call.command, call.args) {
        call.reply.error(text);
        return Ok(());
    }
    let function = functions::of(call.command);
    if !matches!(function, Run::Script(_)) {
        session.enter_reads(call.command, call.args, Some(txn));
    }
    match function {
        Run::Read(f) | Run::Write(f) => f(txn, call),
        Run::Block(f) | Run::ReadOrBlock(f) => {
            if let Some(blocking) = f(txn, call)? {
                (blocking.refuse)(&mut call.reply);
            }
            Ok(())
        }
        Run::Script(f) => {
            if session.shared.monitors.see(call.command) {
                session.show_to_monitors(call.args);
            }
            session.client.watch_departure();
            f(session, txn, call, run_in)
        }
        Run::Grow(f) => f(session.named_keys(call.command, call.args), txn, call),
        Run::Session(f) => f(session, call),
        Run::Container => unreachable!("arity asks for a subcommand"),
    }
}
