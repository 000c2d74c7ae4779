//! Portals: statements with values for their parameters, and what remains of their rows. A cursor is a portal.
//!
//! A portal keeps the rest of its rows between two statements. Before another statement runs, the rest is gathered (in a file where memory is short), because the executor keeps the caches of one statement only (PS-2). FETCH, MOVE, CLOSE and
//! the end of a transaction do not count as other statements, so a cursor that is read in one go streams.
//!
//! A scrollable cursor also keeps the rows that it has passed. `CursorPlace` follows PostgreSQL's `portalPos`, `atStart` and `atEnd` word for word: they decide what FETCH gives at the ends.

use std::sync::Arc;

use query::exec::Exec;
use query::exec::host::host;
use query::exec::spill::rows::{Near, Rows};
use query::nodes::context::EvalContext;

use crate::batch::{Cells, Row};
use crate::bind::CursorTables;
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::session::facts::{CursorFacts, FactsOf as _};
use crate::session::result_set::{ResultColumns, Running};
use crate::session::statement::Prepared;
use crate::value::Value;

pub(super) struct Portal {
    pub prepared: Arc<Prepared>,
    pub values: Vec<Value>,
    pub columns: ResultColumns,
    pub state: PortalState,
    pub options: PortalOptions,
    /// Its number in the order in which the session has made portals.
    pub number: u64,
    /// It has outlived its transaction.
    pub is_held: bool,
    pub tables: CursorTables,
    pub place: CursorPlace,
    passed: Passed,
}

/// The properties of a portal as a cursor. One of Bind has none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortalOptions {
    pub is_declared: bool,
    pub is_binary: bool,
    pub is_scrollable: bool,
    pub is_holdable: bool,
}

pub(super) enum PortalState {
    New,
    /// The rest of its rows, and the number of the statement that produces them.
    Suspended(Running, u64),
    /// Its rows are on their way.
    Active,
    Done,
    /// An error has ended it.
    Failed,
}

/// Where a portal is among its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct CursorPlace {
    pub at_start: bool,
    pub at_end: bool,
    pub position: u64,
}

/// The rows that a scrollable cursor has passed.
#[derive(Default)]
struct Passed {
    rows: Rows,
    near: Near,
    /// The current row, where WHERE CURRENT OF may name it.
    current: Option<Row>,
}

impl CursorPlace {
    const START: CursorPlace = CursorPlace { at_start: true, at_end: false, position: 0 };

    /// Returns the number of the current row, from 1; 0 before the first.
    fn row(self) -> u64 {
        match self {
            CursorPlace { at_start: true, at_end: false, .. } => 0,
            CursorPlace { at_end: true, position, .. } => position + 1,
            CursorPlace { position, .. } => position,
        }
    }

    /// Moves over rows that were read forward, of `wanted`.
    pub fn advance(&mut self, rows: u64, wanted: u64) {
        self.at_start &= rows == 0;
        self.at_end |= rows < wanted;
        self.position += rows;
    }

    fn retreat(&mut self, rows: u64, wanted: u64) {
        if rows > 0 && self.at_end {
            self.at_end = false;
            self.position += 1;
        }
        if rows < wanted {
            (self.at_start, self.position) = (true, 0);
        } else {
            self.position -= rows;
        }
    }

    fn is_on_row(self) -> bool {
        !self.at_start && !self.at_end
    }
}

/// All rows.
pub(super) const ALL: u64 = u64::MAX;

impl Portal {
    pub fn new(prepared: Arc<Prepared>, values: Vec<Value>, columns: ResultColumns, options: PortalOptions) -> Portal {
        Portal {
            prepared,
            values,
            columns,
            state: PortalState::New,
            options,
            number: 0,
            is_held: false,
            tables: CursorTables::default(),
            place: CursorPlace::START,
            passed: Passed::default(),
        }
    }

    /// Returns whether its rows come from the executor of the statement with this number.
    pub fn is_running(&self, number: u64) -> bool {
        self.is_live() && matches!(&self.state, PortalState::Suspended(_, own) if *own == number)
    }

    /// Returns whether the executor has rows to produce for it, and they are not gathered.
    fn is_live(&self) -> bool {
        matches!(&self.state, PortalState::Suspended(running, _) if running.is_live())
    }

    /// Gathers the rest of the rows, so that they need the executor no more. An error of the query is kept for the reader who comes to it; an error that ends the statement under way is returned.
    pub fn gather(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let PortalState::Suspended(running, _) = &mut self.state else { return Ok(()) };
        if !running.is_live() {
            return Ok(());
        }
        let gathered = match self.options.is_scrollable {
            true => running.pass_all(&mut self.passed.rows, ctx),
            false => running.gather(ctx),
        };
        self.passed.near = Near::default();
        match gathered {
            Ok(()) => Ok(()),
            Err(error) if error.state == state::QUERY_CANCELED || error.state == state::ADMIN_SHUTDOWN => {
                self.state = PortalState::Failed;
                Err(error)
            }
            Err(error) => {
                running.fail(error);
                Ok(())
            }
        }
    }

    fn running(&mut self) -> Result<Option<&mut Running>> {
        match &mut self.state {
            PortalState::Suspended(running, _) => Ok(Some(running)),
            PortalState::Done => Ok(None),
            _ => Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "portal cannot be run")),
        }
    }

    /// Returns the next row that the query produces.
    fn produce(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let is_scrollable = self.options.is_scrollable;
        let Some(running) = self.running()? else { return Ok(None) };
        let Some(row) = running.next_row(ctx)? else { return Ok(None) };
        if is_scrollable {
            self.passed.rows.push(row.clone(), ctx)?;
            // Its copy of the last block is old.
            self.passed.near = Near::default();
        }
        Ok(Some(row))
    }

    /// Returns the row of this number, from 1.
    fn row(&mut self, number: u64, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let at = (number - 1) as usize;
        if self.options.is_scrollable && at < self.passed.rows.len() {
            return Ok(Some(self.passed.near.row(&self.passed.rows, at)?.clone()));
        }
        self.produce(ctx)
    }

    /// Moves over up to `count` rows, and gives them to `out`. Returns their number. PostgreSQL's PortalRunSelect.
    fn run(&mut self, is_forward: bool, count: u64, out: &mut Option<&mut Rows>, ctx: &mut EvalContext) -> Result<u64> {
        if !is_forward {
            self.check_scrollable()?;
        }
        let is_over = if is_forward { self.place.at_end } else { self.place.at_start };
        if is_over || count == 0 {
            return Ok(0);
        }
        let (from, mut rows, mut last) = (self.place.row(), 0, None);
        while rows < count {
            host(ctx).look_up()?;
            let row = match is_forward {
                true => self.row(from + rows + 1, ctx)?,
                false if from <= rows + 1 => None,
                false => self.row(from - rows - 1, ctx)?,
            };
            let Some(row) = row else { break };
            rows += 1;
            let is_named = !self.tables.keys.is_empty();
            if is_named {
                last = Some(row.clone());
            }
            if let Some(out) = out {
                out.push(row, ctx)?;
            }
        }
        match is_forward {
            true => self.place.advance(rows, count),
            false => self.place.retreat(rows, count),
        }
        self.passed.current = last.filter(|_| self.place.is_on_row());
        Ok(rows)
    }

    fn check_scrollable(&self) -> Result<()> {
        match self.options.is_scrollable {
            true => Ok(()),
            false => {
                let error = PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward");
                Err(error.hint("Declare it with SCROLL option to enable backward scan."))
            }
        }
    }

    /// PostgreSQL's DoPortalRewind.
    fn rewind(&mut self) -> Result<()> {
        if self.place.at_start && !self.place.at_end {
            return Ok(());
        }
        self.check_scrollable()?;
        self.place = CursorPlace::START;
        self.passed.current = None;
        Ok(())
    }

    pub fn forward(&mut self, count: u64, out: &mut Option<&mut Rows>, ctx: &mut EvalContext) -> Result<u64> {
        self.run(true, count, out, ctx)
    }

    /// FETCH or MOVE FORWARD and BACKWARD.
    pub fn fetch(
        &mut self,
        is_forward: bool,
        count: u64,
        out: &mut Option<&mut Rows>,
        ctx: &mut EvalContext,
    ) -> Result<u64> {
        let (mut is_forward, mut count) = (is_forward, count);
        if count == 0 {
            let is_on_row = self.place.is_on_row();
            if out.is_none() {
                return Ok(is_on_row.into());
            }
            if is_on_row {
                self.run(false, 1, &mut None, ctx)?;
                (is_forward, count) = (true, 1);
            }
        }
        if !is_forward && count == ALL && out.is_none() {
            let moved = self.place.position;
            let moved = if moved > 0 && !self.place.at_end { moved - 1 } else { moved };
            self.rewind()?;
            return Ok(moved);
        }
        self.run(is_forward, count, out, ctx)
    }

    /// FETCH or MOVE ABSOLUTE.
    pub fn absolute(&mut self, number: i64, out: &mut Option<&mut Rows>, ctx: &mut EvalContext) -> Result<u64> {
        let count = number.unsigned_abs();
        if number > 0 {
            let position = self.place.position;
            if count - 1 <= position / 2 {
                self.rewind()?;
                self.run(true, count - 1, &mut None, ctx)?;
            } else {
                let position = position + u64::from(self.place.at_end);
                if count <= position {
                    self.run(false, position - count + 1, &mut None, ctx)?;
                } else {
                    self.run(true, count - position - 1, &mut None, ctx)?;
                }
            }
            return self.run(true, 1, out, ctx);
        }
        if number < 0 {
            self.run(true, ALL, &mut None, ctx)?;
            if count > 1 {
                self.run(false, count - 1, &mut None, ctx)?;
            }
            return self.run(false, 1, out, ctx);
        }
        self.rewind()?;
        Ok(0)
    }

    /// FETCH or MOVE RELATIVE.
    pub fn relative(&mut self, number: i64, out: &mut Option<&mut Rows>, ctx: &mut EvalContext) -> Result<u64> {
        if number == 0 {
            return self.fetch(true, 0, out, ctx);
        }
        let (is_forward, count) = (number > 0, number.unsigned_abs());
        if count > 1 {
            self.run(is_forward, count - 1, &mut None, ctx)?;
        }
        self.run(is_forward, 1, out, ctx)
    }

    /// Returns the part that other statements see.
    fn facts(&self, created: i64) -> CursorFacts {
        CursorFacts {
            text: self.prepared.text.clone(),
            is_holdable: self.options.is_holdable,
            is_binary: self.options.is_binary,
            is_scrollable: self.options.is_scrollable,
            created,
            is_held: self.is_held,
            is_select: self.prepared.is_select(),
            tables: self.tables.clone(),
            row: None,
        }
    }
}

impl Running {
    /// Returns rows that are gathered.
    pub fn of_rows(rows: Rows) -> Running {
        let exec = Some(Box::new(Exec::of_rows(Arc::new(rows))));
        Running { exec, is_gathered: true, ..Running::default() }
    }

    /// Returns whether the executor has rows to produce, and they are not gathered.
    pub fn is_live(&self) -> bool {
        self.exec.is_some() && !self.is_gathered
    }

    /// Makes the reader who has come to the end fail.
    fn fail(&mut self, error: PgError) {
        self.failure = Some(Box::new(error));
    }

    fn next_row(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>> {
        loop {
            if self.at < self.ready.len() {
                self.at += 1;
                return Ok(Some(Cells::to_row(self.ready.row(self.at - 1))));
            }
            self.ready.clear();
            self.at = 0;
            let Some(exec) = &mut self.exec else {
                return self.failure.take().map_or(Ok(None), |error| Err(*error));
            };
            if !exec.fill(ctx, &mut self.ready)? {
                self.exec = None;
            }
        }
    }

    /// Gathers the rest of the rows.
    fn gather(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let mut rows = Rows::default();
        let gathered = self.pass_all(&mut rows, ctx);
        self.exec = Some(Box::new(Exec::of_rows(Arc::new(rows))));
        gathered
    }

    /// Appends the rest of the rows to `rows`.
    fn pass_all(&mut self, rows: &mut Rows, ctx: &mut EvalContext) -> Result<()> {
        let mut pass = |running: &mut Running| -> Result<()> {
            while let Some(row) = running.next_row(ctx)? {
                rows.push(row, ctx)?;
            }
            Ok(())
        };
        let passed = pass(self);
        self.ready.clear();
        (self.at, self.exec, self.is_gathered) = (0, None, true);
        passed
    }
}

impl Session {
    /// Adds a portal. One of the name is replaced.
    pub(super) fn add_portal(&mut self, name: &str, mut portal: Portal) {
        self.portal_count += 1;
        portal.number = self.portal_count;
        if !name.is_empty() {
            let facts = self.ctx.facts();
            let known = portal.facts(facts.statement_start);
            facts.cursors.insert(name.to_owned(), known);
        }
        self.portals.insert(name.to_owned(), Box::new(portal));
    }

    pub(super) fn remove_portal(&mut self, name: &str) -> Option<Box<Portal>> {
        if !name.is_empty() {
            self.ctx.facts().cursors.remove(name);
        }
        self.portals.remove(name)
    }

    /// Drops the portals that `keeps` rejects.
    pub(super) fn retain_portals(&mut self, keeps: impl Fn(&str, &Portal) -> bool) {
        self.portals.retain(|name, portal| keeps(name, portal));
        let portals = &self.portals;
        self.ctx.facts().cursors.retain(|name, _| portals.contains_key(name));
    }

    /// Calls `action` with a portal. An error ends the portal.
    pub(super) fn in_portal<T>(
        &mut self,
        name: &str,
        action: impl FnOnce(&mut Session, &mut Portal) -> Result<T>,
    ) -> Result<T> {
        let Some(mut portal) = self.portals.remove(name) else {
            return Err(PgError::new(state::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist")));
        };
        let done = match portal.state {
            PortalState::Failed | PortalState::Active => Err(cannot_run(name)),
            _ => action(self, &mut portal),
        };
        if done.as_ref().is_err_and(|error| !error.is_suspension()) {
            portal.state = PortalState::Failed;
        }
        self.is_open = portal.is_running(self.number);
        if let Some(facts) = self.ctx.facts().cursors.get_mut(name) {
            facts.row.clone_from(&portal.passed.current);
        }
        self.portals.insert(name.to_owned(), portal);
        done
    }

    /// Gathers the rest of a suspended portal's rows before another statement runs (PS-2).
    pub(super) fn put_aside(&mut self) -> Result<()> {
        self.is_open = false;
        // Each statement comes here, and nearly always there is nothing to gather.
        if !self.portals.values_mut().any(|portal| portal.is_live()) {
            return Ok(());
        }
        let mut portals = std::mem::take(&mut self.portals);
        let mut gathered = Ok(());
        for portal in portals.values_mut() {
            gathered = gathered.and(portal.gather(&mut self.ctx));
        }
        self.portals = portals;
        gathered
    }

    /// Makes the cursors WITH HOLD of the transaction that commits independent of it.
    pub(super) fn hold_cursors(&mut self) -> Result<()> {
        if !self.portals.values_mut().any(|portal| portal.options.is_holdable && !portal.is_held) {
            return Ok(());
        }
        let mut portals = std::mem::take(&mut self.portals);
        let mut held = Ok(());
        for (name, portal) in portals.iter_mut() {
            if !portal.options.is_holdable || portal.is_held {
                continue;
            }
            held = held.and(portal.gather(&mut self.ctx)).and_then(|()| portal.failure());
            portal.is_held = true;
            if let Some(facts) = self.ctx.facts().cursors.get_mut(name) {
                (facts.is_held, facts.row) = (true, None);
            }
        }
        self.portals = portals;
        held
    }

    /// Drops the portals of the transaction that were made after the one with this number.
    pub(super) fn drop_portals(&mut self, since: u64) {
        if !self.portals.is_empty() {
            self.retain_portals(|_, portal| portal.is_held || portal.number <= since);
        }
        for portal in self.portals.values_mut() {
            if matches!(portal.state, PortalState::Active) {
                portal.state = PortalState::Failed;
            }
        }
    }
}

impl Portal {
    fn failure(&mut self) -> Result<()> {
        let PortalState::Suspended(running, _) = &mut self.state else { return Ok(()) };
        running.failure.take().map_or(Ok(()), |error| Err(*error))
    }
}

/// The error of a portal that has nothing to run.
pub(super) fn cannot_run(name: &str) -> PgError {
    PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run"))
}
