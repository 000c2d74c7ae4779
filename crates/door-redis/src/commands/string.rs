//! Strings: SET and its relatives, counters, ranges.

use engine::{Expire, Form, KeyTransaction, Kind, event_class};

use crate::call::{Call, Result};
use crate::commands::{Fetched, delete, fetch, lookup, missed, set_expire};
use crate::errors;
use crate::extended::Extended;
use crate::number;

/// The default of proto-max-bulk-len, Redis' limit for a value.
const LENGTH_MAX: u64 = 512 << 20;

pub fn get(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_value(txn, call, call.args[1])
}

fn reply_value(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, key: &[u8]) -> Result {
    match lookup(txn, call, key)? {
        None => {}
        Some(None) => call.reply.null(),
        Some(Some(entry)) => call.bulk_value(txn, &entry, 0..entry.len)?,
    }
    Ok(())
}

pub fn mget(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    call.reply.array(call.args.len() - 1);
    for key in &call.args[1..] {
        txn.check_for_interrupts()?;
        match txn.get(call.db, key)?.filter(|entry| entry.kind == Kind::String) {
            Some(entry) => call.bulk_value(txn, &entry, 0..entry.len)?,
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub fn strlen(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = lookup(txn, call, call.args[1])? {
        call.reply.integer(found.map_or(0, |entry| entry.len as i64));
    }
    Ok(())
}

/// Returns the unit of an expiry option: milliseconds per unit, and whether it counts from now.
#[derive(Clone, Copy, PartialEq)]
struct TimeUnit {
    scale: i64,
    relative: bool,
}

/// Returns the absolute time of an expiry option. Returns None after an error reply.
fn expire_at(txn: &KeyTransaction<'_>, call: &mut Call<'_>, at: usize, time: TimeUnit) -> Option<u64> {
    let value = call.integer(at)?;
    let name = call.command.name;
    let invalid = errors::invalid_expire(name);
    let scaled = if value <= 0 { None } else { value.checked_mul(time.scale) };
    let base = if time.relative { txn.now_ms() as i64 } else { 0 };
    match scaled.and_then(|scaled| scaled.checked_add(base)) {
        Some(ms) => Some(ms as u64),
        None => {
            call.reply.error(&invalid);
            None
        }
    }
}

fn time_option(word: &[u8]) -> Option<TimeUnit> {
    Some(match word.to_ascii_lowercase().as_slice() {
        b"ex" => TimeUnit { scale: 1000, relative: true },
        b"px" => TimeUnit { scale: 1, relative: true },
        b"exat" => TimeUnit { scale: 1000, relative: false },
        b"pxat" => TimeUnit { scale: 1, relative: false },
        _ => return None,
    })
}

#[derive(Default)]
struct SetOptions {
    nx: bool,
    xx: bool,
    get: bool,
    keep: bool,
    time: Option<(TimeUnit, usize)>,
}

/// Parses the options of SET. Returns None on a syntax error.
fn set_options(call: &Call<'_>) -> Option<SetOptions> {
    let mut options = SetOptions::default();
    let mut at = 3;
    while at < call.args.len() {
        if call.word(at, "nx") && !options.xx {
            options.nx = true;
        } else if call.word(at, "xx") && !options.nx {
            options.xx = true;
        } else if call.word(at, "get") {
            options.get = true;
        } else if call.word(at, "keepttl") && options.time.is_none() {
            options.keep = true;
        } else if let Some(time) = time_option(call.args[at])
            && !options.keep
            // An option may be given twice. The last one counts.
            && options.time.is_none_or(|(earlier, _)| earlier == time)
            && at + 1 < call.args.len()
        {
            options.time = Some((time, at + 1));
            at += 1;
        } else {
            return None;
        }
        at += 1;
    }
    Some(options)
}

pub fn set(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(options) = set_options(call) else {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    };
    let expire = match options.time {
        None if options.keep => Expire::Keep,
        None => Expire::None,
        Some((time, at)) => match expire_at(txn, call, at, time) {
            Some(ms) => Expire::At(ms),
            None => return Ok(()),
        },
    };
    let key = call.args[1];
    let mut old = None;
    let exists = if options.get {
        match fetch(txn, call, key)? {
            Fetched::WrongType => {
                call.reply.error(errors::WRONG_TYPE);
                return Ok(());
            }
            Fetched::Missing => {
                missed(txn, call, key);
                false
            }
            Fetched::Bytes(bytes) => {
                old = Some(bytes);
                true
            }
        }
    } else if options.nx || options.xx {
        txn.peek(call.db, key)?.is_some()
    } else {
        false
    };
    let refused = options.nx && exists || options.xx && !exists;
    if !refused {
        put_or_expire(txn, call, key, call.args[2], expire)?;
    }
    match old {
        Some(bytes) => call.reply.bulk(&bytes),
        None if options.get || refused => call.reply.null(),
        None => call.reply.ok(),
    }
    Ok(())
}

/// A time in the past deletes the key instead. Redis sets it, notifies of that, and removes it afterwards.
fn put_or_expire(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8], value: &[u8], expire: Expire) -> Result {
    match expire {
        Expire::At(ms) if txn.is_over(ms) => {
            if !txn.delete(call.db, key)? {
                txn.notify(call.db, key, event_class::NEW, "new");
            }
            txn.notify_set(call.db, key, expire);
            txn.notify(call.db, key, event_class::EXPIRED, "expired");
            Ok(())
        }
        expire => put(txn, call, key, value, expire),
    }
}

/// Stores a string as SET does, and notifies of it.
fn put(txn: &mut KeyTransaction<'_>, call: &Call<'_>, key: &[u8], value: &[u8], expire: Expire) -> Result {
    txn.put_string(call.db, key, value, expire)?;
    txn.notify_set(call.db, key, expire);
    Ok(())
}

/// Notifies of a change of the string that the first argument names.
fn changed(txn: &mut KeyTransaction<'_>, call: &Call<'_>, event: &'static str) {
    txn.notify(call.db, call.args[1], event_class::STRING, event);
}

fn set_with(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, scale: i64) -> Result {
    if let Some(ms) = expire_at(txn, call, 2, TimeUnit { scale, relative: true }) {
        put_or_expire(txn, call, call.args[1], call.args[3], Expire::At(ms))?;
        call.reply.ok();
    }
    Ok(())
}

pub fn setex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_with(txn, call, 1000)
}

pub fn psetex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_with(txn, call, 1)
}

pub fn setnx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let free = txn.peek(call.db, call.args[1])?.is_none();
    if free {
        put(txn, call, call.args[1], call.args[2], Expire::None)?;
    }
    call.reply.flag(free);
    Ok(())
}

fn put_pairs(txn: &mut KeyTransaction<'_>, call: &Call<'_>) -> Result {
    for pair in call.args[1..].chunks_exact(2) {
        put(txn, call, pair[0], pair[1], Expire::None)?;
    }
    Ok(())
}

pub fn mset(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if call.args.len().is_multiple_of(2) {
        call.reply.error(&errors::wrong_arity("mset"));
        return Ok(());
    }
    put_pairs(txn, call)?;
    call.reply.ok();
    Ok(())
}

pub fn msetnx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if call.args.len().is_multiple_of(2) {
        call.reply.error(&errors::wrong_arity("msetnx"));
        return Ok(());
    }
    for pair in call.args[1..].chunks_exact(2) {
        if txn.peek(call.db, pair[0])?.is_some() {
            call.reply.flag(false);
            return Ok(());
        }
    }
    put_pairs(txn, call)?;
    call.reply.flag(true);
    Ok(())
}

pub fn getset(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match lookup(txn, call, call.args[1])? {
        None => return Ok(()),
        Some(None) => {
            missed(txn, call, call.args[1]);
            call.reply.null();
        }
        Some(Some(entry)) => call.bulk_value(txn, &entry, 0..entry.len)?,
    }
    put(txn, call, call.args[1], call.args[2], Expire::None)
}

pub fn getdel(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match lookup(txn, call, call.args[1])? {
        None => {}
        Some(None) => {
            missed(txn, call, call.args[1]);
            call.reply.null();
        }
        Some(Some(entry)) => {
            call.bulk_value(txn, &entry, 0..entry.len)?;
            delete(txn, call, call.args[1])?;
        }
    }
    Ok(())
}

pub fn getex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (mut persist, mut time, mut at) = (false, None, 2);
    while at < call.args.len() {
        let free = !persist && time.is_none();
        if call.word(at, "persist") && free {
            persist = true;
        } else if let Some(time_unit) = time_option(call.args[at])
            && free
            && at + 1 < call.args.len()
        {
            time = Some((time_unit, at + 1));
            at += 1;
        } else {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        at += 1;
    }
    let bytes = match fetch(txn, call, call.args[1])? {
        Fetched::Missing => {
            missed(txn, call, call.args[1]);
            call.reply.null();
            return Ok(());
        }
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Bytes(bytes) => bytes,
    };
    if let Some((time, at)) = time {
        let Some(ms) = expire_at(txn, call, at, time) else { return Ok(()) };
        if txn.is_over(ms) {
            delete(txn, call, call.args[1])?;
        } else {
            set_expire(txn, call, call.args[1], Some(ms))?;
        }
    } else if persist && txn.peek(call.db, call.args[1])?.is_some_and(|entry| entry.expire_at_ms.is_some()) {
        set_expire(txn, call, call.args[1], None)?;
    }
    call.reply.bulk(&bytes);
    Ok(())
}

/// Applies Redis' rules for ranges: negative positions count from the end, then the range is clamped. Returns None if it is empty.
pub(crate) fn clamp_range(mut start: i64, mut end: i64, len: i64) -> Option<(i64, i64)> {
    if start < 0 && end < 0 && start > end {
        return None;
    }
    if start < 0 {
        start += len;
    }
    if end < 0 {
        end += len;
    }
    (start, end) = (start.max(0), end.max(0).min(len - 1));
    (len > 0 && start <= end).then_some((start, end))
}

pub fn getrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(start) = call.integer(2) else { return Ok(()) };
    let Some(end) = call.integer(3) else { return Ok(()) };
    let Some(found) = lookup(txn, call, call.args[1])? else { return Ok(()) };
    match found.and_then(|entry| clamp_range(start, end, entry.len as i64).map(|range| (entry, range))) {
        Some((entry, (start, end))) => call.bulk_value(txn, &entry, start as u64..end as u64 + 1),
        None => {
            call.reply.bulk(b"");
            Ok(())
        }
    }
}

pub fn setrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(offset) = call.integer(2) else { return Ok(()) };
    if offset < 0 {
        call.reply.error("ERR offset is out of range");
        return Ok(());
    }
    let value = call.args[3];
    let Some(found) = lookup(txn, call, call.args[1])? else { return Ok(()) };
    let len = found.map_or(0, |entry| entry.len);
    if value.is_empty() {
        call.reply.integer(len as i64);
    } else if (offset as u64).checked_add(value.len() as u64).is_none_or(|end| end > LENGTH_MAX) {
        call.reply.error(errors::TOO_LONG);
    } else {
        let len = txn.patch_string(call.db, call.args[1], offset as u64, value)?;
        changed(txn, call, "setrange");
        call.reply.integer(len as i64);
    }
    Ok(())
}

pub fn append(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup(txn, call, call.args[1])? else { return Ok(()) };
    let (key, value) = (call.args[1], call.args[2]);
    let len = match found {
        // A new key is created as by SET.
        None => {
            txn.put_string(call.db, key, value, Expire::None)?;
            value.len() as u64
        }
        Some(entry) if entry.len + value.len() as u64 > LENGTH_MAX => {
            call.reply.error(errors::TOO_LONG);
            return Ok(());
        }
        // Appending nothing still makes the value raw and counts as a change.
        Some(entry) if value.is_empty() => {
            txn.make_raw(call.db, key)?;
            txn.touch(call.db, key)?;
            entry.len
        }
        Some(entry) => txn.patch_string(call.db, key, entry.len, value)?,
    };
    changed(txn, call, "append");
    call.reply.integer(len as i64);
    Ok(())
}

fn add(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, amount: i64) -> Result {
    let old = match fetch(txn, call, call.args[1])? {
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Missing => Some(0),
        Fetched::Bytes(bytes) => number::parse(&bytes),
    };
    let Some(old) = old else {
        call.reply.error(errors::NOT_INTEGER);
        return Ok(());
    };
    let Some(new) = old.checked_add(amount) else {
        call.reply.error(errors::OVERFLOW);
        return Ok(());
    };
    let mut room = [0; 20];
    txn.put_string(call.db, call.args[1], number::print(new, &mut room), Expire::Keep)?;
    changed(txn, call, "incrby");
    call.reply.integer(new);
    Ok(())
}

pub fn incr(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    add(txn, call, 1)
}

pub fn decr(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    add(txn, call, -1)
}

pub fn incrby(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match call.integer(2) {
        Some(amount) => add(txn, call, amount),
        None => Ok(()),
    }
}

pub fn decrby(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match call.integer(2) {
        Some(i64::MIN) => {
            call.reply.error("ERR decrement would overflow");
            Ok(())
        }
        Some(amount) => add(txn, call, -amount),
        None => Ok(()),
    }
}

pub fn incrbyfloat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let old = match fetch(txn, call, call.args[1])? {
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Missing => Extended::parse(b"0"),
        Fetched::Bytes(bytes) => Extended::parse(&bytes),
    };
    let (Some(old), Some(amount)) = (old, Extended::parse(call.args[2])) else {
        call.reply.error(errors::NOT_FLOAT);
        return Ok(());
    };
    let sum = old.plus(amount);
    if old.is_infinite() || amount.is_infinite() || sum.is_infinite() {
        call.reply.error("ERR increment would produce NaN or Infinity");
        return Ok(());
    }
    let mut text = Vec::new();
    sum.print(&mut text);
    txn.put_string_as(call.db, call.args[1], &text, Expire::Keep, Form::NotInt)?;
    changed(txn, call, "incrbyfloat");
    call.reply.bulk(&text);
    Ok(())
}

#[derive(Default)]
struct LcsOptions {
    len: bool,
    idx: bool,
    with_len: bool,
    min: i64,
}

fn lcs_options(call: &mut Call<'_>) -> Option<LcsOptions> {
    let mut options = LcsOptions::default();
    let mut at = 3;
    while at < call.args.len() {
        if call.word(at, "idx") {
            options.idx = true;
        } else if call.word(at, "len") {
            options.len = true;
        } else if call.word(at, "withmatchlen") {
            options.with_len = true;
        } else if call.word(at, "minmatchlen") && at + 1 < call.args.len() {
            options.min = call.integer(at + 1)?.max(0);
            at += 1;
        } else {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        at += 1;
    }
    if options.idx && options.len {
        call.reply.error("ERR If you want both the length and indexes, please just use IDX.");
        return None;
    }
    Some(options)
}

/// Longest common subsequence: the table of Wagner and Fischer, walked back from its end as Redis does.
pub fn lcs(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let mut texts = [Vec::new(), Vec::new()];
    for (at, text) in texts.iter_mut().enumerate() {
        match fetch(txn, call, call.args[1 + at])? {
            Fetched::Missing => {}
            Fetched::WrongType => {
                call.reply.error("ERR The specified keys must contain string values");
                return Ok(());
            }
            Fetched::Bytes(bytes) => *text = bytes,
        }
    }
    let Some(options) = lcs_options(call) else { return Ok(()) };
    let [a, b] = texts;
    let cells = (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1);
    let bytes = cells.saturating_mul(size_of::<u32>() as u64);
    if bytes > LENGTH_MAX {
        call.reply.error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
        return Ok(());
    }
    let _claim = stdx::memory::claim(bytes as usize).map_err(engine::Error::OutOfMemory)?;
    let width = b.len() + 1;
    let mut table = vec![0u32; cells as usize];
    for i in 1..=a.len() {
        txn.check_for_interrupts()?;
        for j in 1..=b.len() {
            table[i * width + j] = if a[i - 1] == b[j - 1] {
                table[(i - 1) * width + j - 1] + 1
            } else {
                table[(i - 1) * width + j].max(table[i * width + j - 1])
            };
        }
    }
    let total = table[a.len() * width + b.len()];
    if options.len {
        call.reply.integer(i64::from(total));
        return Ok(());
    }
    let (common, runs) = walk_back(&a, &b, &table, width, options.min as usize);
    if options.idx {
        reply_runs(call, &runs, i64::from(total), options.with_len)
    } else {
        call.reply.bulk(&common)
    }
    Ok(())
}

/// A common run: its start in each text, and its length.
type CommonRun = (usize, usize, usize);

fn walk_back(a: &[u8], b: &[u8], table: &[u32], width: usize, min: usize) -> (Vec<u8>, Vec<CommonRun>) {
    let (mut i, mut j) = (a.len(), b.len());
    let (mut common, mut runs) = (Vec::new(), Vec::new());
    let mut run: Option<CommonRun> = None;
    let flush = |run: &mut Option<CommonRun>, runs: &mut Vec<CommonRun>| {
        if let Some(found) = run.take()
            && found.2 >= min.max(1)
        {
            runs.push(found);
        }
    };
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            common.push(a[i - 1]);
            run = match run {
                Some((x, y, len)) if x == i && y == j => Some((i - 1, j - 1, len + 1)),
                _ => {
                    flush(&mut run, &mut runs);
                    Some((i - 1, j - 1, 1))
                }
            };
            (i, j) = (i - 1, j - 1);
        } else {
            flush(&mut run, &mut runs);
            if table[(i - 1) * width + j] > table[i * width + j - 1] { i -= 1 } else { j -= 1 }
        }
    }
    flush(&mut run, &mut runs);
    common.reverse();
    (common, runs)
}

fn reply_runs(call: &mut Call<'_>, runs: &[CommonRun], total: i64, with_len: bool) {
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(runs.len());
    for (x, y, len) in runs {
        call.reply.array(if with_len { 3 } else { 2 });
        for start in [x, y] {
            call.reply.array(2);
            call.reply.integer(*start as i64);
            call.reply.integer((start + len - 1) as i64);
        }
        if with_len {
            call.reply.integer(*len as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.integer(total);
}
