//! Elements of collections in a transaction: fields of hashes, members of sets and sorted sets, items of lists. The key is locked as a whole; the changes are in
//! memory, each element's own, and stored at COMMIT (`keyspace/element_commit`).
//!
//! Reads see what is committed beneath the transaction's own changes. The key lock keeps the former as it is. If the key expires before COMMIT, it is gone with
//! the changes; if the transaction has removed the expiry time meanwhile, what it has put stays.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::keyspace::key::VALUE_MAX;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::list::End;
use crate::keyspace::record::Kind;
use crate::keyspace::writer_number::EVERYBODY;
use crate::rows::key_changes::{Collection, ElementChanges, KeyChange, item_number};
use crate::rows::lock_table::Strength;
use crate::rows::request::Wait;
use crate::rows::transaction::Transaction;

/// The place of an element.
#[derive(Clone, Copy, Debug)]
pub struct ElementPlace<'e> {
    pub db: u8,
    pub key: &'e [u8],
    pub kind: Kind,
    /// See `ElementChanges`.
    pub name: &'e [u8],
}

/// A locked collection, and one of its elements.
#[derive(Clone, Debug, Default)]
pub struct FoundElement {
    /// The value at the key, whatever its type; `None`: there is none.
    pub collection: Option<Collection>,
    /// The element's value: that of a field, eight bytes of a score.
    pub value: Option<Arc<[u8]>>,
    /// Of a list: the numbers of its items.
    pub numbers: std::ops::Range<i64>,
}

/// A transaction's own changes of a key, as a reader of collections needs them.
pub enum OwnElements<'t> {
    /// It has changed nothing.
    None,
    /// It has removed or replaced what is committed, and there is no collection of the kind.
    Absent,
    Changed(&'t ElementChanges),
}

impl Transaction {
    /// Locks the key of an element, and returns the element. The inner `None`: another transaction holds the lock, and the caller asked not to wait.
    pub fn lock_element(
        &mut self,
        place: ElementPlace<'_>,
        strength: Strength,
        wait: Wait,
    ) -> Result<Option<FoundElement>> {
        self.lock_key_and(place.db, place.key, (strength, wait), &mut |key_txn, own| find(key_txn, own, place))
    }

    /// Does the same with the timeout that `set_lock_wait` has set.
    fn locked_element(&mut self, place: ElementPlace<'_>) -> Result<FoundElement> {
        self.rows.keyspace()?.writer.check(EVERYBODY)?;
        self.wait_mode.begin_change();
        let wait = self.patience();
        Ok(self.lock_element(place, Strength::Exclusive, wait)?.unwrap_or_default())
    }

    /// Returns the transaction's own changes of the collection at a key.
    pub fn own_elements(&self, db: u8, key: &[u8], kind: Kind) -> OwnElements<'_> {
        let changes = self.writer.as_ref().map(|writer| &writer.keys).filter(|keys| !keys.is_empty());
        let Some(own) = changes.and_then(|changes| changes.now.get(&(db, key.into()))) else {
            return OwnElements::None;
        };
        let now = self.rows.keyspace().map_or(0, |keyspace| keyspace.clock.wall_ms());
        match own {
            KeyChange::Elements(changes) if changes.kind == kind && own.is_present(now) => {
                OwnElements::Changed(changes)
            }
            _ => OwnElements::Absent,
        }
    }

    /// Adds or replaces an element of a collection, which must be absent or of this kind. Returns whether it existed. Others see it after COMMIT.
    pub fn put_element(&mut self, place: ElementPlace<'_>, value: &[u8]) -> Result<bool> {
        if place.name.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "member", limit: VALUE_MAX });
        }
        if value.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "value", limit: VALUE_MAX });
        }
        let found = self.locked_element(place)?;
        if found.collection.is_some_and(|collection| collection.kind != place.kind) {
            return Err(Error::Misuse("a change of a collection at a key of another type"));
        }
        let is_next = |number| number + 1 == found.numbers.start || number == found.numbers.end;
        if place.kind == Kind::List && found.value.is_none() && !item_number(place.name).is_some_and(is_next) {
            return Err(Error::Misuse("a new item that is at no end of its list"));
        }
        let now = self.now_ms()?;
        let state = (place.kind, found.collection, now);
        let existed = found.value.is_some();
        self.writer()?.keys.put_element((place.db, place.key.into()), state, (place.name, value.into()), existed);
        Ok(existed)
    }

    /// Removes an element. Returns false if there is none. An item of a list must be at an end.
    pub fn remove_element(&mut self, place: ElementPlace<'_>) -> Result<bool> {
        let found = self.locked_element(place)?;
        let Some(collection) = found.collection.filter(|_| found.value.is_some()) else { return Ok(false) };
        let is_end = |number| number == found.numbers.start || number + 1 == found.numbers.end;
        if place.kind == Kind::List && !item_number(place.name).is_some_and(is_end) {
            return Err(Error::Misuse("the removal of an item that is at no end of its list"));
        }
        let now = self.now_ms()?;
        self.writer()?.keys.remove_element((place.db, place.key.into()), collection, now, place.name);
        Ok(true)
    }

    /// Changes the expiry time of the collection of an element. Returns false if there is none of this kind.
    pub fn set_elements_expiry(&mut self, place: ElementPlace<'_>, at_ms: Option<u64>) -> Result<bool> {
        let found = self.locked_element(place)?;
        let Some(collection) = found.collection.filter(|collection| collection.kind == place.kind) else {
            return Ok(false);
        };
        if collection.expire_at_ms != at_ms {
            let now = self.now_ms()?;
            self.writer()?.keys.set_expiry((place.db, place.key.into()), collection, now, at_ms);
        }
        Ok(true)
    }

    fn now_ms(&self) -> Result<u64> {
        Ok(self.rows.keyspace()?.clock.wall_ms())
    }
}

/// Reads an element of a locked key: the transaction's own, or what is committed.
fn find(key_txn: &mut KeyTransaction<'_>, own: Option<&KeyChange>, place: ElementPlace<'_>) -> Result<FoundElement> {
    let own = own.map(|own| (own, own.is_present(key_txn.now_ms())));
    let changes = match own {
        Some((_, false)) => return Ok(FoundElement::default()),
        Some((KeyChange::Elements(changes), true)) => Some(changes),
        Some((KeyChange::String(value), true)) => {
            let expire_at_ms = value.expire_at_ms;
            let collection = Some(Collection { kind: Kind::String, count: 1, expire_at_ms });
            return Ok(FoundElement { collection, ..FoundElement::default() });
        }
        Some((KeyChange::Deleted, _)) | None => None,
    };
    if let Some(changes) = changes {
        let (collection, numbers) = (Some(changes.collection()), changes.numbers());
        let value = match changes.item(place.name) {
            _ if changes.kind != place.kind => None,
            Some(value) => value.map(Arc::from),
            None if changes.keeps => committed(key_txn, place)?.value,
            None => None,
        };
        return Ok(FoundElement { collection, value, numbers });
    }
    committed(key_txn, place)
}

fn committed(key_txn: &mut KeyTransaction<'_>, place: ElementPlace<'_>) -> Result<FoundElement> {
    let Some(entry) = key_txn.peek(place.db, place.key)? else { return Ok(FoundElement::default()) };
    let (kind, expire_at_ms) = (entry.kind, entry.expire_at_ms);
    let count = if kind == Kind::String { 1 } else { key_txn.live_count(&entry)? };
    let collection = Some(Collection { kind, count, expire_at_ms });
    if kind != place.kind || kind == Kind::Stream {
        return Ok(FoundElement { collection, ..FoundElement::default() });
    }
    let mut walk = None;
    let value = match kind {
        Kind::List => match item_number(place.name).and_then(|number| u64::try_from(number).ok()) {
            Some(index) => {
                let walk = walk.insert(key_txn.items_from(&entry, End::Head, index)?);
                walk.next(key_txn)?.map(|item| item.to_entry()).transpose()?
            }
            None => None,
        },
        _ => key_txn.member(&entry, place.name)?,
    };
    let mut bytes = None;
    if let Some(value) = value {
        let out = bytes.insert(Vec::with_capacity(value.len as usize));
        key_txn.value_part(&value, 0..value.len, out)?;
    }
    let numbers = if kind == Kind::List { 0..count as i64 } else { 0..0 };
    Ok(FoundElement { collection, value: bytes.map(Arc::from), numbers })
}
