//! Loading of the catalog at a start, and the numbering of objects from before object ids.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datum::{Fault, Result};
use engine::Engine;
use engine::rows::{CATALOG, Isolation, RowBatch};

use crate::catalog::access::{self, ACCESS, AccessKey, AccessKind};
use crate::catalog::comment::{self, COMMENT, CommentKey, CommentKind};
use crate::catalog::default_access::{self, DEFAULT_ACCESS, DefaultAccessKey};
use crate::catalog::object_id::{ObjectId, UNNUMBERED};
use crate::catalog::record::{PERSISTED, decode_table, put, put_table_record, schema_key};
use crate::catalog::schema::{Schema, decode_schema, encode_schema};
use crate::catalog::sequence::decode_sequence;
use crate::catalog::session_default::{self, DefaultsKey, SESSION_DEFAULTS};
use crate::catalog::snapshot::Snapshot;
use crate::catalog::statistics_record::decode_statistics;
use crate::catalog::table::{Index, Table};
use crate::catalog::temporary_maps::Left;
use crate::catalog::user_type::decode_type;
use crate::catalog::view::decode_view;
use crate::engine_fault::engine_fault;

/// The records by kind; pieces are joined.
#[derive(Default)]
struct Records {
    schemas: Vec<Schema>,
    tables: BTreeMap<ObjectId, Vec<u8>>,
    views: BTreeMap<ObjectId, Vec<u8>>,
    sequences: BTreeMap<ObjectId, Vec<u8>>,
    types: BTreeMap<ObjectId, Vec<u8>>,
    positions: BTreeMap<ObjectId, Vec<u8>>,
    statistics: BTreeMap<ObjectId, Vec<u8>>,
    unchecked: BTreeSet<ObjectId>,
    access: BTreeMap<AccessKey, Vec<u8>>,
    session_defaults: BTreeMap<DefaultsKey, Vec<u8>>,
    default_access: BTreeMap<DefaultAccessKey, Vec<u8>>,
    comments: BTreeMap<CommentKey, Vec<u8>>,
    left: Left,
}

/// The definitions, the next object id, and the records of temporary tables from before the last start.
pub(super) struct Loaded {
    pub snapshot: Snapshot,
    pub next_id: ObjectId,
    pub left: Left,
}

pub(super) fn load(engine: &Arc<Engine>, system: &'static [&'static str]) -> Result<Loaded> {
    let mut records = read(engine)?;
    let mut snapshot = Snapshot { version: 1, system, ..Snapshot::default() };
    let mut highest = UNNUMBERED;
    for schema in std::mem::take(&mut records.schemas) {
        highest = highest.max(schema.id);
        snapshot.schemas.insert(schema.name.clone(), Arc::new(schema));
    }
    for (id, bytes) in &records.tables {
        let table = decode_table(bytes)?;
        table.live.unchecked.store(records.unchecked.contains(id), Ordering::Relaxed);
        if let Some(bytes) = records.statistics.get(id) {
            table.live.recall(decode_statistics(bytes)?);
        }
        highest = highest.max(table.ids().max().unwrap_or(*id));
        schema_of(&mut snapshot, &table.schema)?.tables.insert(table.name.clone(), Arc::new(table));
    }
    for (id, bytes) in &records.views {
        highest = highest.max(*id);
        let view = decode_view(bytes)?;
        schema_of(&mut snapshot, &view.schema)?.views.insert(view.name.clone(), Arc::new(view));
    }
    for (id, bytes) in &records.sequences {
        highest = highest.max(*id);
        let position = records.positions.get(id).ok_or_else(|| Fault::corrupt("a sequence without a position"))?;
        let sequence = decode_sequence(bytes, position)?;
        schema_of(&mut snapshot, &sequence.schema)?.sequences.insert(sequence.name.clone(), Arc::new(sequence));
    }
    for bytes in records.types.values() {
        let ty = decode_type(bytes)?;
        highest = ty.ids().into_iter().fold(highest, ObjectId::max);
        schema_of(&mut snapshot, &ty.schema)?.types.insert(ty.name.clone(), Arc::new(ty));
    }
    snapshot.access = access::load(&records.access)?;
    snapshot.session_defaults = Arc::new(session_default::load(&records.session_defaults)?);
    snapshot.default_access = Arc::new(default_access::load(&records.default_access)?);
    snapshot.comments = Arc::new(comment::load(&records.comments)?);
    // QU-60: numbers that these records know are given to no new object.
    let known = records.access.keys().filter(|key| matches!(key.kind, AccessKind::Object | AccessKind::Database));
    let known = known.map(|key| key.of).chain(records.session_defaults.keys().map(|key| key.database));
    let defaults = snapshot.default_access.iter();
    let known = known.chain(defaults.flat_map(|(key, access)| [key.database, key.schema, access.id]));
    let commented = records.comments.keys().filter(|key| key.kind != CommentKind::Role);
    let known = known.chain(commented.map(|key| key.of));
    let mut next_id = known.fold(highest, u64::max) + 1;
    number_earlier(engine, &mut snapshot, &mut next_id)?;
    snapshot.children = Arc::new(snapshot.children_by_parent());
    Ok(Loaded { snapshot, next_id, left: records.left })
}

fn schema_of<'s>(snapshot: &'s mut Snapshot, name: &str) -> Result<&'s mut Schema> {
    let schema = snapshot.schemas.get_mut(name).ok_or_else(|| Fault::corrupt("an object without a schema"))?;
    Ok(Arc::make_mut(schema))
}

fn read(engine: &Arc<Engine>) -> Result<Records> {
    let mut records = Records::default();
    let mut txn = engine.rows().begin(Isolation::RepeatableRead);
    let mut cursor = txn.scan(CATALOG, Bound::Unbounded, Bound::Unbounded, false).map_err(engine_fault)?;
    let mut batch = RowBatch::new();
    while cursor.next(&mut txn, &mut batch).map_err(engine_fault)? {
        for (key, value) in batch.iter() {
            records.add(key, value)?;
        }
    }
    txn.rollback();
    Ok(records)
}

impl Records {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (kind, rest) = key.split_first().ok_or_else(unknown)?;
        let id = || -> Result<ObjectId> {
            Ok(u64::from_be_bytes(rest.get(..8).and_then(|id| id.try_into().ok()).ok_or_else(unknown)?))
        };
        let is_piece = rest.len() == 10;
        match kind {
            b's' => self.schemas.push(decode_schema(rest, value)?),
            b't' if is_piece => self.tables.entry(id()?).or_default().extend_from_slice(value),
            b'v' if is_piece => self.views.entry(id()?).or_default().extend_from_slice(value),
            b'i' if is_piece => self.statistics.entry(id()?).or_default().extend_from_slice(value),
            b'y' if is_piece => self.types.entry(id()?).or_default().extend_from_slice(value),
            b'q' => drop(self.sequences.insert(id()?, value.to_vec())),
            b'n' => drop(self.positions.insert(id()?, value.to_vec())),
            b'u' => drop(self.unchecked.insert(id()?)),
            b'p' => self.left.push((key.to_vec(), value.to_vec())),
            kind if *kind == ACCESS && access::gather(&mut self.access, key, value) => {}
            kind if *kind == SESSION_DEFAULTS && session_default::gather(&mut self.session_defaults, key, value) => {}
            kind if *kind == DEFAULT_ACCESS && default_access::gather(&mut self.default_access, key, value) => {}
            kind if *kind == COMMENT && comment::gather(&mut self.comments, key, value) => {}
            b'a' | b'c' => {}
            kind if *kind == PERSISTED => {}
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

#[cold]
fn unknown() -> Fault {
    Fault::corrupt("a record of the catalog of no known kind")
}

/// Numbers schemas, indexes and constraints of records from before object ids, and stores the numbers at once, so that
/// later starts find the same ones.
fn number_earlier(engine: &Arc<Engine>, snapshot: &mut Snapshot, next_id: &mut ObjectId) -> Result<()> {
    let mut new_id = || {
        *next_id += 1;
        *next_id - 1
    };
    let mut txn = engine.rows().begin(Isolation::ReadCommitted);
    let mut is_changed = false;
    for schema in snapshot.schemas.values_mut() {
        let is_earlier = schema.id == UNNUMBERED;
        let earlier: Vec<Arc<Table>> =
            schema.tables.values().filter(|table| table.ids().any(|id| id == UNNUMBERED)).cloned().collect();
        if !is_earlier && earlier.is_empty() {
            continue;
        }
        is_changed = true;
        let schema = Arc::make_mut(schema);
        if is_earlier {
            schema.id = new_id();
            put(&mut txn, &schema_key(&schema.name), &encode_schema(schema))?;
        }
        for table in earlier {
            // No session has the version yet, so its number stays.
            let mut numbered = Table { version: table.version, ..table.copy() };
            numbered.number_parts(None, &mut new_id);
            let numbered = numbered.with_derived_fields();
            put_table_record(&mut txn, &numbered)?;
            schema.tables.insert(table.name.clone(), Arc::new(numbered));
        }
    }
    match is_changed {
        true => txn.commit().map(drop).map_err(engine_fault),
        false => {
            txn.rollback();
            Ok(())
        }
    }
}

impl Table {
    /// Returns the numbers of the table and its parts; those of a record from before object ids are `UNNUMBERED`.
    pub(super) fn ids(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let primary = self.primary.iter().map(|_| self.primary_id);
        let indexes = self.indexes.iter().map(|Index { id, .. }| *id);
        let checks = self.checks.iter().map(|check| check.id);
        let keys = self.foreign_keys.iter().map(|key| key.id);
        std::iter::once(self.id).chain(primary).chain(indexes).chain(checks).chain(keys)
    }
}
