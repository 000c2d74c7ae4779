//! Conditions of a jsonpath.

use std::borrow::Cow;
use std::cmp::Ordering;

use datum::json::Node;

use crate::functions::json::path::{Evaluation, Fail, PathItem, Run, Truth, compile, number};
use crate::functions::text::regex::gave_up;
use crate::types::jsonpath::{Compare, Expr};

impl<'d> Evaluation<'d, '_> {
    /// Evaluates a condition over the current item.
    pub(super) fn condition(&mut self, condition: &Expr, current: &PathItem<'d>) -> Run<Truth> {
        self.tick()?;
        Ok(match condition {
            Expr::And(left, right) => match self.condition(left, current)? {
                Truth::False => Truth::False,
                left => match self.condition(right, current)? {
                    Truth::True => left,
                    right => right,
                },
            },
            Expr::Or(left, right) => match self.condition(left, current)? {
                Truth::True => Truth::True,
                left => match self.condition(right, current)? {
                    Truth::False => left,
                    right => right,
                },
            },
            Expr::Not(operand) => match self.condition(operand, current)? {
                Truth::Unknown => Truth::Unknown,
                truth => (truth == Truth::False).into(),
            },
            Expr::IsUnknown(operand) => (self.condition(operand, current)? == Truth::Unknown).into(),
            Expr::Exists(operand) => self.exists(operand, current)?,
            Expr::Compare(op, left, right) => {
                let Some(right) = self.quiet(|run| run.operand(right, current))? else { return Ok(Truth::Unknown) };
                let Some(left) = self.quiet(|run| run.operand(left, current))? else { return Ok(Truth::Unknown) };
                self.any_pair(&left, &right, |left, right| Ok(compare(*op, left, right)))?
            }
            Expr::StartsWith(left, initial) => {
                let Some(left) = self.quiet(|run| run.operand(left, current))? else { return Ok(Truth::Unknown) };
                let mut initials = Vec::new();
                let done = self.quiet(|run| run.expr(initial, current, &mut initials))?;
                if done.is_none() {
                    return Ok(Truth::Unknown);
                }
                self.any_pair(&left, &initials, |left, initial| {
                    Ok(match (left, initial) {
                        (Node::String(text), Node::String(initial)) => text.starts_with(&**initial).into(),
                        _ => Truth::Unknown,
                    })
                })?
            }
            Expr::LikeRegex { operand, pattern, flags } => {
                let Some(items) = self.quiet(|run| run.operand(operand, current))? else { return Ok(Truth::Unknown) };
                let regex = compile(pattern, *flags).map_err(|error| Fail::Statement(error.into()))?;
                self.any_pair(&items, &[Cow::Owned(Node::Null)], |item, _| match item {
                    Node::String(text) => match regex.is_match(&**text) {
                        Ok(found) => Ok(found.into()),
                        Err(error) => Err(Fail::Statement(gave_up(error).into())),
                    },
                    _ => Ok(Truth::Unknown),
                })?
            }
            // A filter has a condition alone.
            _ => Truth::Unknown,
        })
    }

    /// Runs an operand's evaluation; `None` if the path has an error there.
    fn quiet<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<Option<T>> {
        match run(self) {
            Ok(result) => Ok(Some(result)),
            Err(Fail::Path(_)) => Ok(None),
            Err(statement) => Err(statement),
        }
    }

    fn exists(&mut self, operand: &Expr, current: &PathItem<'d>) -> Run<Truth> {
        let mut items = Vec::new();
        let is_done = self.quiet(|run| run.expr(operand, current, &mut items))?.is_some();
        Ok(match (is_done, self.is_lax) {
            // The first item decides before an error behind it.
            (false, true) if !items.is_empty() => Truth::True,
            (false, _) => Truth::Unknown,
            (true, _) => (!items.is_empty()).into(),
        })
    }

    /// Returns whether a condition holds for a pair: in lax mode for the first that is not false, in strict mode unless one is unknown.
    fn any_pair(
        &mut self,
        left: &[PathItem<'d>],
        right: &[PathItem<'d>],
        mut holds: impl FnMut(&Node, &Node) -> Run<Truth>,
    ) -> Run<Truth> {
        let (mut has_failed, mut is_found) = (false, false);
        for left in left {
            for right in right {
                self.tick()?;
                match holds(left, right)? {
                    Truth::Unknown if !self.is_lax => return Ok(Truth::Unknown),
                    Truth::Unknown => has_failed = true,
                    Truth::True if self.is_lax => return Ok(Truth::True),
                    Truth::True => is_found = true,
                    Truth::False => {}
                }
            }
        }
        Ok(match (is_found, has_failed) {
            (true, _) => Truth::True,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::False,
        })
    }
}

/// Compares two items. Null is unequal to all others; documents, and items of two kinds, cannot be compared.
fn compare(op: Compare, left: &Node, right: &Node) -> Truth {
    let order = match (left, right) {
        (Node::Null, Node::Null) => Ordering::Equal,
        (Node::Null, _) | (_, Node::Null) => return (op == Compare::NotEqual).into(),
        (Node::Bool(left), Node::Bool(right)) => left.cmp(right),
        (Node::String(left), Node::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (left, right) => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => return Truth::Unknown,
        },
    };
    match op {
        Compare::Equal => order.is_eq(),
        Compare::NotEqual => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterEqual => order.is_ge(),
    }
    .into()
}
