//! SORT and SORT_RO.
//!
//! The elements are gathered with their weights in memory, which the setting `memory` bounds, sorted there, and replied or stored. BY and GET name keys that are not
//! arguments: the transaction takes them as it meets them, and runs again if that would need a wait (EN-79).

use std::cmp::Ordering;

use engine::{End, Entry, Error, KeyTransaction, Kind, event_class};
use stdx::memory::{self, Claim};

use crate::call::{Call, Done, NamedKeys, Result};
use crate::commands::delete;
use crate::commands::list::append_item;
use crate::errors;
use crate::float;

/// Memory is claimed in pieces of so many bytes.
const CLAIM_BYTES: usize = 256 << 10;

#[derive(Default)]
struct SortOptions<'a> {
    is_descending: bool,
    is_alphabetic: bool,
    limit: Option<(i64, i64)>,
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

fn options<'a>(named: NamedKeys, call: &mut Call<'a>) -> Option<SortOptions<'a>> {
    let args = call.args;
    let mut options = SortOptions::default();
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - at - 1;
        match args[at].to_ascii_lowercase().as_slice() {
            b"asc" => options.is_descending = false,
            b"desc" => options.is_descending = true,
            b"alpha" => options.is_alphabetic = true,
            b"limit" if more >= 2 => {
                options.limit = Some((call.integer(at + 1)?, call.integer(at + 2)?));
                at += 2;
            }
            b"store" if more >= 1 && call.command.name == "sort" => {
                options.store = Some(args[at + 1]);
                at += 1;
            }
            word @ (b"by" | b"get") if more >= 1 => {
                let pattern = args[at + 1];
                let is_by = word == b"by";
                // The keys that it names may be on any node.
                if named.in_cluster && (!is_by || pattern.contains(&b'*')) {
                    let name = if is_by { "BY" } else { "GET" };
                    let text = format!("ERR {name} option of SORT denied in Cluster mode.");
                    call.reply.error(&text);
                    return None;
                }
                if (!is_by || pattern.contains(&b'*')) && !named.all_allowed {
                    let name = if is_by { "BY" } else { "GET" };
                    let text = format!("ERR {name} option of SORT denied due to insufficient ACL permissions.");
                    call.reply.error(&text);
                    return None;
                }
                if is_by {
                    options.by = Some(pattern);
                } else {
                    options.gets.push(pattern);
                }
                at += 1;
            }
            _ => {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        }
        at += 1;
    }
    Some(options)
}

/// The weight by which an element is sorted.
#[derive(Clone, Debug, PartialEq)]
enum Weight {
    Number(f64),
    /// The value of the key that BY names, if there is one.
    Text(Option<Vec<u8>>),
    Itself,
}

impl Weight {
    fn cmp(&self, other: &Weight) -> Ordering {
        match (self, other) {
            (Weight::Number(one), Weight::Number(two)) => one.partial_cmp(two).unwrap_or(Ordering::Equal),
            (Weight::Text(one), Weight::Text(two)) => one.cmp(two),
            _ => Ordering::Equal,
        }
    }
}

/// Byte strings in memory, for which memory is claimed.
#[derive(Default)]
struct Claimed {
    bytes: usize,
    claims: Vec<Claim>,
}

impl Claimed {
    fn add(&mut self, bytes: usize) -> Result {
        self.bytes += bytes;
        while self.bytes > self.claims.len() * CLAIM_BYTES {
            self.claims.push(memory::claim(CLAIM_BYTES).map_err(Error::OutOfMemory)?);
        }
        Ok(())
    }
}

/// The part of the elements that a request wants, of those in their order.
fn part(limit: Option<(i64, i64)>, count: u64) -> std::ops::Range<u64> {
    let (start, wanted) = limit.unwrap_or((0, -1));
    let start = (start.max(0) as u64).min(count);
    let end = if wanted < 0 { count } else { start + (wanted as u64).min(count - start) };
    start..end
}

/// The elements to sort.
#[derive(Default)]
struct Elements {
    items: Vec<Vec<u8>>,
    claimed: Claimed,
}

impl Elements {
    fn push(&mut self, item: Vec<u8>) -> Result {
        self.claimed.add(item.len() + size_of::<(Weight, Vec<u8>)>())?;
        self.items.push(item);
        Ok(())
    }

    /// Reads the elements of a key. Of a list or a sorted set that stays in its order, only the wanted ones.
    fn read(
        txn: &mut KeyTransaction<'_>,
        entry: &Entry,
        order: Option<(std::ops::Range<u64>, bool)>,
    ) -> Done<Elements> {
        let mut elements = Elements::default();
        let (range, is_reverse) = order.unwrap_or((0..entry.count()?, false));
        let count = range.end - range.start;
        match entry.kind {
            Kind::List => {
                let mut walk = txn.items_from(entry, if is_reverse { End::Tail } else { End::Head }, range.start)?;
                for _ in 0..count {
                    let Some(item) = walk.next(txn)? else { break };
                    let mut bytes = Vec::new();
                    append_item(txn, &item, &mut bytes)?;
                    elements.push(bytes)?;
                }
            }
            Kind::ZSet => {
                let first = if is_reverse { entry.count()?.saturating_sub(range.start + 1) } else { range.start };
                let mut walk = txn.sorted(entry, first, is_reverse)?;
                for _ in 0..count {
                    let Some((_, member)) = walk.next(txn)? else { break };
                    elements.push(member.to_vec())?;
                }
            }
            _ => {
                let mut walk = txn.members(entry)?;
                while let Some(item) = walk.next(txn)? {
                    elements.push(item.member.to_vec())?;
                }
            }
        }
        Ok(elements)
    }
}

/// The place that a pattern names for an element: a key, or a field of a hash.
fn substitute<'p>(pattern: &'p [u8], element: &[u8]) -> Option<(Vec<u8>, Option<&'p [u8]>)> {
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (prefix, rest) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = rest.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < rest.len());
    let (postfix, field) = match arrow {
        Some(at) => (&rest[..at], Some(&rest[at + 2..])),
        None => (rest, None),
    };
    Some(([prefix, element, postfix].concat(), field))
}

/// Looks up the value that a pattern names for an element.
fn find(txn: &mut KeyTransaction<'_>, db: u8, pattern: &[u8], element: &[u8]) -> Done<Option<Entry>> {
    let Some((key, field)) = substitute(pattern, element) else { return Ok(None) };
    let Some(entry) = txn.get(db, &key)? else { return Ok(None) };
    match (field, entry.kind) {
        (Some(field), Kind::Hash) => txn.member(&entry, field),
        (None, Kind::String) => Ok(Some(entry)),
        _ => Ok(None),
    }
}

fn bytes_of(txn: &mut KeyTransaction<'_>, value: &Entry) -> Done<Vec<u8>> {
    let _claim = memory::claim(value.len as usize).map_err(Error::OutOfMemory)?;
    let mut bytes = Vec::with_capacity(value.len as usize);
    txn.value(value, 0..value.len, &mut bytes)?;
    Ok(bytes)
}

/// Returns the number that a text is to Redis' SORT: as C reads it up to a NUL byte, without overflow and underflow.
fn number(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    float::parse(&text[blanks..]).filter(|value| !value.is_subnormal())
}

pub fn sort(named: NamedKeys, txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(mut options) = options(named, call) else { return Ok(()) };
    let found = txn.get(call.db, call.args[1])?;
    if found.as_ref().is_some_and(|entry| !matches!(entry.kind, Kind::List | Kind::Set | Kind::ZSet)) {
        call.reply.error(errors::WRONG_TYPE);
        return Ok(());
    }
    let kind = found.as_ref().map(|entry| entry.kind);
    let mut keeps_order = options.by.is_some_and(|pattern| !pattern.contains(&b'*'));
    if keeps_order && kind == Some(Kind::Set) && (options.store.is_some() || named.in_script) {
        // The order of a set is an accident, which must not be stored.
        (keeps_order, options.is_alphabetic, options.by) = (false, true, None);
    }
    let count = found.as_ref().map_or(Ok(0), Entry::count)?;
    let wanted = part(options.limit, count);
    let ordered = (keeps_order && kind != Some(Kind::Set)).then(|| (wanted.clone(), options.is_descending));
    let is_cut = ordered.is_some();
    let elements = match &found {
        Some(entry) => Elements::read(txn, entry, ordered)?,
        None => Elements::default(),
    };
    let Elements { mut items, mut claimed } = elements;
    if !keeps_order {
        match sorted(txn, call.db, &options, items, &mut claimed)? {
            Some(sorted) => items = sorted,
            None => {
                call.reply.error("ERR One or more scores can't be converted into double");
                return Ok(());
            }
        }
    }
    if !is_cut {
        // A reader that meets a change may have fewer elements, and runs again.
        items.truncate(wanted.end as usize);
        items.drain(..items.len().min(wanted.start as usize));
    }
    match options.store {
        Some(target) => store(txn, call, &options, (items, claimed), target),
        None => reply(txn, call, &options, &items),
    }
}

/// Sorts elements. Returns None if one has no number to be sorted by.
fn sorted(
    txn: &mut KeyTransaction<'_>,
    db: u8,
    options: &SortOptions<'_>,
    items: Vec<Vec<u8>>,
    claimed: &mut Claimed,
) -> Done<Option<Vec<Vec<u8>>>> {
    let mut weighted = Vec::with_capacity(items.len());
    let mut are_numbers = true;
    for item in items {
        let weight = match (options.by, options.is_alphabetic) {
            (None, true) => Weight::Itself,
            (None, false) => Weight::Number(number(&item).unwrap_or(f64::NAN)),
            (Some(pattern), is_alphabetic) => {
                let value = find(txn, db, pattern, &item)?.map(|value| bytes_of(txn, &value)).transpose()?;
                if is_alphabetic {
                    claimed.add(value.as_ref().map_or(0, Vec::len))?;
                    Weight::Text(value)
                } else {
                    Weight::Number(value.map_or(Some(0.0), |value| number(&value)).unwrap_or(f64::NAN))
                }
            }
        };
        are_numbers &= !matches!(weight, Weight::Number(number) if number.is_nan());
        weighted.push((weight, item));
    }
    if !are_numbers {
        return Ok(None);
    }
    let ties = options.by.is_none() || !options.is_alphabetic;
    weighted.sort_by(|(one, item), (two, other)| {
        let order = one.cmp(two).then_with(|| if ties { item.cmp(other) } else { Ordering::Equal });
        if options.is_descending { order.reverse() } else { order }
    });
    Ok(Some(weighted.into_iter().map(|(_, item)| item).collect()))
}

fn reply(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, options: &SortOptions<'_>, items: &[Vec<u8>]) -> Result {
    call.reply.array(items.len() * options.gets.len().max(1));
    for item in items {
        if options.gets.is_empty() {
            call.bulk_item(item)?;
        }
        for pattern in &options.gets {
            if *pattern == b"#" {
                call.bulk_item(item)?;
            } else if let Some(value) = find(txn, call.db, pattern, item)? {
                call.bulk_value(txn, &value, 0..value.len)?;
            } else {
                call.reply.null();
            }
        }
    }
    Ok(())
}

/// Stores the result as a list, in place of whatever the target has.
fn store(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    options: &SortOptions<'_>,
    (items, mut claimed): (Vec<Vec<u8>>, Claimed),
    target: &[u8],
) -> Result {
    let mut stored = Vec::with_capacity(items.len() * options.gets.len().max(1));
    for item in &items {
        if options.gets.is_empty() {
            stored.push(item.clone());
        }
        for pattern in &options.gets {
            let value = match *pattern {
                b"#" => item.clone(),
                _ => find(txn, call.db, pattern, item)?.map_or(Ok(Vec::new()), |value| bytes_of(txn, &value))?,
            };
            claimed.add(value.len() + size_of::<Vec<u8>>())?;
            stored.push(value);
        }
    }
    if stored.is_empty() {
        delete(txn, call, target)?;
    } else {
        txn.delete(call.db, target)?;
        let stored: Vec<&[u8]> = stored.iter().map(Vec::as_slice).collect();
        txn.push_items(call.db, target, End::Tail, &stored)?;
        txn.notify(call.db, target, event_class::LIST, "sortstore");
    }
    call.reply.integer(stored.len() as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_a_key_or_a_field() {
        let place = |pattern: &'static str| {
            let (key, field) = substitute(pattern.as_bytes(), b"7")?;
            let field = field.map(|field| String::from_utf8_lossy(field).into_owned());
            Some((String::from_utf8_lossy(&key).into_owned(), field))
        };
        let key = |key: &str| Some((key.to_owned(), None));
        assert_eq!(place("w_*"), key("w_7"));
        assert_eq!(place("*_*"), key("7_*"));
        assert_eq!(place("w"), None);
        assert_eq!(place("h*->f"), Some(("h7".to_owned(), Some("f".to_owned()))));
        assert_eq!(place("h*x->f->g"), Some(("h7x".to_owned(), Some("f->g".to_owned()))));
        assert_eq!(place("h*->"), key("h7->"));
        assert_eq!(place("a->*"), key("a->7"));
    }

    #[test]
    fn a_limit_stays_within_the_elements() {
        for (limit, expected) in [
            (None, 0..5),
            (Some((0, -1)), 0..5),
            (Some((1, 2)), 1..3),
            (Some((-3, 2)), 0..2),
            (Some((4, 9)), 4..5),
            (Some((5, 1)), 5..5),
            (Some((i64::MAX, i64::MAX)), 5..5),
            (Some((2, 0)), 2..2),
            (Some((i64::MIN, i64::MIN)), 0..5),
        ] {
            assert_eq!(part(limit, 5), expected);
        }
    }

    #[test]
    fn numbers_are_those_of_strtod() {
        for (text, expected) in [
            (&b""[..], Some(0.0)),
            (b" 1", Some(1.0)),
            (b" ", None),
            (b"1 ", None),
            (b"1\x002", Some(1.0)),
            (b"0x10", Some(16.0)),
            (b"inf", Some(f64::INFINITY)),
            (b"nan", None),
            (b"1e400", None),
            (b"1e-400", None),
            (b"x", None),
        ] {
            assert_eq!(number(text), expected, "{text:?}");
        }
    }
}
