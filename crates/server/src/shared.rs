//! A database in shared storage: its address, its lease, and the right to answer (`rados:POOL/NAME`).
//!
//! Hard part: the lease comes before everything and ends after everything. It is held before the engine claims the database and until the engine is closed, and its thread
//! renews it while recovery runs (SV-6). From the moment at which another node has it, the process does nothing but end (exit code 76).

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use engine::{SharedStorage, StorageError};
use os::{
    BootClock, Lease, LeaseAttempt, LeaseHolder, ObjectError, ObjectStore, RadosAddress, RadosObjects, RealFolder,
};
use reactor::{Pool, ReplyGate};

use crate::exit::{self, Exit, Failure};
use crate::log;
use crate::machine;
use crate::settings::{Name, Settings};

const PREFIX: &str = "rados:";
/// A node that is not heard of for so long is replaced.
const LEASE_TTL: Duration = Duration::from_secs(3);
const RENEW_EVERY: Duration = Duration::from_millis(750);
/// Interval at which a node that waits for the lease tries to get it.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// Interval at which such a node says so.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
const HOST_FILE: &str = "/proc/sys/kernel/hostname";

/// Returns the address if `data` names a database in shared storage.
pub fn address(settings: &Settings, data: &str) -> Result<Option<RadosAddress>, Failure> {
    let Some(rest) = data.strip_prefix(PREFIX) else { return Ok(None) };
    let Some((pool, name)) = rest.split_once('/').filter(|(pool, name)| {
        let is_plain = |text: &str| !text.is_empty() && !text.contains(['/', '\0']);
        is_plain(pool) && is_plain(name)
    }) else {
        return Err(Failure::new(
            Exit::Config,
            format!("data: '{data}' is not an address in shared storage: expected rados:POOL/NAME"),
        ));
    };
    let conf = settings.text(Name::CephConf);
    Ok(Some(RadosAddress {
        pool: pool.into(),
        name: name.into(),
        conf: (!conf.is_empty()).then(|| PathBuf::from(conf)),
        user: settings.text(Name::CephUser),
    }))
}

/// Refuses an address in shared storage where only a folder can be.
pub fn only_folder(option: &str, value: &str) -> Result<(), Failure> {
    if !value.starts_with(PREFIX) {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        format!("--{option}: {value} is in shared storage; this command takes a folder here"),
    ))
}

/// Returns this process for a person: host and process id.
fn owner() -> String {
    let host = std::fs::read_to_string(HOST_FILE).unwrap_or_default();
    let host = host.trim();
    format!("{}:{}", if host.is_empty() { "unknown" } else { host }, std::process::id())
}

/// The state of the thread that renews the lease.
#[derive(Default)]
struct Renewals {
    is_over: Mutex<bool>,
    condvar: Condvar,
    /// The pool whose replies the lease holds.
    pool: OnceLock<std::sync::Weak<Pool>>,
}

/// A database whose lease this process has. The process ends when another one gets it.
pub struct Leased {
    shown: String,
    objects: Arc<RadosObjects>,
    lease: Arc<Lease>,
    renewals: Arc<Renewals>,
    thread: std::thread::JoinHandle<()>,
}

/// How long a process waits for the lease.
pub enum Patience<'p> {
    /// Until the holder has given it back or is gone, or the function returns true.
    Until(&'p mut dyn FnMut() -> bool),
    /// Until it is known that the holder is alive.
    WhileSilent,
}

impl Leased {
    /// Connects to the storage and gets the lease. `None` if the caller's patience has ended.
    ///
    /// Without `create`, there must be a database.
    pub fn acquire(
        address: &RadosAddress,
        create: bool,
        mut patience: Patience<'_>,
    ) -> Result<Option<Leased>, Failure> {
        let shown = address.to_string();
        let fail = |exit, what: &dyn Display| Failure::new(exit, format!("data: {shown}: {what}"));
        let objects = RadosObjects::connect(address).map_err(|error| fail(Exit::Create, &error))?;
        let is_there = |objects| SharedStorage::exists(&objects).map_err(|error| fail(Exit::Io, &error));
        if !create && !is_there(objects.clone() as Arc<dyn ObjectStore>)? {
            return Err(fail(Exit::Create, &"there is no such database"));
        }
        let lease = Lease::new(objects.clone(), Arc::new(BootClock), &owner(), machine::random()?, LEASE_TTL);
        let (begin, mut told, mut first): (_, Option<Instant>, Option<LeaseHolder>) = (Instant::now(), None, None);
        loop {
            let holder = match lease.try_acquire() {
                Ok(LeaseAttempt::Acquired) => break,
                Ok(LeaseAttempt::Held(holder)) => holder,
                Err(ObjectError::Fenced) => return Err(fail(Exit::Fenced, &ObjectError::Fenced)),
                Err(error) => return Err(fail(Exit::Io, &format_args!("getting the lease: {error}"))),
            };
            let first = first.get_or_insert_with(|| holder.clone());
            match &mut patience {
                Patience::Until(is_over) => {
                    if is_over() {
                        return Ok(None);
                    }
                    if told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
                        told = Some(Instant::now());
                        let (waited, renewals) = (begin.elapsed().as_secs(), holder.version - first.version);
                        let fields: [(&str, &dyn Display); 4] = [
                            ("data", &shown),
                            ("holder", &holder.owner),
                            ("waited_seconds", &waited),
                            ("renewals_seen", &renewals),
                        ];
                        log::warn("waiting for the lease of the database", &fields);
                    }
                }
                Patience::WhileSilent if holder.version == first.version => {}
                Patience::WhileSilent => {
                    let what = format!("in use by {}; stop that server first", holder.owner);
                    return Err(fail(Exit::Busy, &what));
                }
            }
            std::thread::sleep(TRY_EVERY.min(holder.left));
        }
        log::info("lease acquired", &[("data", &shown), ("waited_ms", &begin.elapsed().as_millis())]);
        let (lease, renewals) = (Arc::new(lease), Arc::<Renewals>::default());
        let (of_thread, shared) = (lease.clone(), renewals.clone());
        let thread = std::thread::Builder::new().name("lease".into());
        let thread = thread
            .spawn(move || renew(&of_thread, &shared))
            .map_err(|error| fail(Exit::Internal, &format_args!("the thread of the lease: {error}")))?;
        Ok(Some(Leased { shown, objects, lease, renewals, thread }))
    }

    /// Returns the storage for the engine. A write that is refused, or whose outcome is unknown, ends the process.
    pub fn storage(&self, scratch: Arc<RealFolder>) -> SharedStorage {
        SharedStorage {
            objects: self.objects.clone() as Arc<dyn ObjectStore>,
            scratch,
            object_pages: SharedStorage::OBJECT_PAGES,
            on_end: Some(Arc::new(|error: &StorageError| exit::end_of_opening(error))),
            unfenced: None,
        }
    }

    /// Returns the gate that is open while the lease is confirmed (PG-33).
    pub fn gate(&self) -> ReplyGate {
        let lease = self.lease.clone();
        ReplyGate::new(move || lease.is_confirmed())
    }

    /// From now on each renewal releases what the gate has held.
    pub fn release_replies_of(&self, pool: &Arc<Pool>) {
        let _ = self.renewals.pool.set(Arc::downgrade(pool));
    }

    /// Gives the lease back, so that the next node need not wait. The engine must be closed, and no reply may leave any more.
    pub fn release(self) {
        *self.renewals.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.renewals.condvar.notify_all();
        let _ = self.thread.join();
        match self.lease.release() {
            Ok(()) => log::info("lease given back", &[("data", &self.shown)]),
            Err(error) => log::warn("the lease was not given back", &[("data", &self.shown), ("error", &error)]),
        }
    }
}

/// Renews the lease until it is over. Ends the process if another node has it.
fn renew(lease: &Lease, renewals: &Renewals) {
    loop {
        // A renewal that was answered after its time is repeated at once.
        let pause = if lease.is_confirmed() { RENEW_EVERY } else { Duration::ZERO };
        let is_over = renewals.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = renewals.condvar.wait_timeout_while(is_over, pause, |is_over| !*is_over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_over {
            return;
        }
        drop(is_over);
        let (was_confirmed, begin) = (lease.is_confirmed(), Instant::now());
        match lease.renew() {
            Ok(()) => {}
            Err(ObjectError::Fenced) => {
                exit::end_of_opening(&StorageError::Fenced { what: "renewing the lease".into() })
            }
            Err(error) => {
                log::error("the lease was not renewed; replies wait when its time has passed", &[("error", &error)]);
                std::thread::sleep(TRY_EVERY);
                continue;
            }
        }
        if let Some(pool) = renewals.pool.get().and_then(std::sync::Weak::upgrade) {
            pool.release_held();
        }
        if !was_confirmed && lease.is_confirmed() {
            log::warn(
                "the lease was renewed late; replies have waited for it",
                &[("ms", &begin.elapsed().as_millis())],
            );
        }
    }
}
