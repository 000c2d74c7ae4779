//! The end of what DUMP replies: a version and a checksum.

use crc::{Digest, Table};

use crate::VERSION_READ;
use crate::source::CRC;

/// Bytes of a payload behind the value.
pub const PAYLOAD_END: usize = 10;

/// Ends a payload, which so far has a type and a value that a version of RDB has.
pub fn end_payload(payload: &mut Vec<u8>, version: u16) {
    payload.extend(version.to_le_bytes());
    let checksum = CRC.checksum(payload);
    payload.extend(checksum.to_le_bytes());
}

/// The checksum of a payload that is written in pieces.
pub struct PayloadDigest(Digest<'static, u64, Table<16>>);

impl Default for PayloadDigest {
    fn default() -> Self {
        PayloadDigest(CRC.digest())
    }
}

impl PayloadDigest {
    /// Takes the next bytes of the type and the value.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the end of the payload.
    pub fn end(mut self, version: u16) -> [u8; PAYLOAD_END] {
        let version = version.to_le_bytes();
        self.0.update(&version);
        let mut end = [0; PAYLOAD_END];
        end[..2].copy_from_slice(&version);
        end[2..].copy_from_slice(&self.0.finalize().to_le_bytes());
        end
    }
}

/// Returns the type and the value of a payload, or `None` if its version is newer than what is read, or its checksum is not that of its bytes.
pub fn check_payload(payload: &[u8]) -> Option<(u8, &[u8])> {
    let (body, end) = payload.split_at_checked(payload.len().checked_sub(PAYLOAD_END)?)?;
    let (version, checksum) = end.split_first_chunk::<2>()?;
    let checksum = u64::from_le_bytes(checksum.try_into().ok()?);
    let is_valid = checksum == CRC.checksum(&payload[..payload.len() - 8]);
    if u16::from_le_bytes(*version) > VERSION_READ || !is_valid {
        return None;
    }
    body.split_first().map(|(number, value)| (*number, value))
}

/// Returns the version of RDB that a payload says it has.
pub fn payload_version(payload: &[u8]) -> Option<u16> {
    let end = &payload[payload.len().checked_sub(PAYLOAD_END)?..];
    end.first_chunk::<2>().map(|version| u16::from_le_bytes(*version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VERSION_WRITTEN;

    #[test]
    fn a_payload_of_redis_is_accepted_and_each_damaged_byte_refused() {
        // redis-server 7.0.15: SET k hello, DUMP k.
        let known = b"\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a";
        let mut payload = known[..7].to_vec();
        end_payload(&mut payload, VERSION_WRITTEN);
        assert_eq!(payload, known);
        assert_eq!(check_payload(&payload), Some((0, &b"\x05hello"[..])));
        for at in 0..payload.len() {
            payload[at] ^= 4;
            assert_eq!(check_payload(&payload), None, "{at}");
            payload[at] ^= 4;
        }
    }
}
