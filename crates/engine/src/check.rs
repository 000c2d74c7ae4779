//! The checker: walks over all trees and reports each violation by the number of its invariant.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use btree::Batch;
use pager::PageId;

use crate::error::Result;
use crate::keyspace::expiry::named_record;
use crate::keyspace::field_times;
use crate::keyspace::field_times::FieldTimes;
use crate::keyspace::key;
use crate::keyspace::key::{
    CHUNK, CONSUMER, DATABASES, DUE_FIELD, ELEMENT_PREFIX, FIELD, GROUP, LEVEL, MEMBER, SCORE, SCORED_MEMBER, SEGMENT,
    STREAM_CHUNK, meta_of, parse_member, version_and_kind,
};
use crate::keyspace::list::{ListChunk, ListRecord};
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::sorted::SortedElements;
use crate::keyspace::state::Keyspace;
use crate::keyspace::streams::stream_check::StreamCheck;
use crate::keyspace::{record, value};
use crate::rows::row::summarize;
use crate::rows::state::Rows;
use crate::store::Store;
use crate::store::purge_queue::Queued;
use crate::store::wal::Counted;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub keys: u64,
    pub elements: u64,
    /// Rows of SQL that are not delete-marked.
    pub rows: u64,
    pub delete_marked: u64,
    /// Pages of values on pages of their own.
    pub value_pages: u64,
    pub tree_pages: u64,
    pub expiry_entries: u64,
    /// Entries of the purge queue.
    pub queued: u64,
    /// One line for each violation. Empty if all is well.
    pub problems: Vec<String>,
}

struct Walk<'s> {
    store: &'s Store,
    keyspace: &'s Keyspace,
    rows: &'s Rows,
    report: Report,
    /// For each page of a value, the record or purge entry that refers to it.
    owners: HashMap<PageId, String>,
    counts: BTreeMap<u8, Counted>,
    /// Expected elements of each version id that a key record of a live keyspace, or a row, refers to.
    versions: HashMap<u64, Elements>,
    /// Version ids that elements refer to, with that of the element.
    inner_versions: Vec<(u64, u64, Elements)>,
    /// Version ids referred to by remains of flushed databases and dropped maps, and by records, images and purge entries of undecided transactions.
    dead_versions: Vec<u64>,
    /// The elements of each version id.
    elements: HashMap<u64, Elements>,
    queued_versions: Vec<u64>,
    /// Sorted sets with elements.
    sorted: Vec<SortedElements>,
    /// Version ids of live hashes of elements that have fields with expiry times.
    timed_hashes: Vec<u64>,
    /// Version id, highest level and number of items in chunks of each live list.
    lists: Vec<(u64, u8, u64)>,
    /// Elements by score or time that do not fit their members, by version id. Those of garbage are no problem.
    unmatched: Vec<(u64, String)>,
    /// The streams that have elements, by version id.
    streams: HashMap<u64, StreamCheck>,
    /// Ranges of elements in the purge queue.
    queued_ranges: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Numbers of elements of a version id.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Elements {
    segments: u64,
    members: u64,
    /// Members of a sorted set by score.
    scores: u64,
    /// Fields of a hash that have an expiry time, and fields by expiry time.
    timed: u64,
    due: u64,
}

impl Elements {
    fn of_payload(len: u64) -> Elements {
        Elements { segments: len.div_ceil(record::EXTENT_MAX as u64), ..Elements::default() }
    }

    /// Returns the elements that a record must have.
    fn of(meta: &Meta<'_>) -> Elements {
        match meta.body {
            Body::Elements { .. } if meta.head.kind == Kind::List => {
                let members = ListRecord::parse(meta).map_or(0, |list| list.in_chunks());
                Elements { members, ..Self::of_payload(meta.head.key_len.into()) }
            }
            Body::Elements { count, .. } => {
                let members = if meta.head.kind == Kind::Stream { 0 } else { count };
                let scores = if meta.head.kind == Kind::ZSet { count } else { 0 };
                let times =
                    if let Body::Elements { fields, .. } = meta.body { FieldTimes::parse(fields) } else { None };
                let timed = times.filter(|_| meta.head.kind == Kind::Hash).map_or(0, |times| times.timed);
                Elements { members, scores, timed, due: timed, ..Self::of_payload(meta.head.key_len.into()) }
            }
            body => Self::of_payload(body.payload_len()),
        }
    }
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
        inner_versions: Vec::new(),
        dead_versions: Vec::new(),
        elements: HashMap::new(),
        queued_versions: Vec::new(),
        sorted: Vec::new(),
        timed_hashes: Vec::new(),
        lists: Vec::new(),
        unmatched: Vec::new(),
        streams: HashMap::new(),
        queued_ranges: BTreeMap::new(),
    };
    if walk.trees()? {
        walk.queued_ranges()?;
        walk.records()?;
        walk.rows()?;
        walk.queue()?;
        walk.expiries()?;
        walk.levels()?;
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
                self.problem(format!("EN-8: page {page} is referred to by {other} and by {owner}"));
            }
        }
    }

    fn records(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.records, |walk, key, value| {
            let meta = match (meta_of(key), Meta::parse(value)) {
                (Ok(_), Ok(meta)) => meta,
                (Err(error), _) | (_, Err(error)) => {
                    walk.problem(format!("EN-53: {error}"));
                    return Ok(());
                }
            };
            let owner = format!("record {}", hex(key));
            walk.own(record::pages_of(value)?, &owner);
            for error in value::damage(&store.pager, &meta.body) {
                walk.problem(format!("EN-51: {owner}: {error}"));
            }
            let Some(space) = meta_of(key)? else {
                walk.report.elements += 1;
                walk.element(key, value, &meta)?;
                return Ok(());
            };
            let Some(db) = walk.keyspace.database_of(space) else {
                walk.dead_versions.extend(meta.body.version());
                return Ok(());
            };
            walk.report.keys += 1;
            walk.fields_of(key, &meta, &owner)?;
            walk.counts.entry(db).or_default().keys += 1;
            if let (Kind::List, Body::Elements { version, .. }, Ok(list)) =
                (meta.head.kind, meta.body, ListRecord::parse(&meta))
            {
                walk.lists.push((version, list.levels, list.in_chunks()));
            }
            if let Ok(Some(elements)) = SortedElements::of(&meta) {
                walk.sorted.push(elements);
            }
            if meta.head.kind == Kind::Stream {
                walk.stream(key, &meta);
            }
            if let Some(version) = meta.body.version()
                && walk.versions.insert(version, Elements::of(&meta)).is_some()
            {
                walk.problem(format!("EN-54: version {version} belongs to two keys"));
            }
            if let Some(time) = meta.head.expire
                && !walk.keyspace.has_expiry_entry(time, key)?
            {
                walk.problem(format!("EN-55: {owner} expires at {time}, but has no expiry entry"));
            }
            Ok(())
        })
    }

    /// Checks what the record of a hash says about its fields' expiry times.
    fn fields_of(&mut self, key: &[u8], meta: &Meta<'_>, owner: &str) -> Result<()> {
        let least = match field_times::least(meta) {
            Ok(Some(least)) => least,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.problem(format!("EN-53: {owner}: {error}"));
                return Ok(());
            }
        };
        if !self.keyspace.has_entry_of_fields(least, key)? {
            self.problem(format!("EN-83: {owner} has a field that expires at {least}, but has no expiry entry for it"));
        }
        if let Body::Elements { version, .. } = meta.body {
            self.timed_hashes.push(version);
            let first = field_times::first_time(self.store, version)?;
            if first != Some(least) {
                self.problem(format!(
                    "EN-84: {owner} says {least} is the least time of its fields, its elements {first:?}"
                ));
            }
        }
        Ok(())
    }

    fn stream(&mut self, key: &[u8], meta: &Meta<'_>) {
        match StreamCheck::of(meta) {
            Ok((None, found)) => self.stream_problems(&hex(key), found),
            Ok((Some((version, stream)), _)) => drop(self.streams.insert(version, stream)),
            Err(error) => self.problem(format!("EN-53: record {}: {error}", hex(key))),
        }
    }

    fn stream_problems(&mut self, of: &str, found: Vec<String>) {
        for what in found {
            self.problem(format!("EN-77: stream {of}: {what}"));
        }
    }

    /// Reads which elements wait for purge in ranges.
    fn queued_ranges(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.queue, |walk, key, value| {
            if let Ok(Queued::Range { from, to, .. }) = Queued::parse(key, value) {
                walk.queued_ranges.insert(from, to);
            }
            Ok(())
        })
    }

    fn is_in_queued_range(&self, key: &[u8]) -> bool {
        self.queued_ranges
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back()
            .is_some_and(|(_, to)| key < &to[..])
    }

    fn element(&mut self, key: &[u8], value: &[u8], meta: &Meta<'_>) -> Result<()> {
        let Some((version, kind)) = version_and_kind(key) else {
            self.problem(format!("EN-53: the key {} of an element is too short", hex(key)));
            return Ok(());
        };
        let elements = self.elements.entry(version).or_default();
        match kind {
            SEGMENT => {
                elements.segments += 1;
                return Ok(());
            }
            SCORE => {
                elements.scores += 1;
                self.score(version, key, meta);
                return Ok(());
            }
            DUE_FIELD => {
                elements.due += 1;
                return self.due_field(version, key);
            }
            // `Walk::levels` compares those of live versions with their entries.
            LEVEL => return Ok(()),
            _ => {}
        }
        if let Some(inner) = meta.body.version() {
            self.inner_versions.push((version, inner, Elements::of(meta)));
        }
        match kind {
            FIELD | MEMBER | SCORED_MEMBER => {
                elements.members += 1;
                elements.timed += u64::from(meta.head.expire.is_some());
                self.member(key, meta);
            }
            CHUNK => match ListChunk::count_of(value) {
                Ok(count) => elements.members += count,
                Err(error) => self.problem(format!("EN-53: {error}")),
            },
            STREAM_CHUNK | GROUP..=CONSUMER => {
                if !self.is_in_queued_range(key)
                    && let Some(stream) = self.streams.get_mut(&version)
                    && let Err(error) = stream.element(self.store, kind, key, meta)
                {
                    self.problem(format!("EN-53: element {}: {error}", hex(key)));
                }
            }
            _ => self.problem(format!("EN-53: element {} is of unknown kind {kind}", hex(key))),
        }
        Ok(())
    }

    fn member(&mut self, key: &[u8], meta: &Meta<'_>) {
        match parse_member(key) {
            Err(error) => self.problem(format!("EN-53: {error}")),
            Ok(parsed) => {
                if let Some(member) = parsed.short
                    && self.keyspace.member_hash.of(member) != Some(parsed.hash)
                {
                    self.problem(format!("EN-62: element {} has another hash than its member", hex(key)));
                }
                if parsed.short.is_some() != (meta.head.key_len == 0) {
                    self.problem(format!("EN-62: element {} and its record disagree on the member's length", hex(key)));
                }
            }
        }
    }

    /// Compares an element by expiry time with the element of its field. As many of both make them the same.
    fn due_field(&mut self, version: u64, tree_key: &[u8]) -> Result<()> {
        let (time, field) = match key::parse_due_field(tree_key) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.problem(format!("EN-53: {error}"));
                return Ok(());
            }
        };
        let mut record = Vec::new();
        self.store.records.get(&field, &mut record)?;
        if record::time_of_element(&record) != Some(time) {
            // Elements of garbage leave one by one.
            self.unmatched.push((version, format!("EN-84: element {} has no field with its time", hex(tree_key))));
        }
        Ok(())
    }

    /// Compares an element by score with the element of its member.
    fn score(&mut self, version: u64, key: &[u8], meta: &Meta<'_>) {
        let stored = self.keyspace.score_of_element(version, &key[ELEMENT_PREFIX..], meta);
        match stored {
            Err(error) => self.problem(format!("EN-53: element {}: {error}", hex(key))),
            // Bits, because both zeros are one place in the order.
            Ok((score, member)) if member.map(f64::to_bits) != Some(score.to_bits()) => {
                // Elements of garbage leave one by one.
                self.unmatched
                    .push((version, format!("EN-72: element {} has score {score}, its member {member:?}", hex(key))));
            }
            Ok(_) => {}
        }
    }

    /// Checks the levels of live sorted sets and lists, and the elements by score and by time.
    fn levels(&mut self) -> Result<()> {
        for version in std::mem::take(&mut self.timed_hashes) {
            let unmatched = self.unmatched.iter().filter(|(other, _)| *other == version);
            self.report.problems.extend(unmatched.map(|(_, what)| what.clone()));
        }
        for (version, top, in_chunks) in std::mem::take(&mut self.lists) {
            let problems = self.keyspace.check_list(version, top, in_chunks)?;
            self.report.problems.extend(problems);
        }
        for elements in std::mem::take(&mut self.sorted) {
            let problems = self.keyspace.sorted_levels(elements).check()?;
            self.report.problems.extend(problems);
            let unmatched = self.unmatched.iter().filter(|(version, _)| *version == elements.version);
            self.report.problems.extend(unmatched.map(|(_, what)| what.clone()));
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<()> {
        let store = self.store;
        for tree in store.garbage_maps()? {
            self.each(&tree, |walk, _, record| {
                // A record that cannot be read refers to nothing.
                if let Ok(Some((version, _))) = summarize(record).map(|row| row.segments) {
                    walk.dead_versions.push(version);
                }
                Ok(())
            })?;
        }
        // A loser's own versions are invisible, and their values may already be gone. The values that it replaced are needed and may have no other reference.
        let rows = self.rows;
        self.dead_versions.extend(rows.values_rolling_back()?);
        for map in store.maps.all() {
            self.each(&map.tree, |walk, key, record| {
                match summarize(record) {
                    Ok(row) if rows.is_rolling_back(row.creator) => {
                        walk.report.rows += 1;
                        walk.dead_versions.extend(row.segments.map(|(version, _)| version));
                    }
                    Ok(row) if row.is_delete_marked => walk.report.delete_marked += 1,
                    Ok(row) => {
                        walk.report.rows += 1;
                        if let Some((version, len)) = row.segments
                            && walk.versions.insert(version, Elements::of_payload(len)).is_some()
                        {
                            walk.problem(format!("EN-54: version {version} belongs to two values"));
                        }
                    }
                    Err(error) => walk.problem(format!("EN-53: map {}, row {}: {error}", map.id, hex(key))),
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
                // The rows of a loser and its purge entries are restored one after the other.
                Ok(Queued::Version { version, txn }) if walk.rows.is_rolling_back(txn) => {
                    walk.dead_versions.push(version);
                }
                Ok(Queued::Version { version, .. }) => walk.queued_versions.push(version),
                // Its pages were counted with the trees.
                Ok(Queued::Map { .. }) => {}
                // Its elements were found with the records.
                Ok(Queued::Range { .. }) => {}
                Err(error) => walk.problem(error.to_string()),
            }
            Ok(())
        })
    }

    fn expiries(&mut self) -> Result<()> {
        let store = self.store;
        self.each(&store.expiry, |walk, key, _| {
            walk.report.expiry_entries += 1;
            let named = key.get(8..).map(named_record);
            let space = named.as_ref().map(|(tree_key, _)| meta_of(tree_key));
            match space {
                Some(Ok(Some(_))) if named.is_some_and(|(_, is_of_fields)| is_of_fields) => {}
                Some(Ok(Some(space))) => {
                    if let Some(db) = walk.keyspace.database_of(space) {
                        walk.counts.entry(db).or_default().expiries += 1;
                    }
                }
                _ => walk.problem(format!("EN-55: expiry entry {} cannot be parsed", hex(key))),
            }
            Ok(())
        })
    }

    /// Checks all trees. Returns true if every page of them can be read.
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

    /// Compares the allocated pages with the pages that have an owner.
    fn space(&mut self) {
        // The roots of the trees that every database has are on well-known pages.
        const ROOTS: u64 = 6;
        let pager = &self.store.pager;
        let free: Vec<PageId> = self.owners.keys().copied().filter(|page| !pager.is_allocated(*page)).collect();
        for page in free {
            let owner = self.owners[&page].clone();
            self.problem(format!("EN-8: page {page} is referred to by {owner}, but is free"));
        }
        let (allocated, owned) = (pager.allocated_pages(), self.report.tree_pages - ROOTS + self.report.value_pages);
        if allocated != owned {
            self.problem(format!("EN-8: {allocated} pages are allocated, {owned} have an owner"));
        }
    }

    fn compare(&mut self) {
        for (db, found) in std::mem::take(&mut self.counts) {
            let counted = self.keyspace.counted(db);
            if counted != found {
                self.problem(format!("EN-10: database {db} has {found:?}, but its counters say {counted:?}"));
            }
        }
        for (version, stream) in std::mem::take(&mut self.streams) {
            self.stream_problems(&format!("of version {version}"), stream.finish());
        }
        // Elements of garbage may refer to values that are garbage too, and have no entry yet.
        for (outer, inner, expected) in std::mem::take(&mut self.inner_versions) {
            if !self.versions.contains_key(&outer) {
                self.dead_versions.push(inner);
            } else if self.versions.insert(inner, expected).is_some() {
                self.problem(format!("EN-54: version {inner} belongs to two values"));
            }
        }
        for version in std::mem::take(&mut self.queued_versions) {
            if self.versions.contains_key(&version) {
                self.problem(format!("EN-8: version {version} is in use and in the purge queue"));
            }
            self.elements.remove(&version);
        }
        for (version, expected) in std::mem::take(&mut self.versions) {
            let found = self.elements.remove(&version).unwrap_or_default();
            if found != expected {
                self.problem(format!("EN-54: version {version} has {found:?} instead of {expected:?}"));
            }
        }
        for version in std::mem::take(&mut self.dead_versions) {
            self.elements.remove(&version);
        }
        for version in std::mem::take(&mut self.elements).into_keys() {
            self.problem(format!("EN-8: elements of version {version} belong to no key and are not queued"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
