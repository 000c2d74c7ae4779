//! Counts that may only sink. A check that finds too much to mend at once counts its finds for each crate and holds them against a
//! table in its source: more than the table says fails, and so does fewer, with the request to lower the number.

use std::collections::BTreeMap;

/// How many finds a complaint lists.
const LISTED: usize = 12;

pub struct Ratchet {
    /// The finds in the plural, for messages.
    pub what: &'static str,
    /// The file with the table, below `crates/xtask/src/tidy`.
    pub table: &'static str,
    /// Key (a crate, a file) and the number of finds it still has. A key without a row has none.
    pub rows: &'static [(&'static str, usize)],
}

impl Ratchet {
    /// The complaints about `finds`, which lists the finds of each key.
    pub fn check(&self, finds: &BTreeMap<String, Vec<String>>) -> Vec<String> {
        let mut complaints = Vec::new();
        for (key, found) in finds {
            let limit = self.rows.iter().find(|(k, _)| k == key).map_or(0, |(_, n)| *n);
            if found.len() > limit {
                complaints.push(format!("{key}: {} {}, at most {limit}:", found.len(), self.what));
                complaints.extend(found.iter().take(LISTED).map(|f| format!("  {f}")));
                complaints.extend((found.len() > LISTED).then(|| format!("  and {} more", found.len() - LISTED)));
            }
        }
        for (key, limit) in self.rows {
            let found = finds.get(*key).map_or(0, Vec::len);
            if found < *limit {
                let table = self.table;
                complaints.push(format!(
                    "{key}: {found} {}, {limit} in the table: lower it in crates/xtask/src/tidy/{table}",
                    self.what
                ));
            }
        }
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_only_sink() {
        let ratchet = Ratchet { what: "holes", table: "x.rs", rows: &[("pager", 2), ("btree", 1)] };
        let finds = |pager: usize, os: usize| {
            let list = |n: usize| (0..n).map(|i| format!("hole {i}")).collect::<Vec<_>>();
            BTreeMap::from([("pager".into(), list(pager)), ("os".into(), list(os)), ("btree".into(), list(1))])
        };
        assert!(ratchet.check(&finds(2, 0)).is_empty());
        let more = ratchet.check(&finds(3, 1));
        assert_eq!(more[0], "os: 1 holes, at most 0:");
        assert_eq!(more[2], "pager: 3 holes, at most 2:");
        assert_eq!(more.len(), 6);
        let fewer = ratchet.check(&finds(1, 0));
        assert_eq!(fewer, ["pager: 1 holes, 2 in the table: lower it in crates/xtask/src/tidy/x.rs"]);
        assert_eq!(ratchet.check(&finds(50, 0)).len(), 1 + LISTED + 1);
    }
}
