//! Changes of comments, as a part of a change of definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use datum::Result;
use engine::rows::Strength;

use crate::catalog::Writing;
use crate::catalog::changes::lay_over;
use crate::catalog::comment::{CommentKey, CommentKind};
use crate::catalog::object_id::{ObjectId, UNNUMBERED};
use crate::catalog::record::put_pieces;

impl Writing<'_> {
    /// Stores a comment, or removes it. The record is locked to the end of the transaction.
    pub fn put_comment(&mut self, key: CommentKey, text: Option<&str>) -> Result<()> {
        self.lock(&[&b"L\0"[..], &key.bytes()].concat(), Strength::Exclusive)?;
        put_pieces(&mut self.txn, &key.bytes(), text.map(str::as_bytes))?;
        let text = text.map(Into::into);
        lay_over(&BTreeMap::from([(key, text.clone())]), &mut self.snapshot.comments);
        self.changes().comments.insert(key, text);
        Ok(())
    }

    /// Removes the comments on dropped things of a kind.
    pub fn drop_comments(&mut self, kind: CommentKind, of: impl IntoIterator<Item = u64>) -> Result<()> {
        for of in of {
            let from = CommentKey::whole(kind, of);
            let to = CommentKey { column: u32::MAX, ..from };
            let known = self.snapshot.comments.range((Bound::Included(from), Bound::Included(to)));
            let gone: Vec<CommentKey> = known.map(|(key, _)| *key).collect();
            for key in gone {
                self.put_comment(key, None)?;
            }
        }
        Ok(())
    }

    /// Removes the comments on the objects that a changed definition no longer has.
    pub(super) fn drop_comments_gone(
        &mut self,
        old: impl IntoIterator<Item = ObjectId>,
        new: impl IntoIterator<Item = ObjectId>,
    ) -> Result<()> {
        if self.snapshot.comments.is_empty() {
            return Ok(());
        }
        let kept: BTreeSet<ObjectId> = new.into_iter().collect();
        self.drop_comments_of(old.into_iter().filter(|id| !kept.contains(id)))
    }

    /// Removes the comments on dropped objects: schemas, relations and constraints.
    pub(super) fn drop_comments_of(&mut self, ids: impl IntoIterator<Item = ObjectId>) -> Result<()> {
        if self.snapshot.comments.is_empty() {
            return Ok(());
        }
        let ids: Vec<ObjectId> = ids.into_iter().filter(|id| *id != UNNUMBERED).collect();
        for kind in [CommentKind::Object, CommentKind::Constraint, CommentKind::Database] {
            self.drop_comments(kind, ids.iter().copied())?;
        }
        Ok(())
    }
}
