//! Commands of sorted sets that wait if there is nothing to pop: BZPOPMIN, BZPOPMAX, BZMPOP. Each looks first, as those of lists do (`list_wait`).

use engine::{Claim, KeyTransaction, Kind, Serving};

use super::sorted_set::{ManyPop, PopEnd, reply_popped};
use crate::call::{Blocking, Call, Done};
use crate::commands::waits::{owned, timeout};
use crate::reply::Reply;

pub fn bzpopmin(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    pop_one(txn, call, PopEnd::Min)
}

pub fn bzpopmax(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    pop_one(txn, call, PopEnd::Max)
}

fn pop_one(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, end: PopEnd) -> Done<Option<Blocking>> {
    let last = call.args.len() - 1;
    let Some(timeout_ms) = timeout(call, last) else { return Ok(None) };
    pop(txn, call, &ManyPop { keys: 1..last, end, count: 1, is_flat: true }, timeout_ms)
}

pub fn bzmpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<Option<Blocking>> {
    let Some(pops) = ManyPop::parse(call, 2) else { return Ok(None) };
    let Some(timeout_ms) = timeout(call, 1) else { return Ok(None) };
    pop(txn, call, &pops, timeout_ms)
}

fn pop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, pops: &ManyPop, timeout_ms: u64) -> Done<Option<Blocking>> {
    if pops.run(txn, call)? {
        return Ok(None);
    }
    let (db, keys) = (call.db, owned(&call.args[pops.keys.clone()]));
    let ManyPop { end, count, is_flat, .. } = *pops;
    let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &Claim<'_>, call: &mut Call<'_>| {
        let Some(entry) = txn.peek(db, key)?.filter(|entry| entry.kind == Kind::ZSet) else {
            return Ok(Serving::Exhausted);
        };
        if !claim.take() {
            return Ok(Serving::Waits);
        }
        let popped = entry.count()?.min(count);
        ManyPop::reply_header(&mut call.reply, key, popped, is_flat);
        reply_popped(txn, call, key, (&entry, end), (popped, !is_flat))?;
        Ok(Serving::Served)
    };
    let refuse = |reply: &mut Reply<'_>| reply.null_array();
    Ok(Some(Blocking {
        kind: Kind::ZSet,
        class: Box::default(),
        keys,
        also: None,
        timeout_ms,
        serve: Box::new(serve),
        refuse,
    }))
}
