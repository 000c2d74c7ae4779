//! Long histories of several lives, crashed at random.

use std::sync::Arc;

use os::{SimClock, SimFolder};
use stdx::prng::Prng;

use crate::history::{Shape, plays_rows, plays_undo};
use crate::life::{CrashedServer, Life, Mismatch, Opened};
use crate::report::{Summary, Violation, mix};
use crate::world::{Machine, START_MS};

/// A history; its seed determines all of it.
#[derive(Clone, Debug)]
pub struct Random {
    pub seed: u64,
    /// Prefix of the files whose syncs are ignored; see `SimFolder::ignore_syncs`.
    pub liar: Option<&'static str>,
}

impl Random {
    fn violation(&self, mismatch: Mismatch, trace: &[String]) -> Violation {
        let liar = self.liar.map_or(String::new(), |liar| format!(" --liar '{liar}'"));
        Violation::new(mismatch.0, format!("sim random --seed {} --histories 1{liar}", self.seed), trace)
    }

    /// Plays the history. `trace` gets its steps.
    pub fn run(&self, trace: &mut Vec<String>) -> Result<Summary, Violation> {
        let mut summary = Summary { histories: 1, ..Summary::default() };
        let mut prng = Prng::new(mix(self.seed, u64::from(b'r')));
        let machine = Machine::draw(&mut prng);
        let shape = Shape {
            keys: [8, 8, 60, 400][prng.below(4) as usize],
            trouble: prng.chance(0.4),
            copies: prng.chance(0.3),
            rows: plays_rows(self.seed),
            undo: plays_undo(self.seed),
        };
        let folder = SimFolder::new(prng.next_u64());
        if let Some(liar) = self.liar {
            folder.ignore_syncs(liar);
        }
        let mut left = CrashedServer::empty(folder, Arc::new(SimClock::new(START_MS)), machine);
        for life in 1..=1 + prng.below(5) {
            let steps = 1 + prng.below(160) as usize;
            trace.push(format!("life {life} of {steps} steps, {machine:?}, {shape:?}"));
            left = self.life(left, shape, steps, &mut prng, trace, &mut summary)?;
        }
        // At the end all losers are undone.
        left.undo_steps = None;
        self.open(left, trace, &mut prng, &mut summary)?;
        Ok(summary)
    }

    /// Recovers, sometimes crashing during recovery.
    fn open(
        &self,
        mut left: CrashedServer,
        trace: &mut Vec<String>,
        prng: &mut Prng,
        summary: &mut Summary,
    ) -> Result<Opened, Violation> {
        for _ in 0..3 {
            let crash = prng.chance(0.3).then(|| 1 + prng.below(80));
            match left.open(crash).map_err(|mismatch| self.violation(mismatch, trace))? {
                Opened::Dead(next) => {
                    trace.push(format!("a crash at I/O {crash:?} of the recovery"));
                    summary.in_recovery += 1;
                    left = next;
                }
                alive => {
                    // The scheduled crash is for the recovery only.
                    return Ok(self.note(alive, summary));
                }
            }
        }
        let opened = left.open(None).map_err(|mismatch| self.violation(mismatch, trace))?;
        Ok(self.note(opened, summary))
    }

    fn note(&self, opened: Opened, summary: &mut Summary) -> Opened {
        if let Opened::Alive(world, _) = &opened {
            world.folder.crash_at_io(u64::MAX);
            summary.recoveries += 1;
            summary.during_undo += u64::from(!world.engine.rows().rolling_back().is_empty());
            summary.note(world.folder.digest());
        }
        opened
    }

    fn life(
        &self,
        left: CrashedServer,
        shape: Shape,
        steps: usize,
        prng: &mut Prng,
        trace: &mut Vec<String>,
        summary: &mut Summary,
    ) -> Result<CrashedServer, Violation> {
        let (world, model) = match self.open(left, trace, prng, summary)? {
            Opened::Alive(world, model) => (world, model),
            Opened::Dead(_) => unreachable!("the last try has no crash"),
        };
        if prng.chance(0.7) {
            let bound = 1 << (1 + prng.below(12));
            world.folder.crash_at_io(world.folder.io_count() + 1 + prng.below(bound));
        }
        let mut life = Life::new(world, model, shape, prng);
        let ran = life.run(steps);
        trace.append(&mut life.trace);
        ran.map_err(|mismatch| self.violation(mismatch, trace))?;
        trace.push("the power is cut".into());
        summary.crashes += 1;
        Ok(life.end())
    }
}
