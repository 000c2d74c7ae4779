//! Effects of key transactions: facts in the order of the commits, of each transaction all or none, and a gap where something cannot be told.

use std::sync::{Arc, Mutex};

use engine::rows::{Isolation, KeyValue};
use engine::{
    Ahead, End, Error, Expire, KeyEffect, KeySet, KeyTransaction, Kind, NodeLimits, PackLimits, Replace, StreamId,
};

use os::Clock;

use crate::support::{START_MS, World};

type Told = Arc<Mutex<Vec<String>>>;

fn encode(effect: &KeyEffect<'_>, out: &mut Vec<u8>) -> u32 {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = match effect {
        KeyEffect::Set { key, value, expire } => format!("set {} {} {expire:?}", text(key), text(value)),
        KeyEffect::Delete { key } => format!("delete {}", text(key)),
        KeyEffect::RemoveMembers { key, members, .. } => {
            format!("remove {} {}", text(key), members.iter().map(|member| text(member)).collect::<Vec<_>>().join(","))
        }
        KeyEffect::PutMembers { key, items, .. } => {
            format!("put {} {}", text(key), items.iter().map(|item| text(item.0)).collect::<Vec<_>>().join(","))
        }
        other => format!("{other:?}"),
    };
    out.extend_from_slice(shown.as_bytes());
    out.push(b';');
    1
}

fn listen(world: &World, bytes_max: u64) -> Told {
    let told = Told::default();
    let own = told.clone();
    let take = move |batch: engine::EffectBatch, _| {
        let shown = if batch.is_lost { "lost".to_owned() } else { String::from_utf8_lossy(&batch.bytes).into_owned() };
        own.lock().unwrap().push(shown);
    };
    world.engine.keyspace().effects().listen(encode, Box::new(take));
    world.all(|_| {
        world.engine.keyspace().effects().begin(bytes_max);
        Ok(())
    });
    told
}

fn take(told: &Told) -> Vec<String> {
    std::mem::take(&mut *told.lock().unwrap())
}

/// EN-96, EN-97.
#[test]
fn effects_of_a_transaction_are_told_at_its_commit_and_none_of_a_rollback() {
    let world = World::new(1);
    world.set(0, b"before", b"recording");
    let told = listen(&world, 0);
    world.set(0, b"a", b"1");
    assert_eq!(take(&told), ["set a 1 None;"]);
    let keys: [(u8, &[u8]); 2] = [(0, b"a"), (0, b"b")];
    let failed = world.engine.keyspace().write::<(), Error>(KeySet::Keys(&keys), true, |txn| {
        txn.put_string(0, b"b", b"never", Expire::None)?;
        Err(Error::Invalid("changed my mind".into()))
    });
    assert!(failed.is_err());
    world.write(&keys, |txn| {
        txn.put_members(0, b"b", Kind::Set, &[(b"m", b""), (b"n", b"")], PackLimits { entries: 128, value: 64 })?;
        txn.remove_members(0, b"b", Kind::Set, &[b"n", b"absent"])?;
        txn.remove_members(0, b"b", Kind::Set, &[b"absent"])?;
        txn.delete(0, b"a")
    });
    assert_eq!(take(&told), ["put b m,n;remove b n,absent;delete a;"]);
    world.engine.keyspace().effects().end();
    world.set(0, b"a", b"2");
    assert_eq!(take(&told), [""; 0]);
}

#[test]
fn what_has_expired_is_told_before_what_replaces_it() {
    let world = World::new(2);
    let told = listen(&world, 0);
    for key in [b"a", b"b", b"c"] {
        world.engine.keyspace().set(0, key, b"1", Expire::At(START_MS + 50)).unwrap();
    }
    world.clock.advance_ms(100);
    take(&told);
    world.one(0, b"a", |txn| txn.put_string(0, b"a", b"2", Expire::Keep));
    world.one(0, b"b", |txn| txn.delete(0, b"b"));
    assert_eq!(take(&told), ["delete a;set a 2 Keep;", "delete b;"]);
    while world.engine.keyspace().background_step(100).unwrap().more {}
    assert_eq!(take(&told), ["delete c;"]);
}

/// EN-96, for every primitive that makes a key of a kind.
#[test]
fn whatever_replaces_an_expired_key_is_told_behind_its_removal() {
    type Change = fn(&mut KeyTransaction<'_>) -> Result<(), Error>;
    const NODES: NodeLimits = NodeLimits { entries: 10, bytes: 4096 };
    const PACKED: PackLimits = PackLimits { entries: 4, value: 64 };
    const MANY: [(&[u8], &[u8]); 6] = [(b"a", b""), (b"b", b""), (b"c", b""), (b"d", b""), (b"e", b""), (b"f", b"")];
    let changes: [(&str, Change); 11] = [
        ("string", |txn| txn.put_string(0, b"k", b"v", Expire::None)),
        ("patch", |txn| txn.patch_string(0, b"k", 5, b"v").map(drop)),
        ("list", |txn| txn.push_items(0, b"k", End::Head, &[b"i"]).map(drop)),
        ("long list", |txn| txn.push_items(0, b"k", End::Tail, &[&[b'x'; 9000][..]; 9]).map(drop)),
        ("set", |txn| txn.put_members(0, b"k", Kind::Set, &MANY[..1], PACKED).map(drop)),
        ("elements", |txn| txn.put_members(0, b"k", Kind::Set, &MANY, PACKED).map(drop)),
        ("sorted set", |txn| txn.put_scores(0, b"k", &[b"m"], &mut |_, _| Some(1.0), PACKED).map(drop)),
        ("stream", |txn| {
            let mut stream = txn.new_stream(0, b"k")?;
            txn.append_entry(&mut stream, StreamId::new(1, 1), &[(b"f", b"v")], NODES)?;
            txn.store_stream(stream)
        }),
        ("group", |txn| {
            let mut stream = txn.new_stream(0, b"k")?;
            txn.create_group(&mut stream, b"g", StreamId::MIN, 0)?;
            txn.store_stream(stream)
        }),
        ("copy", |txn| txn.copy((0, b"other"), (0, b"k")).map(drop)),
        ("rename", |txn| txn.rename((0, b"other"), (0, b"k")).map(drop)),
    ];
    let world = World::new(6);
    let told = listen(&world, 0);
    for (name, change) in changes {
        world.set(0, b"other", b"1");
        let soon = world.clock.wall_ms() + 50;
        world.engine.keyspace().set(0, b"k", b"old", Expire::At(soon)).unwrap();
        world.clock.advance_ms(100);
        take(&told);
        world.write(&[(0, b"k"), (0, b"other")], change);
        let effects = take(&told).concat();
        assert!(effects.starts_with("delete k;"), "{name}: {effects}");
        assert_eq!(effects.matches("delete k;").count(), 1, "{name}: {effects}");
        assert!(effects.len() > "delete k;".len(), "{name}: {effects}");
    }
}

#[test]
fn a_commit_of_rows_tells_its_keys() {
    let world = World::new(3);
    let told = listen(&world, 0);
    let mut txn = world.engine.rows().begin(Isolation::ReadCommitted);
    txn.put_key(0, b"k", KeyValue { value: b"v"[..].into(), expire_at_ms: None }).unwrap();
    assert_eq!(take(&told), [""; 0]);
    txn.commit().unwrap();
    assert_eq!(take(&told), ["set k v None;"]);
}

/// EN-98.
#[test]
fn what_cannot_be_told_is_a_gap() {
    let world = World::new(4);
    let told = listen(&world, 1000);
    world.set(0, b"a", &[b'x'; 2000]);
    world.set(0, b"a", b"short");
    assert_eq!(take(&told), ["lost", "set a short None;"]);
    let staging = world.engine.keyspace().stage().unwrap();
    staging
        .write::<_, Error>(KeySet::Keys(&[(5, b"k")]), false, |txn| txn.put_string(5, b"k", b"v", Expire::None))
        .unwrap();
    assert_eq!(take(&told), [""; 0], "nobody sees staged keys");
    staging.publish(&[5], Replace::Empty).unwrap();
    assert_eq!(take(&told), ["lost"]);
}

#[test]
fn commands_of_a_pipeline_that_are_undone_are_not_told() {
    let world = World::new(5);
    let told = listen(&world, 0);
    let keys: [(u8, &[u8]); 2] = [(0, b"a"), (0, b"b")];
    let mut command = 0;
    let end = world.engine.keyspace().write_pipeline(&keys, |txn| {
        txn.begin_command(command, false, Ahead::default());
        command += 1;
        match command {
            1 => txn.put_string(0, b"a", b"1", Expire::None)?,
            2 => txn.put_string(0, b"b", b"2", Expire::None)?,
            _ => return Err(Error::Invalid("stop".into())),
        }
        Ok(true)
    });
    let settled = end.unwrap().unwrap().settled;
    let all = ["set a 1 None;", "set b 2 None;"];
    assert_eq!(take(&told).concat(), all[..settled].concat());
}
