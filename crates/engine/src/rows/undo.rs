//! The undo log of a transaction: its steps, the youngest in memory, older stretches of them as runs of a file.
//!
//! Steps and runs serve rollback and savepoints of the running process; recovery uses the WAL (EN-27). Rollback goes backwards, stretch by stretch, and
//! restores the oldest image of each row in a stretch (EN-28). A run is published before its versions leave memory (EN-29).

use std::collections::HashMap;
use std::sync::Arc;

use os::Device;
use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::rows::row::RowHead;
use crate::rows::run::{Runs, UndoRun, UndoStep, Writers, scratch};
use crate::rows::versions::VersionStore;
use crate::store::images::{Images, is_directory};
use crate::store::trees::{MapId, QUEUE};

/// The memory that the steps of all open transactions together may take.
pub(crate) struct UndoBudget {
    bytes: AtomicU64,
    max: AtomicU64,
}

impl UndoBudget {
    pub fn new(max: u64) -> UndoBudget {
        UndoBudget { bytes: AtomicU64::new(0), max: AtomicU64::new(max) }
    }

    pub fn limit(&self, max: u64) {
        self.max.store(max, Ordering::Relaxed);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns true if a transaction with this much in memory should write it out. No transaction keeps more than a quarter of the limit, and together they do
    /// not exceed it unless they are very many.
    pub fn is_too_much(&self, own: u64) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        own > max / 4 || (own > max / 64 && self.bytes() > max)
    }

    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn sub(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The steps of one transaction.
#[derive(Default)]
pub(crate) struct UndoLog {
    tail: Vec<UndoStep>,
    tail_bytes: u64,
    /// The index in `tail` of each record's first step.
    first: HashMap<(MapId, Box<[u8]>), usize, Seed>,
    file: Option<Arc<dyn Device>>,
    runs: Runs,
    /// Number of steps in runs.
    written: usize,
    /// Oldest images of the directory of maps and its garbage.
    directory: Images,
}

impl UndoLog {
    pub fn len(&self) -> usize {
        self.written + self.tail.len()
    }

    pub fn tail(&self) -> &[UndoStep] {
        &self.tail
    }

    pub fn runs(&self) -> Vec<Arc<UndoRun>> {
        self.runs.read().clone()
    }

    pub fn directory(&self) -> &Images {
        &self.directory
    }

    /// Returns the oldest image of a record among the steps in memory; the outer `None` if there is no such step.
    pub fn image(&self, map: MapId, key: &[u8]) -> Option<Option<&[u8]>> {
        let first = self.first.get(&(map, key.into()) as &(MapId, Box<[u8]>))?;
        Some(self.tail[*first].before.as_deref())
    }

    pub fn push(&mut self, step: UndoStep, budget: &UndoBudget) {
        let bytes = step.bytes() as u64;
        self.tail_bytes += bytes;
        budget.add(bytes);
        let at = (step.map, step.key.clone());
        if is_directory(step.map, &step.key) {
            let before = || step.before.as_ref().map(|before| before.to_vec());
            self.directory.entry((at.0, at.1.to_vec())).or_insert_with(before);
        }
        let number = self.tail.len();
        self.first.entry(at).or_insert(number);
        self.tail.push(step);
    }

    /// Removes the youngest step, which is about to be undone. The flag is true if it was the first of its record in memory.
    pub fn pop(&mut self, budget: &UndoBudget) -> Option<(UndoStep, bool)> {
        let step = self.tail.pop()?;
        self.tail_bytes -= step.bytes() as u64;
        budget.sub(step.bytes() as u64);
        let at = (step.map, step.key.clone());
        let is_first = self.first[&at] == self.tail.len();
        if is_first {
            self.first.remove(&at);
        }
        Some((step, is_first))
    }

    /// Writes the steps in memory out if they are too many. After an error nothing has changed.
    pub fn make_room(
        &mut self,
        id: TxnId,
        budget: &UndoBudget,
        versions: &VersionStore,
        folder: &dyn os::Folder,
    ) -> Result<()> {
        if !budget.is_too_much(self.tail_bytes) {
            return Ok(());
        }
        let device = match &self.file {
            Some(device) => device,
            None => self.file.insert(scratch(folder)?),
        };
        let from = self.runs.read().last().map_or(0, |run| run.end());
        let run =
            UndoRun::write(device, from, self.tail.iter().map(UndoStep::by_ref), Writers::One(id), versions.seed())?;
        self.runs.write().push(Arc::new(run));
        // From here on readers find the versions there (EN-29).
        versions.publish(id, &self.runs);
        let versioned = self.tail.iter().filter(|step| step.is_version);
        versioned.for_each(|step| versions.remove(step.map, &step.key, id));
        self.written += self.tail.len();
        self.forget_tail(budget);
        Ok(())
    }

    /// Loads the youngest run into memory if there are no steps in memory.
    pub fn bring_back(&mut self, id: TxnId, budget: &UndoBudget, versions: &VersionStore) -> Result<()> {
        if !self.tail.is_empty() {
            return Ok(());
        }
        let Some(run) = self.runs.read().last().cloned() else { return Ok(()) };
        for step in run.load()? {
            if let (true, Some(before)) = (step.is_version, &step.before) {
                versions.push(step.map, &step.key, id, before)?;
            }
            self.push(step, budget);
        }
        self.written -= self.tail.len();
        self.runs.write().pop();
        Ok(())
    }

    /// Returns the oldest images of the stretch in memory, without the directory.
    pub fn tail_images(&self) -> Images {
        let mut images = Images::new();
        for (map, key) in self.first.keys().filter(|(map, key)| !is_directory(*map, key)) {
            let image = self.image(*map, key).expect("the first of its record");
            images.insert((*map, key.to_vec()), image.map(<[u8]>::to_vec));
        }
        images
    }

    fn forget_tail(&mut self, budget: &UndoBudget) {
        budget.sub(self.tail_bytes);
        self.tail_bytes = 0;
        self.tail = Vec::new();
        self.first = HashMap::default();
    }

    /// Ends the undo log of a decided transaction. Returns what purge still needs: the steps in memory that replaced a version or deleted a row, without their
    /// images, and the runs (EN-32).
    pub fn end(&mut self, budget: &UndoBudget) -> (Vec<UndoStep>, Vec<Arc<UndoRun>>) {
        let left = self.tail.drain(..).filter(|step| step.is_version || step.deletes);
        // Collected anew: in place it would keep the memory of all the others.
        let mut tail = Vec::new();
        tail.extend(left.map(|step| UndoStep { before: None, ..step }));
        self.forget_tail(budget);
        (tail, self.runs())
    }
}

/// Number of rows that are restored together.
const STRETCH_ROWS: usize = 1024;

/// Calls `f` with the oldest images of the rows in a run, piece by piece, and the number of steps of each piece. The directory is left out.
pub(crate) fn stretches(run: &UndoRun, mut f: impl FnMut(&Images, u64) -> Result<()>) -> Result<()> {
    let (mut stretch, mut steps) = (Images::new(), 0);
    run.each(|entry| {
        steps += 1;
        if is_directory(entry.map, entry.key) {
            return Ok(());
        }
        // Entries come by row: the oldest of a row comes first, and no row is in two pieces.
        let at = (entry.map, entry.key.to_vec());
        if stretch.len() >= STRETCH_ROWS && !stretch.contains_key(&at) {
            f(&std::mem::take(&mut stretch), std::mem::take(&mut steps))?;
        }
        stretch.entry(at).or_insert_with(|| entry.before.map(<[u8]>::to_vec));
        Ok(())
    })?;
    f(&stretch, steps)
}

/// Does the same for images in memory, which come by row, each row once.
pub(crate) fn pieces(
    images: impl Iterator<Item = ((MapId, Vec<u8>), Option<Vec<u8>>)>,
    mut f: impl FnMut(&Images) -> Result<()>,
) -> Result<()> {
    let mut piece = Images::new();
    for (at, image) in images {
        piece.insert(at, image);
        if piece.len() == STRETCH_ROWS {
            f(&std::mem::take(&mut piece))?;
        }
    }
    if piece.is_empty() { Ok(()) } else { f(&piece) }
}

/// Returns the creator of the version that an image is; `None` if it is not a row's image.
pub(crate) fn writer_of(map: MapId, image: &[u8]) -> Option<TxnId> {
    RowHead::parse(image).ok().filter(|_| map != QUEUE).map(|(head, _)| head.creator)
}
