//! The database: the state that all sessions share.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use datum::Result;
use engine::Engine;
use stdx::sync::Mutex;

use crate::instance::count::Counts;
use crate::instance::handle::{Handle, Kill};
use crate::instance::hooks::ServerHooks;
use crate::instance::plans::Plans;
use crate::instance::variables::{Is, find};
use crate::system::schemas::SCHEMAS;
use crate::value::Value;
use query::catalog::Catalog;
use query::catalog::table::Table;
use query::catalog::timestamps::Timestamps;
use query::exec::instance::Instance;
use query::exec::spill::Spill;
use query::session::registry::SessionHandle;

pub struct Database {
    instance: Arc<Instance>,
    /// MySQL's sessions, for their counters. `Instance::sessions` has those of all dialects.
    counting: Mutex<BTreeMap<u64, Weak<Handle>>>,
    /// Counted by sessions that have gone.
    gone: Counts,
    pub(crate) opened: Instant,
    /// The values of SET GLOBAL.
    pub(crate) globals: Mutex<HashMap<&'static str, Value>>,
    /// `read_only` and `super_read_only`, for statements that are about to write.
    read_only: AtomicU8,
    timestamps: Timestamps,
    pub(crate) plans: Arc<Plans>,
    /// The server's hooks.
    hooks: OnceLock<ServerHooks>,
}

const READ_ONLY: u8 = 1;
const SUPER_READ_ONLY: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOnly {
    Off,
    /// Accounts with SUPER or CONNECTION_ADMIN may write.
    On,
    Super,
}

impl Database {
    /// Opens the database and loads the catalog.
    pub fn open(engine: Arc<Engine>) -> Result<Arc<Database>> {
        let instance = Arc::new(Instance::open(engine, SCHEMAS)?);
        let plans = Arc::new(Plans::new());
        let cache: Weak<Plans> = Arc::downgrade(&plans);
        stdx::memory::register_cache(cache);
        let database = Arc::new(Database {
            instance,
            counting: Mutex::default(),
            gone: Counts::default(),
            opened: Instant::now(),
            globals: Mutex::default(),
            read_only: AtomicU8::new(0),
            timestamps: Timestamps::default(),
            plans,
            hooks: OnceLock::new(),
        });
        database.recall()?;
        Ok(database)
    }

    /// Applies the values of SET PERSIST over all other settings. A variable that no longer exists, or no longer
    /// accepts its value, is skipped.
    fn recall(&self) -> Result<()> {
        for (name, value) in self.persisted()? {
            let Ok(variable) = find(&name) else { continue };
            if variable.form(value.clone()).is_ok_and(|value| variable.check(&value).is_ok()) {
                self.globals.lock().insert(variable.name, value.clone());
                self.follow(variable.name, &value);
            }
        }
        Ok(())
    }

    pub(crate) fn persisted(&self) -> Result<BTreeMap<String, Value>> {
        self.catalog().persisted()
    }

    pub(crate) fn persist(&self, name: &str, value: &Value) -> Result<engine::Lsn> {
        self.catalog().persist(name, value)
    }

    pub(crate) fn forget_persisted<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<engine::Lsn> {
        self.catalog().forget_persisted(names)
    }

    /// Lets statements spill to a folder, which is emptied, when they exceed `memory_max`. Called before the first
    /// session.
    pub fn spill_to(&self, folder: &std::path::Path, memory_max: usize) -> std::io::Result<()> {
        self.instance.spill_to(folder, memory_max)
    }

    /// Sets the data directory that variables show. Called before the first session.
    pub fn set_data_directory(&self, folder: &std::path::Path) {
        let mut name = folder.display().to_string();
        if !name.ends_with('/') {
            name.push('/');
        }
        self.globals.lock().insert("datadir", Value::text(name));
    }

    /// Restricts LOAD DATA and SELECT ... INTO to files in this folder, and sets whether clients may send theirs.
    /// Called before the first session.
    pub fn allow_files(&self, folder: Option<&std::path::Path>, local: bool) {
        let mut globals = self.globals.lock();
        if let Some(folder) = folder {
            globals.insert("secure_file_priv", Value::text(folder.display().to_string()));
        }
        globals.insert("local_infile", Value::from(local));
    }

    /// Returns the text value of a global variable.
    pub fn global_word(&self, name: &str) -> String {
        let value = self.globals.lock().get(name).cloned();
        let value = value.or_else(|| super::variables::find(name).ok().map(|variable| variable.default()));
        value.as_ref().map(super::variables::text_of).unwrap_or_default()
    }

    /// Sets variables that mirror the server's settings. Panics for an unknown name.
    pub fn set_server_values(&self, facts: impl IntoIterator<Item = (&'static str, u64)>) {
        let mut globals = self.globals.lock();
        for (name, number) in facts {
            let variable = find(name).ok().filter(|variable| variable.may.is_of_server());
            let variable = variable.unwrap_or_else(|| panic!("{name} is no variable of the server"));
            let value = if let Is::Flag(_) = variable.is { Value::from(number != 0) } else { Value::UInt(number) };
            globals.insert(name, value);
        }
    }

    /// Ends all waits of sessions, and rejects new ones, because the server stops.
    pub fn end_waits(&self) {
        self.instance.sessions().end_waits(self.engine());
    }

    /// Ends all sessions and their statements.
    pub fn kill_all(&self) {
        self.instance.sessions().kill_all(self.engine());
    }

    /// Notes that the client of a session has closed its connection while a statement runs.
    pub fn depart(&self, handle: &Handle) {
        self.instance.sessions().depart(handle, self.engine());
    }

    /// Installs the server's hooks. Called once, before the first session and after `set_server_values`.
    pub fn install_hooks(&self, hooks: ServerHooks) -> Result<()> {
        let _ = self.hooks.set(hooks);
        self.recall()
    }

    pub(crate) fn hooks(&self) -> Option<&ServerHooks> {
        self.hooks.get()
    }

    /// Passes a new value of a variable to the server.
    pub(crate) fn follow(&self, name: &'static str, value: &Value) {
        let number = match value {
            Value::UInt(number) => *number,
            Value::Int(flag) => *flag as u64,
            _ => return,
        };
        let bit = match name {
            "read_only" => READ_ONLY,
            "super_read_only" => SUPER_READ_ONLY,
            _ => 0,
        };
        if number != 0 {
            self.read_only.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.read_only.fetch_and(!bit, Ordering::Relaxed);
        }
        if let Some(hooks) = self.hooks() {
            (hooks.set)(name, number);
        }
    }

    /// Returns who may write.
    pub(crate) fn read_only(&self) -> ReadOnly {
        match self.read_only.load(Ordering::Relaxed) {
            0 => ReadOnly::Off,
            bits if bits & SUPER_READ_ONLY != 0 => ReadOnly::Super,
            _ => ReadOnly::On,
        }
    }

    pub fn spill(&self) -> Option<&Arc<Spill>> {
        self.instance.spill()
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.instance.engine()
    }

    /// Reserves `count` timestamps, unique also across restarts: `STEP` apart, the first that much above the returned
    /// number. They may be shown once the WAL is durable up to the returned LSN.
    pub fn take_timestamps(&self, count: u32, now_ms: u64) -> Result<(u64, engine::Lsn)> {
        self.timestamps.take(self.engine(), count, now_ms)
    }

    /// Drops temporary tables from before a crash that could not be dropped at the start. Called when interrupted
    /// transactions have been rolled back.
    pub fn drop_left_temporary(&self) -> Result<()> {
        self.catalog().drop_left()
    }

    /// Returns the part of the database that every dialect shares.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        self.instance.catalog()
    }

    /// Returns the next value of AUTO_INCREMENT.
    pub(crate) fn next_auto(&self, table: &Table) -> Result<Option<u64>> {
        let auto = table.live.auto.lock();
        Ok(Some(if auto.next > 0 { auto.next } else { self.catalog().auto_reserved(table.id)?.max(1) }))
    }

    pub(crate) fn enlist(&self, handle: &Arc<Handle>) {
        self.counting.lock().insert(handle.connection_id, Arc::downgrade(handle));
        let listed: Arc<dyn SessionHandle> = handle.clone();
        self.instance.sessions().enlist(&listed);
    }

    pub(crate) fn delist(&self, handle: &Handle) {
        self.instance.sessions().delist(handle.connection_id);
        let mut counting = self.counting.lock();
        counting.remove(&handle.connection_id);
        self.gone.take(&handle.counts);
    }

    /// Resets the session's counters but not the server's, for FLUSH STATUS.
    pub(crate) fn count_anew(&self, handle: &Handle) {
        let _counting = self.counting.lock();
        self.gone.take(&handle.counts);
    }

    /// Returns the counters of all sessions, past ones included.
    pub(crate) fn counted(&self) -> Vec<u64> {
        let counting = self.counting.lock();
        let mut sums = self.gone.all();
        for handle in counting.values().filter_map(Weak::upgrade) {
            sums.iter_mut().zip(handle.counts.all()).for_each(|(sum, more)| *sum += more);
        }
        sums
    }

    /// Returns the number of connections so far, and the most at a time.
    pub(crate) fn connections(&self) -> (u64, u64) {
        self.instance.sessions().counts()
    }

    /// Returns all sessions, those of other dialects included.
    pub fn sessions(&self) -> Vec<Arc<dyn SessionHandle>> {
        self.instance.sessions().all()
    }

    /// Kills a session of any dialect, or its statement. Returns false if it does not exist.
    pub fn kill(&self, connection_id: u64, how: Kill) -> bool {
        self.instance.sessions().kill(connection_id, how, self.engine())
    }
}
