//! `math.random` as Redis has it: the generator of `lrand48`. Its numbers follow from `math.randomseed` alone; without one a state begins anywhere.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;

use mlua::{Lua, Result, Table};

use crate::library::add;
use crate::raise::raise_text;

pub struct Random(Cell<u64>);

impl Random {
    pub fn new() -> Random {
        let random = Random(Cell::new(0));
        random.seed(RandomState::new().build_hasher().finish() as i32);
        random
    }

    pub fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | 0x330e);
    }

    fn next(&self) -> u64 {
        let next = self.0.get().wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & 0xffff_ffff_ffff;
        self.0.set(next);
        next >> 17
    }

    /// Returns a number from 0 to 1, without 1.
    fn fraction(&self) -> f64 {
        const MAX: u64 = i32::MAX as u64;
        (self.next() % MAX) as f64 / MAX as f64
    }

    pub fn replace_in(self: &Rc<Random>, lua: &Lua, math: &Table) -> Result<()> {
        let own = self.clone();
        add(lua, math, "random", move |args| {
            let drawn = own.fraction();
            match args.len() {
                0 => Ok(drawn),
                1 => {
                    let to = args.integer(1)?;
                    args.check(to >= 1, 1, "interval is empty")?;
                    Ok((drawn * to as f64).floor() + 1.0)
                }
                2 => {
                    let (from, to) = (args.integer(1)?, args.integer(2)?);
                    args.check(from <= to, 2, "interval is empty")?;
                    Ok((drawn * (to.wrapping_sub(from) as f64 + 1.0)).floor() + from as f64)
                }
                _ => Err(raise_text(args.lua, "wrong number of arguments")),
            }
        })?;
        let own = self.clone();
        add(lua, math, "randomseed", move |args| {
            own.seed(args.integer(1)? as i32);
            Ok(())
        })
    }
}
