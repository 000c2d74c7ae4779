//! A client's packets before its login: the handshake response, and COM_CHANGE_USER. Every field that is read lies within the input, in order.
#![no_main]

use door_mysql::fuzzed::{HandshakeResponse, FirstPacket, read_change_user, read_first};
use libfuzzer_sys::fuzz_target;

fn look(input: &[u8], answer: &HandshakeResponse<'_>) {
    let parts = [answer.user, answer.response, answer.database, answer.plugin];
    let attributes: usize = answer.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(parts.iter().map(|part| part.len()).sum::<usize>() + attributes <= input.len());
}

fuzz_target!(|data: &[u8]| {
    let Some((capabilities, rest)) = data.split_first_chunk::<4>() else { return };
    let capabilities = u32::from_le_bytes(*capabilities);
    if let Some(FirstPacket::HandshakeResponse(answer)) = read_first(data, capabilities) {
        assert_eq!(answer.capabilities & !capabilities, 0);
        look(data, &answer);
    }
    if let Some(answer) = read_change_user(rest, capabilities) {
        look(rest, &answer);
    }
});
