//! Building all levels in one pass over the entries, for a collection that no key refers to yet.

use btree::Tree;

use super::{Bucket, LevelEntries, LevelSizes, Levels};
use crate::error::Result;

/// Levels that grow from the left to the right. Memory: two buckets for each level.
pub(crate) struct LevelBuild<'t> {
    levels: Levels<'t>,
    open: Vec<OpenLevel>,
}

#[derive(Default)]
struct OpenLevel {
    /// A bucket that is full, and is written when its neighbour has enough entries.
    full: Option<(Vec<u8>, Bucket)>,
    last: Option<(Vec<u8>, Bucket)>,
    written: u64,
}

impl<'t> LevelBuild<'t> {
    pub fn new(tree: &'t Tree, version: u64, entries: LevelEntries, sizes: LevelSizes) -> LevelBuild<'t> {
        LevelBuild { levels: Levels::new(tree, version, entries, sizes, 0), open: Vec::new() }
    }

    /// Adds the next entry, in ascending order.
    pub fn push(&mut self, sub: &[u8], weight: u64) -> Result<()> {
        if self.levels.entries == LevelEntries::Weights {
            self.write(0, sub, Bucket { weight, children: 0 })?;
        }
        self.add(1, sub, weight)
    }

    fn add(&mut self, level: u8, sub: &[u8], weight: u64) -> Result<()> {
        let fill = (self.levels.max(level) / 2).max(self.levels.min(level));
        if self.open.len() < usize::from(level) {
            self.open.push(OpenLevel::default());
        }
        let open = &mut self.open[usize::from(level) - 1];
        let mut done = None;
        if open.last.as_ref().is_some_and(|(_, last)| last.children >= fill) {
            done = std::mem::replace(&mut open.full, open.last.take());
        }
        let is_first = open.full.is_none() && open.written == 0;
        let bound = || if is_first { Vec::new() } else { sub.to_vec() };
        let (_, last) = open.last.get_or_insert_with(|| (bound(), Bucket::default()));
        (last.weight, last.children) = (last.weight + weight, last.children + 1);
        match done {
            Some((bound, bucket)) => self.close(level, &bound, bucket),
            None => Ok(()),
        }
    }

    /// Writes a bucket, and adds it to the level above.
    fn close(&mut self, level: u8, bound: &[u8], bucket: Bucket) -> Result<()> {
        self.open[usize::from(level) - 1].written += 1;
        self.write(level, bound, bucket)?;
        self.add(level + 1, bound, bucket.weight)
    }

    fn write(&self, level: u8, bound: &[u8], bucket: Bucket) -> Result<()> {
        self.levels.tree.modify(&self.levels.key(level, bound), None, |_, change| change.put(&[&bucket.encode()]))?;
        Ok(())
    }

    /// Writes the rest. Returns the highest level.
    pub fn finish(mut self) -> Result<u8> {
        let mut level = 1;
        while usize::from(level) <= self.open.len() {
            let min = self.levels.min(level);
            let OpenLevel { full, last, written } = std::mem::take(&mut self.open[usize::from(level) - 1]);
            let mut rest: Vec<(Vec<u8>, Bucket)> = full.into_iter().chain(last).collect();
            if let [(_, full), (_, last)] = rest.as_mut_slice()
                && last.children < min
            {
                (full.weight, full.children) = (full.weight + last.weight, full.children + last.children);
                rest.pop();
            }
            if written == 0 && rest.len() < 2 {
                break;
            }
            self.open[usize::from(level) - 1].written = written;
            for (bound, bucket) in rest {
                self.close(level, &bound, bucket)?;
            }
            level += 1;
        }
        Ok(level - 1)
    }
}
