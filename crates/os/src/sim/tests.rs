use super::*;

fn file(folder: &Arc<SimFolder>) -> Arc<dyn Device> {
    let device = folder.open("f", Open::Create).unwrap();
    device.grow(8192).unwrap();
    folder.sync().unwrap();
    device
}

fn content(folder: &Arc<SimFolder>) -> Vec<u8> {
    let device = folder.open("f", Open::Existing).unwrap();
    let mut bytes = vec![0; 8192];
    device.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn unsynced_sectors_may_survive_a_crash_and_synced_ones_always_do() {
    let mut outcomes = std::collections::HashSet::new();
    for seed in 0..40 {
        let folder = SimFolder::new(seed);
        let device = file(&folder);
        device.write(0, &[1; 4096]).unwrap();
        device.sync().unwrap();
        device.write(0, &[2; 4096]).unwrap();
        let bytes = content(&folder.crash());
        for sector in bytes[..4096].chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]) && matches!(sector[0], 1 | 2), "a sector is torn");
        }
        outcomes.insert(bytes[..4096].chunks(SECTOR).map(|sector| sector[0]).collect::<Vec<_>>());
        device.write_durable(4096, &[3; 4096]).unwrap();
        assert!(content(&folder.crash())[4096..].iter().all(|byte| *byte == 3));
    }
    assert!(outcomes.len() > 20, "the crashes differ");
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let run = || {
        let folder = SimFolder::new(9);
        let device = file(&folder);
        device.write(0, &[7; 8192]).unwrap();
        content(&folder.crash())
    };
    assert_eq!(run(), run());
}

#[test]
fn the_operation_during_the_crash_may_be_torn_and_later_ones_fail() {
    let torn = (0..50).any(|seed| {
        let folder = SimFolder::new(seed);
        let device = file(&folder);
        folder.crash_at_io(folder.io_count() + 1);
        assert!(device.write_durable(0, &[5; 4096]).is_err());
        assert!(device.read(0, &mut [0; 512]).is_err());
        let bytes = content(&folder.crash());
        bytes[..4096].contains(&5) && bytes[..4096].contains(&0)
    });
    assert!(torn);
}

#[test]
fn names_are_durable_only_after_a_folder_sync() {
    let mut seen = [false; 2];
    for seed in 0..30 {
        let folder = SimFolder::new(seed);
        folder.open("new", Open::Create).unwrap();
        seen[usize::from(folder.crash().list().unwrap().is_empty())] = true;
        folder.sync().unwrap();
        assert_eq!(folder.crash().list().unwrap(), ["new"]);
    }
    assert_eq!(seen, [true, true]);
}

#[test]
fn a_fault_happens_at_its_operation() {
    let folder = SimFolder::new(1);
    let device = file(&folder);
    folder.fail("f", Fault::Read(2));
    folder.fail("f", Fault::Write(1));
    folder.fail("f", Fault::Sync(1));
    let mut buf = [0; 512];
    assert!(device.read(0, &mut buf).is_ok());
    assert!(device.read(0, &mut buf).is_err());
    assert!(device.read(0, &mut buf).is_ok());
    assert!(device.write(0, &[1; 512]).is_err());
    assert_eq!(content(&folder)[0], 0);
    assert!(device.write(0, &[1; 512]).is_ok());
    assert!(device.sync().is_err());
    assert!(device.sync().is_ok());
    folder.fail("f", Fault::Misdirect(1, 4096));
    device.write(0, &[9; 512]).unwrap();
    assert_eq!((content(&folder)[0], content(&folder)[4096]), (1, 9));
    folder.flip_bit("f", 0, 1);
    assert_eq!(content(&folder)[0], 3);
}

#[test]
fn a_full_folder_refuses_growth() {
    let folder = SimFolder::new(1);
    let device = file(&folder);
    folder.set_capacity(Some(10_000));
    let error = device.grow(16384).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!((device.len(), folder.free_bytes().unwrap()), (8192, 10_000 - 8192));
}
