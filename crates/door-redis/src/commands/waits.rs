//! Arguments of commands that wait, for `list_wait`, `sorted_wait` and those of streams.

use crate::call::Call;
use crate::extended::Extended;
use crate::number;

/// Returns the keys of a wait, which outlives its request.
pub(crate) fn owned(keys: &[&[u8]]) -> Vec<Box<[u8]>> {
    keys.iter().map(|key| Box::from(*key)).collect()
}

/// Returns a time to wait in milliseconds, rounded up; 0 means for ever. Replies with Redis' error if the argument is none.
pub(crate) fn timeout(call: &mut Call<'_>, at: usize) -> Option<u64> {
    let Some(seconds) = Extended::parse(call.args[at]) else {
        call.reply.error("ERR timeout is not a float or out of range");
        return None;
    };
    let milliseconds = (seconds.to_f64() * 1000.0).ceil();
    // A time that does not fit into a C integer is negative to Redis.
    if milliseconds < 0.0 || milliseconds > i64::MAX as f64 {
        call.reply.error("ERR timeout is negative");
        return None;
    }
    Some(milliseconds as u64)
}

/// Returns a time to wait that is given in milliseconds; 0 means for ever. Replies with Redis' error if the argument is none.
pub(crate) fn milliseconds(call: &mut Call<'_>, at: usize) -> Option<u64> {
    let error = match number::parse(call.args[at]) {
        None => "ERR timeout is not an integer or out of range",
        Some(given) if given < 0 => "ERR timeout is negative",
        Some(given) => return Some(given as u64),
    };
    call.reply.error(error);
    None
}
