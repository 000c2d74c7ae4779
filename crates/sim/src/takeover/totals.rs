//! The parts of the fence that can be left out, and the totals of histories.

use std::fmt;

/// A part of the fence that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverFault {
    /// The root takes every boot number.
    Root,
    /// Segments take appends of every epoch (F1).
    Log,
    /// Pages take writes of every epoch (F2).
    Pages,
    /// A node replies without a lease (F5).
    Lease,
    /// A candidate takes the lease before the holder's time has passed.
    Wait,
    /// The holder counts its time from the answer to a renewal.
    Answer,
    /// The lease takes every version.
    Holder,
    /// An opening goes on after a write whose outcome is not known.
    Doubt,
    /// Recovery does not write pages that it finds up to date (F3).
    Redone,
}

/// The faults that the model must detect. `Doubt` and `Redone` are not among them: see the README.
pub const TAKEOVER_FAULTS: [TakeoverFault; 7] = [
    TakeoverFault::Root,
    TakeoverFault::Log,
    TakeoverFault::Pages,
    TakeoverFault::Lease,
    TakeoverFault::Wait,
    TakeoverFault::Answer,
    TakeoverFault::Holder,
];

const NAMES: [(&str, TakeoverFault); 9] = [
    ("root", TakeoverFault::Root),
    ("log", TakeoverFault::Log),
    ("pages", TakeoverFault::Pages),
    ("lease", TakeoverFault::Lease),
    ("wait", TakeoverFault::Wait),
    ("answer", TakeoverFault::Answer),
    ("holder", TakeoverFault::Holder),
    ("doubt", TakeoverFault::Doubt),
    ("redone", TakeoverFault::Redone),
];

impl TakeoverFault {
    pub fn named(name: &str) -> Option<TakeoverFault> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, fault)| *fault == self).expect("every fault has a name").0
    }
}

/// Totals of such histories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeoverSummary {
    pub histories: u64,
    pub steps: u64,
    /// Openings whose recovery was compared with the oracle.
    pub openings: u64,
    /// Pauses in an operation, and deaths.
    pub pauses: u64,
    pub deaths: u64,
    /// Writes that were refused because of their epoch.
    pub refused: u64,
    /// Acknowledged writes and shown reads.
    pub acknowledged: u64,
    pub shown: u64,
    /// Writes of nodes that had gone, which arrived late.
    pub late: u64,
}

impl TakeoverSummary {
    pub fn add(&mut self, other: &TakeoverSummary) {
        let TakeoverSummary { histories, steps, openings, pauses, deaths, refused, acknowledged, shown, late } = other;
        self.histories += histories;
        self.steps += steps;
        self.openings += openings;
        self.pauses += pauses;
        self.deaths += deaths;
        self.refused += refused;
        self.acknowledged += acknowledged;
        self.shown += shown;
        self.late += late;
    }
}

impl fmt::Display for TakeoverSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TakeoverSummary { histories, steps, openings, pauses, deaths, refused, acknowledged, shown, late } = self;
        write!(
            f,
            "{histories} histories, {steps} steps, {openings} openings verified, {pauses} pauses, {deaths} deaths, {late} late writes, {refused} writes refused, {acknowledged} writes acknowledged, {shown} reads shown"
        )
    }
}
