//! An RDB file: a head, then keys with their databases and times, an end, and a checksum.

use std::io::Read;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::value::{Event, Kind, read_value};
use crate::{VERSION_READ, types};

pub(crate) const MAGIC: &[u8; 5] = b"REDIS";
/// The first version whose files end in a checksum.
const FIRST_WITH_CHECKSUM: u16 = 5;

const SLOT_INFO: u8 = 244;
pub(crate) const FUNCTION: u8 = 245;
const FUNCTION_RC: u8 = 246;
const MODULE_AUX: u8 = 247;
const IDLE: u8 = 248;
const FREQUENCY: u8 = 249;
pub(crate) const AUX: u8 = 250;
pub(crate) const SIZES: u8 = 251;
pub(crate) const EXPIRES_MS: u8 = 252;
const EXPIRES: u8 = 253;
pub(crate) const DATABASE: u8 = 254;
pub(crate) const END: u8 = 255;

/// A key of a file, in front of its value.
#[derive(Debug, PartialEq, Eq)]
pub struct FileKey<'a> {
    pub database: u64,
    pub key: &'a [u8],
    pub expires_at_ms: Option<u64>,
}

/// A part of a file.
#[derive(Debug, PartialEq)]
pub enum FileEvent<'a> {
    /// A fact about the file, such as `redis-ver`.
    Fact(&'a [u8], &'a [u8]),
    /// A library of functions, as text.
    Function(&'a [u8]),
    Key(FileKey<'a>),
    /// A part of the last key's value.
    Value(Event<'a>),
    /// Behind the last part of a key's value.
    KeyEnd(Kind),
}

/// Reads a whole file and hands its parts to `emit`, in order. `emit` also gets the number of bytes read, for showing progress. The checksum is known at the
/// end alone, so nothing may be stored for good before this returns (RD-3).
pub fn read_file<R: Read, E: From<Error>>(
    input: R,
    emit: &mut dyn FnMut(FileEvent<'_>, u64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut source = Source::of_file(input);
    let version = read_head(&mut source)?;
    let mut database = 0;
    let mut expires_at_ms = None;
    loop {
        match source.byte()? {
            END => break,
            DATABASE => database = source.length()?,
            EXPIRES_MS => expires_at_ms = Some(source.time()?),
            EXPIRES => expires_at_ms = Some(u64::from(u32::from_le_bytes(source.array()?)) * 1000),
            SIZES => skip_lengths(&mut source, 2)?,
            SLOT_INFO => skip_lengths(&mut source, 3)?,
            IDLE => skip_lengths(&mut source, 1)?,
            FREQUENCY => drop(source.byte()?),
            AUX => {
                let name = source.string()?;
                let value = source.string()?;
                emit(FileEvent::Fact(&name, &value), source.at())?;
            }
            FUNCTION => {
                let text = source.string()?;
                emit(FileEvent::Function(&text), source.at())?;
            }
            number @ (FUNCTION_RC | MODULE_AUX) => return Err(source.unsupported("the record", number).into()),
            number => {
                let key = source.string()?;
                let head = FileKey { database, key: &key, expires_at_ms: expires_at_ms.take() };
                emit(FileEvent::Key(head), source.at())?;
                let mut at = source.at();
                let kind = read_value(&mut source, number, &mut |event| emit(FileEvent::Value(event), at))?;
                at = source.at();
                emit(FileEvent::KeyEnd(kind), at)?;
            }
        }
    }
    if version >= FIRST_WITH_CHECKSUM {
        let computed = source.checksum();
        let written = u64::from_le_bytes(source.array()?);
        if written != 0 && written != computed {
            return Err(source.bad("the checksum of the file is wrong").into());
        }
    }
    Ok(())
}

fn read_head<R: Read>(source: &mut Source<R>) -> Result<u16> {
    let head: [u8; 9] = source.array()?;
    let digits = std::str::from_utf8(&head[5..]).ok().and_then(|digits| digits.parse().ok());
    match digits {
        Some(version) if head.starts_with(MAGIC) && (1..=VERSION_READ).contains(&version) => Ok(version),
        Some(_) if head.starts_with(MAGIC) => Err(source.bad("the file's version is newer than those that are read")),
        _ => Err(source.bad("this is no RDB file: it does not begin with REDIS and a version")),
    }
}

fn skip_lengths<R: Read>(source: &mut Source<R>, count: usize) -> Result<()> {
    (0..count).try_for_each(|_| source.length().map(drop))
}

const _: () = assert!(types::HASH_LISTPACK_TIMES < SLOT_INFO, "types and records share a byte");
