//! The catalog on a simulated disk.

use engine::{Lsn, Options};
use os::{Folder, SimClock, SimFolder};

use super::*;
use crate::catalog::foreign_key::{Action, Deferral, ForeignKey};
use crate::catalog::object_id::ObjectId;
use crate::catalog::object_id::{Maker, UNNUMBERED};
use crate::catalog::objects::Object;
use crate::catalog::record::schema_key;
use crate::catalog::record::{encode_table, table_key};
use crate::catalog::sequence::{Parameters, Sequence};
use crate::catalog::table::{Check, Identity, Index, Part, TableColumn};
use crate::key_form::KeyForm;
use crate::types::{Collation, Type};
use datum::Storage;
use datum::key::KeyOrder;

pub struct World {
    pub folder: Arc<SimFolder>,
    pub engine: Arc<Engine>,
    pub catalog: Catalog,
}

impl World {
    pub fn new(seed: u64) -> World {
        World::on(SimFolder::new(seed))
    }

    fn on(folder: Arc<SimFolder>) -> World {
        let pager = pager::Options { frame_bytes: 8 << 20, ring_bytes: 4 << 20, ..pager::Options::default() };
        let options = Options { pager, random: 7, ..Options::default() };
        let clock = Arc::new(SimClock::new(1_700_000_000_000));
        let engine = Engine::open(options, folder.clone() as Arc<dyn Folder>, clock).expect("the engine opens");
        let catalog = Catalog::open(engine.clone(), &[]).expect("the catalog loads");
        World { folder, engine, catalog }
    }

    /// Closes and opens again.
    pub fn reopen(self) -> World {
        let World { folder, engine, catalog } = self;
        drop(catalog);
        engine.close().expect("closing works");
        drop(engine);
        World::on(folder)
    }

    /// Loses what was not durable and opens again.
    pub fn crash(self) -> World {
        let World { folder, engine, catalog } = self;
        let after = folder.crash();
        drop(catalog);
        drop(engine);
        World::on(after)
    }

    pub fn await_durable(&self, lsn: Lsn) {
        self.engine.durable().wait(lsn);
    }

    /// Changes definitions and waits until the change is durable.
    pub fn change<T>(&self, change: impl FnOnce(&mut Writing<'_>) -> Result<T>) -> T {
        let mut writing = self.catalog.write();
        let made = change(&mut writing).expect("the change is possible");
        self.await_durable(writing.commit().expect("the change commits"));
        made
    }
}

pub fn parameters() -> Parameters {
    Parameters { bytes: 8, start: 1, increment: 1, min: 1, max: i64::MAX, cache: 1, cycle: false }
}

fn part(column: usize) -> Part {
    Part { column, prefix: None, order: KeyOrder::ASCENDING }
}

/// Returns a table with one part of each kind.
fn table(writing: &mut Writing<'_>) -> Table {
    let column = |name: &str, slot| {
        let ty =
            Type::plain(Storage::Int { bytes: 8, signed: true }, Type::null().id, (20, 0), true, Collation::Binary);
        TableColumn::new(name.to_owned(), ty, slot)
    };
    let mut table = Table::draft("t", &[column("a", 0), column("b", 1)]);
    (table.id, table.schema, table.maker) = (writing.new_id(), "d.s".into(), Maker(1));
    table.map = writing.txn.create_map().unwrap();
    table.primary = Some(vec![part(0)]);
    table.primary_name = "t_pkey".into();
    table.indexes.push(Index {
        id: UNNUMBERED,
        name: "i".into(),
        map: writing.txn.create_map().unwrap(),
        unique: true,
        parts: vec![part(1)],
        form: KeyForm::Hashed,
        comment: String::new(),
        invisible: false,
        using: false,
        generated: false,
        is_constraint: true,
        included: Vec::new(),
        predicate: None,
        terms: None,
        nulls_equal: false,
        deferral: Deferral::Never,
        is_primary: false,
        is_unseen: false,
    });
    table.checks.push(Check {
        id: UNNUMBERED,
        name: "c".into(),
        text: "a > b".into(),
        enforced: true,
        is_validated: true,
    });
    table.foreign_keys.push(ForeignKey {
        id: UNNUMBERED,
        name: "f".into(),
        columns: vec![1],
        parent_schema: "d.s".into(),
        parent: "t".into(),
        parent_columns: vec!["a".into()],
        on_delete: Action::Nothing,
        on_update: Action::Nothing,
        deferral: Deferral::Never,
        is_validated: true,
    });
    table
}

/// Creates the table with a sequence that its first column owns.
fn create(world: &World) -> Arc<Table> {
    world.change(|writing| {
        writing.put_schema("d.s", Collation::Binary, Maker(1))?;
        let mut table = table(writing);
        let id = writing.new_id();
        let mut sequence = Sequence::new(id, "d.s".into(), "t_a_seq".into(), parameters(), Maker(1));
        sequence.owned_by = Some(table.id);
        writing.create_sequence(sequence)?;
        (table.columns[0].identity, table.columns[0].sequences) = (Identity::Always, vec![id]);
        writing.put_table(table)
    })
}

/// Returns the kinds and names of all objects with their numbers.
fn named(world: &World) -> Vec<(ObjectId, String)> {
    let snapshot = world.catalog.snapshot();
    let name = |object: &Object| match object {
        Object::Schema(schema) => format!("schema {}", schema.name),
        Object::Table(table) => format!("table {}", table.name),
        Object::PrimaryKey(table) => format!("primary key {}", table.primary_name),
        Object::Index(table, at) => format!("index {}", table.indexes[*at].name),
        Object::Check(table, at) => format!("check {}", table.checks[*at].name),
        Object::ForeignKey(table, at) => format!("foreign key {}", table.foreign_keys[*at].name),
        Object::View(view) => format!("view {}", view.name),
        Object::Sequence(sequence) => format!("sequence {}", sequence.name),
        Object::Type(ty) => format!("type {}", ty.name),
        Object::DomainCheck(ty, at) => format!("check {at} of {}", ty.name),
    };
    (1..100).filter_map(|id| Some((id, name(snapshot.object(id)?)))).collect()
}

/// QU-40.
#[test]
fn objects_keep_their_numbers_over_restarts_and_rebuilds() {
    let world = World::new(1);
    let table = create(&world);
    let all = named(&world);
    let mut kinds: Vec<&str> = all.iter().map(|(_, name)| &**name).collect();
    kinds.sort_unstable();
    let expected = ["check c", "foreign key f", "index i", "primary key t_pkey", "schema d.s"];
    assert_eq!(kinds, [&expected[..], &["sequence t_a_seq", "table t"]].concat());
    let world = world.reopen();
    assert_eq!(named(&world), all);
    let loaded = world.catalog.snapshot().table("d.s", "t").unwrap().clone();
    assert_eq!((loaded.maker, loaded.indexes[0].is_constraint), (Maker(1), true));
    assert_eq!((loaded.columns[0].identity, loaded.columns[1].identity), (Identity::Always, Identity::None));
    assert_eq!(loaded.columns[0].sequences, table.columns[0].sequences);
    world.change(|writing| {
        let mut rebuilt = loaded.copy().laid_out();
        // A new definition does not know the numbers.
        (rebuilt.primary_id, rebuilt.indexes[0].id, rebuilt.checks[0].id) = (UNNUMBERED, UNNUMBERED, UNNUMBERED);
        rebuilt.indexes[0].map = writing.txn.create_map().unwrap();
        writing.put_table(rebuilt)
    });
    assert_eq!(named(&world), all);
    let next = world.change(|writing| Ok(writing.new_id()));
    assert!(all.iter().all(|(id, _)| *id < next));
}

#[test]
fn a_sequence_goes_with_the_column_that_owns_it() {
    let world = World::new(2);
    let table = create(&world);
    let snapshot = world.catalog.snapshot();
    let sequence = snapshot.sequence("d.s", "t_a_seq").unwrap();
    assert_eq!(snapshot.owner(sequence).map(|(table, column)| (table.id, column)), Some((table.id, 0)));
    // A rename of table and column changes nothing.
    let renamed = world.change(|writing| {
        writing.forget_name(&table)?;
        let mut renamed = table.copy();
        (renamed.name, renamed.columns[0].name) = ("u".into(), "z".into());
        writing.put_table(renamed)
    });
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_some());
    // Another column takes it over; then it is released, and so survives the drop of its former column.
    let changed = world.change(|writing| {
        let mut changed = renamed.copy();
        changed.columns[1].sequences = std::mem::take(&mut changed.columns[0].sequences);
        writing.put_table(changed)
    });
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_some());
    world.change(|writing| {
        let mut released = Sequence::clone(writing.snapshot.sequence("d.s", "t_a_seq").unwrap());
        released.owned_by = None;
        writing.alter_sequence(released, None)?;
        let mut without = changed.copy();
        without.columns[1].sequences.clear();
        writing.put_table(without)
    });
    let world = world.reopen();
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_some());
    let table = world.catalog.snapshot().table("d.s", "u").unwrap().clone();
    world.change(|writing| writing.drop_table(&table));
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_some());
}

#[test]
fn a_dropped_table_takes_its_sequences_along() {
    let world = World::new(3);
    let table = create(&world);
    world.change(|writing| writing.drop_table(&table));
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_none());
    let world = world.reopen();
    assert!(world.catalog.snapshot().sequence("d.s", "t_a_seq").is_none());
}

/// The records of a folder from before object ids: table version 5, and schemas that end behind the collation.
#[test]
fn objects_from_before_object_ids_are_numbered_once() {
    let world = World::new(4);
    let table = create(&world);
    let maker_at = encode_table(&table).unwrap().len()
        - table.columns.iter().map(|_| 1 + 4).sum::<usize>()
        - 8 * 4
        - (8 + 4 + "t_pkey".len())
        - 1;
    world.change(|writing| {
        let mut earlier = encode_table(&table)?;
        earlier.truncate(maker_at);
        earlier[0] = 5;
        assert!(earlier.len() <= PIECE);
        put(&mut writing.txn, &table_key(table.id, 0), &earlier)?;
        put(&mut writing.txn, &schema_key("d.s"), &u64::from(Collation::Binary.code()).to_le_bytes())
    });
    let world = world.reopen();
    let all = named(&world);
    assert_eq!(all.len(), 7);
    let loaded = world.catalog.snapshot().table("d.s", "t").unwrap().clone();
    assert_eq!((loaded.maker, loaded.version), (Maker(0), table.version));
    world.change(|writing| writing.put_schema("e", Collation::Binary, Maker(0)));
    let world = world.crash();
    let mut now = named(&world);
    now.retain(|(_, name)| name != "schema e");
    assert_eq!(now, all);
}
