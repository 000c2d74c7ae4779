//! Histories: steps drawn from a seed.
//!
//! A history is a list of steps: key transactions of one or several changes, reads, and the other events of a server's life. The clock advances, pages are
//! cleaned, checkpoints are made, the disk fills up, an operation of the disk fails, a backup is taken. Everything is drawn from one generator, so a seed
//! determines the whole history.

use engine::Expire;
use stdx::prng::Prng;

use crate::op::{DATABASES, Name, Op, bytes, show};
use crate::tables::{self, Ending, RowOp};

/// A file that a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Data,
    DoubleWrite,
    /// The newest segment.
    Log,
}

/// One step of a history.
#[derive(Clone)]
pub enum Step {
    /// SET as the door calls it.
    Set(Name, Vec<u8>, Expire),
    /// GET as the door calls it.
    Get(Name),
    One(Op),
    Several(Vec<Op>),
    RolledBack(Vec<Op>),
    /// An account, and the length of its rules in bytes.
    Account(String, usize),
    Forget(String),
    Tick(u64),
    EngineBackground,
    FlushLog,
    Clean,
    Checkpoint,
    PagerBackground,
    Reopen,
    /// Limits the disk to this many more bytes.
    Full(u64),
    Room,
    /// The n-th read, write or sync from now on fails.
    Read(Victim, u64),
    Write(Victim, u64),
    Sync(Victim, u64),
    Backup,
    BackupLog,
    /// A row transaction from its beginning to its end.
    Rows(Vec<RowOp>, Ending),
    /// More statements of a transaction that stays open; and its end.
    OpenTransaction(Vec<RowOp>),
    EndOpenTransaction(Ending),
    /// One step of undoing the losers of the last crash, in rows.
    Undo(usize),
}

/// The kind of history.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Keys of a database.
    pub keys: u64,
    /// Full disk and EIO.
    pub trouble: bool,
    /// Backups are taken and opened.
    pub copies: bool,
    /// Row transactions in addition to keys.
    pub rows: bool,
    /// Lives begin during the undo of the last crash's losers, and play mostly rows.
    pub undo: bool,
}

/// Returns whether the seed plays rows too. Seeds that failed before rows were added are excluded, so that they stay the same histories.
pub fn plays_rows(seed: u64) -> bool {
    matches!(seed % 11, 0 | 1 | 3 | 4)
}

/// Returns whether the seed, one with rows, plays rollback while serving.
pub fn plays_undo(seed: u64) -> bool {
    matches!(seed % 11, 3 | 4)
}

/// Returns the n-th seed that does.
pub fn undo_seed(n: u64) -> u64 {
    n.wrapping_mul(11).wrapping_add(3)
}

impl Step {
    /// Returns one line for the report.
    pub fn brief(&self) -> String {
        let rows = |ops: &[RowOp]| ops.iter().map(RowOp::brief).collect::<Vec<_>>().join(", ");
        let list = |ops: &[Op]| ops.iter().map(Op::brief).collect::<Vec<_>>().join(", ");
        match self {
            Step::Set(name, value, expire) => format!("set {} {}b {expire:?}", show(name), value.len()),
            Step::Get(name) => format!("get {}", show(name)),
            Step::One(op) => op.brief(),
            Step::Several(ops) => format!("transaction [{}]", list(ops)),
            Step::RolledBack(ops) => format!("transaction rolled back [{}]", list(ops)),
            Step::Account(name, bytes) => format!("account {name} {bytes}b"),
            Step::Forget(name) => format!("account {name} deleted"),
            Step::Tick(ms) => format!("clock + {ms} ms"),
            Step::EngineBackground => "expiry and purge".into(),
            Step::FlushLog => "flush log".into(),
            Step::Clean => "clean".into(),
            Step::Checkpoint => "checkpoint".into(),
            Step::PagerBackground => "background step of the pager".into(),
            Step::Reopen => "close and open".into(),
            Step::Full(left) => format!("disk has {left} bytes left"),
            Step::Room => "disk has room".into(),
            Step::Read(victim, n) => format!("{victim:?}: read {n} from now fails"),
            Step::Write(victim, n) => format!("{victim:?}: write {n} from now fails"),
            Step::Sync(victim, n) => format!("{victim:?}: sync {n} from now fails"),
            Step::Backup => "backup".into(),
            Step::BackupLog => "backup of the log".into(),
            Step::Rows(ops, ending) => format!("rows [{}] {ending:?}", rows(ops)),
            Step::OpenTransaction(ops) => format!("open transaction [{}]", rows(ops)),
            Step::EndOpenTransaction(ending) => format!("open transaction: {ending:?}"),
            Step::Undo(rows) => format!("undo of {rows} rows"),
        }
    }
}

fn draw_name(prng: &mut Prng, shape: &Shape) -> Name {
    let key = match prng.below(shape.keys) {
        0 => bytes(600, 1),
        n => format!("k{n}").into_bytes(),
    };
    (prng.below(u64::from(DATABASES)) as u8, key)
}

fn draw_value(prng: &mut Prng) -> Vec<u8> {
    let size = match prng.below(40) {
        0 => 0,
        1..20 => prng.below(200),
        20..26 => prng.below(1300),
        26..36 => prng.below(20_000),
        36..38 => 260_000 + prng.below(4_000),
        _ => 270_000 + prng.below(300_000),
    };
    bytes(size as usize, prng.next_u64())
}

fn draw_expire(prng: &mut Prng, now: u64) -> Expire {
    match prng.below(4) {
        0 => Expire::Keep,
        1 => Expire::At(now + prng.below(400)),
        _ => Expire::None,
    }
}

fn draw_op(prng: &mut Prng, now: u64, shape: &Shape) -> Op {
    let name = |prng: &mut Prng| draw_name(prng, shape);
    let db = |prng: &mut Prng| prng.below(u64::from(DATABASES)) as u8;
    match prng.below(40) {
        0..16 => Op::Put(name(prng), draw_value(prng), draw_expire(prng, now)),
        16..22 => {
            let at = if prng.chance(0.1) { prng.below(500_000) } else { prng.below(9_000) };
            let len = 1 + prng.below(600) as usize;
            Op::Patch(name(prng), at, bytes(len, prng.next_u64()))
        }
        22..28 => Op::Delete(name(prng)),
        28..31 => {
            let time = prng.chance(0.7).then(|| now + prng.below(400));
            Op::Expire(name(prng), time)
        }
        31..35 => Op::Rename(name(prng), name(prng)),
        35..37 => Op::Copy(name(prng), name(prng)),
        37 => Op::Flush(db(prng)),
        38 if prng.chance(0.3) => Op::FlushAll,
        _ => Op::Swap(db(prng), db(prng)),
    }
}

/// Draws many small puts: leaves fill up and split, or lose most of their records.
fn draw_bulk(prng: &mut Prng, shape: &Shape) -> Vec<Op> {
    let removes = prng.chance(0.4);
    let count = 2 + prng.below(shape.keys.min(80));
    let op = |prng: &mut Prng| {
        let name = draw_name(prng, shape);
        if removes {
            return Op::Delete(name);
        }
        let len = prng.below(400) as usize;
        Op::Put(name, bytes(len, prng.next_u64()), Expire::None)
    };
    (0..count).map(|_| op(prng)).collect()
}

fn draw_trouble(prng: &mut Prng) -> Step {
    let victim = match prng.below(8) {
        0..5 => Victim::Data,
        5..7 => Victim::DoubleWrite,
        _ => Victim::Log,
    };
    let n = 1 + prng.below(12);
    match prng.below(6) {
        0..2 => Step::Full(prng.below(4 << 20)),
        2 => Step::Read(Victim::Data, n),
        3 => Step::Write(victim, n),
        4 => Step::Sync(victim, 1 + n / 4),
        _ => Step::Room,
    }
}

pub fn draw(prng: &mut Prng, now: u64, shape: &Shape) -> Step {
    let several = |prng: &mut Prng| -> Vec<Op> {
        let count = 2 + prng.below(4);
        (0..count).map(|_| draw_op(prng, now, shape)).collect()
    };
    if shape.undo && prng.chance(0.85) {
        return match prng.below(24) {
            0..2 => Step::Rows(tables::draw_tables(), Ending::Commit),
            2..8 => Step::OpenTransaction(tables::draw_open_transaction(prng)),
            8 => Step::EndOpenTransaction(tables::draw_ending(prng)),
            9..16 => Step::Rows(tables::draw_beside(prng), tables::draw_ending(prng)),
            16..19 => Step::Undo(1 + prng.below(6) as usize),
            19..22 => Step::FlushLog,
            22 => Step::Checkpoint,
            _ => Step::EngineBackground,
        };
    }
    if shape.rows && prng.chance(0.4) {
        return match prng.below(8) {
            0..6 => Step::Rows(tables::draw(prng, shape.keys), tables::draw_ending(prng)),
            6 => Step::OpenTransaction(tables::draw_open_transaction(prng)),
            _ => Step::EndOpenTransaction(tables::draw_ending(prng)),
        };
    }
    let account = |prng: &mut Prng| format!("user{}", prng.below(3));
    match prng.below(64) {
        0..8 => Step::Set(draw_name(prng, shape), draw_value(prng), draw_expire(prng, now)),
        8..12 => Step::Get(draw_name(prng, shape)),
        12..24 => Step::One(draw_op(prng, now, shape)),
        24..34 => Step::Several(several(prng)),
        34..36 => Step::Several(draw_bulk(prng, shape)),
        36..41 => Step::RolledBack(several(prng)),
        41 => Step::RolledBack(draw_bulk(prng, shape)),
        42 => Step::Account(account(prng), prng.below(4_000) as usize),
        43 if prng.chance(0.3) => Step::Forget(account(prng)),
        43..46 => Step::Tick(prng.below(200)),
        46..49 => Step::EngineBackground,
        49..54 => Step::FlushLog,
        54..56 => Step::Clean,
        56..58 => Step::Checkpoint,
        58 => Step::PagerBackground,
        59 if prng.chance(0.4) => Step::Reopen,
        60 if shape.copies => {
            if prng.chance(0.5) {
                Step::Backup
            } else {
                Step::BackupLog
            }
        }
        61..64 if shape.trouble => draw_trouble(prng),
        _ => Step::One(draw_op(prng, now, shape)),
    }
}
