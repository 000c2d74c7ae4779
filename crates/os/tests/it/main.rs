//! `RealFolder` on the file system of the temporary directory.

mod lease;
mod objects;

use std::sync::Arc;

use os::{Aligned, Device, Folder, Open, RealFolder};

struct Temporary(std::path::PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("beluga-os-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Temporary(path)
    }

    fn folder(&self) -> Arc<RealFolder> {
        RealFolder::open(&self.0, true).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn filled(byte: u8, len: usize) -> Aligned {
    let mut buffer = Aligned::with_capacity(len);
    buffer.as_mut_slice().fill(byte);
    buffer
}

fn first_bytes(device: &dyn Device, offsets: &[u64]) -> Vec<u8> {
    let mut buffer = Aligned::with_capacity(offsets.len() * 4096);
    let mut ops: Vec<(u64, &mut [u8])> =
        offsets.iter().copied().zip(buffer.as_mut_slice().chunks_exact_mut(4096)).collect();
    for result in device.read_many(&mut ops) {
        result.unwrap();
    }
    buffer.as_slice().chunks_exact(4096).map(|page| page[17]).collect()
}

#[test]
fn written_bytes_are_read_one_by_one_and_in_batches() {
    let temporary = Temporary::new("rw");
    let folder = temporary.folder();
    let device = folder.open("data", Open::Create).unwrap();
    device.grow(4 << 20).unwrap();
    assert_eq!(device.len(), 4 << 20);
    let pages: Vec<Aligned> = (0..300).map(|page| filled(page as u8, 4096)).collect();
    let writes: Vec<(u64, &[u8])> =
        pages.iter().enumerate().map(|(at, page)| (at as u64 * 8192, page.as_slice())).collect();
    device.write_many(&writes).unwrap();
    device.sync().unwrap();
    device.write_durable(4096, filled(0xee, 4096).as_slice()).unwrap();
    let offsets: Vec<u64> = (0..300).map(|at| at * 8192).collect();
    let expected: Vec<u8> = (0..300).map(|page| page as u8).collect();
    assert_eq!(first_bytes(device.as_ref(), &offsets), expected);
    assert_eq!(first_bytes(device.as_ref(), &[4096, 12288]), [0xee, 0]);
    let again = folder.open("data", Open::Existing).unwrap();
    assert_eq!(again.len(), 4 << 20);
    assert_eq!(first_bytes(again.as_ref(), &[8192]), [1]);
}

#[test]
fn prefilled_bytes_are_zero_and_reads_beyond_the_end_fail() {
    let temporary = Temporary::new("fill");
    let folder = temporary.folder();
    let device = folder.open("log", Open::Create).unwrap();
    device.prefill(3 << 20).unwrap();
    assert_eq!(first_bytes(device.as_ref(), &[0, (3 << 20) - 4096]), [0, 0]);
    assert!(device.read(3 << 20, Aligned::with_capacity(4096).as_mut_slice()).is_err());
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let temporary = Temporary::new("names");
    let folder = temporary.folder();
    folder.open("b", Open::Create).unwrap();
    folder.open("a", Open::Create).unwrap();
    folder.rename("b", "c").unwrap();
    folder.sync().unwrap();
    assert_eq!(folder.list().unwrap(), ["a", "c"]);
    folder.remove("a").unwrap();
    assert_eq!(folder.list().unwrap(), ["c"]);
    assert!(folder.open("a", Open::Existing).is_err());
    assert!(folder.free_bytes().unwrap() > 0);
}

#[test]
fn a_folder_is_locked_by_one_process_at_a_time() {
    let temporary = Temporary::new("lock");
    let first = temporary.folder();
    first.lock().unwrap();
    let error = temporary.folder().lock().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(first);
    temporary.folder().lock().unwrap();
    assert!(temporary.folder().list().unwrap().is_empty(), "the lock file is not listed");
}
