//! Where the records of keys are, found before their commands run.

use btree::LeafHint;

use crate::keyspace::stripes::Stripe;

/// A hint that `look_ahead` found for a key. Valid for that key only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    /// The keyspace number under which the key was looked up.
    space: u32,
    stripe: Stripe,
    at: LeafHint,
}

impl Ahead {
    pub(crate) fn new(space: u32, stripe: Stripe, at: LeafHint) -> Ahead {
        Ahead { space, stripe, at }
    }

    /// Returns true if the record's page is not cached, so that reading it waits for the disk.
    pub fn is_absent(&self) -> bool {
        matches!(self.at, LeafHint::Missing(_))
    }

    /// Returns the hint, whatever key it is for.
    pub(crate) fn leaf(self) -> LeafHint {
        self.at
    }

    /// Returns the hint if it was made for the same keyspace number (the database may have been flushed or swapped since). The stripe is compared because that
    /// costs nothing and detects nearly every mix-up of keys, which would otherwise hide a value.
    pub(crate) fn of(self, space: u32, stripe: Stripe) -> LeafHint {
        if self.space == space && self.stripe == stripe { self.at } else { LeafHint::Unknown }
    }
}
