//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR, and the keys that a session enters for client-side caching (`messages/tracking`).

use std::collections::BTreeSet;

use engine::KeyTransaction;
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::command::{Command, flag};
use crate::commands::shown;
use crate::errors;
use crate::messages::tracking::{KeyRead, Origin, OwnMessages};
use crate::messages::tracking_state::TrackingState;
use crate::number;
use crate::session::Session;

/// The wish of a CLIENT TRACKING.
struct Wish {
    state: TrackingState,
    prefixes: Vec<Box<[u8]>>,
}

/// Reads the options. Returns None after an error reply.
fn options(session: &Session, call: &mut Call<'_>) -> Option<Wish> {
    let mut wish = Wish { state: TrackingState::default(), prefixes: Vec::new() };
    let mut at = 3;
    while at < call.args.len() {
        let has_more = at + 1 < call.args.len();
        match call.args[at].to_ascii_lowercase().as_slice() {
            b"redirect" if has_more => {
                at += 1;
                if wish.state.redirect != 0 {
                    call.reply.error("ERR A client can only redirect to a single other client");
                    return None;
                }
                let id = call.integer(at)? as u64;
                if session.shared.clients.find(id).is_none() {
                    call.reply.error("ERR The client ID you want redirect to does not exist");
                    return None;
                }
                wish.state.redirect = id;
            }
            b"prefix" if has_more => {
                at += 1;
                wish.prefixes.push(call.args[at].into());
            }
            b"bcast" => wish.state.is_broadcast = true,
            b"optin" => wish.state.is_opt_in = true,
            b"optout" => wish.state.is_opt_out = true,
            b"noloop" => wish.state.is_no_loop = true,
            _ => {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        }
        at += 1;
    }
    Some(wish)
}

/// Returns why a client in this state cannot get its wish.
fn conflict(old: &TrackingState, wish: &Wish) -> Option<&'static str> {
    let new = &wish.state;
    match () {
        () if !new.is_broadcast && !wish.prefixes.is_empty() => {
            Some("ERR PREFIX option requires BCAST mode to be enabled")
        }
        () if old.is_on && old.is_broadcast != new.is_broadcast => Some(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        ),
        () if new.is_broadcast && (new.is_opt_in || new.is_opt_out) => {
            Some("ERR OPTIN and OPTOUT are not compatible with BCAST")
        }
        () if new.is_opt_in && new.is_opt_out => Some("ERR You can't specify both OPTIN mode and OPTOUT mode"),
        () if new.is_opt_in && old.is_opt_out || new.is_opt_out && old.is_opt_in => Some(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        ),
        () => None,
    }
}

/// Returns an error about a prefix that begins with another one, or the other way round.
fn overlap(old: &BTreeSet<Box<[u8]>>, new: &[Box<[u8]>]) -> Option<String> {
    let meet = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    new.iter().enumerate().find_map(|(at, prefix)| {
        let mut behind = new[at + 1..].iter();
        let (what, other) = match old.iter().find(|old| meet(old, prefix)) {
            Some(other) => ("an existing prefix", other),
            None => ("another provided prefix", behind.find(|other| meet(other, prefix))?),
        };
        let (prefix, other) = (shown(prefix), shown(other));
        Some(format!(
            "ERR Prefix '{prefix}' overlaps with {what} '{other}'. Prefixes for a single client must not overlap."
        ))
    })
}

pub fn tracking(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(wish) = options(session, call) else { return Ok(()) };
    if call.word(2, "off") {
        session.shared.stop_tracking(&session.client);
        call.reply.ok();
        return Ok(());
    }
    if !call.word(2, "on") {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let old = session.client.tracking.lock().clone();
    let refused = conflict(&old, &wish).map(str::to_owned).or_else(|| overlap(&old.prefixes, &wish.prefixes));
    if let Some(text) = refused {
        call.reply.error(&text);
        return Ok(());
    }
    let Wish { mut state, mut prefixes } = wish;
    if state.is_broadcast && prefixes.is_empty() {
        prefixes.push(Box::default());
    }
    state.is_on = true;
    state.is_caching = old.is_caching;
    state.prefixes = old.prefixes;
    state.prefixes.extend(prefixes.iter().cloned());
    session.shared.start_tracking(&session.client, state, &prefixes);
    call.reply.ok();
    Ok(())
}

pub fn caching(session: &mut Session, call: &mut Call<'_>) -> Result {
    let mut state = session.client.tracking.lock();
    let (is_yes, is_no) = (call.word(2, "yes"), call.word(2, "no"));
    let error = match () {
        () if !state.is_on => {
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
        }
        () if is_yes && !state.is_opt_in => {
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
        }
        () if is_no && !state.is_opt_out => {
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
        }
        () if is_yes || is_no => {
            state.is_caching = true;
            call.reply.ok();
            return Ok(());
        }
        () => errors::SYNTAX,
    };
    call.reply.error(error);
    Ok(())
}

pub fn getredir(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(session.client.tracking.lock().redirection());
    Ok(())
}

pub fn trackinginfo(session: &mut Session, call: &mut Call<'_>) -> Result {
    let state = session.client.tracking.lock().clone();
    let flags = [
        (!state.is_on, "off"),
        (state.is_on, "on"),
        (state.is_broadcast, "bcast"),
        (state.is_opt_in, "optin"),
        (state.is_opt_in && state.is_caching, "caching-yes"),
        (state.is_opt_out, "optout"),
        (state.is_opt_out && state.is_caching, "caching-no"),
        (state.is_no_loop, "noloop"),
        (state.is_broken, "broken_redirect"),
    ];
    let shown = || flags.iter().filter(|(is_set, _)| *is_set);
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(shown().count());
    shown().for_each(|(_, flag)| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.integer(state.redirection());
    call.reply.bulk(b"prefixes");
    call.reply.array(state.prefixes.len());
    state.prefixes.iter().for_each(|prefix| call.reply.bulk(prefix));
    Ok(())
}

impl Session {
    /// Enters the keys that a command is about to read, if the client tracks them (DR-14). In a transaction that is under way, its earlier changes of them are known.
    pub(crate) fn enter_reads(&self, command: &'static Command, args: &[&[u8]], txn: Option<&KeyTransaction<'_>>) {
        if self.client.tracks.load(Ordering::Relaxed) && command.is(flag::READONLY) {
            let keys = command.keys_of(self.db, args).unwrap_or_default();
            self.enter_keys(keys.into_iter().map(|(_, key)| key), txn);
        }
    }

    /// Enters the keys that a script has declared, if it is about to read. As in Redis, a client may cache the script's reply under any of them.
    pub(crate) fn enter_declared(&self, reading: &Command, script: &[Vec<u8>], txn: &KeyTransaction<'_>) {
        if self.client.tracks.load(Ordering::Relaxed) && reading.is(flag::READONLY) {
            let count = script.get(2).and_then(|count| number::parse(count)).unwrap_or(0);
            self.enter_keys(script.iter().skip(3).map(Vec::as_slice).take(count.max(0) as usize), Some(txn));
        }
    }

    fn enter_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, txn: Option<&KeyTransaction<'_>>) {
        if !self.client.tracking.lock().enters_keys() {
            return;
        }
        for key in keys {
            let changes = txn.map_or(0, |txn| txn.count_changes(key));
            let read = KeyRead { run: self.tracked_runs, changes };
            if let Some((other, ids)) = self.shared.tracking.enter(key, self.client.id, read) {
                self.tell_of_lost(&other, &ids);
            }
        }
    }

    /// Tells clients that a key that has not changed is not tracked any more.
    fn tell_of_lost(&self, key: &[u8], ids: &[u64]) {
        let mut delivery = self.shared.delivery(0);
        self.shared.tracking.tell(key, ids, 0, &self.shared.clients, &mut delivery);
        self.shared.finish(delivery);
    }

    /// Takes over a change of `tracking-table-max-keys`.
    pub(crate) fn limit_tracked_keys(&self) {
        self.shared.tracking.set_keys_max(self.shared.parameters.number("tracking-table-max-keys"));
        while let Some((key, ids)) = self.shared.tracking.take_excess() {
            self.tell_of_lost(&key, &ids);
        }
    }

    /// Begins a run of a transaction, which may be repeated.
    pub(crate) fn begin_tracked_run(&mut self) {
        if self.client.tracks.load(Ordering::Relaxed) {
            self.tracked_runs += 1;
            Origin::begin_run(self.tracked_runs);
        }
    }

    /// Writes the messages that a request has caused to its own client, around its reply, which begins at `mark` (DR-15).
    pub(crate) fn put_own_invalidations(&mut self, own: OwnMessages, out: &mut Vec<u8>, mark: usize) {
        if self.spools() {
            // The reply is not in the output yet.
            let mut delivery = self.shared.delivery(0);
            let all = own.before_reply.iter().chain(&own.after_reply);
            all.for_each(|bytes| delivery.put(&self.client, bytes));
            self.shared.finish(delivery);
            return;
        }
        if !own.before_reply.is_empty() {
            let reply = out.split_off(mark);
            own.before_reply.iter().for_each(|bytes| out.extend_from_slice(bytes));
            out.extend_from_slice(&reply);
        }
        own.after_reply.iter().for_each(|bytes| out.extend_from_slice(bytes));
    }

    /// Ends the effect of CLIENT CACHING behind the next command or transaction.
    pub(crate) fn end_caching(&self, args: &[&[u8]]) {
        let is_client = args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"client"));
        if self.multi.is_none() && !is_client && self.client.tracks.load(Ordering::Relaxed) {
            self.client.tracking.lock().is_caching = false;
        }
    }
}
