//! A crash at every I/O of a short history, and at every I/O of the recovery from each of them.

use std::sync::Arc;

use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::history::{Shape, plays_rows, plays_undo};
use crate::life::{CrashedServer, Life, Mismatch, Opened};
use crate::report::{Summary, Violation, mix};
use crate::world::{Machine, START_MS};

/// A short history and where it is crashed.
#[derive(Clone, Debug)]
pub struct Every {
    pub seed: u64,
    pub operations: usize,
    /// Distance of the I/Os of a recovery at which it is crashed again; 0: never.
    pub again_step: u64,
    /// Prefix of the files whose syncs are ignored; see `SimFolder::ignore_syncs`.
    pub liar: Option<&'static str>,
}

/// One crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The I/O at which the crash happens; beyond the last: after the last operation.
    pub crash: u64,
    /// The I/O of the recovery at which a second crash happens.
    pub again: Option<u64>,
}

impl Every {
    fn replay(&self, point: Option<Point>) -> String {
        let Every { seed, operations, .. } = self;
        let point = point.map_or(String::new(), |Point { crash, again }| {
            format!(" --crash {crash}{}", again.map_or(String::new(), |again| format!(" --again {again}")))
        });
        let liar = self.liar.map_or(String::new(), |liar| format!(" --liar '{liar}'"));
        format!("sim every --seed {seed} --operations {operations}{point}{liar}")
    }

    fn violation(&self, mismatch: Mismatch, point: Option<Point>, trace: &[String]) -> Violation {
        Violation::new(mismatch.0, self.replay(point), trace)
    }

    /// Plays up to the crash. Returns the crashed server, the number of I/Os and the trace.
    fn play(&self, crash: Option<u64>) -> Result<(CrashedServer, u64, Vec<String>), Violation> {
        let mut prng = Prng::new(self.seed);
        let machine = Machine::draw(&mut prng);
        let shape = Shape {
            keys: 8,
            trouble: self.seed.is_multiple_of(4),
            copies: false,
            rows: plays_rows(self.seed),
            undo: plays_undo(self.seed),
        };
        let folder = SimFolder::new(mix(self.seed, crash.unwrap_or(0)));
        if let Some(liar) = self.liar {
            folder.ignore_syncs(liar);
        }
        let point = crash.map(|crash| Point { crash, again: None });
        let mut left = CrashedServer::empty(folder, Arc::new(SimClock::new(START_MS)), machine);
        let mut before = Vec::new();
        if shape.undo {
            // One life before, so that the crashed one begins during the undo of its losers.
            match left.open(None).map_err(|mismatch| self.violation(mismatch, point, &[]))? {
                Opened::Dead(_) => unreachable!("no crash was ordered"),
                Opened::Alive(world, model) => {
                    let mut life = Life::new(world, model, shape, &mut prng);
                    let ran = life.run(self.operations);
                    ran.map_err(|mismatch| self.violation(mismatch, point, &life.trace))?;
                    before = std::mem::take(&mut life.trace);
                    before.push("the power is cut".into());
                    left = life.end();
                }
            }
        }
        let from = left.folder.io_count();
        match left.open(crash).map_err(|mismatch| self.violation(mismatch, point, &[]))? {
            Opened::Dead(left) => {
                before.push("the opening".into());
                Ok((left, crash.unwrap_or(0), before))
            }
            Opened::Alive(world, model) => {
                let mut life = Life::new(world, model, shape, &mut prng);
                let ran = life.run(self.operations);
                ran.map_err(|mismatch| self.violation(mismatch, point, &life.trace))?;
                let ios = life.ios() - from;
                before.append(&mut life.trace);
                Ok((life.end(), ios, before))
            }
        }
    }

    /// Returns the number of I/Os of the history without a crash.
    pub fn ios(&self) -> Result<u64, Violation> {
        Ok(self.play(None)?.1)
    }

    /// Recovers, crashes without closing, recovers again, and verifies each time (SI-6).
    fn recover(
        &self,
        left: CrashedServer,
        point: Point,
        trace: &[String],
        summary: &mut Summary,
    ) -> Result<(), Violation> {
        let mut left = left;
        for _ in 0..2 {
            match left.open(None).map_err(|mismatch| self.violation(mismatch, Some(point), trace))? {
                Opened::Alive(world, model) => {
                    summary.recoveries += 1;
                    summary.note(world.folder.digest());
                    let (clock, machine) = (world.clock.clone(), world.machine);
                    // The second opening, at the latest, completes the undo.
                    left = CrashedServer {
                        folder: world.folder.crash(),
                        clock,
                        machine,
                        possible: vec![model],
                        undo_steps: None,
                    };
                }
                Opened::Dead(_) => unreachable!("no crash was ordered"),
            }
        }
        Ok(())
    }

    /// Crashes at one point, and again during recovery if the point says so. Returns false if the recovery ended before the second crash.
    fn at(
        &self,
        left: &CrashedServer,
        point: Point,
        trace: &[String],
        summary: &mut Summary,
    ) -> Result<bool, Violation> {
        let seed = mix(self.seed, point.crash << 20 | point.again.unwrap_or(0));
        let fork = left.fork(seed);
        let Some(again) = point.again else {
            summary.crashes += 1;
            self.recover(fork, point, trace, summary)?;
            return Ok(true);
        };
        match fork.open(Some(again)).map_err(|mismatch| self.violation(mismatch, Some(point), trace))? {
            Opened::Alive(..) => Ok(false),
            Opened::Dead(left) => {
                summary.in_recovery += 1;
                self.recover(left, point, trace, summary)?;
                Ok(true)
            }
        }
    }

    /// Plays one point only.
    pub fn replay_point(&self, point: Point) -> Result<(Summary, Vec<String>), Violation> {
        let mut summary = Summary { histories: 1, ..Summary::default() };
        let (left, _, trace) = self.play(Some(point.crash))?;
        self.at(&left, point, &trace, &mut summary)?;
        Ok((summary, trace))
    }

    /// Plays all points. `progress` gets each I/O and their total.
    pub fn run(&self, progress: &dyn Fn(u64, u64)) -> Result<Summary, Violation> {
        let mut summary = Summary { histories: 1, ..Summary::default() };
        let ios = self.ios()?;
        for crash in 1..=ios + 1 {
            progress(crash, ios);
            let (left, _, trace) = self.play(Some(crash))?;
            self.at(&left, Point { crash, again: None }, &trace, &mut summary)?;
            if self.again_step == 0 {
                continue;
            }
            // Over all first crashes, every I/O of a recovery is covered whatever the distance.
            let mut again = 1 + crash % self.again_step;
            while self.at(&left, Point { crash, again: Some(again) }, &trace, &mut summary)? {
                again += self.again_step;
            }
        }
        Ok(summary)
    }
}
