//! The contract with shared storage, on the simulated store, and on RADOS where `BELUGA_RADOS_POOL` names a pool of a cluster (`scripts/ceph.sh test`).

use std::sync::Arc;

use os::{Guard, ObjectError, ObjectStore, RadosAddress, RadosObjects, SimObjects};

/// Two clients of a store without objects.
pub(crate) type Clients = [Arc<dyn ObjectStore>; 2];

fn simulated() -> Clients {
    let store = SimObjects::new();
    [store.client(0), store.client(1)]
}

fn address(pool: String, test: &str) -> RadosAddress {
    let name = format!("test-{}-{test}", std::process::id());
    RadosAddress { pool, name, conf: None, user: "client.admin".into() }
}

/// Returns nothing where there is no cluster.
pub(crate) fn on_rados(test: &str) -> Option<Clients> {
    let Ok(pool) = std::env::var("BELUGA_RADOS_POOL") else {
        println!("skipped: BELUGA_RADOS_POOL names no pool of a Ceph cluster");
        return None;
    };
    let connect = || -> Arc<dyn ObjectStore> { RadosObjects::connect(&address(pool.clone(), test)).unwrap() };
    Some([connect(), connect()])
}

fn content(store: &dyn ObjectStore, name: &str) -> Vec<u8> {
    let mut bytes = vec![0xee; 64];
    let read = store.read(name, 0, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

fn guards([old, new]: &Clients) {
    let fenced = |result: Result<(), ObjectError>| assert!(matches!(result, Err(ObjectError::Fenced)), "{result:?}");
    for guard in [Guard::Equal(1), Guard::AtMostNew] {
        assert!(matches!(old.write("a", guard, 1, &[(0, b"x")]), Err(ObjectError::Missing)));
        assert!(matches!(old.read("a", 0, &mut [0; 1]), Err(ObjectError::Missing)), "{guard:?} has created it");
    }
    old.write("a", Guard::Absent, 1, &[(0, b"one")]).unwrap();
    assert!(matches!(new.write("a", Guard::Absent, 2, &[(0, b"x")]), Err(ObjectError::Exists)));
    old.write("a", Guard::Equal(1), 1, &[(3, b"!")]).unwrap();
    assert_eq!(content(new.as_ref(), "a"), b"one!");
    // Raised, without a byte.
    new.write("a", Guard::AtMostNew, 2, &[]).unwrap();
    new.write("a", Guard::AtMostNew, 2, &[]).unwrap();
    fenced(old.write("a", Guard::Equal(1), 1, &[(0, b"two")]));
    fenced(old.write("a", Guard::AtMostNew, 1, &[(0, b"two")]));
    fenced(old.write("a", Guard::Equal(1), 1, &[]));
    fenced(new.write("a", Guard::Equal(3), 3, &[(0, b"two")]));
    assert_eq!(content(old.as_ref(), "a"), b"one!");
    // The epoch that is set differs from the one that is compared.
    new.write("a", Guard::Equal(2), 17, &[]).unwrap();
    fenced(new.write("a", Guard::Equal(2), 2, &[]));
    fenced(new.write("a", Guard::AtMostNew, 16, &[]));
    new.write("a", Guard::Equal(17), 17, &[]).unwrap();
}

/// Many reads at once give what single ones do, each with its own error.
fn reads_together(store: &dyn ObjectStore, large: &[u8]) {
    const EACH: usize = 4096;
    let mut buffers = vec![vec![0xee; EACH]; 200];
    let mut whole = vec![0; large.len() + 5];
    let (mut absent, mut none) = ([0; 8], []);
    let mut reads: Vec<(&str, u64, &mut [u8])> =
        buffers.iter_mut().zip(0..).map(|(buf, nth)| ("large", nth * 40_960, &mut buf[..])).collect();
    reads.extend([("absent", 0, &mut absent[..]), ("b", 0, &mut none[..]), ("large", 0, &mut whole[..])]);
    let results = store.read_many(&mut reads);
    assert!(matches!(results[200], Err(ObjectError::Missing)));
    assert_eq!(*results[201].as_ref().unwrap(), 0);
    assert_eq!(*results[202].as_ref().unwrap(), large.len());
    assert!(whole[..large.len()] == *large);
    for (nth, (buffer, result)) in buffers.iter().zip(&results).enumerate() {
        assert_eq!(*result.as_ref().unwrap(), EACH);
        assert!(buffer[..] == large[nth * 40_960..][..EACH], "read {nth}");
    }
    assert!(store.read_many(&mut []).is_empty());
}

fn bytes([one, two]: &Clients) {
    one.write("empty", Guard::Absent, 1, &[]).unwrap();
    assert_eq!(content(two.as_ref(), "empty"), b"");
    one.write("b", Guard::Absent, 1, &[(6, b"x"), (0, b"O")]).unwrap();
    assert_eq!(content(two.as_ref(), "b"), b"O\0\0\0\0\0x");
    let mut two_bytes = [9; 2];
    assert_eq!(two.read("b", 6, &mut two_bytes).unwrap(), 1);
    assert_eq!(two_bytes[0], b'x');
    assert_eq!(two.read("b", 7, &mut two_bytes).unwrap(), 0);
    assert_eq!(two.read("b", 1 << 20, &mut two_bytes).unwrap(), 0);
    assert_eq!(two.read("b", 0, &mut []).unwrap(), 0);
    // More than one request of the client.
    let large: Vec<u8> = (0..9_000_000_u32).map(|at| (at / 4096) as u8).collect();
    one.write("large", Guard::Absent, 1, &[(0, &large[..5_000_000]), (5_000_000, &large[5_000_000..])]).unwrap();
    let mut read = vec![0; 10_000_000];
    assert_eq!(two.read("large", 0, &mut read).unwrap(), large.len());
    assert!(read[..large.len()] == large[..]);
    reads_together(two.as_ref(), &large);
    for name in ["empty", "b", "large"] {
        two.remove(name).unwrap();
        assert!(matches!(one.remove(name), Err(ObjectError::Missing)));
        assert!(matches!(one.read(name, 0, &mut [0; 1]), Err(ObjectError::Missing)));
    }
    one.write("b", Guard::Absent, 1, &[]).unwrap();
    assert_eq!(content(two.as_ref(), "b"), b"");
}

/// Of several clients that raise an epoch by one, one succeeds; every write of it that returned is found.
fn races(clients: &Clients) {
    clients[0].write("root", Guard::Absent, 1, &[]).unwrap();
    for epoch in 1..20_u64 {
        let winners: usize = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..4_u8)
                .map(|number| {
                    let store = &clients[number as usize % 2];
                    scope.spawn(move || store.write("root", Guard::Equal(epoch), epoch + 1, &[(0, &[number])]).is_ok())
                })
                .collect();
            claims.into_iter().map(|claim| usize::from(claim.join().unwrap())).sum()
        });
        assert_eq!(winners, 1, "OS-7: several clients have replaced epoch {epoch}");
    }
}

#[test]
fn the_simulated_store_keeps_the_contract() {
    guards(&simulated());
    bytes(&simulated());
    races(&simulated());
}

#[test]
fn rados_keeps_the_contract() {
    let Some(clients) = on_rados("contract") else { return };
    guards(&clients);
    bytes(&clients);
    races(&clients);
}

#[test]
fn a_cluster_that_cannot_be_reached_is_named_in_the_error() {
    let mut missing = address("pool".into(), "missing");
    missing.conf = Some("/nonexistent/ceph.conf".into());
    let error = RadosObjects::connect(&missing).err().expect("there is no such file").to_string();
    // Without the library, the error names that.
    assert!(error.contains("/nonexistent/ceph.conf") || error.contains("librados.so.2"), "{error}");
    let Ok(_) = std::env::var("BELUGA_RADOS_POOL") else { return };
    let error = RadosObjects::connect(&address("no-such-pool".into(), "missing")).err().expect("no pool").to_string();
    assert!(error.contains("no-such-pool"), "{error}");
}
