//! The state that all connections of the door share.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use engine::{Ahead, EncodingLimits, Engine, Keyspace};
use os::Clock;
use reactor::Pool;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clients::{Client, Clients};
use crate::command::Command;
use crate::host::Host;
use crate::messages::Hub;
use crate::messages::delivery::Delivery;
use crate::messages::limits::{OutputLimits, Verdict};
use crate::messages::monitors::Monitors;
use crate::messages::subscriptions::Topic;
use crate::messages::tracking::TrackingTable;
use crate::migrations::Migrations;
use crate::parameters::Parameters;
use crate::parameters::event_flags::EventFlags;
use crate::rates::Rates;
use crate::replica::state::Replica;
use crate::saves::Saves;
use crate::scripts::flags;
use crate::scripts::libraries::Libraries;
use crate::scripts::{Runs, ScriptTexts};
use crate::shutdown::Shutdown;
use crate::source::history::History;
use crate::stats::Stats;
use crate::users::Users;
use crate::users::log::AccessLog;

/// The state that all connections of the door share.
pub(crate) struct Shared {
    pub engine: Arc<Engine>,
    pub keyspace: Arc<Keyspace>,
    pub clock: Arc<dyn Clock>,
    pub host: Arc<dyn Host>,
    pub stats: Stats,
    /// Rates of commands, bytes received and bytes sent.
    pub rates: Rates<3>,
    pub clients: Clients,
    pub parameters: Parameters,
    pub pack_limits: Arc<EncodingLimits>,
    pub access_log: AccessLog,
    pub users: Users,
    pub hub: Hub,
    pub monitors: Monitors,
    pub tracking: TrackingTable,
    pub output_limits: OutputLimits,
    pub event_flags: EventFlags,
    pub scripts: ScriptTexts,
    /// How often SCRIPT FLUSH has been called.
    pub script_flushes: AtomicU64,
    pub libraries: Libraries,
    pub runs: Runs,
    pub saves: Saves,
    pub migrations: Migrations,
    pub shutdown: Shutdown,
    pub replica: Replica,
    /// The stream that other servers follow.
    pub history: History,
    pub pool: OnceLock<Weak<Pool>>,
    pub strict: AtomicBool,
    pub protected_mode: AtomicBool,
    pub bulk_bytes_max: AtomicU64,
    pub request_bytes_max: AtomicU64,
    pub port: u16,
    pub started_ms: u64,
    /// Time of the last log line about HTTP requests.
    pub http_warned_ms: AtomicU64,
    /// Forty hexadecimal digits, new at each start.
    pub run_id: String,
    /// The server is the one node of a cluster.
    pub is_cluster: bool,
    /// The node's id, which stays the same over restarts; empty without a cluster.
    pub node_id: String,
}

impl Shared {
    /// Searches the tree for keys before their requests run. A request without a key gets an empty result, because the result for one key must not be used for
    /// another.
    pub fn look_ahead(&self, keys: &[(u8, Option<&[u8]>)]) -> Vec<Ahead> {
        let named: Vec<(u8, &[u8])> = keys.iter().filter_map(|(db, key)| Some((*db, (*key)?))).collect();
        let mut found = Vec::with_capacity(named.len());
        self.keyspace.look_ahead(&named, &mut found);
        let mut found = found.into_iter();
        keys.iter().map(|(_, key)| key.and_then(|_| found.next()).unwrap_or_default()).collect()
    }

    /// Logs a warning about HTTP requests, at most once per minute, as Redis does.
    pub fn warn_about_http(&self, from: &str, now_ms: u64) {
        let last = self.http_warned_ms.load(Ordering::Relaxed);
        let is_due = last == 0 || now_ms.saturating_sub(last) >= 60_000;
        let is_ours =
            || self.http_warned_ms.compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && is_ours() {
            self.host.warn(
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to the Redis door. This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise it. Connection aborted.",
                from,
            );
        }
    }

    /// Begins to send messages whose durability LSN is `lsn`.
    pub fn delivery(&self, lsn: u64) -> Delivery<'_> {
        Delivery::new(&self.output_limits, lsn, self.clock.wall_ms())
    }

    /// Returns whether a command runs a script or a function whose flags say that it does not write.
    pub fn runs_only_reads(&self, command: &Command, args: &[&[u8]]) -> bool {
        let flags = match command.name {
            "eval" => flags::read(args[1]).ok().and_then(|(flags, _)| flags),
            "evalsha" => {
                let digest = String::from_utf8_lossy(args[1]).to_ascii_lowercase();
                self.scripts.get(&digest).and_then(|script| script.flags)
            }
            "fcall" => self.libraries.get().function(&String::from_utf8_lossy(args[1])).map(|(_, _, flags)| flags),
            _ => None,
        };
        flags.is_some_and(|flags| flags.no_writes)
    }

    /// Notifies the receivers of messages, and ends and logs the clients that do not read theirs.
    pub fn finish(self: &Arc<Shared>, delivery: Delivery<'_>) {
        let slow = delivery.finish();
        slow.cut.iter().for_each(|client| self.note_cut(client));
        slow.watched.iter().for_each(|(client, again)| self.judge_later(client, *again));
    }

    fn note_cut(&self, client: &Client) {
        self.stats.output_limit_disconnections.add(1);
        self.host.warn(
            "A client was disconnected because it left more messages unread than client-output-buffer-limit allows.",
            &client.address,
        );
    }

    /// Cuts a client after this time, if it stays above its soft limit without anything being written meanwhile.
    pub fn judge_later(self: &Arc<Shared>, client: &Arc<Client>, again: Duration) {
        let (shared, client) = (Arc::downgrade(self), client.clone());
        let since_ms = client.over_soft_limit_ms.load(Ordering::Relaxed);
        let judge = move || {
            let (Some(shared), Some(connection)) = (shared.upgrade(), client.connection.upgrade()) else { return };
            if client.over_soft_limit_ms.load(Ordering::Relaxed) != since_ms {
                return;
            }
            let verdict = shared.output_limits.judge_again(&client, connection.pending().1, shared.clock.wall_ms());
            if verdict == Verdict::Exceeded && !client.killed.swap(true, Ordering::AcqRel) {
                connection.handle().kill();
                shared.note_cut(&client);
            }
        };
        if let Some(pool) = self.pool() {
            pool.timer(again, Box::new(judge));
        }
    }

    /// Sends a message to the subscribers of a channel. Returns how many there are.
    pub fn publish(self: &Arc<Shared>, topic: Topic, channel: &[u8], payload: &[u8], lsn: u64) -> usize {
        let mut delivery = self.delivery(lsn);
        let count = self.hub.publish(topic, channel, payload, &mut delivery);
        self.finish(delivery);
        if self.keyspace.effects().is_on() {
            let name: &[u8] = if topic == Topic::Shard { b"SPUBLISH" } else { b"PUBLISH" };
            self.history.append_command(&[name, channel, payload], lsn);
        }
        count
    }

    /// Lets the pool serve clients whose service may have to wait for a transaction of SQL.
    pub fn serve_deferred_waits(&self) {
        let (keyspace, pool) = (Arc::downgrade(&self.keyspace), self.pool.get().cloned());
        self.keyspace.defer_waits(Box::new(move |deferred| {
            let Some(keyspace) = keyspace.upgrade() else { return };
            match pool.as_ref().and_then(Weak::upgrade) {
                Some(pool) => pool.task(Box::new(move || keyspace.serve_now(deferred))),
                None => keyspace.serve_now(deferred),
            }
        }));
    }

    /// Returns the value of CONFIG GET; an empty text if there is no such parameter.
    pub fn setting(&self, name: &str) -> String {
        let mut all = self.host.settings();
        all.extend(self.parameters.others(&all));
        all.into_iter().find(|(known, _)| known == name).map_or(String::new(), |(_, value)| value)
    }

    pub fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.get().and_then(Weak::upgrade)
    }
}
