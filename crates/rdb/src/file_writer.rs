//! Writes an RDB file, piece by piece, and its checksum.
//!
//! Hard part: the version stands at the beginning, and a hash of which fields expire needs a later one than everything else. The file begins with the earlier
//! version, and the checksum is computed for both. A caller that ends it with the later one writes `file_head` over its beginning.

use std::io::{Result, Write};

use crc::{Digest, Table};

use crate::file::{AUX, DATABASE, END, EXPIRES_MS, FUNCTION, MAGIC, SIZES};
use crate::source::CRC;
use crate::write::{write_length, write_string, write_time};
use crate::{VERSION_OF_TIMES, VERSION_WRITTEN};

/// Returns the beginning of a file.
pub fn file_head(version: u16) -> [u8; 9] {
    let mut head = [0; 9];
    head[..5].copy_from_slice(MAGIC);
    head[5..].copy_from_slice(format!("{version:04}").as_bytes());
    head
}

/// A file that is being written. Values are written by the caller, as bytes.
pub struct FileWriter<W> {
    out: W,
    /// The checksums of a file of `VERSION_WRITTEN` and of `VERSION_OF_TIMES`.
    digest: Digest<'static, u64, Table<16>>,
    digest_of_times: Digest<'static, u64, Table<16>>,
    piece: Vec<u8>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file of `VERSION_WRITTEN`.
    pub fn begin(mut out: W) -> Result<FileWriter<W>> {
        let head = file_head(VERSION_WRITTEN);
        out.write_all(&head)?;
        let (mut digest, mut digest_of_times) = (CRC.digest(), CRC.digest());
        digest.update(&head);
        digest_of_times.update(&file_head(VERSION_OF_TIMES));
        Ok(FileWriter { out, digest, digest_of_times, piece: Vec::new() })
    }

    /// Appends bytes: values, or parts of one.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.digest.update(bytes);
        self.digest_of_times.update(bytes);
        self.out.write_all(bytes)
    }

    fn put_piece(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut piece = std::mem::take(&mut self.piece);
        piece.clear();
        fill(&mut piece);
        let done = self.put(&piece);
        self.piece = piece;
        done
    }

    /// Writes a fact about the file.
    pub fn fact(&mut self, name: &str, value: &str) -> Result<()> {
        self.put_piece(|piece| {
            piece.push(AUX);
            write_string(piece, name.as_bytes());
            write_string(piece, value.as_bytes());
        })
    }

    /// Writes a library of functions.
    pub fn function(&mut self, text: &[u8]) -> Result<()> {
        self.put_piece(|piece| {
            piece.push(FUNCTION);
            write_string(piece, text);
        })
    }

    /// Begins the keys of a database. The numbers of keys, and of those that expire, are hints.
    pub fn database(&mut self, number: u8, keys: u64, expires: u64) -> Result<()> {
        self.put_piece(|piece| {
            piece.push(DATABASE);
            write_length(piece, number.into());
            piece.push(SIZES);
            write_length(piece, keys);
            write_length(piece, expires);
        })
    }

    /// Writes the time of the next key, whose type follows.
    pub fn expires_at(&mut self, time_ms: u64) -> Result<()> {
        self.put_piece(|piece| {
            piece.push(EXPIRES_MS);
            write_time(piece, time_ms);
        })
    }

    /// Ends a file of `version`, one of the two.
    pub fn end(mut self, version: u16) -> Result<W> {
        self.put(&[END])?;
        let digest = match version {
            VERSION_OF_TIMES => self.digest_of_times,
            _ => self.digest,
        };
        self.out.write_all(&digest.finalize().to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, FileEvent, read_file, types};

    #[test]
    fn a_file_of_each_version_is_read_as_written() {
        for version in [VERSION_WRITTEN, VERSION_OF_TIMES] {
            let mut file = FileWriter::begin(Vec::new()).expect("memory");
            file.fact("redis-bits", "64").expect("memory");
            file.function(b"#!lua name=l").expect("memory");
            file.database(3, 1, 1).expect("memory");
            file.expires_at(77).expect("memory");
            file.put(&[types::STRING, 1, b'k', 1, b'v']).expect("memory");
            let mut bytes = file.end(version).expect("memory");
            bytes[..9].copy_from_slice(&file_head(version));
            let mut found = Vec::new();
            let read = read_file::<_, Error>(&bytes[..], &mut |event, _| {
                found.push(match event {
                    FileEvent::Fact(name, value) => format!("{name:?} {value:?}"),
                    FileEvent::Function(text) => format!("{text:?}"),
                    FileEvent::Key(key) => format!("{} {:?} {:?}", key.database, key.key, key.expires_at_ms),
                    FileEvent::Value(_) | FileEvent::KeyEnd(_) => return Ok(()),
                });
                Ok(())
            });
            read.expect("its checksum is right");
            let expected = [
                format!("{:?} {:?}", b"redis-bits", b"64"),
                format!("{:?}", b"#!lua name=l"),
                format!("3 {:?} Some(77)", b"k"),
            ];
            assert_eq!(found, expected);
            bytes[12] ^= 1;
            assert!(read_file::<_, Error>(&bytes[..], &mut |_, _| Ok(())).is_err());
        }
    }
}
