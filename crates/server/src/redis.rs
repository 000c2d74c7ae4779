//! The Redis door's view of this server: settings under Redis' names, facts for INFO, and the settings that the door follows.

use std::sync::Arc;

use door_redis::{Host, Options, RedisDoor, Refused};
use engine::{Account, Engine};

use crate::settings::redis::Refused as SettingRefused;
use crate::settings::{Name, Settings};

pub struct ServerHost {
    pub settings: Arc<Settings>,
    pub engine: Arc<Engine>,
}

/// Redis names that clients ask for and that are facts here, not settings.
const FACTS: &[(&str, &str)] =
    &[("save", ""), ("appendonly", "yes"), ("databases", "16"), ("maxmemory-policy", "noeviction")];

impl Host for ServerHost {
    fn settings(&self) -> Vec<(String, String)> {
        let own = self.settings.redis_all().into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(FACTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).collect()
    }

    fn change(&self, changes: &[(&str, &str)]) -> Result<(), Refused> {
        if let Some((name, _)) =
            changes.iter().find(|(name, _)| FACTS.iter().any(|(fact, _)| fact.eq_ignore_ascii_case(name)))
        {
            return Err(Refused::Fixed((*name).to_owned()));
        }
        self.settings.redis_set(changes).map_err(|refused| match refused {
            SettingRefused::Unknown(name) => Refused::Unknown(name),
            SettingRefused::Fixed(name) => Refused::Fixed(name),
            SettingRefused::Bad(name, expected) => Refused::Bad(name, expected),
        })
    }

    fn rewrite(&self) -> Result<(), String> {
        self.settings.rewrite()
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn facts(&self, section: &str) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
        match section {
            "memory" => {
                let (frames, used, dirty) = self.engine.pager().frame_use();
                let page = engine::PAGE_BYTES as u64;
                add("maxmemory", self.settings.number(Name::Memory).to_string());
                add("maxmemory_policy", "noeviction".to_owned());
                add("page_cache_bytes", (frames * page).to_string());
                add("page_cache_used_bytes", (used * page).to_string());
                add("page_cache_dirty_bytes", (dirty * page).to_string());
            }
            "persistence" => {
                let counts = self.engine.pager().counts();
                add("aof_enabled", "1".to_owned());
                add("appendfsync", self.settings.text(Name::AppendFsync));
                add("log_flushes", counts.log_flushes.to_string());
                add("log_written_bytes", counts.log_written_bytes.to_string());
                add("checkpoints", counts.checkpoints.to_string());
            }
            "stats" => {
                let counts = self.engine.pager().counts();
                add("page_reads", counts.page_reads.to_string());
                add("page_writes", counts.page_writes.to_string());
                add("page_evictions", counts.evictions.to_string());
            }
            "server" => {
                add("config_file", self.settings.file.as_ref().map_or(String::new(), |path| path.display().to_string()))
            }
            _ => {}
        }
        facts
    }
}

/// Makes the door and lets it follow the settings that may change.
pub fn door(settings: &Arc<Settings>, engine: &Arc<Engine>) -> engine::Result<Arc<RedisDoor>> {
    let password = settings.text(Name::RedisPassword);
    if !password.is_empty() {
        set_password(engine, &password)?;
    }
    let host = Arc::new(ServerHost { settings: settings.clone(), engine: engine.clone() });
    let options = Options {
        strict: settings.text(Name::AppendFsync) == "always",
        protected_mode: settings.is_on(Name::RedisProtectedMode),
        bulk_bytes_max: settings.number(Name::BulkMax),
        request_bytes_max: settings.number(Name::RequestMax),
        port: settings.number(Name::RedisPort) as u16,
    };
    let door = Arc::new(RedisDoor::new(engine.clone(), Arc::new(os::RealClock::new()), host, &options));
    follow(&door, settings);
    let (followed, engine) = (Arc::downgrade(&door), engine.clone());
    settings.on_change(Box::new(move |name, settings| {
        if name == Name::RedisPassword
            && let Err(error) = set_password(&engine, &settings.text(name))
        {
            crate::log::error("the password of the user 'default' was not changed", &[("error", &error)]);
        }
        if let Some(door) = followed.upgrade() {
            follow(&door, settings);
        }
    }));
    Ok(door)
}

fn follow(door: &RedisDoor, settings: &Settings) {
    door.set_strict(settings.text(Name::AppendFsync) == "always");
    door.set_protected_mode(settings.is_on(Name::RedisProtectedMode));
    door.set_bulk_bytes_max(settings.number(Name::BulkMax));
    door.set_request_bytes_max(settings.number(Name::RequestMax));
    let slower = settings.number(Name::SlowLogTime);
    let limit = if slower == 0 { -1 } else { slower as i64 };
    door.set_slow_log(limit, settings.number(Name::SlowLogEntries));
}

/// Gives the user `default` this one password; none at all if it is empty.
fn set_password(engine: &Engine, password: &str) -> engine::Result<()> {
    let accounts = engine.accounts();
    let mut account = match accounts.get(engine::DEFAULT_ACCOUNT) {
        Some(account) => (*account).clone(),
        None => Account::new(engine::DEFAULT_ACCOUNT),
    };
    account.nopass = password.is_empty();
    account.passwords = if password.is_empty() { Vec::new() } else { vec![engine::sha256(password.as_bytes())] };
    let lsn = accounts.put(account)?;
    engine.durable().wait(lsn);
    Ok(())
}
