//! A round: what has arrived on several connections is received first, then looked at together, then served.
//!
//! Together, because then the cache misses of all requests overlap, and the disk gets all reads at once. Requests that need a page which is not in
//! memory leave the round: they come back through the queue when it is, and no thread waits for it.
//!
//! Hard part: a connection that is in a round, or away for its pages, keeps its turn, and its session is out of it. So whatever is left of a round when its
//! thread begins to wait inside a request goes back to its connections and into the queue, and who is away always comes back (R9).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::connection::Connection;
use crate::door::{AnyDoor, Fetch, Waiting};
use crate::group::{Group, Work};
use crate::scratch::Scratch;
use crate::send_batch;

/// A connection whose requests are to be served in this round.
pub struct Member {
    pub connection: Arc<Connection>,
    pub waiting: Waiting,
}

thread_local! {
    /// Who has joined and was not looked at yet.
    static JOINED: RefCell<Vec<Member>> = const { RefCell::new(Vec::new()) };
    /// Who is to be served now. Apart from the others: a request served without a look ahead would wait for its page here.
    static LEFT: RefCell<VecDeque<Member>> = const { RefCell::new(VecDeque::new()) };
}

/// Adds a connection to the calling thread's round.
pub fn join(member: Member) {
    JOINED.with_borrow_mut(|joined| joined.push(member));
}

/// Adds a connection whose pages have come: it is served without another look.
pub fn come_back(member: Member) {
    LEFT.with_borrow_mut(|left| left.push_back(member));
}

/// Serves all who have joined or come back, and sends their replies.
pub fn play(group: &Arc<Group>, scratch: &mut Scratch) {
    let mut members = JOINED.take();
    let mut away = Vec::new();
    if !members.is_empty() {
        look_ahead(&mut members, &mut away);
        LEFT.with_borrow_mut(|left| left.extend(members.drain(..)));
        JOINED.with_borrow_mut(|joined| {
            if joined.is_empty() {
                *joined = members;
            }
        });
    }
    while let Some(member) = LEFT.with_borrow_mut(VecDeque::pop_front) {
        crate::group::begin_work();
        member.connection.serve_arrived(member.waiting, scratch);
    }
    send_batch::send(Some(scratch));
    for (fetch, late) in away {
        fetch(late.into_iter().map(|member| back_to(group.clone(), member)).collect());
    }
    group.hand_in();
}

/// To be called when the page of `member` has come.
fn back_to(group: Arc<Group>, member: Member) -> Box<dyn FnOnce() + Send> {
    Box::new(move || group.enqueue(std::iter::once(Work::Back(member))))
}

/// Lets the door of each member look at what has arrived. Who needs a page goes into `away`.
fn look_ahead(members: &mut Vec<Member>, away: &mut Vec<(Fetch, Vec<Member>)>) {
    let mut ready = Vec::new();
    while let Some(first) = members.first() {
        let door = first.connection.door().clone();
        let is_of_door = |member: &Member| Arc::ptr_eq(member.connection.door(), &door);
        if ready.is_empty() && members.iter().all(is_of_door) {
            // Nearly always there is one.
            return look_ahead_with(&door, members, away);
        }
        let (mut of_door, rest) = std::mem::take(members).into_iter().partition(is_of_door);
        look_ahead_with(&door, &mut of_door, away);
        ready.append(&mut of_door);
        *members = rest;
    }
    *members = ready;
}

/// The same with members of one door.
fn look_ahead_with(door: &Arc<dyn AnyDoor>, members: &mut Vec<Member>, away: &mut Vec<(Fetch, Vec<Member>)>) {
    let mut waiting: Vec<&mut Waiting> = members.iter_mut().map(|member| &mut member.waiting).collect();
    if let Some(fetch) = door.look_ahead(&mut waiting) {
        let (late, now) = std::mem::take(members).into_iter().partition(|member| member.waiting.is_deferred);
        away.push((fetch, late));
        *members = now;
    }
}

/// The calling thread begins to wait: what it has not served yet is given to others.
pub fn give_back() {
    for member in LEFT.take().into_iter().chain(JOINED.take()) {
        member.connection.take_back(member.waiting);
    }
}
