//! The command line of `sim`; see `sim --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lexopt::{Arg, Parser, ValueExt};
use sim::{
    Every, LIES, Point, Random, Summary, TAKEOVER_FAULTS, Takeover, TakeoverFault, TakeoverSummary, Violation,
    undo_seed,
};

const HELP: &str = "\
sim plays the whole engine on a simulated disk and clock, crashes it, recovers it, and compares it with an oracle.
A seed determines the run: the same command does the same again.

sim every  --seed S    a short history, crashed at every I/O, and each recovery crashed at every I/O
    --operations N     length of the history, default 20
    --histories H      number of seeds from S on, default 1
    --seconds T        or as many seeds as end in this time
    --again-every K    crash recoveries at every K-th I/O only, default 1; 0: not at all
    --crash I          only the crash at I/O number I
    --again J          and a second crash at I/O number J of its recovery
sim random --seed S    long histories of several lives, crashed at random, with full disks, failing I/O and backups
    --seconds T        duration, default 60
    --histories H      number of histories, whatever the time
sim undo   --seed S    random histories whose lives begin during the undo of the last crash's losers
    --seconds T, --histories H   as for `random`
sim takeover --seed S  nodes of a shared database that are paused, cut off and killed at any step, and take over from each other
    --seconds T, --histories H   as for `random`
    --without PART     leave out a part of the fence: root, log, pages, lease, doubt, redone
sim canary             disks that ignore syncs: the oracle must detect each of them, and each part of the fence of a shared database that is left out
    --seed S
    --histories H      histories per disk before giving up, default 200

    --trace            of `every --crash` and `random`: print the steps
    --liar NAMES       play on a disk that ignores syncs of the files whose names begin so ('' is all)
    -h, --help         this text

Without --seed one is drawn and printed. After each recovery every acknowledged write is there, no transaction is there by half, no page was
lost, and the structural checker finds nothing. A violation prints the difference, the steps before it, and the command line that replays it.
Exit code 0: no violation, 1: a violation, 64: invalid command line.
";

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// Histories that detect a missing part of the fence at the latest.
const TAKEOVER_HISTORIES: u64 = 20_000;

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    operations: Option<usize>,
    histories: Option<u64>,
    again_every: Option<u64>,
    crash: Option<u64>,
    again: Option<u64>,
    seconds: Option<u64>,
    liar: Option<&'static str>,
    without: Option<TakeoverFault>,
    trace: bool,
}

impl Options {
    fn parse(mut parser: Parser) -> Result<(String, Options), lexopt::Error> {
        let (mut command, mut options) = (String::new(), Options::default());
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => command = "help".into(),
                Arg::Long("seed") => options.seed = Some(parser.value()?.parse()?),
                Arg::Long("operations") => options.operations = Some(parser.value()?.parse()?),
                Arg::Long("histories") => options.histories = Some(parser.value()?.parse()?),
                Arg::Long("again-every") => options.again_every = Some(parser.value()?.parse()?),
                Arg::Long("crash") => options.crash = Some(parser.value()?.parse()?),
                Arg::Long("again") => options.again = Some(parser.value()?.parse()?),
                Arg::Long("seconds") => options.seconds = Some(parser.value()?.parse()?),
                Arg::Long("trace") => options.trace = true,
                Arg::Long("without") => {
                    let name = parser.value()?.string()?;
                    let known = "--without is one of root, log, pages, lease, doubt, redone";
                    options.without = Some(TakeoverFault::named(&name).ok_or(known)?);
                }
                Arg::Long("liar") => {
                    let names = parser.value()?.string()?;
                    let known = LIES.iter().find(|lie| lie.names == names);
                    options.liar = Some(known.ok_or("--liar is one of '', 'log-', 'data', 'doublewrite'")?.names);
                }
                Arg::Value(value) if command.is_empty() => command = value.string()?,
                other => return Err(other.unexpected()),
            }
        }
        Ok((command, options))
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            let mut bytes = [0; 8];
            os::entropy(&mut bytes).expect("the kernel has entropy");
            u64::from_le_bytes(bytes) % 1_000_000_000
        })
    }
}

/// Prints progress at intervals.
struct Pace {
    begin: Instant,
    last: std::cell::Cell<Instant>,
}

impl Pace {
    fn new() -> Pace {
        Pace { begin: Instant::now(), last: std::cell::Cell::new(Instant::now()) }
    }

    fn print(&self, what: impl FnOnce() -> String) {
        if self.last.get().elapsed() >= PROGRESS {
            self.last.set(Instant::now());
            println!("{:>5} s  {}", self.begin.elapsed().as_secs(), what());
        }
    }
}

fn every(options: &Options) -> Result<Summary, Violation> {
    let (seed, operations) = (options.seed(), options.operations.unwrap_or(20));
    let histories = options.histories.unwrap_or(if options.seconds.is_some() { u64::MAX - seed } else { 1 });
    let limit = options.seconds.map_or(Duration::MAX, Duration::from_secs);
    let again_step = options.again_every.unwrap_or(1);
    println!("sim every: seed {seed}, {operations} operations");
    let mut total = Summary::default();
    let pace = Pace::new();
    for seed in seed..seed + histories {
        if pace.begin.elapsed() >= limit {
            break;
        }
        let every = Every { seed, operations, again_step, liar: options.liar };
        if let Some(crash) = options.crash {
            let (summary, trace) = every.replay_point(Point { crash, again: options.again })?;
            if options.trace {
                trace.iter().for_each(|step| println!("  {step}"));
            }
            total.add(&summary);
            continue;
        }
        let summary = every.run(&|io, ios| pace.print(|| format!("seed {seed}: I/O {io} of {ios}")))?;
        total.add(&summary);
    }
    Ok(total)
}

/// Plays long histories; `seed_of` maps the n-th number to a seed.
fn random(options: &Options, name: &str, seed_of: fn(u64) -> u64) -> Result<Summary, Violation> {
    let seed = options.seed();
    let limit = Duration::from_secs(options.seconds.unwrap_or(60));
    let histories = options.histories.unwrap_or(u64::MAX);
    println!("sim {name}: seed {seed}");
    let mut total = Summary::default();
    let pace = Pace::new();
    for at in 0..histories {
        if options.histories.is_none() && pace.begin.elapsed() >= limit {
            break;
        }
        let seed = seed_of(seed + at);
        pace.print(|| format!("seed {seed}: {total}"));
        let mut trace = Vec::new();
        let result = Random { seed, liar: options.liar }.run(&mut trace);
        if options.trace {
            trace.iter().for_each(|step| println!("  {step}"));
        }
        total.add(&result?);
    }
    Ok(total)
}

/// Plays histories of nodes that take over from each other.
fn takeover(options: &Options) -> Result<TakeoverSummary, Violation> {
    let seed = options.seed();
    let limit = Duration::from_secs(options.seconds.unwrap_or(60));
    let histories = options.histories.unwrap_or(u64::MAX - seed);
    println!("sim takeover: seed {seed}");
    let mut total = TakeoverSummary::default();
    let pace = Pace::new();
    for seed in seed..seed + histories {
        if options.histories.is_none() && pace.begin.elapsed() >= limit {
            break;
        }
        pace.print(|| format!("seed {seed}: {total}"));
        let mut trace = Vec::new();
        let result = Takeover { seed, fault: options.without }.run(&mut trace);
        if options.trace {
            trace.iter().for_each(|step| println!("  {step}"));
        }
        total.add(&result?);
    }
    Ok(total)
}

fn canary(options: &Options) -> bool {
    let (seed, histories) = (options.seed.unwrap_or(1), options.histories.unwrap_or(200));
    println!("sim canary: seed {seed}");
    let mut all_detected = true;
    for lie in LIES {
        match lie.is_detected(seed, histories) {
            Some((count, violation)) => {
                println!("a disk that ignores syncs of {}: detected by history {count}: {}", lie.about, violation.what);
            }
            None => {
                all_detected = false;
                println!("a disk that ignores syncs of {}: NOT detected by {histories} histories", lie.about);
            }
        }
    }
    for fault in TAKEOVER_FAULTS {
        match fault.is_detected(seed, TAKEOVER_HISTORIES) {
            Some((count, violation)) => {
                println!("a fence without {}: detected by history {count}: {}", fault.name(), violation.what);
            }
            None => {
                all_detected = false;
                println!("a fence without {}: NOT detected by {TAKEOVER_HISTORIES} histories", fault.name());
            }
        }
    }
    all_detected
}

fn main() -> ExitCode {
    let (command, options) = match Options::parse(Parser::from_env()) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("sim: {error}; `sim --help` has the list");
            return ExitCode::from(64);
        }
    };
    let result = match command.as_str() {
        "every" => every(&options),
        "random" => random(&options, "random", |seed| seed),
        "undo" => random(&options, "undo", undo_seed),
        "takeover" => match takeover(&options) {
            Ok(summary) => {
                println!("{summary}: no violation");
                return ExitCode::SUCCESS;
            }
            Err(violation) => Err(violation),
        },
        "canary" if canary(&options) => return ExitCode::SUCCESS,
        "canary" => return ExitCode::FAILURE,
        "help" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(64);
        }
    };
    match result {
        Ok(summary) => {
            println!("{summary}: no violation");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            println!("{violation}");
            ExitCode::FAILURE
        }
    }
}
