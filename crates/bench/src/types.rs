//! Every command of redis-benchmark's default list, and commands of the larger types, beside redis-server.
//!
//! Each command is one row of a table (`workloads`): its words, what must be there before, its goal. Three clients play it: redis-benchmark
//! with 50 connections, the same with a pipeline of 32, and this program's load one reply at a time, as memtier plays it. Servers take turns
//! in an order that alternates; a figure is the median over the rounds. Redis with `appendfsync always` makes Beluga's promise and is the peer
//! of the goals; Redis with `everysec` is shown beside.

mod depth;
mod subscribers;
mod workloads;

use std::collections::BTreeMap;
use std::io;

use crate::cases::{Arena, Effort};
use crate::clients::{is_there, redis_benchmark};
use crate::load::{Pattern, Range, Shape, Traffic, Until};
use crate::measure::{Figures, measure};
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;
use crate::table::{Cell, Table};
use subscribers::Subscribers;
use workloads::{CHANNEL, Fill, INLINE, KEYS, SUBSCRIBERS, WORKLOADS, Workload};

pub struct TypesOptions {
    pub effort: Effort,
    /// Commands whose name contains one of these; all when empty.
    pub only: Vec<String>,
    /// Clients whose name contains one of these; all when empty.
    pub clients: Vec<String>,
    /// A remark for the head of the page.
    pub note: Option<String>,
    /// Elements of the largest collection of the part that shows growth; 0 leaves that part out.
    pub largest: u64,
}

/// The bounds of a command's figures beside Redis with `appendfsync always`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommandGoal {
    Shown,
    Write,
    Read,
    /// Replies of many elements.
    Large,
    Script,
    Publish,
}

impl CommandGoal {
    fn least_speed(self) -> Option<f64> {
        (self == CommandGoal::Write).then_some(1.3)
    }

    fn most_cpu(self, is_pipelined: bool) -> Option<f64> {
        match self {
            CommandGoal::Shown => None,
            CommandGoal::Write if is_pipelined => Some(0.8),
            CommandGoal::Write | CommandGoal::Large | CommandGoal::Publish => Some(1.0),
            CommandGoal::Read => Some(0.9),
            CommandGoal::Script => Some(1.1),
        }
    }

    fn text(self, is_pipelined: bool) -> String {
        let bounds = [
            self.least_speed().map(|bound| format!("speed ≥ {bound}")),
            self.most_cpu(is_pipelined).map(|bound| format!("CPU ≤ {bound:.1}")),
        ];
        bounds.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A client program and its depth of pipeline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Player {
    PingPong,
    Pipelined,
    OneByOne,
}

const CONNECTIONS: usize = 50;
const PIPELINE: usize = 32;

impl Player {
    const ALL: [Player; 3] = [Player::PingPong, Player::Pipelined, Player::OneByOne];

    fn name(self) -> &'static str {
        match self {
            Player::PingPong => "redis-benchmark",
            Player::Pipelined => "redis-benchmark -P 32",
            Player::OneByOne => "bench load --one-by-one",
        }
    }

    fn pipeline(self) -> usize {
        if self == Player::Pipelined { PIPELINE } else { 1 }
    }
}

/// One command with one client, on all servers.
struct TypesCase {
    workload: &'static Workload,
    player: Player,
    turns: BTreeMap<Side, Vec<Figures>>,
    /// A turn is a number of requests, so that a fill can precede it.
    requests: BTreeMap<Side, u64>,
}

struct TypesRow {
    command: &'static str,
    client: &'static str,
    goal: CommandGoal,
    is_pipelined: bool,
    ours: Figures,
    always: Figures,
    everysec: Figures,
}

/// Returns true if no request failed and the programs were found.
pub fn run(setup: &Setup, options: &TypesOptions) -> io::Result<bool> {
    if !is_there(redis_benchmark::program(&setup.place.redis)) || !is_there(setup.place.redis.clone()) {
        eprintln!("types: redis-server or redis-benchmark is not installed");
        return Ok(false);
    }
    let arena = Arena::open(&setup.sides, &setup.place, "types", &Launch::default())?;
    let mut cases = cases(options);
    fill_once(&arena, &cases)?;
    for round in 0..options.effort.rounds {
        for case in &mut cases {
            eprintln!("types: round {}: {}, {}", round + 1, case.workload.name, case.player.name());
            let mut order: Vec<&Server> = arena.servers.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for server in order {
                let figures = case.turn(setup, server, &options.effort, round)?;
                case.turns.entry(server.side).or_default().push(figures);
            }
        }
    }
    let rows: Vec<TypesRow> = cases.iter().map(TypesCase::row).collect();
    let growth = match arena.server(Side::Beluga).filter(|_| options.largest > 0) {
        Some(server) => Some(depth::run(server, &options.effort, options.largest)?),
        None => None,
    };
    publish(setup, options, &rows, growth.as_ref().map(|(table, _)| table))?;
    let is_good = growth.is_none_or(|(_, is_good)| is_good);
    Ok(is_good && rows.iter().all(|row| row.ours.errors + row.always.errors + row.everysec.errors == 0.0))
}

fn cases(options: &TypesOptions) -> Vec<TypesCase> {
    let is_wanted =
        |name: &str, wanted: &[String]| wanted.is_empty() || wanted.iter().any(|part| name.contains(&part[..]));
    let mut cases = Vec::new();
    for workload in WORKLOADS.iter().filter(|workload| is_wanted(workload.name, &options.only)) {
        for player in Player::ALL {
            // Only redis-benchmark writes inline commands.
            let can_play = player != Player::OneByOne || workload.name != INLINE;
            if can_play && is_wanted(player.name(), &options.clients) {
                cases.push(TypesCase { workload, player, turns: BTreeMap::new(), requests: BTreeMap::new() });
            }
        }
    }
    cases
}

/// Plays the fills of all cases, each once on each server.
fn fill_once(arena: &Arena, cases: &[TypesCase]) -> io::Result<()> {
    for server in &arena.servers {
        let mut played: Vec<Fill> = Vec::new();
        for case in cases {
            let fill = case.workload.fill;
            if played.contains(&fill) {
                continue;
            }
            played.push(fill);
            match fill {
                Fill::Numbered { words, count } => play(server, words, Range { min: 1, max: count }, None, FILLERS)?,
                Fill::Random { words, count } => {
                    play(server, words, Range { min: 0, max: 999_999_999_999 }, Some(count), FILLERS)?;
                }
                Fill::Consumed { words, .. } if words[0] == "XADD" => {
                    server.control()?.call(&["XGROUP", "CREATE", words[1], "group", "$", "MKSTREAM"])?;
                }
                Fill::Nothing | Fill::Consumed { .. } => {}
            }
        }
    }
    Ok(())
}

/// Connections that fill.
const FILLERS: u64 = 4;

/// Plays a command with each number of the range, or `count` times with random ones.
fn play(
    server: &Server,
    words: &'static [&'static str],
    keys: Range,
    count: Option<u64>,
    connections: u64,
) -> io::Result<()> {
    let pattern = if count.is_some() { Pattern::Random } else { Pattern::Parallel };
    let shape = Shape {
        connections: connections as usize,
        threads: 1,
        pipeline: 64,
        traffic: Traffic::Command { words, pattern },
        keys,
        until: count.map_or(Until::EveryKeyOnce, |count| Until::Requests(count.div_ceil(connections))),
        ..server.shape()
    };
    let report = crate::load::run(&shape, || {})?;
    match report.error_count() {
        0 => Ok(()),
        _ => Err(io::Error::other(format!("{}: {words:?} failed: {:?}", server.side.name(), report.errors))),
    }
}

impl TypesCase {
    fn turn(&mut self, setup: &Setup, server: &Server, effort: &Effort, round: usize) -> io::Result<Figures> {
        let fill = self.workload.fill;
        let prepare = |requests: u64| match fill {
            Fill::Consumed { words, elements } => {
                play(server, words, Range { min: 0, max: 999_999_999_999 }, Some(requests.div_ceil(elements)), FILLERS)
            }
            _ => Ok(()),
        };
        let subscribers = match self.workload.words[0] {
            "PUBLISH" => Some(Subscribers::open(server, CHANNEL, SUBSCRIBERS)?),
            _ => None,
        };
        let load = redis_benchmark::Load {
            program: redis_benchmark::program(&setup.place.redis),
            operation: if self.workload.name == INLINE {
                vec!["-t", "ping_inline"]
            } else {
                self.workload.words.to_vec()
            },
            connections: CONNECTIONS,
            pipeline: self.player.pipeline(),
            threads: effort.threads,
            keys: KEYS,
            value_bytes: 3,
        };
        let requests = match self.requests.get(&server.side) {
            Some(requests) => *requests,
            None => load.requests_for(server, effort.turn, prepare)?,
        };
        self.requests.insert(server.side, requests);
        prepare(requests)?;
        let figures = match self.player {
            Player::OneByOne => measure(server, &self.shape(server, effort, requests, round)),
            Player::PingPong | Player::Pipelined => load.measure(server, requests),
        }?;
        drop(subscribers);
        Ok(figures)
    }

    fn shape(&self, server: &Server, effort: &Effort, requests: u64, round: usize) -> Shape {
        Shape {
            connections: CONNECTIONS,
            threads: effort.threads,
            pipeline: self.player.pipeline(),
            one_by_one: true,
            traffic: Traffic::Command { words: self.workload.words, pattern: Pattern::Random },
            keys: Range { min: 0, max: KEYS - 1 },
            until: Until::Requests((requests / CONNECTIONS as u64).max(1)),
            seed: round as u64 + 1,
            ..server.shape()
        }
    }

    fn row(&self) -> TypesRow {
        let median = |side| Figures::median(self.turns.get(&side).map_or(&[], |turns| &turns[..]));
        TypesRow {
            command: self.workload.name,
            client: self.player.name(),
            goal: self.workload.goal,
            is_pipelined: self.player.pipeline() > 1,
            ours: median(Side::Beluga),
            always: median(Side::RedisAlways),
            everysec: median(Side::RedisEverysec),
        }
    }
}

fn ratio(ours: f64, theirs: f64) -> f64 {
    ours / theirs.max(1e-9)
}

impl TypesRow {
    fn speed(&self, peer: &Figures) -> f64 {
        ratio(self.ours.operations_per_second, peer.operations_per_second)
    }

    fn cpu(&self, peer: &Figures) -> f64 {
        ratio(self.ours.server_cpu_us, peer.server_cpu_us)
    }

    /// The larger of the parts by which the bounds are missed, as a factor; at most 1 when they are kept.
    fn excess(&self) -> f64 {
        let speed = self.goal.least_speed().map_or(0.0, |bound| bound / self.speed(&self.always).max(1e-9));
        let cpu = self.goal.most_cpu(self.is_pipelined).map_or(0.0, |bound| self.cpu(&self.always) / bound);
        speed.max(cpu)
    }
}

/// Farthest from the goal first: the rows that fall short, and the others.
fn sorted(rows: &[TypesRow]) -> (Vec<&TypesRow>, Vec<&TypesRow>) {
    let mut all: Vec<&TypesRow> = rows.iter().collect();
    all.sort_by(|a, b| b.excess().total_cmp(&a.excess()));
    all.into_iter().partition(|row| row.excess() > 1.0)
}

fn table(rows: &[&TypesRow]) -> Table {
    let mut table = Table::new(&[
        "command",
        "client",
        "speed ×",
        "CPU ×",
        "goal",
        "speed × everysec",
        "CPU × everysec",
        "Beluga per second",
        "always per second",
        "Beluga CPU us",
        "always CPU us",
        "everysec CPU us",
    ]);
    for row in rows {
        let number = |number: f64, decimals| Cell::Number(number, decimals);
        // A peer that took no part has no ratio.
        let beside = |peer: &Figures, ratio: f64| if peer.operations > 0.0 { number(ratio, 2) } else { "".into() };
        table.row(vec![
            row.command.into(),
            row.client.into(),
            beside(&row.always, row.speed(&row.always)),
            beside(&row.always, row.cpu(&row.always)),
            row.goal.text(row.is_pipelined).into(),
            beside(&row.everysec, row.speed(&row.everysec)),
            beside(&row.everysec, row.cpu(&row.everysec)),
            number(row.ours.operations_per_second, 0),
            number(row.always.operations_per_second, 0),
            number(row.ours.server_cpu_us, 2),
            number(row.always.server_cpu_us, 2),
            number(row.everysec.server_cpu_us, 2),
        ]);
    }
    table
}

fn publish(setup: &Setup, options: &TypesOptions, rows: &[TypesRow], growth: Option<&Table>) -> io::Result<()> {
    let (short, other) = sorted(rows);
    let effort = &options.effort;
    let mut page = String::from("# Redis' data types beside redis-server, command by command\n\n");
    page += &setup.provenance("cargo run --release -p bench -- types --out docs/bench")?;
    if let Some(note) = &options.note {
        page += &format!("**{note}**\n\n");
    }
    page += &format!(
        "Measured with `--rounds {} --seconds {} --threads {}`. {CONNECTIONS} connections; redis-benchmark with and without `-P {PIPELINE}`, and \
         `bench load --one-by-one`, which waits, receives and sends once for each reply as memtier does. {KEYS} keys, fields or members are chosen at random \
         where the command has `__rand_int__`; values have 3 bytes. Lists, sets and streams that a load empties are filled before each turn. Turns alternate \
         between the servers, figures are medians. Server CPU is that of the server's process per command until the process is quiet again. Speed × is \
         Beluga's throughput as a multiple of that of Redis with `appendfsync always`, which makes the same promise; CPU × is likewise (below 1: Beluga takes \
         less). `everysec` may lose a second of acknowledged writes; it is shown and has no goal. Client and servers share the processors: a client that is \
         slower than the server bounds both, and server CPU is then more telling than speed.\n\n",
        effort.rounds,
        effort.turn.as_secs_f64(),
        effort.threads,
    );
    page += &format!("## Short of the goal: {} of {} rows\n\n", short.len(), rows.len());
    page += &if short.is_empty() { "None.\n".to_string() } else { table(&short).markdown() };
    page += "\n## The others\n\n";
    page += &if other.is_empty() { "None.\n".to_string() } else { table(&other).markdown() };
    let all: Vec<&TypesRow> = rows.iter().collect();
    let whole = table(&all);
    let mut tables = vec![("redis-types", &whole)];
    if let Some(growth) = growth {
        page += "\n## Growth\n\nServer CPU of a command, in microseconds, on one collection of so many elements (8 connections, pipeline 16, places at random). \
                 It has to grow with the logarithm of the size.\n\n";
        page += &growth.markdown();
        tables.push(("redis-types-growth", growth));
    }
    setup.publish("redis-types", page.trim_end(), &tables, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(goal: CommandGoal, is_pipelined: bool, speed: f64, cpu: f64) -> TypesRow {
        let figures = |per_second, server_cpu_us| Figures {
            operations: 1.0,
            operations_per_second: per_second,
            server_cpu_us,
            ..Figures::default()
        };
        let (ours, always) = (figures(speed, cpu), figures(1.0, 1.0));
        TypesRow { command: "SADD", client: "x", goal, is_pipelined, ours, always, everysec: always }
    }

    #[test]
    fn rows_short_of_their_goal_stand_first_the_farthest_at_the_top() {
        let rows = [
            row(CommandGoal::Write, false, 1.2, 0.5),
            row(CommandGoal::Write, true, 2.0, 0.9),
            row(CommandGoal::Write, false, 1.4, 0.9),
            row(CommandGoal::Read, false, 0.5, 0.8),
            row(CommandGoal::Large, false, 0.5, 2.0),
            row(CommandGoal::Script, true, 0.5, 1.1),
            row(CommandGoal::Shown, true, 0.1, 9.0),
        ];
        let (short, other) = sorted(&rows);
        let cpu = |rows: &[&TypesRow]| rows.iter().map(|row| row.ours.server_cpu_us).collect::<Vec<_>>();
        assert_eq!((cpu(&short), cpu(&other).len()), (vec![2.0, 0.9, 0.5], 4));
        assert_eq!(table(&short).markdown().lines().count(), 5);
    }

    #[test]
    fn a_workload_is_chosen_by_a_part_of_its_name() {
        let names = |only: &[&str], clients: &[&str]| {
            let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
            let options = TypesOptions {
                effort: Effort::QUICK,
                only: words(only),
                clients: words(clients),
                note: None,
                largest: 0,
            };
            cases(&options).iter().map(|case| (case.workload.name, case.player)).collect::<Vec<_>>()
        };
        assert_eq!(names(&[INLINE], &[]), [(INLINE, Player::PingPong), (INLINE, Player::Pipelined)]);
        assert_eq!(names(&["LRANGE_1"], &["one-by-one"]), [("LRANGE_100", Player::OneByOne)]);
        assert_eq!(names(&[], &[]).len(), WORKLOADS.len() * Player::ALL.len() - 1);
    }
}
