//! Random bytes in a WAL chunk with a correct checksum: reading must end, with an error or with consecutive records of the written bytes.
//!
//! `make fuzz` in the root. The input is the payload, cut into chunks of the size given by its first two bytes.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use os::{Aligned, Folder, Open, SimFolder};
use pager::RecoveryTarget;
use pager::wal::FIRST_LSN;
use pager::wal::read::WalReader;
use pager::wal::record::unfold_image;
use pager::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader, SegmentHeader, file_name};

const DATABASE: u64 = 7;

fn write_segment(folder: &dyn Folder, payload: &[u8], piece: usize) {
    let device = folder.open(&file_name(1), Open::Create).expect("made");
    let mut header = Aligned::with_capacity(BLOCK);
    header.as_mut_slice().copy_from_slice(&SegmentHeader { number: 1, start: FIRST_LSN, database: DATABASE }.encode());
    device.write_durable(0, header.as_slice()).expect("written");
    let (mut position, mut start) = (BLOCK as u64, FIRST_LSN);
    for piece in payload.chunks(piece) {
        let bytes = ChunkHeader::disk_bytes(piece.len());
        let mut chunk = Aligned::with_capacity(bytes as usize);
        chunk.as_mut_slice()[CHUNK_HEADER..CHUNK_HEADER + piece.len()].copy_from_slice(piece);
        let header = ChunkHeader { epoch: 1, start, len: piece.len() as u32, wall_ms: 1, database: DATABASE };
        header.seal(chunk.as_mut_slice());
        device.write_durable(position, chunk.as_slice()).expect("written");
        position += bytes;
        start += piece.len() as u64;
    }
    device.prefill(position + BLOCK as u64).expect("room behind");
}

fuzz_target!(|data: &[u8]| {
    let [low, high, payload @ ..] = data else { return };
    if payload.is_empty() {
        return;
    }
    let folder: Arc<dyn Folder> = SimFolder::new(1);
    let piece = usize::from(u16::from_le_bytes([*low, *high])) + 1;
    write_segment(folder.as_ref(), payload, piece);
    let Ok(mut reader) = WalReader::open(&folder, DATABASE, FIRST_LSN, RecoveryTarget::default()) else { return };
    let mut last = FIRST_LSN;
    loop {
        let more = reader.next(1 << 12, &mut |record| {
            assert!(record.lsn_start >= FIRST_LSN && record.lsn_end >= last && record.lsn_start < record.lsn_end);
            last = record.lsn_end;
            let _ = unfold_image(record.body);
            Ok(())
        });
        match more {
            Ok(true) => {}
            Ok(false) => {
                assert_eq!(reader.end().lsn, last.max(FIRST_LSN));
                break;
            }
            Err(_) => break,
        }
    }
    assert!(last <= FIRST_LSN + payload.len() as u64);
});
