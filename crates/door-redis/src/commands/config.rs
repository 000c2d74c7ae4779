//! CONFIG: the server's settings under Redis' names, and parameters of Redis without a meaning here.

use engine::DEFAULT_ACCOUNT;
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::commands::acl::{Guard, PROTECTED};
use crate::commands::{help as lines, utf8};
use crate::errors;
use crate::glob;
use crate::host::Refused;
use crate::parameters::Parameters;
use crate::session::Session;

pub fn get(session: &mut Session, call: &mut Call<'_>) -> Result {
    let patterns: Vec<Vec<u8>> = call.args[2..].iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let mut all = session.shared.host.settings();
    all.extend(session.shared.parameters.others(&all));
    if let Some(following) = session.shared.replica.present() {
        let of_master = all.iter_mut().filter(|(name, _)| matches!(name.as_str(), "replicaof" | "slaveof"));
        of_master.for_each(|(_, value)| *value = format!("{} {}", following.host, following.port));
    }
    all.retain(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes(), true)));
    call.reply.map(all.len());
    for (name, value) in all {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

pub fn resetstat(session: &mut Session, call: &mut Call<'_>) -> Result {
    session.shared.stats.reset();
    call.reply.ok();
    Ok(())
}

pub fn rewrite(session: &mut Session, call: &mut Call<'_>) -> Result {
    match session.shared.host.rewrite() {
        Ok(()) => call.reply.ok(),
        Err(what) => call.reply.error(&format!("ERR {what}")),
    }
    Ok(())
}

pub fn set(session: &mut Session, call: &mut Call<'_>) -> Result {
    if !call.args.len().is_multiple_of(2) {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let text: Vec<String> = call.args[2..].iter().map(|arg| utf8(arg)).collect();
    let changes: Vec<(&str, &str)> = text.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    let sets_password = changes.iter().any(|(name, _)| name.eq_ignore_ascii_case("requirepass"));
    if sets_password
        && session
            .shared
            .engine
            .accounts()
            .get(DEFAULT_ACCOUNT)
            .is_some_and(|account| !Guard::of(session).may_change(&account))
    {
        call.reply.error(PROTECTED);
        return Ok(());
    }
    let earlier = |at: usize, name: &str| changes[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name));
    let duplicate = changes.iter().enumerate().find(|(at, (name, _))| earlier(*at, name));
    let changed = match duplicate {
        Some((_, (name, _))) => Err(Refused::Bad((*name).to_owned(), "duplicate parameter".to_owned())),
        None => change(session, &changes),
    };
    let failed =
        |name: &str, why: &str| format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
    match changed {
        Ok(()) => call.reply.ok(),
        Err(Refused::Unknown(name)) => {
            call.reply.error(&format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"));
        }
        Err(Refused::Fixed(name)) => call.reply.error(&failed(&name, "can't set immutable config")),
        Err(Refused::Bad(name, expected)) => call.reply.error(&failed(&name, &expected)),
    }
    Ok(())
}

/// Makes all of the changes or none.
fn change(session: &Session, changes: &[(&str, &str)]) -> std::result::Result<(), Refused> {
    let (host, parameters) = (&session.shared.host, &session.shared.parameters);
    let of_host = host.settings();
    let is_of_host = |name: &str| of_host.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let (to_host, others): (Vec<_>, Vec<_>) = changes.iter().copied().partition(|(name, _)| is_of_host(name));
    let checked = parameters.check(&others)?;
    if !to_host.is_empty() {
        let mut texts = Vec::new();
        for (name, text) in &to_host {
            let before = of_host.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let read = before.and_then(|(_, before)| Parameters::read_of_host(name, text, before));
            texts.push(read.unwrap_or_else(|| Ok((*text).to_owned()))?);
        }
        let read: Vec<_> = to_host.iter().zip(&texts).map(|((name, _), text)| (*name, text.as_str())).collect();
        host.change(&read)?;
    }
    parameters.apply(checked);
    session.shared.set_event_flags(&session.shared.setting("notify-keyspace-events"));
    session.shared.pack_limits.set(parameters.encoding_limits());
    session.limit_tracked_keys();
    session.shared.output_limits.set(&session.shared.setting("client-output-buffer-limit"));
    session.shared.stats.tracks_times.store(parameters.text("latency-tracking") == "yes", Ordering::Relaxed);
    session.shared.stats.monitor.set_threshold_ms(parameters.number("latency-monitor-threshold"));
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Rewrite the configuration file.",
        ],
    );
    Ok(())
}
