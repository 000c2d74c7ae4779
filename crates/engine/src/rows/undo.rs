//! What a transaction can take back: its steps, the youngest in memory, older stretches of them as runs of a file.
//!
//! - **EN-27** A step is in memory or in a run, and besides, until the transaction is decided, in the log. Runs are for going on; recovery knows only the log.
//! - **EN-28** Taking back goes backwards, stretch by stretch, and puts back the oldest image of each row in it: after the last stretch each row is as it was before the first step. It may stop
//!   anywhere and begin again, for what it writes is no step: the log records of taking back name no transaction.
//! - **EN-29** Before a version leaves memory its run can be found, before a run goes its versions are in memory or needed by nobody. So who looks in memory first and in the runs afterwards
//!   finds it (EN-13).

use std::collections::HashMap;
use std::sync::Arc;

use os::Device;
use pager::TxnId;
use stdx::hash::Seed;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::rows::run::{Runs, UndoRun, UndoStep, Writers, scratch};
use crate::rows::versions::VersionStore;
use crate::store::images::{Images, is_directory};
use crate::store::trees::MapId;

/// What all open transactions together keep in memory of their steps.
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

    /// A transaction that keeps so much should write it out: nobody keeps more than a quarter, and together not more than the whole unless there are very many.
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
    /// The first step in `tail` of each record.
    first: HashMap<(MapId, Box<[u8]>), usize, Seed>,
    file: Option<Arc<dyn Device>>,
    runs: Runs,
    /// Steps in runs.
    written: usize,
    /// Oldest images of the directory of maps and its garbage: which maps come and go.
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

    /// The oldest image of a record among the steps in memory; None: there is no such step.
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

    /// The youngest step, which is about to be taken back; true: it was the first of its record in memory.
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

    /// Writes the steps in memory out if they are too many. After an error everything is as it was.
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
        let run = UndoRun::write(device, from, &self.tail, Writers::One(id), versions.seed())?;
        self.runs.write().push(Arc::new(run));
        // From here on it is found there (EN-29).
        versions.publish(id, &self.runs);
        let versioned = self.tail.iter().filter(|step| step.is_version);
        versioned.for_each(|step| versions.remove(step.map, &step.key, id));
        self.written += self.tail.len();
        self.forget_tail(budget);
        Ok(())
    }

    /// Gets the youngest run back into memory if there are no steps there.
    pub fn bring_back(&mut self, id: TxnId, budget: &UndoBudget, versions: &VersionStore) -> Result<()> {
        if !self.tail.is_empty() {
            return Ok(());
        }
        let Some(run) = self.runs.read().last().cloned() else { return Ok(()) };
        for step in run.load()? {
            if let (true, Some(before)) = (step.is_version, &step.before) {
                versions.push(step.map, &step.key, id, before);
            }
            self.push(step, budget);
        }
        self.written -= self.tail.len();
        self.runs.write().pop();
        Ok(())
    }

    /// The oldest images of the stretch in memory. The directory is left out.
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

    /// The transaction is decided: what is left to do afterwards, the steps in memory that have left something behind, without their images, and the runs.
    pub fn end(&mut self, budget: &UndoBudget) -> (Vec<UndoStep>, Vec<Arc<UndoRun>>) {
        let left = self.tail.drain(..).filter(|step| step.is_version || step.deletes);
        // Collected anew: in place it would keep the room of all the others.
        let mut tail = Vec::new();
        tail.extend(left.map(|step| UndoStep { before: None, ..step }));
        self.forget_tail(budget);
        (tail, self.runs())
    }
}

/// Rows of a run that are put back together.
const STRETCH_ROWS: usize = 1024;

/// Cuts a run into pieces and shows the oldest images of the rows in each, and how many steps they stand for. The directory is left out.
pub(crate) fn stretches(run: &UndoRun, mut f: impl FnMut(&Images, u64) -> Result<()>) -> Result<()> {
    let (mut stretch, mut steps) = (Images::new(), 0);
    run.each(|entry| {
        steps += 1;
        if is_directory(entry.map, entry.key) {
            return Ok(());
        }
        // Entries come by row: the oldest of a row is met first, and no row is in two pieces.
        let at = (entry.map, entry.key.to_vec());
        if stretch.len() >= STRETCH_ROWS && !stretch.contains_key(&at) {
            f(&std::mem::take(&mut stretch), std::mem::take(&mut steps))?;
        }
        stretch.entry(at).or_insert_with(|| entry.before.map(<[u8]>::to_vec));
        Ok(())
    })?;
    f(&stretch, steps)
}

/// The same of what is in memory.
pub(crate) fn pieces(images: &Images, mut f: impl FnMut(&Images) -> Result<()>) -> Result<()> {
    let mut piece = Images::new();
    for (at, image) in images {
        piece.insert(at.clone(), image.clone());
        if piece.len() == STRETCH_ROWS {
            f(&std::mem::take(&mut piece))?;
        }
    }
    if piece.is_empty() { Ok(()) } else { f(&piece) }
}
