//! Opening a database: control block, repair from the double-write file, recovery, background threads.
//!
//! The order is the point: torn pages are repaired before redo reads them, redo ends before the WAL is opened for appends, and a new boot number is durable
//! before the first append, since it is the epoch that distinguishes new chunks from the torn tail.

use std::sync::Arc;
use std::sync::OnceLock;

use os::{Clock, Folder, Open};
use stdx::sync::atomic::{AtomicBool, AtomicU64};
use stdx::sync::{Condvar, Mutex};

use crate::buffer_pool::BufferPool;
use crate::control::ControlPages;
use crate::data_file::DataFile;
use crate::double_write::DoubleWrite;
use crate::error::{Error, Result};
use crate::files::DATA_FILE;
use crate::page::PAGE_BYTES;
use crate::page_store::PageStore;
use crate::pager::{Background, Options, Pager};
use crate::reader_pool::ReaderPool;
use crate::recovery::{Recovery, RecoveryReport};
use crate::redo::RedoTable;
use crate::root::{Root, RootRecord};
use crate::shared::SharedStorage;
use crate::space_map::{self, Space};
use crate::storage::Storage;
use crate::wal::FIRST_LSN;
use crate::wal::log_files::{LogFiles, file_number};
use crate::wal::log_store::LogStore;
use crate::wal::record::Observer;
use crate::wal::segment::Segments;
use crate::wal::stream::{Wal, WalOptions};
use crate::write_batch::BatchWriter;

/// An opened pager.
pub struct Opened {
    pub pager: Arc<Pager>,
    /// The folder was empty.
    pub created: bool,
    pub recovered: RecoveryReport,
}

impl Pager {
    /// Opens the data folder, creating the database if the folder is empty, and brings every page up to the end of the WAL.
    ///
    /// `observer` sees every record from the last checkpoint on. `random` becomes the id of a new database.
    pub fn open(
        folder: Arc<dyn Folder>,
        clock: Arc<dyn Clock>,
        options: Options,
        redo: RedoTable,
        observer: &mut dyn Observer,
        random: u64,
        progress: &dyn Fn(&RecoveryReport),
    ) -> Result<Opened> {
        let storage = Self::local_storage(folder, &options, random)?;
        Self::open_storage(storage, clock, options, redo, observer, progress)
    }

    /// Opens a shared database in the same way, creating it if there is none. From here on no earlier opening changes anything in it.
    pub fn open_shared(
        shared: &SharedStorage,
        clock: Arc<dyn Clock>,
        options: Options,
        redo: RedoTable,
        observer: &mut dyn Observer,
        random: u64,
        progress: &dyn Fn(&RecoveryReport),
    ) -> Result<Opened> {
        let storage = shared.open(&options, random)?;
        Self::open_storage(storage, clock, options, redo, observer, progress)
    }

    fn local_storage(folder: Arc<dyn Folder>, options: &Options, random: u64) -> Result<Storage> {
        let name = DATA_FILE;
        let data = folder.open(name, Open::Create).map_err(|error| Error::io(format!("opening '{name}'"), error))?;
        let root = ControlPages::new(data.clone());
        let found = root.get()?;
        let control = match found {
            Some(control) if options.opens_incomplete => control,
            Some(control) => {
                control.check_complete()?;
                control
            }
            None => Self::create(folder.as_ref(), data.as_ref(), &root, random)?,
        };
        let (size, distance) = (options.segment_bytes, options.checkpoint_distance);
        let log = Arc::new(LogFiles::new(folder.clone(), control.database, size, distance));
        // A creation that was cut short by a crash, before there was a WAL that could hold anything, is started again.
        let created = found.is_none() || (control.checkpoint == FIRST_LSN && log.segments()?.is_empty());
        let mut double_write = DoubleWrite::new(DoubleWrite::open_device(folder.as_ref())?, control.database);
        let repaired = if created { Vec::new() } else { double_write.repair(data.as_ref())? };
        double_write.clear()?;
        Ok(Storage {
            root: Box::new(root),
            control,
            log,
            pages: Box::new(DataFile::new(data.clone(), double_write)),
            data,
            folder,
            created,
            repaired,
            is_claimed: false,
            rewrites_redone: false,
        })
    }

    fn open_storage(
        storage: Storage,
        clock: Arc<dyn Clock>,
        options: Options,
        redo: RedoTable,
        observer: &mut dyn Observer,
        progress: &dyn Fn(&RecoveryReport),
    ) -> Result<Opened> {
        let Storage { root, mut control, log, data, pages, folder, created, repaired, is_claimed, rewrites_redone } =
            storage;
        let frames = (options.frame_bytes / PAGE_BYTES as u64).max(64) as usize;
        let pool = BufferPool::new(frames, data)?;
        let pager = Pager::assemble(pool, pages, root, control, folder, options.clone());
        let mut recovery = Recovery {
            pager: &pager,
            redo: &redo,
            observer,
            progress,
            rewrites_redone,
            report: RecoveryReport { repaired, ..RecoveryReport::default() },
        };
        let (start, used) = if created {
            recovery.report.to = FIRST_LSN;
            (FIRST_LSN, Vec::new())
        } else {
            let end = recovery.run(&log, control.database, control.checkpoint, options.recovery_target)?;
            (end.lsn, end.used)
        };
        let recovered = recovery.report;
        if recovered.to < control.consistent {
            return Err(Error::Format(format!(
                "the backup is consistent from WAL position {} on, but recovery ended at {}: choose a later time or position",
                control.consistent, recovered.to
            )));
        }
        // A new boot number before anything is logged: it is the epoch that tells new chunks from the torn tail.
        if !is_claimed {
            control.boot += 1;
            pager.root.compare_and_set(control.boot - 1, control)?;
            *pager.control.lock() = control;
        }
        let segments = Segments::new(log.clone(), control.database, used)?;
        let wal_options = WalOptions {
            ring_bytes: options.ring_bytes,
            start,
            epoch: control.boot,
            database: control.database,
            threaded: options.background == Background::Threads,
        };
        let wal = Wal::open(&wal_options, segments, clock)?;
        assert!(pager.wal.set(wal).is_ok() && pager.log.set(log).is_ok());
        let pager = Arc::new(pager);
        if options.background == Background::Threads {
            pager.start_threads();
        }
        if created {
            pager.create_space()?
        } else {
            pager.open_space()?
        }
        Ok(Opened { pager, created, recovered })
    }

    /// Creates the state of a pager that is not open: without a WAL, without threads.
    pub(crate) fn assemble(
        pool: BufferPool,
        pages: Box<dyn PageStore>,
        root: Box<dyn Root>,
        control: RootRecord,
        folder: Arc<dyn Folder>,
        options: Options,
    ) -> Pager {
        Pager {
            pool,
            space: Space::default(),
            cleaner: Mutex::new(BatchWriter::new(pages)),
            pages_written: Default::default(),
            wal: OnceLock::new(),
            log: OnceLock::new(),
            root,
            control: Mutex::new(control),
            folder,
            checkpoint_hook: OnceLock::new(),
            failure_hook: OnceLock::new(),
            checkpoint_lsn: AtomicU64::new(control.checkpoint),
            checkpoints: AtomicU64::new(0),
            checkpoint_requested: AtomicBool::new(false),
            pinned_lsn: Mutex::new(Vec::new()),
            full: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            cleaner_signal: (Mutex::new(false), Condvar::new()),
            cleaner_woken: AtomicBool::new(false),
            has_cleaner: AtomicBool::new(false),
            cleaned: (Mutex::new(0), Condvar::new()),
            threads: Mutex::new(Vec::new()),
            readers: ReaderPool::default(),
            options,
        }
    }

    fn create(folder: &dyn Folder, data: &dyn os::Device, root: &dyn Root, random: u64) -> Result<RootRecord> {
        let names = folder.list().map_err(|error| Error::io("listing the data folder", error))?;
        if names.iter().any(|name| file_number(name).is_some()) && data.len() == 0 {
            return Err(Error::Format(
                "the data folder has log segments but no data file: restore a backup or choose an empty folder".into(),
            ));
        }
        data.grow(space_map::FIRST_BYTES).map_err(|error| Error::io("creating the data file", error))?;
        folder.sync().map_err(|error| Error::io("syncing the data folder", error))?;
        let control =
            RootRecord { database: random, checkpoint: FIRST_LSN, boot: 0, consistent: 0, is_incomplete: false };
        root.compare_and_set(0, control)?;
        Ok(control)
    }
}
