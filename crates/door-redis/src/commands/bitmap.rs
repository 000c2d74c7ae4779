//! Strings as arrays of bits. Bit 0 is the most significant bit of byte 0.

use engine::{Expire, Form, KeyTransaction, event_class};

use crate::call::{Call, Result};
use crate::commands::{Fetched, delete, fetch, lookup, missed};
use crate::errors;
use crate::number;

const BITS_MAX: u64 = (512 << 20) * 8;

/// Parses a bit position; `#n`, where allowed, means n fields of `width` bits. Returns None after an error reply.
fn bit_offset(call: &mut Call<'_>, at: usize, width: Option<u64>) -> Option<u64> {
    let text = call.args[at];
    let (text, scale) = match (text.strip_prefix(b"#"), width) {
        (Some(rest), Some(width)) => (rest, width),
        _ => (text, 1),
    };
    let offset = number::parse(text).and_then(|n| u64::try_from(n).ok()).and_then(|n| n.checked_mul(scale));
    let offset = offset.filter(|offset| *offset < BITS_MAX);
    if offset.is_none() {
        call.reply.error(errors::BIT_OFFSET);
    }
    offset
}

pub fn getbit(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(offset) = bit_offset(call, 2, None) else { return Ok(()) };
    let Some(found) = lookup(txn, call, call.args[1])? else { return Ok(()) };
    let mut byte = Vec::new();
    if let Some(entry) = found {
        txn.value(&entry, offset / 8..offset / 8 + 1, &mut byte)?;
    }
    call.reply.flag(byte.first().is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1));
    Ok(())
}

pub fn setbit(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(offset) = bit_offset(call, 2, None) else { return Ok(()) };
    let on = match number::parse(call.args[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => {
            call.reply.error(errors::BIT_VALUE);
            return Ok(());
        }
    };
    let Some(found) = lookup(txn, call, call.args[1])? else { return Ok(()) };
    let (mut byte, at) = (Vec::new(), offset / 8);
    if let Some(entry) = &found {
        txn.value(entry, at..at + 1, &mut byte)?;
    }
    let old = byte.first().copied().unwrap_or(0);
    let mask = 0x80 >> (offset % 8);
    let new = if on { old | mask } else { old & !mask };
    if byte.first() == Some(&new) {
        // The value is stored raw from now on, but it has not changed.
        txn.make_raw(call.db, call.args[1])?;
    } else {
        txn.patch_string(call.db, call.args[1], at, &[new])?;
        txn.notify(call.db, call.args[1], event_class::STRING, "setbit");
    }
    call.reply.flag(old & mask != 0);
    Ok(())
}

/// Start, end and unit (BYTE or BIT) of BITCOUNT and BITPOS.
struct Range {
    start: i64,
    end: i64,
    bits: bool,
}

/// Clamps the range as BITCOUNT and BITPOS do. Returns the first and the last position in bits, or None if the range is empty.
fn clamp(range: &Range, bytes: u64) -> Option<(u64, u64)> {
    let total = if range.bits { bytes as i64 * 8 } else { bytes as i64 };
    let fix = |position: i64| if position < 0 { (position + total).max(0) } else { position };
    let (start, end) = (fix(range.start), fix(range.end).min(total - 1));
    if start > end {
        return None;
    }
    Some(if range.bits { (start as u64, end as u64) } else { (start as u64 * 8, end as u64 * 8 + 7) })
}

fn unit_of_range(call: &mut Call<'_>, at: usize) -> Option<bool> {
    if call.word(at, "bit") {
        return Some(true);
    }
    if call.word(at, "byte") {
        return Some(false);
    }
    call.reply.error(errors::SYNTAX);
    None
}

pub fn bitcount(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let bytes = match fetch(txn, call, call.args[1])? {
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Missing => {
            call.reply.integer(0);
            return Ok(());
        }
        Fetched::Bytes(bytes) => bytes,
    };
    let range = match call.args.len() {
        2 => Range { start: 0, end: -1, bits: false },
        4 | 5 => {
            let Some(start) = call.integer(2) else { return Ok(()) };
            let Some(end) = call.integer(3) else { return Ok(()) };
            if start < 0 && end < 0 && start > end {
                // Redis replies before it checks the unit.
                call.reply.integer(0);
                return Ok(());
            }
            let bits = match call.args.len() {
                4 => false,
                _ => match unit_of_range(call, 4) {
                    Some(bits) => bits,
                    None => return Ok(()),
                },
            };
            Range { start, end, bits }
        }
        _ => {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
    };
    let count = clamp(&range, bytes.len() as u64).map_or(0, |(first, last)| count_bits(&bytes, first, last));
    call.reply.integer(count as i64);
    Ok(())
}

fn count_bits(bytes: &[u8], first: u64, last: u64) -> u64 {
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let whole: u64 = bytes[from..=to].iter().map(|byte| u64::from(byte.count_ones())).sum();
    let before = bytes[from] & !(0xff >> (first % 8));
    let after = bytes[to] & (0x7f >> (last % 8));
    whole - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

pub fn bitpos(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let wanted = match number::parse(call.args[2]) {
        Some(0) => false,
        Some(1) => true,
        Some(_) => {
            call.reply.error("ERR The bit argument must be 1 or 0.");
            return Ok(());
        }
        None => {
            call.reply.error(errors::NOT_INTEGER);
            return Ok(());
        }
    };
    let bytes = match fetch(txn, call, call.args[1])? {
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Missing => {
            call.reply.integer(if wanted { -1 } else { 0 });
            return Ok(());
        }
        Fetched::Bytes(bytes) => bytes,
    };
    if call.args.len() > 6 {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let mut range = Range { start: 0, end: -1, bits: false };
    let end_given = call.args.len() >= 5;
    if call.args.len() >= 4 {
        let Some(start) = call.integer(3) else { return Ok(()) };
        range.start = start;
    }
    if call.args.len() == 6 {
        let Some(bits) = unit_of_range(call, 5) else { return Ok(()) };
        range.bits = bits;
    }
    if end_given {
        let Some(end) = call.integer(4) else { return Ok(()) };
        range.end = end;
    }
    let Some((first, last)) = clamp(&range, bytes.len() as u64) else {
        call.reply.integer(-1);
        return Ok(());
    };
    let found = find_bit(&bytes, first, last, wanted);
    call.reply.integer(match found {
        Some(position) => position as i64,
        // A string is assumed to continue with zeros, unless the end was given.
        None if !wanted && !end_given => bytes.len() as i64 * 8,
        None => -1,
    });
    Ok(())
}

fn find_bit(bytes: &[u8], first: u64, last: u64, wanted: bool) -> Option<u64> {
    let skip = if wanted { 0 } else { 0xff };
    let mut position = first;
    while position <= last {
        let byte = bytes[(position / 8) as usize];
        if position.is_multiple_of(8) && byte == skip {
            position += 8;
            continue;
        }
        if (byte >> (7 - position % 8) & 1 == 1) == wanted {
            return Some(position);
        }
        position += 1;
    }
    None
}

pub fn bitop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let operation = call.args[1].to_ascii_lowercase();
    if !matches!(operation.as_slice(), b"and" | b"or" | b"xor" | b"not") {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    if operation == b"not" && call.args.len() != 4 {
        call.reply.error("ERR BITOP NOT must be called with a single source key.");
        return Ok(());
    }
    let mut sources = Vec::with_capacity(call.args.len() - 3);
    for key in &call.args[3..] {
        match fetch(txn, call, key)? {
            Fetched::WrongType => {
                call.reply.error(errors::WRONG_TYPE);
                return Ok(());
            }
            Fetched::Missing => {
                missed(txn, call, key);
                sources.push(Vec::new());
            }
            Fetched::Bytes(bytes) => sources.push(bytes),
        }
    }
    let len = sources.iter().map(Vec::len).max().unwrap_or(0);
    let mut result = sources.swap_remove(0);
    result.resize(len, 0);
    if operation == b"not" {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for source in sources {
        for (at, byte) in result.iter_mut().enumerate() {
            let other = source.get(at).copied().unwrap_or(0);
            match operation[0] {
                b'a' => *byte &= other,
                b'o' => *byte |= other,
                _ => *byte ^= other,
            }
        }
    }
    if len > 0 {
        txn.put_string_as(call.db, call.args[2], &result, Expire::None, Form::Raw)?;
        txn.notify(call.db, call.args[2], event_class::STRING, "set");
    } else {
        delete(txn, call, call.args[2])?;
    }
    call.reply.integer(len as i64);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
struct Field {
    signed: bool,
    width: u32,
    offset: u64,
}

enum FieldOperation {
    Get,
    Set(i64),
    Add(i64),
}

fn field_type(call: &mut Call<'_>, at: usize) -> Option<(bool, u32)> {
    let text = call.args[at];
    let parsed = text.split_first().and_then(|(kind, digits)| {
        let width = number::parse(digits)?;
        match kind {
            b'i' if (1..=64).contains(&width) => Some((true, width as u32)),
            b'u' if (1..=63).contains(&width) => Some((false, width as u32)),
            _ => None,
        }
    });
    if parsed.is_none() {
        call.reply
            .error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.");
    }
    parsed
}

/// Parses the arguments into operations. Returns None after an error reply.
fn field_steps(call: &mut Call<'_>, read_only: bool) -> Option<Vec<(Field, FieldOperation, Overflow)>> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < call.args.len() {
        let left = call.args.len() - at - 1;
        let (get, set, add) = (call.word(at, "get"), call.word(at, "set"), call.word(at, "incrby"));
        if call.word(at, "overflow") && left >= 1 {
            overflow = match call.args[at + 1].to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => {
                    call.reply.error("ERR Invalid OVERFLOW type specified");
                    return None;
                }
            };
            at += 2;
            continue;
        }
        if !(get && left >= 2 || (set || add) && left >= 3) {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        let (signed, width) = field_type(call, at + 1)?;
        let offset = bit_offset(call, at + 2, Some(u64::from(width)))?;
        let field = Field { signed, width, offset };
        if get {
            steps.push((field, FieldOperation::Get, overflow));
            at += 3;
            continue;
        }
        let value = call.integer(at + 3)?;
        steps.push((field, if set { FieldOperation::Set(value) } else { FieldOperation::Add(value) }, overflow));
        at += 4;
    }
    if read_only && steps.iter().any(|(_, step, _)| !matches!(step, FieldOperation::Get)) {
        call.reply.error("ERR BITFIELD_RO only supports the GET subcommand");
        return None;
    }
    Some(steps)
}

impl Field {
    fn read(self, bytes: &[u8]) -> i64 {
        let mut value: u64 = 0;
        for bit in self.offset..self.offset + u64::from(self.width) {
            let byte = bytes.get((bit / 8) as usize).copied().unwrap_or(0);
            value = value << 1 | u64::from(byte >> (7 - bit % 8) & 1);
        }
        if self.signed && self.width < 64 && value >> (self.width - 1) & 1 == 1 {
            value |= u64::MAX << self.width;
        }
        value as i64
    }

    fn write(self, bytes: &mut Vec<u8>, value: i64) {
        let end = ((self.offset + u64::from(self.width)).div_ceil(8)) as usize;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        for at in 0..u64::from(self.width) {
            let bit = self.offset + at;
            let on = value as u64 >> (u64::from(self.width) - 1 - at) & 1 == 1;
            let mask = 0x80u8 >> (bit % 8);
            let byte = &mut bytes[(bit / 8) as usize];
            if on { *byte |= mask } else { *byte &= !mask }
        }
    }

    /// Returns the value to SET. Redis measures a signed value by its distance from the highest value that fits. Where that distance does not fit into 64 bits,
    /// Redis takes a number that is far too low for one that is too high and saturates to the highest value.
    fn wanted(self, value: i64, overflow: Overflow) -> i128 {
        if !self.signed {
            return i128::from(value as u64);
        }
        let highest = i64::MAX >> (64 - self.width);
        let too_far = self.width < 64 && highest.checked_sub(value).is_none();
        if too_far && overflow == Overflow::Saturate { i128::from(i64::MAX) } else { i128::from(value) }
    }

    /// Returns `value` as the field can hold it, or None on overflow with OVERFLOW FAIL.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (low, high): (i128, i128) = if self.signed {
            (-(1i128 << (self.width - 1)), (1i128 << (self.width - 1)) - 1)
        } else {
            (0, (1i128 << self.width) - 1)
        };
        if (low..=high).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => Some(if value > high { high } else { low } as i64),
            Overflow::Wrap => {
                let modulus = 1i128 << self.width;
                let wrapped = value.rem_euclid(modulus);
                Some(if wrapped > high { wrapped - modulus } else { wrapped } as i64)
            }
        }
    }
}

fn run_fields(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, read_only: bool) -> Result {
    let Some(steps) = field_steps(call, read_only) else { return Ok(()) };
    let mut bytes = match fetch(txn, call, call.args[1])? {
        Fetched::WrongType => {
            call.reply.error(errors::WRONG_TYPE);
            return Ok(());
        }
        Fetched::Missing => {
            if !read_only && steps.iter().all(|(_, step, _)| matches!(step, FieldOperation::Get)) {
                missed(txn, call, call.args[1]);
            }
            Vec::new()
        }
        Fetched::Bytes(bytes) => bytes,
    };
    let writes = steps.iter().filter(|(_, step, _)| !matches!(step, FieldOperation::Get));
    let end = writes.map(|(field, ..)| (field.offset + u64::from(field.width)).div_ceil(8)).max();
    let before = bytes.clone();
    let grows = end.is_some_and(|end| bytes.len() < end as usize);
    let (mut changed, mut is_event) = (false, false);
    if let Some(end) = end
        && bytes.len() < end as usize
    {
        // Redis extends the string for every write first, even for one that then fails.
        bytes.resize(end as usize, 0);
    }
    call.reply.array(steps.len());
    for (field, step, overflow) in steps {
        let old = field.read(&bytes);
        let (value, shown) = match step {
            FieldOperation::Get => {
                call.reply.integer(old);
                continue;
            }
            FieldOperation::Set(value) => (field.fit(field.wanted(value, overflow), overflow), Some(old)),
            FieldOperation::Add(amount) => {
                let sum = if field.signed { i128::from(old) } else { i128::from(old as u64) } + i128::from(amount);
                (field.fit(sum, overflow), None)
            }
        };
        match value {
            Some(value) => {
                changed |= value != old;
                is_event |= grows || value != old;
                field.write(&mut bytes, value);
                call.reply.integer(shown.unwrap_or(value));
            }
            None => call.reply.null(),
        }
    }
    if end.is_none() || before != bytes {
        store_changed(txn, call, &before, &bytes)?;
    } else {
        // A write that changes nothing still makes the value raw. Watching clients notice it only if the value changed in between.
        txn.make_raw(call.db, call.args[1])?;
        if changed {
            txn.touch(call.db, call.args[1])?;
        }
    }
    if is_event {
        txn.notify(call.db, call.args[1], event_class::STRING, "setbit");
    }
    Ok(())
}

/// Writes the part of the string that differs.
fn store_changed(txn: &mut KeyTransaction<'_>, call: &Call<'_>, before: &[u8], after: &[u8]) -> Result {
    let same = before.iter().zip(after).position(|(old, new)| old != new).unwrap_or(before.len());
    if same < after.len() {
        let tail = (0..after.len() - same)
            .take_while(|at| {
                before.len() == after.len() && before[before.len() - 1 - at] == after[after.len() - 1 - at]
            })
            .count();
        txn.patch_string(call.db, call.args[1], same as u64, &after[same..after.len() - tail])?;
    }
    Ok(())
}

pub fn bitfield(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    run_fields(txn, call, false)
}

pub fn bitfield_ro(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    run_fields(txn, call, true)
}
