//! REPLICAOF, ROLE, and the section `replication` of INFO.

use crate::call::{Call, Result};
use crate::commands::utf8;
use crate::number;
use crate::replica::start::{Followed, follow, follow_nobody};
use crate::replica::state::{Following, LinkFacts, Stage};
use crate::session::Session;
use crate::source::followers::FollowStage;
use crate::source::history::NO_ID;

/// Serves REPLICAOF and SLAVEOF.
pub fn replicaof(session: &mut Session, call: &mut Call<'_>) -> Result {
    let shared = session.shared.clone();
    if shared.is_cluster {
        call.reply.error("ERR REPLICAOF not allowed in cluster mode.");
        return Ok(());
    }
    if call.word(1, "no") && call.word(2, "one") {
        let lsn = follow_nobody(&shared)?;
        session.durability_lsn = session.durability_lsn.max(lsn);
        call.reply.ok();
        return Ok(());
    }
    let port = number::parse(call.args[2]).and_then(|port| u16::try_from(port).ok());
    let Some(port) = port else {
        call.reply.error("ERR Invalid master port");
        return Ok(());
    };
    match follow(&shared, &utf8(call.args[1]), port)? {
        Followed::Begun(lsn) => {
            session.durability_lsn = session.durability_lsn.max(lsn);
            call.reply.ok();
        }
        Followed::Already => call.reply.simple("OK Already connected to specified master"),
    }
    Ok(())
}

pub fn role(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(following) = session.shared.replica.present() else {
        let state = session.shared.history.lock();
        let online = || state.followers.iter().filter(|follower| follower.stage() == FollowStage::Online);
        call.reply.array(3);
        call.reply.bulk(b"master");
        call.reply.integer(state.end as i64);
        call.reply.array(online().count());
        for follower in online() {
            call.reply.array(3);
            call.reply.bulk(follower.ip.to_string().as_bytes());
            call.reply.bulk(follower.port.to_string().as_bytes());
            call.reply.bulk(follower.acknowledged().to_string().as_bytes());
        }
        return Ok(());
    };
    let facts = following.facts.lock().clone();
    call.reply.array(5);
    call.reply.bulk(b"slave");
    call.reply.bulk(following.host.as_bytes());
    call.reply.integer(following.port.into());
    call.reply.bulk(facts.stage.name().as_bytes());
    call.reply.integer(if facts.stage == Stage::Connected { facts.offset as i64 } else { -1 });
    Ok(())
}

/// Returns the fields of a replica in INFO.
pub fn facts_of_replica(session: &Session, following: &Following) -> Vec<(&'static str, String)> {
    let now = session.now_ms();
    let facts = following.facts.lock().clone();
    let is_up = facts.stage == Stage::Connected;
    let seconds = |since: Option<u64>| since.map_or(-1, |since| (now.saturating_sub(since) / 1000) as i64).to_string();
    let mut fields = vec![
        ("role", "slave".to_owned()),
        ("master_host", following.host.clone()),
        ("master_port", following.port.to_string()),
        ("master_link_status", if is_up { "up" } else { "down" }.to_owned()),
        ("master_last_io_seconds_ago", seconds(facts.last_input_ms.filter(|_| is_up))),
        ("master_sync_in_progress", u8::from(facts.stage == Stage::Sync).to_string()),
        ("slave_read_repl_offset", facts.read_offset.to_string()),
        ("slave_repl_offset", facts.offset.to_string()),
    ];
    if facts.stage == Stage::Sync {
        fields.extend(facts_of_sync(&facts, &seconds));
    }
    if !is_up {
        fields.push(("master_link_down_since_seconds", seconds(facts.down_since_ms)));
    }
    if let Some(trouble) = facts.trouble {
        // Redis has no such field.
        fields.push(("master_link_error", trouble.replace(['\r', '\n'], " ")));
    }
    fields.extend([
        ("slave_priority", session.shared.parameters.number("replica-priority").to_string()),
        ("slave_read_only", "1".to_owned()),
        ("replica_announced", "1".to_owned()),
    ]);
    fields
}

fn facts_of_sync(
    facts: &LinkFacts,
    seconds: &dyn Fn(Option<u64>) -> String,
) -> impl IntoIterator<Item = (&'static str, String)> + use<> {
    let (total, read) = (facts.sync_total.unwrap_or(0), facts.sync_read);
    let percent = if total == 0 { 0.0 } else { read as f64 * 100.0 / total as f64 };
    [
        ("master_sync_total_bytes", total.to_string()),
        ("master_sync_read_bytes", read.to_string()),
        ("master_sync_left_bytes", total.saturating_sub(read).to_string()),
        ("master_sync_perc", format!("{percent:.2}")),
        ("master_sync_last_io_seconds_ago", seconds(facts.last_input_ms)),
    ]
}

/// Returns the fields of INFO about those who follow this server.
pub fn facts_of_source(session: &Session) -> Vec<(String, String)> {
    let now = session.now_ms();
    let state = session.shared.history.lock();
    let mut fields = vec![("connected_slaves".to_owned(), state.followers.len().to_string())];
    for (number, follower) in state.followers.iter().enumerate() {
        let stage = match follower.stage() {
            FollowStage::WaitsForFile => "wait_bgsave",
            FollowStage::GetsFile => "send_bulk",
            FollowStage::Online => "online",
        };
        let lag =
            if follower.stage() == FollowStage::Online { now.saturating_sub(follower.heard_ms()) / 1000 } else { 0 };
        let (ip, port, offset) = (follower.ip, follower.port, follower.acknowledged());
        fields.push((format!("slave{number}"), format!("ip={ip},port={port},state={stage},offset={offset},lag={lag}")));
    }
    // A server that follows shows the history that it follows, as in Redis; its own followers have another one.
    let followed = session.shared.replica.present().map(|following| {
        let facts = following.facts.lock();
        (facts.id.clone().unwrap_or_else(|| NO_ID.to_owned()), facts.offset)
    });
    let own_id = if state.id.is_empty() { NO_ID } else { &state.id };
    let (id, offset) = followed.unwrap_or_else(|| (own_id.to_owned(), state.end));
    let (start, end, is_on) = (state.start(), state.end, state.is_on);
    let facts = [
        ("master_failover_state", "no-failover".to_owned()),
        ("master_replid", id),
        ("master_replid2", NO_ID.to_owned()),
        ("master_repl_offset", offset.to_string()),
        ("second_repl_offset", "-1".to_owned()),
        ("repl_backlog_active", u8::from(is_on).to_string()),
        ("repl_backlog_size", session.shared.parameters.number("repl-backlog-size").to_string()),
        ("repl_backlog_first_byte_offset", if is_on { start + 1 } else { 0 }.to_string()),
        ("repl_backlog_histlen", (end - start).to_string()),
    ];
    fields.extend(facts.map(|(field, value)| (field.to_owned(), value)));
    fields
}
