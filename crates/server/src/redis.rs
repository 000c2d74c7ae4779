//! The server's side of the Redis door: CONFIG, and the lines of INFO that only the server knows.

use std::path::PathBuf;
use std::sync::Arc;

use door_redis::{Host, RedisDoor, Refused};
use engine::{Account, DEFAULT_ACCOUNT, Engine};
use os::RealClock;

use crate::log;
use crate::settings::value::OFF;
use crate::settings::{Name, Settings};
use crate::stop::{Stop, StopSender};
use crate::store;

/// The allocator of `main`, as INFO shows it.
const ALLOCATOR: &str = "jemalloc-5.3.0";

/// The reason of the wait until a new password is on disk.
static ACCOUNT: stdx::wait::Reason = stdx::wait::Reason::new("account");

pub struct ServerHost {
    pub settings: Arc<Settings>,
    pub engine: Arc<Engine>,
    pub stops: StopSender,
}

impl Host for ServerHost {
    fn settings(&self) -> Vec<(String, String)> {
        self.settings.redis_all().into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn change(&self, changes: &[(&str, &str)]) -> Result<(), Refused> {
        let checked = self.settings.redis_check(changes)?;
        // The password is the only change that can fail, so it comes first: all changes or none are made.
        if let Some(password) = checked.text(Name::RedisPassword) {
            set_password(&self.engine, password).map_err(|e| Refused::Bad("requirepass".into(), e.to_string()))?;
        }
        self.settings.redis_apply(checked);
        Ok(())
    }

    fn rewrite(&self) -> Result<(), String> {
        self.settings.rewrite()
    }

    fn data_folder(&self) -> PathBuf {
        let data = self.settings.text(Name::Data);
        // The address was checked at the start.
        store::local_folder(&self.settings, &data).unwrap_or_else(|_| PathBuf::from(data))
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn facts(&self, section: &str) -> Vec<(String, String)> {
        let limit = self.settings.number(Name::Memory);
        let counts = || self.engine.pager().counts();
        let page_bytes = |pages: u64| (pages * engine::PAGE_BYTES as u64).to_string();
        let facts = match section {
            "server" => {
                vec![("config_file", self.settings.file.as_ref().map_or(String::new(), |f| f.display().to_string()))]
            }
            "memory" => {
                // Used memory is the memory of the process, so its fragmentation is zero.
                let (used, peak) = (os::memory::rss_bytes(), os::memory::peak_rss_bytes());
                let dataset = self.engine.pager().frame_use().1 * engine::PAGE_BYTES as u64;
                let percent = |part: u64, whole: u64| format!("{:.2}%", part as f64 * 100.0 / whole.max(1) as f64);
                vec![
                    ("used_memory", used.to_string()),
                    ("used_memory_human", human(used)),
                    ("used_memory_rss", used.to_string()),
                    ("used_memory_rss_human", human(used)),
                    ("used_memory_peak", peak.to_string()),
                    ("used_memory_peak_human", human(peak)),
                    ("used_memory_peak_perc", percent(used, peak)),
                    ("used_memory_overhead", used.saturating_sub(dataset).to_string()),
                    ("used_memory_dataset", dataset.min(used).to_string()),
                    ("used_memory_dataset_perc", percent(dataset.min(used), used)),
                    ("total_system_memory", os::memory::limit_bytes().to_string()),
                    ("total_system_memory_human", human(os::memory::limit_bytes())),
                    ("maxmemory", limit.to_string()),
                    ("maxmemory_human", human(limit)),
                    ("maxmemory_policy", "noeviction".to_string()),
                    ("mem_fragmentation_ratio", "1.00".to_string()),
                    ("mem_fragmentation_bytes", "0".to_string()),
                    ("mem_allocator", ALLOCATOR.to_string()),
                    ("page_cache_bytes", page_bytes(self.engine.pager().frame_use().0)),
                    ("page_cache_used_bytes", page_bytes(self.engine.pager().frame_use().1)),
                    ("page_cache_dirty_bytes", page_bytes(self.engine.pager().frame_use().2)),
                ]
            }
            "persistence" => vec![
                ("aof_enabled", "1".to_string()),
                ("appendfsync", self.settings.text(Name::RedisAppendfsync)),
                ("log_written_bytes", counts().log_written_bytes.to_string()),
                ("log_flushes", counts().log_flushes.to_string()),
                ("checkpoints", counts().checkpoints.to_string()),
            ],
            "stats" => vec![
                ("page_reads", counts().page_reads.to_string()),
                ("page_writes", counts().page_writes.to_string()),
                ("page_evictions", counts().evictions.to_string()),
            ],
            _ => Vec::new(),
        };
        facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn request_stop(&self) {
        self.stops.send(Stop::Command);
    }

    fn allocator(&self) -> String {
        let options = env!("JEMALLOC_SYS_WITH_MALLOC_CONF");
        format!(
            "Allocator: {ALLOCATOR}\nOptions: {options}\nMemory that is free for a tenth of a second goes back to the system, and blocks from 256 KiB on at once.\n"
        )
    }

    fn warn(&self, what: &str, from: &str) {
        log::warn(what, &[("from", &from)]);
    }

    fn inform(&self, what: &str, from: &str) {
        log::info(what, &[("from", &from)]);
    }

    fn report(&self, text: &str) {
        log::warn("redis door", &[("what", &text)]);
    }

    fn log(&self, level: i64, text: &str) {
        match level {
            0 | 1 => log::debug("a script says", &[("text", &text)]),
            2 => log::info("a script says", &[("text", &text)]),
            _ => log::warn("a script says", &[("text", &text)]),
        }
    }

    fn is_system_account(&self, account: &Account) -> bool {
        sql_mysql::rights::is_system_account(self.engine.accounts(), account)
    }

    fn without_privileges(&self, account: Account) -> Account {
        sql_mysql::rights::without_privileges(account)
    }
}

/// Formats a size as Redis does for people: `1.50M`.
fn human(bytes: u64) -> String {
    let units = [(1_u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.iter().find(|(factor, _)| bytes >= *factor) {
        Some((factor, word)) => format!("{:.2}{word}", bytes as f64 / *factor as f64),
        None => format!("{bytes}B"),
    }
}

/// Sets the only password of the user `default`, or removes it if the text is empty. The change is durable on return.
pub fn set_password(engine: &Engine, password: &str) -> Result<(), engine::Error> {
    let accounts = engine.accounts();
    let digest = engine::sha256(password.as_bytes());
    // The error by which a change is aborted because there is nothing to change.
    let changed = accounts.change(DEFAULT_ACCOUNT, |old| {
        let old = old.cloned().unwrap_or_else(|| Account::new(DEFAULT_ACCOUNT));
        let is_same = match password.is_empty() {
            true => old.nopass && old.passwords.is_empty(),
            false => !old.nopass && old.passwords == [digest] && old.scram.is_some(),
        };
        if is_same {
            return Err(());
        }
        let mut new = Account { nopass: password.is_empty(), passwords: Vec::new(), ..old };
        // A verifier of a password that goes with its digest.
        new.scram = new.scram.filter(|scram| scram.digest.is_none() && new.verifier.is_some());
        if !password.is_empty() {
            new.add_password(password.as_bytes());
        }
        Ok(new)
    })?;
    if let Ok(lsn) = changed {
        let _waiting = stdx::wait::announce(&ACCOUNT);
        engine.durable().wait(lsn);
    }
    Ok(())
}

/// Returns whether anybody can log in as `default` without a password.
pub fn is_open(engine: &Engine) -> bool {
    engine.accounts().get(DEFAULT_ACCOUNT).is_none_or(|account| account.enabled && account.nopass)
}

/// Creates the door, which has no connections yet.
pub fn door(settings: &Arc<Settings>, engine: &Arc<Engine>, stops: &StopSender) -> RedisDoor {
    let port = settings.number(Name::RedisPort) as u16;
    let host = Arc::new(ServerHost { settings: settings.clone(), engine: engine.clone(), stops: stops.clone() });
    let cluster = settings.is_on(Name::RedisClusterEnabled);
    let options = door_redis::Options { port, cluster, ..door_redis::Options::default() };
    let door = RedisDoor::new(engine.clone(), Arc::new(RealClock::new()), host, &options);
    tune(&door, settings);
    door
}

/// Applies the current settings to the door, at the start and after each change.
pub fn tune(door: &RedisDoor, settings: &Settings) {
    door.set_strict(settings.text(Name::RedisAppendfsync) == "always");
    door.set_protected_mode(settings.is_on(Name::RedisProtectedMode));
    door.set_bulk_bytes_max(settings.number(Name::RedisBulkMax));
    door.set_request_bytes_max(settings.number(Name::RedisRequestMax));
    let after = settings.number(Name::RedisSlowLogAfter);
    let after = if after == OFF { -1 } else { i64::try_from(after).unwrap_or(i64::MAX) };
    door.set_event_flags(&settings.text(Name::RedisEventFlags));
    door.set_output_limits(&settings.text(Name::RedisOutputLimits));
    door.set_slow_log(after, settings.number(Name::RedisSlowLogEntries));
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_for_people_are_those_of_redis() {
        assert_eq!(super::human(1023), "1023B");
        assert_eq!(super::human(1536), "1.50K");
        assert_eq!(super::human(3 << 30), "3.00G");
    }
}
