//! Walks over everything the engine keeps and names what is wrong, by the number of the invariant.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use btree::Batch;
use pager::PageId;

use crate::DATABASES;
use crate::error::Result;
use crate::keyspace::record::{self, Meta};
use crate::keyspace::value;
use crate::keyspace::{Keyspace, Queued, meta_of};
use crate::rows::{self, Rows};
use crate::txn::{Counted, Store};

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub keys: u64,
    pub elements: u64,
    /// Rows of SQL, and records of deleted ones.
    pub rows: u64,
    pub delete_marked: u64,
    /// Pages of values.
    pub value_pages: u64,
    pub tree_pages: u64,
    pub expiry_entries: u64,
    /// Entries of the purge queue.
    pub queued: u64,
    /// One line for each thing that is wrong; empty is good.
    pub problems: Vec<String>,
}

struct Walk<'s> {
    store: &'s Store,
    keyspace: &'s Keyspace,
    rows: &'s Rows,
    report: Report,
    /// Who names a page of a value.
    owners: HashMap<PageId, String>,
    counts: BTreeMap<u8, Counted>,
    /// Version ids named by meta records of live keyspaces: their payload length.
    versions: HashMap<u64, u64>,
    /// Version ids named by what is left of flushed databases and dropped maps, and by records, images and entries of undecided transactions.
    dead_versions: Vec<u64>,
    /// Version ids that have elements: how many.
    elements: HashMap<u64, u64>,
    queued_versions: Vec<u64>,
}

pub(crate) fn check(store: &Store, keyspace: &Keyspace, rows: &Rows) -> Result<Report> {
    let mut walk = Walk {
        store,
        keyspace,
        rows,
        report: Report::default(),
        owners: HashMap::new(),
        counts: (0..DATABASES).map(|db| (db, Counted::default())).collect(),
        versions: HashMap::new(),
        dead_versions: Vec::new(),
        elements: HashMap::new(),
        queued_versions: Vec::new(),
    };
    if walk.trees()? {
        walk.records()?;
        walk.rows()?;
        walk.queue()?;
        walk.expiries()?;
        walk.compare();
        walk.space();
    } else {
        walk.problem("values, counts and free space were not checked, because not all records can be read".into());
    }
    Ok(walk.report)
}

impl Walk<'_> {
    fn problem(&mut self, what: String) {
        self.report.problems.push(what);
    }

    fn each(&mut self, tree: &btree::Tree, mut f: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
        let mut batch = Batch::new();
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                f(self, record.key, record.value)?;
            }
        }
        Ok(())
    }

    fn own(&mut self, pages: impl IntoIterator<Item = PageId>, owner: &str) {
        for page in pages {
            self.report.value_pages += 1;
            if let Some(other) = self.owners.insert(page, owner.to_string()) {
                self.problem(format!("E8: page {page} is named by {other} and by {owner}"));
            }
        }
    }

    fn records(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.records, |walk, key, value| {
            let meta = match (meta_of(key), Meta::parse(value)) {
                (Ok(_), Ok(meta)) => meta,
                (Err(error), _) | (_, Err(error)) => {
                    walk.problem(format!("V3: {error}"));
                    return Ok(());
                }
            };
            let owner = format!("record {}", hex(key));
            walk.own(record::pages_of(value)?, &owner);
            for error in value::damage(&store.pager, &meta.body) {
                walk.problem(format!("V1: {owner}: {error}"));
            }
            let Some(space) = meta_of(key)? else {
                walk.report.elements += 1;
                let version = u64::from_be_bytes(key[4..12].try_into().expect("element keys have 17 bytes"));
                *walk.elements.entry(version).or_default() += 1;
                return Ok(());
            };
            let Some(db) = walk.keyspace.database_of(space) else {
                walk.dead_versions.extend(meta.body.version());
                return Ok(());
            };
            walk.report.keys += 1;
            walk.counts.entry(db).or_default().keys += 1;
            if let Some(version) = meta.body.version()
                && walk.versions.insert(version, meta.body.payload_len()).is_some()
            {
                walk.problem(format!("V4: version {version} belongs to two keys"));
            }
            if let Some(time) = meta.head.expire
                && !walk.keyspace.has_expiry_entry(time, key)?
            {
                walk.problem(format!("X1: {owner} expires at {time}, but has no expiry entry"));
            }
            Ok(())
        })
    }

    fn rows(&mut self) -> Result<()> {
        let store = self.store;
        for tree in store.garbage_maps()? {
            self.each(&tree, |walk, _, record| {
                // What cannot be read names nothing.
                if let Ok(Some((version, _))) = rows::summarize(record).map(|row| row.segments) {
                    walk.dead_versions.push(version);
                }
                Ok(())
            })?;
        }
        // What a loser has written is seen by nobody, and what it names may be gone already; what it has replaced is needed and may be named by nobody else.
        let rows = self.rows;
        self.dead_versions.extend(rows.values_rolling_back()?);
        for map in store.maps.all() {
            self.each(&map.tree, |walk, key, record| {
                match rows::summarize(record) {
                    Ok(row) if rows.is_rolling_back(row.writer) => {
                        walk.report.rows += 1;
                        walk.dead_versions.extend(row.segments.map(|(version, _)| version));
                    }
                    Ok(row) if row.is_delete_marked => walk.report.delete_marked += 1,
                    Ok(row) => {
                        walk.report.rows += 1;
                        if let Some((version, len)) = row.segments
                            && walk.versions.insert(version, len).is_some()
                        {
                            walk.problem(format!("V4: version {version} belongs to two values"));
                        }
                    }
                    Err(error) => walk.problem(format!("V3: map {}, row {}: {error}", map.id, hex(key))),
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn queue(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.queue, |walk, key, value| {
            walk.report.queued += 1;
            match Queued::parse(key, value) {
                Ok(Queued::Pages { runs, .. }) => {
                    let pages = runs.into_iter().flat_map(|run| run.first..run.first + u64::from(run.pages));
                    walk.own(pages, &format!("purge entry {}", hex(key)));
                }
                // A loser's rows and its entries are put back one after the other.
                Ok(Queued::Version { version, txn }) if walk.rows.is_rolling_back(txn) => {
                    walk.dead_versions.push(version);
                }
                Ok(Queued::Version { version, .. }) => walk.queued_versions.push(version),
                // Its pages were counted with the trees.
                Ok(Queued::Map { .. }) => {}
                Err(error) => walk.problem(error.to_string()),
            }
            Ok(())
        })
    }

    fn expiries(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.expiry, |walk, key, _| {
            walk.report.expiry_entries += 1;
            let space = key.get(8..).map(meta_of);
            match space {
                Some(Ok(Some(space))) => {
                    if let Some(db) = walk.keyspace.database_of(space) {
                        walk.counts.entry(db).or_default().expiries += 1;
                    }
                }
                _ => walk.problem(format!("X1: expiry entry {} makes no sense", hex(key))),
            }
            Ok(())
        })
    }

    /// True if every page of every tree can be read.
    fn trees(&mut self) -> Result<bool> {
        let store = self.store;
        let mut readable = true;
        let mut trees = vec![&store.catalog, &store.records, &store.expiry, &store.queue, &store.maps_tree];
        let maps = store.maps.all();
        trees.extend(maps.iter().map(|map| &map.tree));
        let garbage = store.garbage_maps()?;
        trees.extend(&garbage);
        for tree in trees {
            let report = tree.check()?;
            readable &= report.unreadable == 0;
            self.report.tree_pages += report.nodes.iter().sum::<u64>();
            self.report
                .problems
                .extend(report.violations.into_iter().map(|what| format!("tree {}: {what}", tree.id())));
        }
        Ok(readable)
    }

    /// Every allocated page has exactly one owner.
    fn space(&mut self) {
        // The trees that every database has stand on well-known pages.
        const ROOTS: u64 = 6;
        let pager = &self.store.pager;
        let free: Vec<PageId> = self.owners.keys().copied().filter(|page| !pager.is_allocated(*page)).collect();
        for page in free {
            let owner = self.owners[&page].clone();
            self.problem(format!("E8: page {page} is named by {owner}, but is free"));
        }
        let (allocated, owned) = (pager.allocated_pages(), self.report.tree_pages - ROOTS + self.report.value_pages);
        if allocated != owned {
            self.problem(format!("E8: {allocated} pages are allocated, {owned} have an owner"));
        }
    }

    fn compare(&mut self) {
        for (db, found) in std::mem::take(&mut self.counts) {
            let counted = self.keyspace.counted(db);
            if counted != found {
                self.problem(format!("E10: database {db} has {found:?}, counted are {counted:?}"));
            }
        }
        for version in std::mem::take(&mut self.queued_versions) {
            if self.versions.contains_key(&version) {
                self.problem(format!("E8: version {version} is in use and in the purge queue"));
            }
            self.elements.remove(&version);
        }
        for (version, len) in std::mem::take(&mut self.versions) {
            let expected = len.div_ceil(record::EXTENT_MAX as u64);
            let found = self.elements.remove(&version).unwrap_or(0);
            if found != expected {
                self.problem(format!("V4: version {version} has {found} segments instead of {expected}"));
            }
        }
        for version in std::mem::take(&mut self.dead_versions) {
            self.elements.remove(&version);
        }
        for version in std::mem::take(&mut self.elements).into_keys() {
            self.problem(format!("E8: elements of version {version} belong to no key and are not queued"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
