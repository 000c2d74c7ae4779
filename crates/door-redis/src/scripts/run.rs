//! One run of a script or a function inside of a key transaction: the commands that it calls, and when it has to end.

use std::sync::Arc;

use engine::{Error, KeyTransaction};
use redis_lua::{Answer, Ended, Purpose, Question};
use stdx::sync::atomic::Ordering;

use crate::call::Call;
use crate::command::keys::asks_to_wait;
use crate::command::{Command, KeyScope, flag};
use crate::commands::shown;
use crate::reply::Reply;
use crate::scripts::Running;
use crate::scripts::thread_state::ThreadState;
use crate::session::Session;
use crate::spool::Spooling;
use crate::table;
use crate::users::Denied;

/// Memory of a run that is given even if none is left, so that scripts that need little go on.
const BYTES_MIN: usize = 4 << 20;

/// Runs a command in the transaction of a script. The session gives it, as commands cannot know the list of all commands.
pub type RunCommand = fn(&mut Session, &mut KeyTransaction<'_>, &mut Call<'_>) -> Result<(), Error>;

/// The terms of a run, besides its code.
pub struct RunTerms<'r> {
    pub purpose: Purpose,
    pub name: &'r str,
    /// Commands that write are refused.
    pub read_only: bool,
    pub run_command: RunCommand,
}

/// A run under way, as its script sees it.
struct ScriptRun<'r, 'k> {
    session: &'r mut Session,
    txn: &'r mut KeyTransaction<'k>,
    running: Arc<Running>,
    /// The database that the script has selected.
    db: u8,
    resp3: bool,
    read_only: bool,
    run_command: RunCommand,
    threshold_ms: u64,
    /// The engine's error that ended the run.
    error: Option<Error>,
}

/// Runs a script on a state. `start` begins it there. An error rolls all of it back.
pub fn run(
    session: &mut Session,
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    own: &mut ThreadState,
    terms: &RunTerms<'_>,
    start: impl FnOnce(&mut ThreadState, &mut redis_lua::Host<'_>, &mut Vec<u8>) -> Ended,
) -> Result<(), Error> {
    let shared = session.shared.clone();
    let running = Arc::new(Running {
        purpose: terms.purpose,
        name: terms.name.to_owned(),
        request: call.args.iter().map(|arg| arg.to_vec()).collect(),
        started_ns: shared.clock.monotonic_ns(),
        is_busy: false.into(),
        has_written: false.into(),
        is_killed: false.into(),
    });
    let id = shared.runs.add(running.clone());
    let before = (session.db, session.resp3);
    let threshold_ms = shared.parameters.busy_threshold_ms();
    let (db, read_only, run_command) = (session.db, terms.read_only, terms.run_command);
    session.runs_script = true;
    let mut run =
        ScriptRun { session, txn, running, db, resp3: false, read_only, run_command, threshold_ms, error: None };
    own.state.limit((stdx::memory::available() as usize).max(BYTES_MIN));
    let ended = start(own, &mut |question, reply| run.answer(question, reply), call.reply.out);
    let error = run.error.take();
    (session.db, session.resp3) = before;
    session.runs_script = false;
    shared.runs.remove(id);
    match (error, ended) {
        (Some(error), _) => Err(error),
        // A run that was killed has not written.
        (None, Ended::Stopped | Ended::Replied { .. }) => Ok(()),
    }
}

impl ScriptRun<'_, '_> {
    fn answer(&mut self, question: Question<'_>, reply: &mut Vec<u8>) -> Answer {
        match question {
            Question::Command(args) => self.command(args, reply),
            Question::MayRun(args) => match table::of_request(args) {
                Ok(command) => {
                    let identity = self.session.identity.as_ref();
                    let may = identity.is_none_or(|identity| identity.user.check(command, args).is_ok());
                    Answer::Allowed(may)
                }
                Err(_) => Answer::Refused(String::new()),
            },
            Question::Log(level, text) => {
                self.session.shared.host.log(level, &String::from_utf8_lossy(text));
                Answer::Done
            }
            Question::Speak { resp3 } => {
                self.resp3 = resp3;
                Answer::Done
            }
            Question::Pause => self.pause(),
        }
    }

    /// Ends the run with an error of the engine. All that it has done is rolled back.
    fn fail(&mut self, error: Error) -> Answer {
        let text = crate::errors::of_engine(&error);
        self.error = Some(error);
        Answer::Stop(format!("-{text}"))
    }

    /// Decides whether the run may go on.
    fn pause(&mut self) -> Answer {
        let shared = &self.session.shared;
        if shared.runs.is_ending.load(Ordering::Relaxed) {
            return self.fail(Error::ShuttingDown);
        }
        if self.running.is_killed.load(Ordering::Acquire) {
            let kind = if self.running.purpose == Purpose::Scripts { "SCRIPT" } else { "FUNCTION" };
            return Answer::Stop(format!("-ERR Script killed by user with {kind} KILL..."));
        }
        if !stdx::wait::check_for_interrupts() {
            return self
                .fail(Error::Misuse("the script was ended because all threads compute; nothing of it was kept"));
        }
        let elapsed_ms = shared.clock.monotonic_ns().saturating_sub(self.running.started_ns) / 1_000_000;
        if self.threshold_ms == 0 || elapsed_ms < self.threshold_ms {
            return Answer::Done;
        }
        if self.session.client.has_departed() {
            return self.fail(Error::Cancelled);
        }
        if !self.running.is_busy.load(Ordering::Relaxed) {
            shared.runs.set_busy(&self.running);
            shared.host.warn(
                "A script runs longer than busy-reply-threshold. It can be ended with SCRIPT KILL or FUNCTION KILL.",
                &self.session.client.address,
            );
            self.txn.declare_busy(self.running.purpose as u32);
        }
        Answer::Done
    }

    fn refusal(&self, command: &'static Command, args: &[&[u8]]) -> Option<&'static str> {
        if command.is(flag::NOSCRIPT) || command.asks_another_server() {
            return Some("This Redis command is not allowed from script");
        }
        match self.session.denied(command, args) {
            None => {}
            Some(Denied::Command) => return Some("The user executing the script can't run this command or subcommand"),
            Some(Denied::Key(_)) => {
                return Some(
                    "The user executing the script can't access at least one of the keys mentioned in the command arguments",
                );
            }
            Some(Denied::Channel(_)) => {
                return Some("The user executing the script can't publish to the channel mentioned in the command");
            }
        }
        if self.session.crosses_slots(command, args) {
            return Some("Script attempted to access a non local key in a cluster node");
        }
        (self.read_only && command.is(flag::WRITE | flag::MAY_REPLICATE))
            .then_some("Write commands are not allowed from read-only scripts.")
    }

    fn command(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) -> Answer {
        let Ok(command) = table::of_request(args) else {
            return self.refuse("Unknown Redis command called from script");
        };
        if !command.takes(args.len()) {
            return self.refuse("Wrong number of args calling Redis command from script");
        }
        if let Some(text) = self.refusal(command, args) {
            self.session.shared.stats.commands[command.index()].rejected.add(1);
            return self.refuse(text);
        }
        let is_first = !self.running.has_written.load(Ordering::Acquire);
        if command.is(flag::WRITE) && is_first && self.session.shared.replica.is_following() {
            Reply { out: reply, resp3: self.resp3 }.error(crate::errors::READ_ONLY);
            return Answer::Done;
        }
        if command.is(flag::WRITE) {
            if self.running.is_killed.load(Ordering::Acquire) {
                return self.pause();
            }
            self.running.has_written.store(true, Ordering::Release);
        }
        match self.execute(command, args, reply) {
            Ok(()) => Answer::Done,
            Err(error @ (Error::TooLarge { .. } | Error::Invalid(_))) => {
                self.refuse(crate::errors::of_engine(&error).trim_start_matches("ERR "))
            }
            Err(error) => self.fail(error),
        }
    }

    fn refuse(&self, text: &str) -> Answer {
        self.session.shared.stats.count_error(b"-ERR");
        Answer::Refused(text.to_owned())
    }

    /// Runs a command in the transaction of the script.
    fn execute(&mut self, command: &'static Command, args: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Error> {
        let shared = self.session.shared.clone();
        let needs_all = command.scope == KeyScope::Everything || matches!(command.name, "scan" | "randomkey");
        if needs_all {
            self.txn.require_all()?;
        }
        (self.session.db, self.session.resp3) = (self.db, self.resp3);
        if matches!(command.name, "xread" | "xreadgroup") && asks_to_wait(args) {
            let text = format!("ERR {} command is not allowed with BLOCK option from scripts", shown(args[0]));
            Reply { out: &mut *reply, resp3: self.resp3 }.error(&text);
            self.session.finish_inner(command.index(), self.db, args, reply);
            return Ok(());
        }
        let mut spooling = Spooling::new(shared.engine.pager().folder(), 0);
        let mut call = Call {
            args,
            db: self.db,
            reply: Reply { out: &mut *reply, resp3: self.resp3 },
            command,
            spooling: &mut spooling,
            limits: &shared.pack_limits,
        };
        self.session.enter_declared(command, &self.running.request, self.txn);
        (self.run_command)(self.session, self.txn, &mut call)?;
        self.db = self.session.db;
        // A value that has no room in memory has none in the state either.
        spooling.refuse()?;
        self.session.finish_inner(command.index(), self.db, args, reply);
        Ok(())
    }
}
