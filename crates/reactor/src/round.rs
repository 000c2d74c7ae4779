//! A round: the requests of several connections are received first, passed to the door's look ahead together, and then served.
//!
//! Together, because then the cache misses of all requests overlap and the disk gets all reads at once. Requests that need a page which is not in
//! memory are deferred: they leave the round and come back through the queue when the page has been read, and no thread waits for it.
//!
//! Hard part: a connection that is in a round, or deferred, stays running, and its session is outside of it. So the rest of a round goes back to its connections and into
//! the queue when its thread begins to wait inside a request, and every deferred connection comes back (RE-9).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::context;
use crate::scratch::Scratch;
use crate::send_batch;
use crate::state::{AnyDoor, Batch, Fetch, Group, Member, Work};

thread_local! {
    /// Members that have joined and have not passed the look ahead.
    static JOINED: RefCell<Vec<Member>> = const { RefCell::new(Vec::new()) };
    /// Members to be served now. They are apart from the others, because a request served without a look ahead would wait for its page here.
    static READY: RefCell<VecDeque<Member>> = const { RefCell::new(VecDeque::new()) };
}

/// Adds a connection to the calling thread's round.
pub(crate) fn join(member: Member) {
    JOINED.with_borrow_mut(|joined| joined.push(member));
}

/// Adds a deferred connection whose pages have been read. It is served without another look ahead.
pub(crate) fn rejoin(member: Member) {
    READY.with_borrow_mut(|ready| ready.push_back(member));
}

/// Serves the members of the round, sends their replies, and starts the reads of those that are deferred.
pub(crate) fn run(group: &Arc<Group>, scratch: &mut Scratch) {
    let mut members = JOINED.take();
    let mut deferred = Vec::new();
    if !members.is_empty() {
        look_ahead(&mut members, &mut deferred);
        READY.with_borrow_mut(|ready| ready.extend(members.drain(..)));
        JOINED.with_borrow_mut(|joined| {
            if joined.is_empty() {
                *joined = members;
            }
        });
    }
    while let Some(member) = READY.with_borrow_mut(VecDeque::pop_front) {
        context::begin_work();
        member.connection.serve_batch(member.batch, scratch);
    }
    send_batch::send(Some(scratch));
    for (fetch, late) in deferred {
        fetch(late.into_iter().map(|member| return_to(group.clone(), member)).collect());
    }
    group.submit_source();
}

/// Returns the callback that brings a deferred member back.
fn return_to(group: Arc<Group>, member: Member) -> Box<dyn FnOnce() + Send> {
    Box::new(move || group.enqueue(std::iter::once(Work::Fetched(member))))
}

/// Lets the door of each member look ahead. Moves the deferred members to `deferred`.
fn look_ahead(members: &mut Vec<Member>, deferred: &mut Vec<(Fetch, Vec<Member>)>) {
    let mut ready = Vec::new();
    while let Some(first) = members.first() {
        let door = first.connection.door.clone();
        let is_of_door = |member: &Member| Arc::ptr_eq(&member.connection.door, &door);
        if ready.is_empty() && members.iter().all(is_of_door) {
            // Nearly always there is one door.
            return look_ahead_with(&door, members, deferred);
        }
        let (mut of_door, rest) = std::mem::take(members).into_iter().partition(is_of_door);
        look_ahead_with(&door, &mut of_door, deferred);
        ready.append(&mut of_door);
        *members = rest;
    }
    *members = ready;
}

/// Does the same for members of one door.
fn look_ahead_with(door: &Arc<dyn AnyDoor>, members: &mut Vec<Member>, deferred: &mut Vec<(Fetch, Vec<Member>)>) {
    let mut batches: Vec<&mut Batch> = members.iter_mut().map(|member| &mut member.batch).collect();
    if let Some(fetch) = door.look_ahead(&mut batches) {
        let (late, now) = std::mem::take(members).into_iter().partition(|member| member.batch.is_deferred);
        deferred.push((fetch, late));
        *members = now;
    }
}

/// Gives the members that are not served back to their connections and to the queue. Called when the thread begins to wait.
pub(crate) fn give_back() {
    for member in READY.take().into_iter().chain(JOINED.take()) {
        member.connection.take_back(member.batch);
    }
}
