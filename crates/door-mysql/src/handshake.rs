//! The packets before the first command: the server's greeting, the client's handshake response, a request for TLS, and COM_CHANGE_USER.

use crate::protocol::{SCRAMBLE_LEN, capability};
use crate::wire::Reader;

/// The version that MySQL clients see, also in `SELECT VERSION()`; `@@version_comment` names the product.
pub const VERSION: &str = "8.0.40-beluga";

/// Appends the payload of the server's first packet.
pub fn put_greeting(
    out: &mut Vec<u8>,
    connection_id: u32,
    scramble: &[u8; SCRAMBLE_LEN],
    capabilities: u32,
    (collation, status): (u8, u16),
) {
    out.push(10);
    out.extend_from_slice(VERSION.as_bytes());
    out.push(0);
    out.extend_from_slice(&connection_id.to_le_bytes());
    out.extend_from_slice(&scramble[..8]);
    out.push(0);
    let [low_a, low_b, high_a, high_b] = capabilities.to_le_bytes();
    out.extend_from_slice(&[low_a, low_b, collation]);
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&[high_a, high_b, SCRAMBLE_LEN as u8 + 1]);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&scramble[8..]);
    out.push(0);
    out.extend_from_slice(crate::auth::OFFERED.name().as_bytes());
    out.push(0);
}

/// A client's handshake response, or its COM_CHANGE_USER.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    pub capabilities: u32,
    pub collation: u16,
    pub user: &'a [u8],
    pub response: &'a [u8],
    pub database: &'a [u8],
    /// The authentication method of `response`; empty if the client does not know methods.
    pub plugin: &'a [u8],
    /// The client's connection attributes.
    pub attributes: Vec<(&'a [u8], &'a [u8])>,
    /// The level for zstd; 0 if the client names none.
    pub zstd_level: u8,
}

/// The client's first packet.
#[derive(Debug, PartialEq, Eq)]
pub enum FirstPacket<'a> {
    /// A request for TLS; the handshake response follows inside TLS.
    Tls,
    HandshakeResponse(HandshakeResponse<'a>),
}

/// Reads the client's first packet. Returns `None` if it is malformed or of the protocol before version 4.1.
pub fn read_first(payload: &[u8], offered: u32) -> Option<FirstPacket<'_>> {
    let mut reader = Reader(payload);
    let capabilities = reader.u32()?;
    if capabilities & capability::PROTOCOL_41 == 0 {
        return None;
    }
    let capabilities = capabilities & offered;
    reader.u32()?;
    let collation = u16::from(reader.u8()?);
    reader.bytes(23)?;
    if reader.is_empty() {
        return (capabilities & capability::SSL != 0).then_some(FirstPacket::Tls);
    }
    let has = |capability: u32| capabilities & capability != 0;
    let user = reader.terminated()?;
    let response = if has(capability::PLUGIN_AUTH_LENENC) {
        reader.measured()?
    } else if has(capability::SECURE_CONNECTION) {
        let length = reader.u8()?;
        reader.bytes(length.into())?
    } else {
        reader.terminated()?
    };
    let database = if has(capability::CONNECT_WITH_DB) { reader.terminated_or_rest() } else { b"" };
    let plugin = if has(capability::PLUGIN_AUTH) { reader.terminated_or_rest() } else { b"" };
    let attributes = if has(capability::CONNECT_ATTRS) { read_attributes(&mut reader)? } else { Vec::new() };
    let zstd_level = if has(capability::ZSTD) { reader.u8().unwrap_or(0) } else { 0 };
    Some(FirstPacket::HandshakeResponse(HandshakeResponse {
        capabilities,
        collation,
        user,
        response,
        database,
        plugin,
        attributes,
        zstd_level,
    }))
}

/// Reads COM_CHANGE_USER behind its command byte. `capabilities` are those of the connection.
pub fn read_change_user(payload: &[u8], capabilities: u32) -> Option<HandshakeResponse<'_>> {
    let mut reader = Reader(payload);
    let has = |capability: u32| capabilities & capability != 0;
    let user = reader.terminated()?;
    let response = if has(capability::SECURE_CONNECTION) {
        let length = reader.u8()?;
        reader.bytes(length.into())?
    } else {
        reader.terminated()?
    };
    let database = reader.terminated_or_rest();
    let collation = if reader.is_empty() { 0 } else { reader.u16()? };
    let named = has(capability::PLUGIN_AUTH) && !reader.is_empty();
    let plugin = if named { reader.terminated_or_rest() } else { b"" };
    let attributes = if has(capability::CONNECT_ATTRS) { read_attributes(&mut reader)? } else { Vec::new() };
    Some(HandshakeResponse { capabilities, collation, user, response, database, plugin, attributes, zstd_level: 0 })
}

fn read_attributes<'a>(reader: &mut Reader<'a>) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    if reader.is_empty() {
        return Some(Vec::new());
    }
    let mut all = Reader(reader.measured()?);
    let mut attributes = Vec::new();
    while !all.is_empty() {
        attributes.push((all.measured()?, all.measured()?));
    }
    Some(attributes)
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;
    use crate::wire::put_bytes;

    const OFFERED: u32 = capability::OFFERED | capability::SSL;

    fn answer(capabilities: u32) -> Vec<u8> {
        let mut bytes = capabilities.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 1, 45]);
        bytes.extend_from_slice(&[0; 23]);
        bytes.extend_from_slice(b"ann\0");
        put_bytes(&mut bytes, &[7; 20]);
        bytes.extend_from_slice(b"shop\0mysql_native_password\0");
        let mut attributes = Vec::new();
        put_bytes(&mut attributes, b"_os");
        put_bytes(&mut attributes, b"Linux");
        put_bytes(&mut bytes, &attributes);
        bytes.push(7);
        bytes
    }

    #[test]
    fn a_greeting_has_the_layout_of_version_ten() {
        let mut out = Vec::new();
        put_greeting(&mut out, 0x01020304, b"abcdefghijklmnopqrst", 0x8182_8384, (255, 2));
        let head = VERSION.len() + 2;
        assert_eq!((out[0], out[head - 1]), (10, 0));
        assert_eq!(out[head..head + 4], [4, 3, 2, 1]);
        assert_eq!(&out[head + 4..head + 13], b"abcdefgh\0");
        assert_eq!(out[head + 13..head + 21], [0x84, 0x83, 255, 2, 0, 0x82, 0x81, 21]);
        assert_eq!(&out[head + 31..], b"ijklmnopqrst\0caching_sha2_password\0");
    }

    #[test]
    fn an_answer_is_read_as_its_capabilities_say() {
        let bytes = answer(OFFERED);
        let Some(FirstPacket::HandshakeResponse(read)) = read_first(&bytes, OFFERED) else { panic!("refused") };
        assert_eq!((read.user, read.response, read.database), (&b"ann"[..], &[7; 20][..], &b"shop"[..]));
        assert_eq!((read.plugin, read.collation), (&b"mysql_native_password"[..], 45));
        assert_eq!(read.attributes, [(&b"_os"[..], &b"Linux"[..])]);
        assert_eq!(read.zstd_level, 7);
        let lean = answer(capability::PROTOCOL_41 | capability::SECURE_CONNECTION);
        let Some(FirstPacket::HandshakeResponse(read)) = read_first(&lean, OFFERED) else { panic!("refused") };
        assert_eq!((read.user, read.response, read.plugin), (&b"ann"[..], &[7; 20][..], &b""[..]));
    }

    #[test]
    fn a_request_for_tls_is_one_only_where_tls_is_offered() {
        let bytes = &answer(OFFERED)[..32];
        assert_eq!(read_first(bytes, OFFERED), Some(FirstPacket::Tls));
        assert_eq!(read_first(bytes, capability::OFFERED), None);
    }

    #[test]
    fn cut_and_damaged_answers_are_refused_or_read_but_never_stumbled_over() {
        let seed = 20261121;
        let mut random = Prng::new(seed);
        let whole = answer(OFFERED);
        for length in 0..whole.len() {
            let _ = read_first(&whole[..length], OFFERED);
        }
        for _ in 0..50_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(random.below(1 + bytes.len() as u64) as usize);
            let _ = read_first(&bytes, OFFERED);
            let _ = read_change_user(&bytes, random.next_u64() as u32);
        }
    }
}
