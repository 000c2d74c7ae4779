//! The oracle: the state that the engine must show, in plain maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Expire;

use crate::op::{DATABASES, Name, Op};
use crate::tables::Tables;

/// A value and its expiry time.
pub type Entry = (Arc<Vec<u8>>, Option<u64>);

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Model {
    pub databases: [BTreeMap<Vec<u8>, Entry>; DATABASES as usize],
    /// Accounts and their rules.
    pub accounts: BTreeMap<String, String>,
    pub tables: Tables,
}

impl Model {
    /// Returns the key's entry, if there is one and it has not expired.
    pub fn live(&self, name: &Name, now: u64) -> Option<&Entry> {
        let found = self.databases[usize::from(name.0)].get(&name.1);
        found.filter(|(_, expire)| expire.is_none_or(|expire| now <= expire))
    }

    fn put(&mut self, name: &Name, value: Vec<u8>, expire: Option<u64>) {
        self.databases[usize::from(name.0)].insert(name.1.clone(), (Arc::new(value), expire));
    }

    pub fn apply(&mut self, op: &Op, now: u64) {
        match op {
            Op::Put(name, value, expire) => {
                let kept = self.live(name, now).and_then(|(_, expire)| *expire);
                let expire = match expire {
                    Expire::Keep => kept,
                    Expire::None => None,
                    Expire::At(time) => Some(*time),
                };
                self.put(name, value.clone(), expire);
            }
            Op::Patch(name, at, with) => {
                let (mut value, expire) = match self.live(name, now) {
                    Some((value, expire)) => (value.to_vec(), *expire),
                    None => Default::default(),
                };
                let at = *at as usize;
                value.resize(value.len().max(at + with.len()), 0);
                value[at..at + with.len()].copy_from_slice(with);
                self.put(name, value, expire);
            }
            Op::Delete(name) => {
                self.databases[usize::from(name.0)].remove(&name.1);
            }
            Op::Expire(name, time) => {
                if let Some((value, _)) = self.live(name, now).cloned() {
                    self.put(name, value.to_vec(), *time);
                }
            }
            Op::Rename(from, to) | Op::Copy(from, to) => {
                if let Some((value, expire)) = self.live(from, now).cloned() {
                    if matches!(op, Op::Rename(..)) {
                        self.databases[usize::from(from.0)].remove(&from.1);
                    }
                    self.put(to, value.to_vec(), expire);
                }
            }
            Op::Flush(db) => self.databases[usize::from(*db)].clear(),
            Op::FlushAll => self.databases = Default::default(),
            Op::Swap(a, b) => self.databases.swap(usize::from(*a), usize::from(*b)),
        }
    }

    /// Returns the model without the keys expired by `now`.
    pub fn at(&self, now: u64) -> Model {
        let mut model = self.clone();
        for database in &mut model.databases {
            database.retain(|_, (_, expire)| expire.is_none_or(|expire| now <= expire));
        }
        model
    }

    /// Describes the differences of two models, at most four.
    pub fn difference(&self, other: &Model) -> String {
        let mut lines = Vec::new();
        for (db, (ours, theirs)) in self.databases.iter().zip(&other.databases).enumerate() {
            let mut keys: Vec<&Vec<u8>> = ours.keys().chain(theirs.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys.into_iter().filter(|key| ours.get(*key) != theirs.get(*key)) {
                let name = String::from_utf8_lossy(&key[..key.len().min(12)]).into_owned();
                lines.push(format!("db {db} {name}: {} / {}", brief(ours.get(key)), brief(theirs.get(key))));
            }
        }
        if self.accounts != other.accounts {
            let sizes = |model: &Model| -> Vec<String> {
                model.accounts.iter().map(|(name, rules)| format!("{name}:{}", rules.len())).collect()
            };
            lines.push(format!("accounts {:?} / {:?}", sizes(self), sizes(other)));
        }
        for table in 0..=u8::MAX {
            let (ours, theirs) = (self.tables.get(&table), other.tables.get(&table));
            if ours != theirs {
                let count = |table: Option<&crate::tables::Table>| table.map(BTreeMap::len);
                let differ = |key: &&Vec<u8>| ours.and_then(|t| t.get(*key)) != theirs.and_then(|t| t.get(*key));
                let keys = ours.into_iter().chain(theirs).flat_map(BTreeMap::keys);
                let key = keys.filter(differ).min();
                lines.push(format!("table {table}: {:?} / {:?} rows, first at {key:02x?}", count(ours), count(theirs)));
            }
        }
        let more = lines.len().saturating_sub(4);
        lines.truncate(4);
        format!("{}{}", lines.join("; "), if more > 0 { format!("; and {more} more") } else { String::new() })
    }
}

fn brief(kept: Option<&Entry>) -> String {
    match kept {
        None => "absent".into(),
        Some((value, expire)) => {
            let time = expire.map_or(String::new(), |time| format!(" until {time}"));
            format!("{} bytes #{:08x}{time}", value.len(), crc32c::crc32c(value))
        }
    }
}
