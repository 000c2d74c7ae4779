//! Scores of sorted sets: their order as bytes, and the sub keys of elements by score.
//!
//! ```text
//!   sub key     score, order-preserving u64 BE | member                                      of at most 512 bytes
//!               score, order-preserving u64 BE | first 512 bytes | SHA-256 of the member     of a longer one
//!   payload     nothing, or flags u8: 1 the score is -0, which sorts as 0 | [hash of a long member u48 BE]
//! ```

use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::keyspace::key::{HASH_BYTES, SHORT_MEMBER_MAX};
use crate::keyspace::record::RAW;

/// Bytes of an order-preserving score.
const SORTABLE_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
const NEGATIVE_ZERO: u8 = 1;

/// Returns a number that sorts as the score does. Both zeros have the same.
pub(crate) fn sortable(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn of_sortable(number: u64) -> f64 {
    f64::from_bits(if number >> 63 == 1 { number & !(1 << 63) } else { !number })
}

/// Returns the score that is stored in a set of this form. As in Redis, a listpack has no -0.
pub(crate) fn stored(score: f64, form: u8) -> f64 {
    if form & RAW == 0 { score + 0.0 } else { score }
}

/// Returns the score that is the value of a member.
pub(crate) fn of_value(value: &[u8]) -> Result<f64> {
    let bytes = value.try_into().map_err(|_| Error::corrupt("a score that is not eight bytes long"))?;
    Ok(f64::from_le_bytes(bytes))
}

/// A place between the members of a sorted set, in the order of scores and members.
#[derive(Clone, Copy, Debug)]
pub enum ScoreBound<'m> {
    /// Before the members with this score, or after them.
    Score { score: f64, is_after: bool },
    /// Before this member, or after it.
    Member { score: f64, member: &'m [u8], is_after: bool },
}

impl ScoreBound<'_> {
    /// Returns the sub key that all members before the place, and no others, precede.
    pub(crate) fn sub(&self) -> Vec<u8> {
        match self {
            ScoreBound::Score { score, is_after } => (sortable(*score) + u64::from(*is_after)).to_be_bytes().to_vec(),
            ScoreBound::Member { score, member, is_after } => {
                let mut sub = sub_key(*score, member);
                if *is_after {
                    sub.push(0);
                }
                sub
            }
        }
    }

    /// Returns true if a member lies before the place.
    pub(crate) fn is_after(&self, score: f64, member: &[u8]) -> bool {
        let found = sortable(score);
        match self {
            ScoreBound::Score { score, is_after } => found < sortable(*score) + u64::from(*is_after),
            ScoreBound::Member { score, member: at, is_after } => {
                let (found, at) = ((found, member), (sortable(*score), *at));
                found < at || *is_after && found == at
            }
        }
    }
}

/// Returns the sub key of a member by score.
pub(crate) fn sub_key(score: f64, member: &[u8]) -> Vec<u8> {
    let start = sortable(score).to_be_bytes();
    match member.split_at_checked(SHORT_MEMBER_MAX) {
        Some((first, [_, ..])) => [&start[..], first, &sha256(member)].concat(),
        _ => [&start[..], member].concat(),
    }
}

/// Returns the payload of the record of a member by score. `hash` is that of a long member.
pub(crate) fn payload(score: f64, hash: Option<u64>) -> Vec<u8> {
    let flags = if score == 0.0 && score.is_sign_negative() { NEGATIVE_ZERO } else { 0 };
    let mut payload = Vec::new();
    if flags != 0 || hash.is_some() {
        payload.push(flags);
    }
    if let Some(hash) = hash {
        payload.extend_from_slice(&hash.to_be_bytes()[8 - HASH_BYTES..]);
    }
    payload
}

/// A member, as its element by score names it.
#[derive(Debug, PartialEq)]
pub(crate) enum NamedMember<'a> {
    Short(&'a [u8]),
    /// The sub key of a long member.
    Long {
        hash: u64,
        digest: &'a [u8],
    },
}

/// Returns the score and the member of an element by score.
pub(crate) fn parse<'a>(sub: &'a [u8], payload: &'a [u8]) -> Result<(f64, NamedMember<'a>)> {
    let parse = || {
        let (start, member) = sub.split_first_chunk::<SORTABLE_BYTES>()?;
        let (flags, hash) = payload.split_first().map_or((0, payload), |(flags, hash)| (*flags, hash));
        let score = of_sortable(u64::from_be_bytes(*start));
        let score = if flags == NEGATIVE_ZERO && score == 0.0 { -0.0 } else { score };
        let named = if member.len() <= SHORT_MEMBER_MAX && hash.is_empty() {
            NamedMember::Short(member)
        } else {
            let mut word = [0; 8];
            word[8 - HASH_BYTES..].copy_from_slice(hash.get(..).filter(|hash| hash.len() == HASH_BYTES)?);
            let digest = member.get(SHORT_MEMBER_MAX..).filter(|digest| digest.len() == DIGEST_BYTES)?;
            NamedMember::Long { hash: u64::from_be_bytes(word), digest }
        };
        (flags & !NEGATIVE_ZERO == 0 && !score.is_nan()).then_some((score, named))
    };
    parse().ok_or_else(|| Error::corrupt("an element by score has an unknown form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_sort_as_numbers_and_come_back() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            1.0 + f64::EPSILON,
            f64::MAX,
            f64::INFINITY,
        ];
        assert!(scores.windows(2).all(|pair| sortable(pair[0]) < sortable(pair[1])));
        assert!(scores.iter().all(|score| of_sortable(sortable(*score)) == *score));
        assert_eq!(sortable(-0.0), sortable(0.0));
    }

    #[test]
    fn elements_by_score_parse_as_they_were_written() {
        let long = [b'x'; 700];
        for (score, member) in
            [(-0.0, &b""[..]), (0.0, b"a"), (f64::INFINITY, &long[..512]), (-0.0, &long), (7.5, &long)]
        {
            let hash = (member.len() > SHORT_MEMBER_MAX).then_some(77);
            let (sub, payload) = (sub_key(score, member), payload(score, hash));
            let (found, named) = parse(&sub, &payload).unwrap();
            assert_eq!(found.to_bits(), score.to_bits());
            match named {
                NamedMember::Short(short) => assert_eq!(short, member),
                NamedMember::Long { hash, digest } => assert_eq!((hash, digest), (77, &sha256(member)[..])),
            }
        }
        assert!(parse(&[0; 7], &[]).is_err() && parse(&[0x80; 9], &[2]).is_err());
        assert!(parse(&sub_key(1.0, &long), &[]).is_err() && parse(&u64::MAX.to_be_bytes(), &[]).is_err());
    }

    #[test]
    fn bounds_lie_where_they_say() {
        let members = [(-1.0, &b"b"[..]), (0.0, b""), (0.0, b"a"), (0.0, b"a\0"), (0.0, b"b"), (1.0, b"a")];
        let bounds = [
            ScoreBound::Score { score: -0.0, is_after: false },
            ScoreBound::Score { score: 0.0, is_after: true },
            ScoreBound::Member { score: 0.0, member: b"a", is_after: false },
            ScoreBound::Member { score: 0.0, member: b"a", is_after: true },
        ];
        let before: Vec<usize> = bounds
            .iter()
            .map(|bound| {
                for (score, member) in members {
                    assert_eq!(bound.is_after(score, member), sub_key(score, member) < bound.sub(), "{bound:?}");
                }
                members.iter().filter(|(score, member)| bound.is_after(*score, member)).count()
            })
            .collect();
        assert_eq!(before, [1, 5, 2, 3]);
    }
}
