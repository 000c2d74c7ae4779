//! Bytes of an unauthenticated client of the XRPC door: frames must be the same wherever the stream is cut, no longer than allowed, and a payload must be read or refused, never read beyond its end. The
//! first byte decides how large the pieces are and how frames are written, the second how long one may be.
#![no_main]

use door_xrpc::auth::Answer;
use door_xrpc::frame::{Cut, Mode, cut};
use door_xrpc::fuzzed::{DetectedProtocol, detect};
use door_xrpc::message::ask;
use door_xrpc::message::request::{
    AuthenticateContinue, AuthenticateStart, AutoSavepoint, ExecPlan, GetTso, KillSession, StmtExecute, TokenOffer,
    read_empty,
};
use libfuzzer_sys::fuzz_target;

/// Returns every frame, then the end of the stream.
fn meaning(input: &[u8], piece: usize, mode: Mode, length_max: usize) -> (Vec<(u64, u8, Vec<u8>)>, &'static str) {
    let (mut frames, mut gone, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = (end + piece).min(input.len());
        loop {
            match cut(&input[gone..end], mode, length_max) {
                Cut::Frame(frame) => {
                    assert!(frame.payload.len() < length_max && frame.size <= end - gone);
                    frames.push((frame.sid, frame.kind, frame.payload.to_vec()));
                    gone += frame.size;
                }
                Cut::More(wanted) => {
                    assert!(wanted > end - gone);
                    break;
                }
                Cut::TooLong(_) => return (frames, "too long"),
                Cut::Broken => return (frames, "broken"),
            }
        }
    }
    (frames, "")
}

/// Reads a payload as the message of its type; every field lies within it.
fn read(kind: u8, payload: &[u8]) {
    let lies_inside = |bytes: &[u8]| assert!(payload.as_ptr_range().contains(&bytes.as_ptr()) || bytes.is_empty());
    match kind {
        ask::EXECUTE_SQL => {
            if let Ok(request) = StmtExecute::read(payload) {
                request.statement.into_iter().chain(request.hint).for_each(lies_inside);
            }
        }
        ask::EXECUTE_PLAN => {
            if let Ok(request) = ExecPlan::read(payload) {
                request.plan_bytes.into_iter().chain(request.digest).for_each(lies_inside);
                assert_eq!(request.plan.is_some(), request.plan_bytes.is_some());
            }
        }
        ask::AUTHENTICATE_START => drop(AuthenticateStart::read(payload)),
        ask::AUTHENTICATE_CONTINUE => {
            if let Ok(AuthenticateContinue { auth_data }) = AuthenticateContinue::read(payload) {
                let _ = Answer::read(auth_data);
            }
        }
        ask::SESSION_KILL => drop(KillSession::read(payload)),
        ask::TOKEN_OFFER => drop(TokenOffer::read(payload)),
        ask::GET_TSO => drop(GetTso::read(payload)),
        ask::AUTO_SAVEPOINT => drop(AutoSavepoint::read(payload)),
        _ => drop(read_empty(payload)),
    }
}

fuzz_target!(|data: &[u8]| {
    let [piece, limit, input @ ..] = data else { return };
    let mode = if piece & 0x80 == 0 { Mode::Legacy } else { Mode::Galaxy(0) };
    let (piece, limit) = (usize::from(*piece & 0x7f) + 1, usize::from(*limit) * 16 + 1);
    let (frames, end) = meaning(input, piece, mode, limit);
    let whole = meaning(input, input.len().max(1), mode, limit);
    assert_eq!((&frames, end), (&whole.0, whole.1));
    frames.iter().for_each(|(_, kind, payload)| read(*kind, payload));
    // The detected protocol of a connection does not change with later bytes.
    let seen = detect(&input[..input.len().min(piece)], mode);
    if !matches!(seen, DetectedProtocol::Unclear) {
        assert_eq!(seen, detect(input, mode));
    }
});
