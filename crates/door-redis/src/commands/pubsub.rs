//! SUBSCRIBE, PUBLISH, PUBSUB and their relatives.

use stdx::memory;

use crate::call::{Call, Result};
use crate::commands::help as lines;
use crate::messages::SUBSCRIPTION_BYTES;
use crate::messages::subscriptions::{Publication, Topic};
use crate::session::{Replies, Session};

pub fn subscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    add(session, call, Topic::Channel, b"subscribe")
}

pub fn psubscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    add(session, call, Topic::Pattern, b"psubscribe")
}

pub fn ssubscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    add(session, call, Topic::Shard, b"ssubscribe")
}

pub fn unsubscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    remove(session, call, Topic::Channel, b"unsubscribe")
}

pub fn punsubscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    remove(session, call, Topic::Pattern, b"punsubscribe")
}

pub fn sunsubscribe(session: &mut Session, call: &mut Call<'_>) -> Result {
    remove(session, call, Topic::Shard, b"sunsubscribe")
}

fn add(session: &mut Session, call: &mut Call<'_>, topic: Topic, kind: &[u8]) -> Result {
    let bytes = call.args[1..].iter().map(|name| name.len() + SUBSCRIPTION_BYTES).sum();
    let _claim = memory::claim(bytes).map_err(engine::Error::OutOfMemory)?;
    session.sends_pushes = true;
    for name in &call.args[1..] {
        session.shared.hub.subscribe(topic, name, &session.client);
        confirm(session, call, topic, kind, Some(name));
    }
    Ok(())
}

fn remove(session: &mut Session, call: &mut Call<'_>, topic: Topic, kind: &[u8]) -> Result {
    session.sends_pushes = true;
    let all: Vec<_> = match call.args {
        [_] => session.client.subscriptions.lock().of(topic).iter().cloned().collect(),
        _ => Vec::new(),
    };
    let names: Vec<&[u8]> =
        if all.is_empty() { call.args[1..].to_vec() } else { all.iter().map(|name| &**name).collect() };
    for name in &names {
        session.shared.hub.unsubscribe(topic, name, &session.client);
        // Messages for the subscription precede the confirmation of its end.
        session.take_messages(call.reply.out);
        confirm(session, call, topic, kind, Some(name));
    }
    if names.is_empty() {
        confirm(session, call, topic, kind, None);
    }
    Ok(())
}

fn confirm(session: &Session, call: &mut Call<'_>, topic: Topic, kind: &[u8], name: Option<&[u8]>) {
    let count = session.client.subscriptions.lock().shown(topic);
    call.reply.push(3);
    call.reply.bulk(kind);
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null(),
    }
    call.reply.integer(count as i64);
}

pub fn publish(session: &mut Session, call: &mut Call<'_>) -> Result {
    send(session, call, Topic::Channel)
}

pub fn spublish(session: &mut Session, call: &mut Call<'_>) -> Result {
    send(session, call, Topic::Shard)
}

fn send(session: &mut Session, call: &mut Call<'_>, topic: Topic) -> Result {
    let (channel, payload) = (call.args[1], call.args[2]);
    let _claim = memory::claim(2 * (channel.len() + payload.len())).map_err(engine::Error::OutOfMemory)?;
    let count = if session.in_exec() {
        // It is sent when the transaction has committed.
        session.unsent.push(Publication { topic, channel: channel.into(), payload: payload.into() });
        session.shared.hub.count_receivers(topic, channel)
    } else {
        let lsn = session.publishing_lsn();
        let count = session.shared.publish(topic, channel, payload, lsn);
        if session.client.is_subscriber() && session.replies == Replies::On {
            // Its own message precedes the reply, as in Redis.
            session.take_messages(call.reply.out);
        }
        count
    };
    call.reply.integer(count as i64);
    Ok(())
}

pub fn channels(session: &mut Session, call: &mut Call<'_>) -> Result {
    list(session, call, Topic::Channel)
}

pub fn shardchannels(session: &mut Session, call: &mut Call<'_>) -> Result {
    list(session, call, Topic::Shard)
}

fn list(session: &mut Session, call: &mut Call<'_>, topic: Topic) -> Result {
    if call.args.len() > 3 {
        call.subcommand_syntax();
        return Ok(());
    }
    let names = session.shared.hub.active(topic, call.args.get(2).copied());
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

pub fn numsub(session: &mut Session, call: &mut Call<'_>) -> Result {
    count(session, call, Topic::Channel)
}

pub fn shardnumsub(session: &mut Session, call: &mut Call<'_>) -> Result {
    count(session, call, Topic::Shard)
}

fn count(session: &mut Session, call: &mut Call<'_>, topic: Topic) -> Result {
    let names = &call.args[2..];
    call.reply.array(names.len() * 2);
    for name in names {
        call.reply.bulk(name);
        call.reply.integer(session.shared.hub.count_subscribers(topic, name) as i64);
    }
    Ok(())
}

pub fn numpat(session: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.integer(session.shared.hub.count_patterns() as i64);
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
            "NUMPAT",
            "    Return number of subscriptions to patterns.",
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels, excluding",
            "    pattern subscriptions(default: no channels).",
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern> (default: '*').",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channel(s)",
        ],
    );
    Ok(())
}
