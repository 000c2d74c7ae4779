//! Compression methods: which ones the server offers, which one a client has chosen, and the two libraries.
//!
//! A method keeps no state between frames: zstd's working memory depends on the length of one frame, so short frames take little memory and an idle connection
//! none.

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use sql_mysql::error::Result;

use crate::errors;
use crate::protocol::capability;

/// Of 1 to 9: a fast level.
const ZLIB_LEVEL: u8 = 3;
/// Levels beyond this one take hundreds of megabytes of memory for a frame.
const ZSTD_LEVEL_MOST: u8 = 19;
/// The levels that a client may ask for.
const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Zlib,
    Zstd(u8),
}

impl Method {
    /// Returns the method chosen by the handshake response, or `None` without compression. `allowed` is `protocol_compression_algorithms`. A client that names
    /// both methods gets zlib, as in MySQL.
    pub fn chosen(capabilities: u32, zstd_level: u8, allowed: &str) -> Result<Option<Method>> {
        let method = if capabilities & capability::COMPRESS != 0 {
            Some(Method::Zlib)
        } else if capabilities & capability::ZSTD != 0 {
            Some(Method::Zstd(zstd_level))
        } else {
            None
        };
        let name = method.map_or("uncompressed", Method::name);
        if !has(allowed, name) {
            return Err(errors::COMPRESSION_ALGORITHM.with(&[&name]));
        }
        if matches!(method, Some(Method::Zstd(level)) if !ZSTD_LEVELS.contains(&level)) {
            return Err(errors::COMPRESSION_LEVEL.with(&[&name]));
        }
        Ok(method)
    }

    pub fn name(self) -> &'static str {
        match self {
            Method::Zlib => "zlib",
            Method::Zstd(_) => "zstd",
        }
    }

    pub fn level(self) -> u8 {
        match self {
            Method::Zlib => ZLIB_LEVEL,
            Method::Zstd(level) => level,
        }
    }

    /// Compresses the bytes. Returns `None` if the result is not shorter.
    pub fn compressed_stream(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let compressed = match self {
            Method::Zlib => compress_to_vec_zlib(bytes, ZLIB_LEVEL),
            Method::Zstd(level) => zstd::bulk::compress(bytes, level.min(ZSTD_LEVEL_MOST).into()).ok()?,
        };
        (compressed.len() < bytes.len()).then_some(compressed)
    }

    /// Decompresses the bytes. Returns `None` if they are damaged or do not yield exactly `before` bytes; no more memory than that is allocated.
    pub fn open(self, bytes: &[u8], before: usize) -> Option<Vec<u8>> {
        let opened = match self {
            Method::Zlib => {
                // One block of the right size: a growing vector briefly holds its old block beside the new one.
                let mut opened = vec![0; before];
                let written = decompress_slice_iter_to_slice(&mut opened, std::iter::once(bytes), true, false).ok()?;
                opened.truncate(written);
                opened
            }
            Method::Zstd(_) => zstd::bulk::decompress(bytes, before).ok()?,
        };
        (opened.len() == before).then_some(opened)
    }
}

/// Returns the capability bits of the methods in `protocol_compression_algorithms`.
pub fn offered(allowed: &str) -> u32 {
    let bit = |name: &str, bit: u32| if has(allowed, name) { bit } else { 0 };
    bit("zlib", capability::COMPRESS) | bit("zstd", capability::ZSTD)
}

fn has(allowed: &str, name: &str) -> bool {
    allowed.split(',').any(|one| one.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "zlib,zstd,uncompressed";

    #[test]
    fn a_client_gets_what_it_names_if_the_server_lets_it() {
        let both = capability::COMPRESS | capability::ZSTD;
        assert_eq!(Method::chosen(0, 0, ALL), Ok(None));
        assert_eq!(Method::chosen(both, 0, ALL), Ok(Some(Method::Zlib)));
        assert_eq!(Method::chosen(capability::ZSTD, 22, ALL), Ok(Some(Method::Zstd(22))));
        for level in [0, 23, 255] {
            assert_eq!(Method::chosen(capability::ZSTD, level, ALL).unwrap_err().code, 3923);
        }
        assert_eq!(
            Method::chosen(capability::ZSTD, 3, "zlib").unwrap_err().message,
            "Invalid compression algorithm 'zstd'."
        );
        assert_eq!(Method::chosen(both, 3, "zstd,uncompressed").unwrap_err().code, 3922);
        assert_eq!(Method::chosen(0, 0, "ZSTD").unwrap_err().message, "Invalid compression algorithm 'uncompressed'.");
        assert_eq!(offered("uncompressed, Zstd"), capability::ZSTD);
    }

    #[test]
    fn a_bomb_takes_no_more_room_than_it_names() {
        let bytes = vec![b'x'; 4 << 20];
        for method in [Method::Zlib, Method::Zstd(3)] {
            let compressed = method.compressed_stream(&bytes).expect("shorter");
            assert!(compressed.len() < 10_000);
            for said in [0, 1, bytes.len() - 1, bytes.len() + 1] {
                assert_eq!(method.open(&compressed, said), None, "{method:?} {said}");
            }
            assert_eq!(method.open(&compressed, bytes.len()), Some(bytes.clone()));
            assert_eq!(method.open(&compressed[..compressed.len() - 1], bytes.len()), None);
        }
    }

    #[test]
    fn every_level_comes_back() {
        let bytes: Vec<u8> = (0..5000u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for level in ZSTD_LEVELS {
            let compressed = Method::Zstd(level).compressed_stream(&bytes).expect("shorter");
            assert_eq!(Method::Zstd(level).open(&compressed, bytes.len()).as_deref(), Some(&bytes[..]));
        }
    }
}
