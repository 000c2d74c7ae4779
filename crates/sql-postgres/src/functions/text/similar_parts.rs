//! The parts of a text that a pattern with separators matches: the first as short as it can be, then the second as long as it can be.
//!
//! Automata find all ends of the first part from the left and all beginnings of what is behind it from the right, so the time is linear in the text. A search that backtracks finds other parts for alternatives and
//! nested quantifiers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use datum::Result;
use regex_automata::hybrid::dfa::{Cache, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind};

use crate::functions::args::claim;
use crate::functions::text::regex::{RegexOptions, translated};

/// The bytes of an automaton's states; as with the cache of its transitions, a pattern beyond is left to the library's search.
const AUTOMATON_MAX: usize = 1 << 20;
/// The transitions that an automaton remembers; when there are more, it begins anew.
const CACHE_BYTES: usize = 1 << 18;
/// Patterns that a thread keeps; when there are more, it begins anew.
const KEPT_MAX: usize = 16;

/// The automata of a pattern: forward ones of the first and the second part, backward ones of what is behind each.
struct Automata([(DFA, RefCell<Cache>); 4]);

/// By the parts. `None`: they are nothing for automata.
type AutomataOfParts = HashMap<Box<[String]>, Option<Rc<Automata>>>;

thread_local! {
    static KEPT: RefCell<AutomataOfParts> = RefCell::new(HashMap::new());
}

/// Returns the second part of the text if it matches the whole of the parts. The outer `None`: these parts are nothing for automata.
pub fn parts_of_match(parts: &[String], text: &str) -> Result<Option<Option<Range<usize>>>> {
    let Some(automata) = automata(parts) else { return Ok(None) };
    let [first, second, behind_first, behind_second] = &automata.0;
    let _claim = claim(2 * (text.len() / 8 + 1))?;
    let found = || -> Option<Option<Range<usize>>> {
        let (mut ends, mut starts) = (PlaceSet::of(text), PlaceSet::of(text));
        each_end(first, text, 0, &mut ends)?;
        each_start(behind_first, text, 0, &mut starts)?;
        let Some(start) = ends.common(&starts).next() else { return Some(None) };
        let (mut ends, mut starts) = (PlaceSet::of(text), PlaceSet::of(text));
        each_end(second, text, start, &mut ends)?;
        each_start(behind_second, text, start, &mut starts)?;
        let end = ends.common(&starts).last();
        Some(end.map(|end| start..end))
    };
    Ok(found())
}

fn automata(parts: &[String]) -> Option<Rc<Automata>> {
    KEPT.with_borrow_mut(|kept| {
        if let Some(known) = kept.get(parts) {
            return known.clone();
        }
        let made = made(parts).map(Rc::new);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(parts.into(), made.clone());
        made
    })
}

fn made(parts: &[String]) -> Option<Automata> {
    let mut whole = Vec::with_capacity(3);
    for part in parts {
        // A group of the expression's own, so that what begins like an option is none.
        whole.push(translated(&format!("(?:{part})"), RegexOptions::PLAIN).ok()?);
    }
    whole.resize(3, String::new());
    let automaton = |pattern: &str, is_backward: bool| {
        let nfa = thompson::Config::new().reverse(is_backward).nfa_size_limit(Some(AUTOMATON_MAX));
        let config =
            DFA::config().match_kind(MatchKind::All).cache_capacity(CACHE_BYTES).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).thompson(nfa).build(pattern).ok()?;
        let cache = RefCell::new(dfa.create_cache());
        Some((dfa, cache))
    };
    Some(Automata([
        automaton(&whole[0], false)?,
        automaton(&whole[1], false)?,
        automaton(&format!("{}{}", whole[1], whole[2]), true)?,
        automaton(&whole[2], true)?,
    ]))
}

/// Places in a text, each a bit.
struct PlaceSet(Vec<u8>);

impl PlaceSet {
    fn of(text: &str) -> PlaceSet {
        PlaceSet(vec![0; text.len() / 8 + 1])
    }

    fn set(&mut self, place: usize) {
        self.0[place / 8] |= 1 << (place % 8);
    }

    /// Returns the places of both, in order.
    fn common<'b>(&'b self, other: &'b PlaceSet) -> impl Iterator<Item = usize> {
        let both = self.0.iter().zip(&other.0).map(|(a, b)| a & b).enumerate();
        both.flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit))
    }
}

/// Notes the ends of all matches that begin at a place. `None`: the automaton cannot tell.
fn each_end((dfa, cache): &(DFA, RefCell<Cache>), text: &str, from: usize, ends: &mut PlaceSet) -> Option<()> {
    let (mut cache, mut state) = (cache.borrow_mut(), OverlappingState::start());
    let input = Input::new(text).range(from..).anchored(Anchored::Yes);
    loop {
        dfa.try_search_overlapping_fwd(&mut cache, &input, &mut state).ok()?;
        match state.get_match() {
            Some(end) => ends.set(end.offset()),
            None => return Some(()),
        }
    }
}

/// Notes the beginnings, from a place on, of all matches that end with the text. `None`: the automaton cannot tell.
fn each_start((dfa, cache): &(DFA, RefCell<Cache>), text: &str, from: usize, starts: &mut PlaceSet) -> Option<()> {
    let (mut cache, mut state) = (cache.borrow_mut(), OverlappingState::start());
    let input = Input::new(text).range(from..).anchored(Anchored::Yes);
    loop {
        dfa.try_search_overlapping_rev(&mut cache, &input, &mut state).ok()?;
        match state.get_match() {
            Some(start) => starts.set(start.offset()),
            None => return Some(()),
        }
    }
}
