//! The table of goals: each row a goal, the figure of this run, and whether it was met.
//!
//! A row describes the origin of its figure. A part that cannot be measured is a miss with its reason, never left out. A peer keeps the same promise as Beluga: on disk before the reply (BE-5).

mod compare;
mod cores;
mod idle;
mod memory;
mod profile;
mod restart;

use std::io;

use crate::setup::Setup;
use crate::svg::Chart;
use crate::table::{Cell, Table};

pub struct Goal {
    case: String,
    goal: String,
    figure: Option<f64>,
    met: bool,
    /// The figures from which this one is computed, or the reason why there is none.
    detail: String,
}

impl Goal {
    fn at_least(case: &str, goal: &str, limit: f64, figure: f64, detail: String) -> Goal {
        Goal::new(case, goal, figure, figure >= limit, detail)
    }

    fn at_most(case: &str, goal: &str, limit: f64, figure: f64, detail: String) -> Goal {
        Goal::new(case, goal, figure, figure <= limit, detail)
    }

    fn new(case: &str, goal: &str, figure: f64, met: bool, detail: String) -> Goal {
        // 0/0 of a part that measured nothing meets no goal.
        Goal { case: case.into(), goal: goal.into(), figure: figure.is_finite().then_some(figure), met, detail }
    }
}

/// The content that a part adds to the page besides its goals.
#[derive(Default)]
struct Findings {
    goals: Vec<Goal>,
    tables: Vec<(&'static str, Table)>,
    charts: Vec<(&'static str, Chart)>,
    /// Requests that failed, in all turns.
    errors: f64,
}

type Part = fn(&Setup) -> io::Result<Findings>;

const PARTS: [(&str, Part); 5] = [
    ("compare", compare::run),
    ("memory", memory::run),
    ("cores", cores::run),
    ("restart", restart::run),
    ("idle", idle::run),
];

pub fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}

/// Runs the named parts, or all; true when every part could be measured and no request failed.
pub fn run(setup: &Setup, only: Option<&str>) -> io::Result<bool> {
    let mut all = Findings::default();
    let mut complete = true;
    for (name, part) in PARTS.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        eprintln!("goals: {name}");
        match part(setup) {
            Ok(findings) => {
                complete &= findings.errors == 0.0;
                all.goals.extend(findings.goals);
                all.tables.extend(findings.tables);
                all.charts.extend(findings.charts);
            }
            Err(error) => {
                complete = false;
                let detail = format!("not measured: {error}");
                all.goals.push(Goal { case: name.to_string(), goal: "-".into(), figure: None, met: false, detail });
            }
        }
    }
    let table = verdicts(&all.goals);
    eprintln!("\n{}", table.markdown());
    let page = page(setup, &table, &all)?;
    let mut tables: Vec<(&str, &Table)> = all.tables.iter().map(|(name, table)| (*name, table)).collect();
    tables.push(("goals", &table));
    let charts: Vec<(&str, &Chart)> = all.charts.iter().map(|(name, chart)| (*name, chart)).collect();
    setup.publish("goals", &page, &tables, &charts)?;
    Ok(complete)
}

/// The cases whose name contains `only`, without goals: for looking at one thing often.
pub fn cases(setup: &Setup, only: &str) -> io::Result<bool> {
    let (table, errors) = compare::figures(setup, only)?;
    println!("{}", table.markdown());
    Ok(errors == 0.0)
}

fn verdicts(goals: &[Goal]) -> Table {
    let mut table = Table::new(&["Case", "Goal", "Figure", "Verdict", "How it comes about"]);
    for goal in goals {
        let figure = goal.figure.map_or(Cell::from("-"), |figure| Cell::Number(figure, 2));
        let verdict = if goal.met { "pass" } else { "**miss**" };
        table.row(vec![
            goal.case.as_str().into(),
            goal.goal.as_str().into(),
            figure,
            verdict.into(),
            goal.detail.as_str().into(),
        ]);
    }
    table
}

const METHOD: &str = "\
Method. Every comparison runs both servers at the same time and loads one of them at a time, in alternating order, several rounds; figures are medians over the rounds. \
The client keeps a fixed number of requests outstanding on every connection (closed loop). Keys are uniform at random, values random bytes; GETs ask for keys that exist. \
Server CPU per operation is user and system time of the server process (and of children it starts) divided by operations; it and the bytes written are counted until the server is quiet again, \
at most 3 s, so that deferred work counts for the load that caused it. \"Other cores\" is the processor time that neither server nor client used: more than about 0.1 means that other programs ran; the kernel's own threads (journal, writing back what Redis wrote through the page cache) are included.\n\n\
Redis `always` (`--appendonly yes --appendfsync always --save ''`) gives the same promise as Beluga, on disk before the reply, and is the peer of the goals. \
Redis `everysec` may lose a second of acknowledged writes; it is shown and not ranked.\n\n";

fn page(setup: &Setup, table: &Table, all: &Findings) -> io::Result<String> {
    let met = all.goals.iter().filter(|goal| goal.met).count();
    let mut page = format!("# Goals and figures\n\n{met} of {} goals met.\n\n", all.goals.len());
    page += &setup.provenance("cargo run --release -p bench -- goals --out docs/bench")?;
    page += &table.markdown();
    page += "\n";
    page += METHOD;
    for (name, _) in &all.charts {
        page += &format!("![{name}]({name}.svg)\n\n");
    }
    for (name, table) in all.tables.iter().filter(|(_, table)| !table.is_empty()) {
        let title = if *name == "profiles" {
            "Where the server's processor time goes in the cases that miss".into()
        } else {
            format!("Figures: {name}")
        };
        page += &format!("## {title}\n\n{}\n", table.markdown());
    }
    Ok(page)
}
