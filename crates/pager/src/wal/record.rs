//! Layout of a WAL record: three header words, an optional transaction id, the body, padding to eight bytes.
//!
//! ```text
//!   0: length u32 | kind u8 | flags u8 | pad bytes u8 | 0      1: page id, or NO_PAGE for a logical record     2: LSN of the page before this record
//!   [3: transaction id, with flag TXN]   body ...   padding
//! ```

use crate::page::{Lsn, NO_PAGE, PAGE_BYTES, PageId, TxnId};

/// Record kinds. Those below 0x10 belong to the pager. docs/formats/log.md has the table, which a test compares with this list.
pub mod kind {
    pub const IMAGE: u8 = 0x01;
    pub const SPACE_SET: u8 = 0x02;
    pub const SPACE_CLEAR: u8 = 0x03;
    pub const EXTENT_UNIT: u8 = 0x04;
    /// First kind of the tree's records.
    pub const TREE: u8 = 0x10;
    /// First kind of the engine's logical records.
    pub const LOGICAL: u8 = 0x20;
    pub const END: u8 = 0x30;
}

/// Marks the last record of a mini-transaction: without it, none of its records counts.
pub const FLAG_END: u8 = 1;
pub const FLAG_TXN: u8 = 2;

pub const HEADER_BYTES: usize = 24;

/// A decoded record, as recovery, the observer and redo see it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Start of the mini-transaction that the record belongs to.
    pub lsn_start: Lsn,
    /// End of that mini-transaction. It becomes the page LSN and the version word of the change.
    pub lsn_end: Lsn,
    pub kind: u8,
    /// The changed page; `None` for a logical record.
    pub page: Option<PageId>,
    /// Page LSN that the record was made on. Redo checks that no change in between is missing (PG-14).
    pub page_lsn_before: Lsn,
    pub txn: Option<TxnId>,
    pub body: &'a [u8],
}

/// Observes every record from the checkpoint on, in WAL order, during recovery.
pub trait Observer {
    fn observe(&mut self, record: &Record<'_>);
}

/// An observer that ignores all records, for tests and offline tools.
pub struct NoObserver;

impl Observer for NoObserver {
    fn observe(&mut self, _: &Record<'_>) {}
}

/// Appends a record to `out`. Returns the position of its flags byte, so that the last record can be marked.
pub fn encode(out: &mut Vec<u8>, kind: u8, page: PageId, before: Lsn, txn: Option<TxnId>, body: &[&[u8]]) -> usize {
    let at = out.len();
    debug_assert_eq!(at % 8, 0);
    let body_bytes: usize = body.iter().map(|part| part.len()).sum();
    let head = HEADER_BYTES + if txn.is_some() { 8 } else { 0 };
    let length = (head + body_bytes).next_multiple_of(8);
    let pad = length - head - body_bytes;
    let flags = if txn.is_some() { FLAG_TXN } else { 0 };
    out.reserve(length);
    out.extend_from_slice(&u32::try_from(length).expect("a record is far below 4 GiB").to_le_bytes());
    out.extend_from_slice(&[kind, flags, pad as u8, 0]);
    out.extend_from_slice(&page.to_le_bytes());
    out.extend_from_slice(&before.to_le_bytes());
    if let Some(txn) = txn {
        out.extend_from_slice(&txn.to_le_bytes());
    }
    for part in body {
        out.extend_from_slice(part);
    }
    out.resize(at + length, 0);
    at + 5
}

/// Appends only the header of a page record; the body, a multiple of eight bytes, follows elsewhere.
pub fn encode_header(out: &mut Vec<u8>, kind: u8, page: PageId, body_bytes: usize, last: bool) {
    assert!(body_bytes.is_multiple_of(8));
    out.extend_from_slice(&((HEADER_BYTES + body_bytes) as u32).to_le_bytes());
    out.extend_from_slice(&[kind, if last { FLAG_END } else { 0 }, 0, 0]);
    out.extend_from_slice(&page.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
}

/// Returns the longest run of zero words of a page, in bytes. Images omit it: a page that was just split is half empty.
pub fn longest_hole(image: &[u8; PAGE_BYTES]) -> std::ops::Range<usize> {
    let (mut best, mut start) = (0..0, 0);
    for (at, word) in image.chunks_exact(8).enumerate() {
        if word != [0; 8] {
            start = at + 1;
        } else if at + 1 - start > best.len() {
            best = start..at + 1;
        }
    }
    best.start * 8..best.end * 8
}

/// Encodes the position and length of the hole, in words, which precede the bytes of an image.
pub fn image_head(hole: &std::ops::Range<usize>) -> [u8; 8] {
    let word = (hole.start / 8) as u64 | (hole.len() as u64 / 8) << 16;
    word.to_le_bytes()
}

/// Returns the page that the body of an image record describes, `None` if its lengths are impossible.
pub fn unfold_image(body: &[u8]) -> Option<[u8; PAGE_BYTES]> {
    let (head, rest) = body.split_first_chunk::<8>()?;
    let head = u64::from_le_bytes(*head);
    let (start, len) = ((head & 0xFFFF) as usize * 8, (head >> 16) as usize * 8);
    if len > PAGE_BYTES || rest.len() != PAGE_BYTES - len || start > rest.len() {
        return None;
    }
    let mut image = [0; PAGE_BYTES];
    image[..start].copy_from_slice(&rest[..start]);
    image[start + len..].copy_from_slice(&rest[start..]);
    Some(image)
}

/// Returns the length of the record at the start of `bytes`; `None` if the header is incomplete, `Err` if it is not plausible.
pub fn length(bytes: &[u8]) -> Option<Result<usize, String>> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().expect("four bytes")) as usize;
    if length < HEADER_BYTES || !length.is_multiple_of(8) {
        return Some(Err(format!("record of length {length}")));
    }
    Some(Ok(length))
}

/// Returns true if the record at the start of `bytes` closes its mini-transaction.
pub fn closes(bytes: &[u8]) -> bool {
    bytes[5] & FLAG_END != 0
}

/// Decodes one whole record, all of `bytes`, of the mini-transaction at `start..end`.
pub fn decode(bytes: &[u8], start: Lsn, end: Lsn) -> Result<Record<'_>, String> {
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
    let (kind, flags, pad) = (bytes[4], bytes[5], bytes[6] as usize);
    let txn = (flags & FLAG_TXN != 0).then_some(());
    let head = HEADER_BYTES + if txn.is_some() { 8 } else { 0 };
    if flags & !(FLAG_END | FLAG_TXN) != 0 || bytes.len() < head + pad || kind == 0 || kind >= kind::END {
        return Err(format!("record of kind {kind:#x} with flags {flags:#x} and length {}", bytes.len()));
    }
    let record = Record {
        lsn_start: start,
        lsn_end: end,
        kind,
        page: Some(word(1)).filter(|page| *page != NO_PAGE),
        page_lsn_before: word(2),
        txn: txn.map(|()| word(3)),
        body: &bytes[head..bytes.len() - pad],
    };
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_restored_from_its_parts_without_the_hole() {
        let mut random = stdx::prng::Prng::new(1);
        for round in 0..if cfg!(miri) { 12 } else { 600usize } {
            let mut image = [0; PAGE_BYTES];
            random.fill(&mut image);
            // From no hole over holes at either end to an empty page; sometimes two holes, of which the longer one is omitted.
            let (from, words) = (random.below(512) as usize, [0, 1, 100, 512][round % 4]);
            let to = (from + words).min(512);
            image[from * 8..to * 8].fill(0);
            image[..round % 3 * 160].fill(0);
            let hole = longest_hole(&image);
            assert!(hole.len() >= (to - from) * 8 && image[hole.clone()].iter().all(|byte| *byte == 0));
            let body = [&image_head(&hole)[..], &image[..hole.start], &image[hole.end..]].concat();
            assert_eq!(body.len(), 8 + PAGE_BYTES - hole.len());
            assert_eq!(unfold_image(&body), Some(image));
            assert_eq!(unfold_image(&body[..body.len() - 1]), None);
        }
        assert_eq!(unfold_image(&[0xFF; 100]), None);
    }

    #[test]
    fn a_record_is_decoded_as_it_was_encoded() {
        for body_bytes in 0..40usize {
            for txn in [None, Some(77)] {
                let body: Vec<u8> = (0..body_bytes as u8).collect();
                let mut out = Vec::new();
                let flags =
                    encode(&mut out, kind::IMAGE, 9, 4096, txn, &[&body[..body_bytes / 2], &body[body_bytes / 2..]]);
                out[flags] |= FLAG_END;
                assert_eq!(length(&out).unwrap().unwrap(), out.len());
                let record = decode(&out, 5000, 6000).unwrap();
                assert!(closes(&out));
                assert_eq!((record.kind, record.page, record.txn), (kind::IMAGE, Some(9), txn));
                assert_eq!((record.lsn_start, record.lsn_end), (5000, 6000));
                assert_eq!(record.body, &body[..]);
            }
        }
    }

    #[test]
    fn garbage_is_rejected() {
        assert!(length(&[1, 0, 0]).is_none());
        assert!(length(&[7, 0, 0, 0]).unwrap().is_err());
        assert!(decode(&[0xff; 24], 0, 24).is_err());
        assert!(decode(&[0; 32], 0, 32).is_err());
    }
}
