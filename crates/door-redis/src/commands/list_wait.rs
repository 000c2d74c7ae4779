//! Commands of lists that wait if there is nothing to pop: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH.
//!
//! Each looks first, and returns a wait if it has found nothing. The wait's closure runs in the thread that changes one of its keys, with that key alone.

use engine::{Claim, End, KeyTransaction, Kind, Serving};

use super::list::{
    FirstList, ItemMove, PopMany, each_item, first_list, move_found, outer_item, remove_popped, two_ends,
};
use crate::call::{Blocking, Call, Done};
use crate::commands::lookup_as;
use crate::commands::waits::{owned, timeout};
use crate::errors;

pub fn blpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    pop(txn, call, End::Head)
}

pub fn brpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    pop(txn, call, End::Tail)
}

fn pop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, end: End) -> Done<Option<Blocking>> {
    let last = call.args.len() - 1;
    let Some(timeout_ms) = timeout(call, last) else { return Ok(None) };
    let (db, keys) = (call.db, &call.args[1..last]);
    match first_list(txn, call, keys)? {
        FirstList::WrongType => return Ok(None),
        FirstList::Found(key, entry) => {
            call.reply.array(2);
            call.reply.bulk(key);
            each_item(txn, &entry, end, 1, |txn, item| call.bulk_item_value(txn, item))?;
            remove_popped(txn, db, key, end, 1)?;
            return Ok(None);
        }
        FirstList::None => {}
    }
    Ok(Some(pop_when_pushed(db, keys, (end, None), timeout_ms)))
}

pub fn blmpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    let Some(PopMany { keys, end, count }) = PopMany::read(call, 2) else { return Ok(None) };
    let Some(timeout_ms) = timeout(call, 1) else { return Ok(None) };
    let (db, keys) = (call.db, &call.args[keys]);
    match first_list(txn, call, keys)? {
        FirstList::WrongType => return Ok(None),
        FirstList::Found(key, entry) => {
            let count = count.min(entry.count()?);
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(count as usize);
            each_item(txn, &entry, end, count, |txn, item| call.bulk_item_value(txn, item))?;
            remove_popped(txn, db, key, end, count)?;
            return Ok(None);
        }
        FirstList::None => {}
    }
    Ok(Some(pop_when_pushed(db, keys, (end, Some(count)), timeout_ms)))
}

/// Returns the wait of BLPOP, for one item, or of BLMPOP, for up to so many.
fn pop_when_pushed(db: u8, keys: &[&[u8]], (end, many): (End, Option<u64>), timeout_ms: u64) -> Blocking {
    let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &Claim<'_>, call: &mut Call<'_>| {
        let Some(entry) = txn.peek(db, key)?.filter(|entry| entry.kind == Kind::List) else {
            return Ok(Serving::Exhausted);
        };
        let count = many.unwrap_or(1).min(entry.count()?);
        call.reply.array(2);
        call.reply.bulk(key);
        if many.is_some() {
            call.reply.array(count as usize);
        }
        each_item(txn, &entry, end, count, |txn, item| call.bulk_item_value(txn, item))?;
        if !claim.take() {
            return Ok(Serving::Waits);
        }
        remove_popped(txn, db, key, end, count)?;
        Ok(Serving::Served)
    };
    Blocking {
        kind: Kind::List,
        class: Box::default(),
        keys: owned(keys),
        also: None,
        timeout_ms,
        serve: Box::new(serve),
        refuse: |reply| reply.null_array(),
    }
}

pub fn blmove(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    let Some((from, to)) = two_ends(call, 3) else { return Ok(None) };
    move_item(txn, call, from, to)
}

pub fn brpoplpush(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    move_item(txn, call, End::Tail, End::Head)
}

fn move_item(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, from: End, to: End) -> Done<Option<Blocking>> {
    let Some(timeout_ms) = timeout(call, call.args.len() - 1) else { return Ok(None) };
    let Some(source) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(None) };
    if let Some(source) = source {
        move_found(txn, call, &source, from, to)?;
        return Ok(None);
    }
    let (db, target): (u8, Box<[u8]>) = (call.db, call.args[2].into());
    let also = target.clone();
    let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &Claim<'_>, call: &mut Call<'_>| {
        let Some(source) = txn.peek(db, key)?.filter(|entry| entry.kind == Kind::List) else {
            return Ok(Serving::Exhausted);
        };
        let is_wrong = txn.peek(db, &target)?.is_some_and(|entry| entry.kind != Kind::List);
        let item = outer_item(txn, &source, from)?;
        if !claim.take() {
            return Ok(Serving::Waits);
        }
        if is_wrong {
            // The client hears of it, and the item stays for the next one.
            call.reply.error(errors::WRONG_TYPE);
            return Ok(Serving::Served);
        }
        ItemMove { db, source: key, target: &target, from, to }.run(txn, &source, &item)?;
        call.reply.bulk(&item);
        Ok(Serving::Served)
    };
    Ok(Some(Blocking {
        kind: Kind::List,
        class: Box::default(),
        keys: owned(&call.args[1..2]),
        also: Some(also),
        timeout_ms,
        serve: Box::new(serve),
        refuse: |reply| reply.null(),
    }))
}
