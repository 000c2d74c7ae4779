//! The command line. Options of `load` carry memtier's names where they mean what memtier means.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::cases::Effort;
use crate::clients;
use crate::goals;
use crate::load::{Pattern, Shape, Traffic, Until};
use crate::orca;
use crate::postgres;
use crate::server::{Place, Side, WorkFolder};
use crate::setup::Setup;
use crate::sql;
use crate::tpcc;
use crate::tpch;
use crate::types;
use crate::xrpc;

pub const HELP: &str = "\
bench load      play one load against a server that speaks RESP2
bench cases     the cases of the table of goals, figures only
bench goals     the table of goals, all parts or one (--part)
bench orca      the 48 rows of the reference table
bench sysbench  sysbench against Beluga, MariaDB and PostgreSQL
bench tpcc      a load like TPC-C's against Beluga and MariaDB, and its consistency conditions
bench xrpc      XRPC beside gRPC, a plain echo, MySQL's protocol and MariaDB, up to 4,096 requests at once
bench tpch      TPC-H's 22 queries against Beluga and MariaDB, answers compared
bench postgres  pgbench, bulk statements and idle connections against Beluga's PostgreSQL door and PostgreSQL
bench clients   redis-benchmark, single replies and sysbench against Beluga, Redis and MariaDB
bench types     redis-benchmark's default list and commands of larger types against Beluga and Redis
bench all       goals and orca, results to docs/bench

bench load:
  -s, --server HOST     127.0.0.1      -p, --port PORT      6379
  -a, --authenticate X  password or user:password
  -t, --threads N       2              -c, --clients N      connections of a thread, 64
      --pipeline N      1                  --ratio S:G      SETs to GETs, 1:10
  -d, --data-size N     128            -R, --random-data    (otherwise the same byte)
      --key-minimum N   1                  --key-maximum N  1000000
      --key-prefix X    none               --key-pattern S:G  each of R random, S sequential, G gaussian, P parallel; R:R
      --test-time S     10             -n, --requests N     of a connection, instead of a time
      --rate N          requests per second in all: open loop, latency counts from the time a request was due
      --cores A,B       processors of the client's threads
      --seed N          1                  --ping           PING instead of SET and GET
      --one-by-one      a wait, a receive and a send for each reply, like independent clients; without it a thread serves its connections
                        in rounds, with one system call for all replies that have arrived on a connection
      --preload         write every key once, pipelined, and nothing else

bench cases, goals, orca, all:
      --quick           a minute instead of an hour
      --rounds N        alternating rounds     --seconds S   length of a turn
      --threads N       of the client, 2       --scale N     orca: divisor of the key ranges, 500
      --sides A,B       of beluga, redis-always, redis-everysec
      --part NAME       goals: compare, memory, cores, restart, idle
      --only TEXT       cases: those whose name contains it
      --out DIR         folder for the pages; printed when absent (all: docs/bench)
      --folder DIR      folder for the data, on the disk to be measured; target
      --beluga FILE     default: beside this program    --redis FILE  redis-server

bench sysbench, besides --rounds, --seconds, --out, --folder, --beluga:
      --threads A,B     64                     --tables N  4          --rows N    of a table, 100000
      --sides A,B       of beluga, beluga-pg, mariadb, postgresql     --only A,B  scripts whose name contains one of these
      --memory N        MiB for the pages of each server, 1024        --page NAME of the result, sysbench
      --busy N          programs that compute beside, 0
      --script-options X  additional options for sysbench, such as `--range-selects=0`
      --bounded         each server in a memory cgroup of 5/4 of --memory and 96 MiB, for data that does not fit; PostgreSQL's own buffers are a
                        quarter of it then, for it reads through the system's cache

bench tpcc, besides --rounds, --seconds, --memory, --out, --folder, --beluga:
      --warehouses N    10                     --threads A,B  connections, 16
      --sides A,B       of beluga, mariadb     --seed N     1
      --scale N         divides items and customers: for tests, 1
      --at PORT         fills, loads and checks only the server that runs there

bench xrpc, besides --quick, --rounds, --seconds, --threads, --out, --folder, --beluga, --memory:
      --parts A,B       of echo, select1, point, spread; parts and levels that are not measured come from the CSV files in --out
      --levels A,B      requests at once, 1,2,4 to 4096         --spreads A,B  connections of the part spread, 1,2,4 to 32
      --rows N          of the table, 10000

bench clients, besides --quick, --rounds, --seconds, --out, --folder, --beluga, --redis:
      --levels A,B      connections and pipeline, 1x1,50x1,50x16     --threads N  of the Redis clients, 1
      --sysbench-threads A,B  64                --rows N    of each of 4 tables, 100000        --memory N  MiB for SQL, 1024

bench types, besides --quick, --rounds, --seconds, --out, --folder, --beluga, --redis:
      --only A,B        commands whose name contains one of these    --clients A,B  clients likewise
      --sides A,B       of beluga, redis-always, redis-everysec      --threads N  of the clients, 1
      --largest N       elements of the largest collection whose growth is measured, 1000000; 0 leaves that out
      --note TEXT       a remark for the head of the page, such as what else ran on the machine

bench postgres, besides --quick, --rounds, --seconds, --out, --folder, --beluga, --memory:
      --scale N         of pgbench, 10         --clients A,B  1,64
      --rows N          of bulk statements, 100000                  --idle N  connections, 1000

bench peer echo|grpc --port N   a server that `bench xrpc` starts to compare with

bench tpch, besides --quick, --rounds, --out, --folder, --beluga, --memory:
      --scale X         0.1                    --only A,B  numbers of queries
      --sides A,B       beluga,mariadb, or beluga-pg,postgresql      --page NAME  of the result, tpch
";

pub enum Command {
    Help,
    Load(Box<Shape>),
    Cases { setup: Setup, only: String },
    Goals { setup: Setup, part: Option<String> },
    Orca { setup: Setup, options: orca::OrcaOptions },
    Sysbench { setup: Setup, options: sql::SysbenchOptions },
    Tpcc { setup: Setup, options: tpcc::TpccOptions },
    Tpch { setup: Setup, options: tpch::TpchOptions },
    Postgres { setup: Setup, options: postgres::PostgresOptions },
    Clients { setup: Setup, options: clients::ClientsOptions },
    Types { setup: Setup, options: types::TypesOptions },
    Xrpc { setup: Setup, options: xrpc::XrpcOptions },
    Peer { kind: xrpc::peer::PeerKind, port: u16 },
    All { setup: Setup, options: orca::OrcaOptions },
}

type Result<T> = std::result::Result<T, String>;

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(Command::Help);
    }
    let mut parser = Parser::from_iter(arguments);
    match parser.next().map_err(text)? {
        Some(Arg::Value(word)) => match word.to_str() {
            Some("load") => load(&mut parser).map(|shape| Command::Load(Box::new(shape))),
            Some("sysbench") => sysbench(&mut parser),
            Some("tpcc") => tpcc(&mut parser),
            Some("tpch") => tpch(&mut parser),
            Some("xrpc") => xrpc(&mut parser),
            Some("postgres") => postgres(&mut parser),
            Some("clients") => clients(&mut parser),
            Some("peer") => peer(&mut parser),
            Some(word @ ("cases" | "goals" | "orca" | "types" | "all")) => measurement(word, &mut parser),
            Some("help") => Ok(Command::Help),
            _ => Err(format!("unknown command {word:?}; bench --help lists them")),
        },
        Some(other) => Err(text(other.unexpected())),
        None => Err("a command is missing; bench --help lists them".into()),
    }
}

fn text(error: lexopt::Error) -> String {
    error.to_string()
}

fn load(parser: &mut Parser) -> Result<Shape> {
    let mut shape = Shape { random_data: false, ..Shape::new(SocketAddr::from(([127, 0, 0, 1], 6379))) };
    let (mut host, mut port) = ("127.0.0.1".to_string(), 6379u16);
    let (mut clients, mut ratio, mut patterns) = (64usize, (1u32, 10u32), (Pattern::Random, Pattern::Random));
    let (mut ping, mut preload) = (false, false);
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Short('s') | Arg::Long("server") => host = word(parser)?,
            Arg::Short('p') | Arg::Long("port") => port = number(parser)?,
            Arg::Short('a') | Arg::Long("authenticate") => shape.auth = Some(word(parser)?),
            Arg::Short('t') | Arg::Long("threads") => shape.threads = positive(parser)?,
            Arg::Short('c') | Arg::Long("clients") => clients = positive(parser)?,
            Arg::Long("pipeline") => shape.pipeline = positive(parser)?,
            Arg::Long("ratio") => ratio = pair(&word(parser)?, |part| part.parse().ok())?,
            Arg::Short('d') | Arg::Long("data-size") => shape.value_bytes = number(parser)?,
            Arg::Short('R') | Arg::Long("random-data") => shape.random_data = true,
            Arg::Long("key-minimum") => shape.keys.min = number(parser)?,
            Arg::Long("key-maximum") => shape.keys.max = number(parser)?,
            Arg::Long("key-prefix") => shape.prefix = word(parser)?,
            Arg::Long("key-pattern") => patterns = pair(&word(parser)?, Pattern::from_letter)?,
            Arg::Long("test-time") => shape.until = Until::Time(seconds(parser)?),
            Arg::Short('n') | Arg::Long("requests") => shape.until = Until::Requests(number(parser)?),
            Arg::Long("rate") => shape.rate = Some(positive(parser)? as u64),
            Arg::Long("cores") => shape.cores = Some(list(parser, |core| core.parse().ok())?),
            Arg::Long("seed") => shape.seed = number(parser)?,
            Arg::Long("one-by-one") => shape.one_by_one = true,
            Arg::Long("ping") => ping = true,
            Arg::Long("preload") => preload = true,
            other => return Err(text(other.unexpected())),
        }
    }
    let mut addresses = (host.as_str(), port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    shape.address = addresses.next().ok_or(format!("{host} has no address"))?;
    shape.connections = clients * shape.threads;
    if shape.keys.min > shape.keys.max {
        return Err("key-minimum is above key-maximum".into());
    }
    if ratio == (0, 0) {
        return Err("ratio 0:0 asks for nothing".into());
    }
    shape.traffic = match ping {
        true => Traffic::Ping,
        false => Traffic::Keys { sets: ratio.0, gets: ratio.1, set_pattern: patterns.0, get_pattern: patterns.1 },
    };
    Ok(if preload { shape.preload() } else { shape })
}

/// Options that all measurements share, as far as they were given.
#[derive(Default)]
struct Given {
    quick: bool,
    rounds: Option<usize>,
    turn: Option<Duration>,
    threads: Option<usize>,
    scale: Option<u64>,
    sides: Option<Vec<Side>>,
    part: Option<String>,
    only: String,
    commands: Vec<String>,
    clients: Vec<String>,
    note: Option<String>,
    largest: Option<u64>,
    out: Option<PathBuf>,
    folder: Option<PathBuf>,
    beluga: Option<PathBuf>,
    redis: Option<PathBuf>,
}

fn measurement(command: &str, parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    while let Some(argument) = parser.next().map_err(text)? {
        match (argument, command) {
            (Arg::Long("quick"), _) => given.quick = true,
            (Arg::Long("rounds"), _) => given.rounds = Some(positive(parser)?),
            (Arg::Long("seconds"), _) => given.turn = Some(seconds(parser)?),
            (Arg::Long("threads"), _) => given.threads = Some(positive(parser)?),
            (Arg::Long("scale"), "orca" | "all") => given.scale = Some(positive(parser)? as u64),
            (Arg::Long("sides"), _) => given.sides = Some(list(parser, Side::from_name)?),
            (Arg::Long("part"), "goals") => given.part = Some(part(&word(parser)?)?),
            (Arg::Long("only"), "cases") => given.only = word(parser)?,
            (Arg::Long("only"), "types") => given.commands = list(parser, |word| Some(word.to_string()))?,
            (Arg::Long("clients"), "types") => given.clients = list(parser, |word| Some(word.to_string()))?,
            (Arg::Long("note"), "types") => given.note = Some(word(parser)?),
            (Arg::Long("largest"), "types") => given.largest = Some(number(parser)?),
            (Arg::Long("out"), _) => given.out = Some(word(parser)?.into()),
            (Arg::Long("folder"), _) => given.folder = Some(word(parser)?.into()),
            (Arg::Long("beluga"), _) => given.beluga = Some(word(parser)?.into()),
            (Arg::Long("redis"), _) => given.redis = Some(word(parser)?.into()),
            (other, _) => return Err(text(other.unexpected())),
        }
    }
    given.command(command)
}

fn sysbench(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut threads, mut tables, mut rows, mut memory_mib) = (vec![64], 4, 100_000, 1024);
    let usual = [sql::SqlSide::Beluga, sql::SqlSide::MariaDb, sql::SqlSide::PostgreSql];
    let (mut sides, mut only) = (usual.to_vec(), Vec::new());
    let (mut script_options, mut page, mut bounded, mut busy) = (Vec::new(), "sysbench".to_string(), false, 0);
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("seconds") => given.turn = Some(seconds(parser)?),
            Arg::Long("threads") => threads = list(parser, |word| word.parse().ok().filter(|count| *count > 0))?,
            Arg::Long("tables") => tables = positive(parser)?,
            Arg::Long("rows") => rows = positive(parser)? as u64,
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("sides") => sides = list(parser, sql::SqlSide::from_name)?,
            Arg::Long("only") => only = list(parser, |word| Some(word.to_string()))?,
            Arg::Long("script-options") => {
                script_options = word(parser)?.split_whitespace().map(str::to_string).collect();
            }
            Arg::Long("page") => page = word(parser)?,
            Arg::Long("bounded") => bounded = true,
            Arg::Long("busy") => busy = number(parser)?,
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    let (rounds, turn) = (given.rounds.unwrap_or(5), given.turn.unwrap_or(Duration::from_secs(10)));
    let setup = given.setup("sysbench")?;
    let beluga = setup.place.beluga.clone();
    let (data, memory) = (sql::Data { tables, rows }, sql::Memory { mib: memory_mib, bounded });
    let options =
        sql::SysbenchOptions { rounds, turn, threads, data, sides, only, script_options, page, memory, busy, beluga };
    Ok(Command::Sysbench { setup, options })
}

fn tpcc(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut threads, mut warehouses, mut scale, mut memory_mib, mut seed, mut at) = (vec![16], 10, 1, 1024, 1, None);
    let mut sides = vec![sql::SqlSide::Beluga, sql::SqlSide::MariaDb];
    let speaks_mysql = |word: &str| {
        sql::SqlSide::from_name(word).filter(|side| matches!(side, sql::SqlSide::Beluga | sql::SqlSide::MariaDb))
    };
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("seconds") => given.turn = Some(seconds(parser)?),
            Arg::Long("threads") => threads = list(parser, |word| word.parse().ok().filter(|count| *count > 0))?,
            Arg::Long("warehouses") => warehouses = positive(parser)? as u32,
            Arg::Long("scale") => scale = positive(parser)?.min(100) as u32,
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("sides") => sides = list(parser, speaks_mysql)?,
            Arg::Long("seed") => seed = number(parser)?,
            Arg::Long("at") => at = Some(number(parser)?),
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    let (rounds, turn) = (given.rounds.unwrap_or(3), given.turn.unwrap_or(Duration::from_secs(30)));
    let setup = given.setup("tpcc")?;
    let beluga = setup.place.beluga.clone();
    let options = tpcc::TpccOptions { rounds, turn, threads, warehouses, scale, sides, memory_mib, seed, at, beluga };
    Ok(Command::Tpcc { setup, options })
}

fn tpch(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut scale, mut only, mut memory_mib) = (0.1, Vec::new(), 1024);
    let (mut sides, mut page) = (vec![sql::SqlSide::Beluga, sql::SqlSide::MariaDb], "tpch".to_string());
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("scale") => scale = number(parser)?,
            Arg::Long("sides") => sides = list(parser, sql::SqlSide::from_name)?,
            Arg::Long("page") => page = word(parser)?,
            Arg::Long("only") => {
                only = list(parser, |word| word.parse().ok().filter(|query| (1..=22).contains(query)))?
            }
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("quick") => given.quick = true,
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    let [ours, peer] = sides[..] else { return Err("--sides are a door of Beluga and its peer".into()) };
    if !ours.is_ours() || peer.is_ours() || ours.speaks_mysql() != peer.speaks_mysql() {
        return Err("--sides are a door of Beluga and its peer".into());
    }
    if !(0.001..=10.0).contains(&scale) {
        return Err(format!("a scale of {scale}: it goes from 0.001 to 10"));
    }
    let rounds = given.rounds.unwrap_or(5);
    let setup = given.setup("tpch")?;
    let beluga = setup.place.beluga.clone();
    Ok(Command::Tpch {
        setup,
        options: tpch::TpchOptions { sides: [ours, peer], page, scale, rounds, only, memory_mib, beluga },
    })
}

fn xrpc(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut parts, mut rows, mut memory_mib) = (xrpc::XrpcPart::ALL.to_vec(), 10_000, 1024);
    let (mut levels, mut spreads) = (None, None);
    let count = |word: &str| word.parse().ok().filter(|count| (1..=4096).contains(count));
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("quick") => given.quick = true,
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("seconds") => given.turn = Some(seconds(parser)?),
            Arg::Long("threads") => given.threads = Some(positive(parser)?),
            Arg::Long("parts") => parts = list(parser, xrpc::XrpcPart::from_name)?,
            Arg::Long("levels") => levels = Some(list(parser, count)?),
            Arg::Long("spreads") => spreads = Some(list(parser, count)?),
            Arg::Long("rows") => rows = positive(parser)? as u64,
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    let powers = |to: u32| (0..=to).map(|power| 1 << power).collect::<Vec<usize>>();
    let levels = levels.unwrap_or_else(|| if given.quick { vec![1, 64] } else { powers(12) });
    let spreads = spreads.unwrap_or_else(|| if given.quick { vec![4, 32] } else { powers(5) });
    let rounds = given.rounds.unwrap_or(if given.quick { 1 } else { 3 });
    let turn = given.turn.unwrap_or(Duration::from_millis(if given.quick { 100 } else { 1000 }));
    let threads = given.threads.unwrap_or(2);
    let setup = given.setup("xrpc")?;
    let beluga = setup.place.beluga.clone();
    let options = xrpc::XrpcOptions { rounds, turn, threads, levels, spreads, rows, parts, memory_mib, beluga };
    Ok(Command::Xrpc { setup, options })
}

fn postgres(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut scale, mut rows, mut idle, mut memory_mib) = (None, None, 1_000, 1024);
    let mut clients = vec![1, 64];
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("quick") => given.quick = true,
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("seconds") => given.turn = Some(seconds(parser)?),
            Arg::Long("scale") => scale = Some(positive(parser)?),
            Arg::Long("clients") => clients = list(parser, |word| word.parse().ok().filter(|count| *count > 0))?,
            Arg::Long("rows") => rows = Some(positive(parser)?),
            Arg::Long("idle") => idle = positive(parser)?,
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    let (scale, rows) = (scale.unwrap_or(if given.quick { 1 } else { 10 }), rows.unwrap_or(100_000));
    let rounds = given.rounds.unwrap_or(if given.quick { 1 } else { 3 });
    let turn = given.turn.unwrap_or(Duration::from_secs(if given.quick { 1 } else { 4 }));
    let setup = given.setup("postgres")?;
    let beluga = setup.place.beluga.clone();
    let options = postgres::PostgresOptions { rounds, turn, scale, clients, rows, idle, memory_mib, beluga };
    Ok(Command::Postgres { setup, options })
}

fn clients(parser: &mut Parser) -> Result<Command> {
    let mut given = Given::default();
    let (mut levels, mut threads, mut rows, mut memory_mib) = (vec![(1, 1), (50, 1), (50, 16)], vec![64], None, 1024);
    let count = |word: &str| word.parse().ok().filter(|count| (1..=4096).contains(count));
    let level = |word: &str| word.split_once('x').and_then(|(one, other)| Some((count(one)?, count(other)?)));
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Long("quick") => given.quick = true,
            Arg::Long("rounds") => given.rounds = Some(positive(parser)?),
            Arg::Long("seconds") => given.turn = Some(seconds(parser)?),
            Arg::Long("threads") => given.threads = Some(positive(parser)?),
            Arg::Long("levels") => levels = list(parser, level)?,
            Arg::Long("sysbench-threads") => threads = list(parser, count)?,
            Arg::Long("rows") => rows = Some(positive(parser)? as u64),
            Arg::Long("memory") => memory_mib = positive(parser)? as u64,
            Arg::Long("out") => given.out = Some(word(parser)?.into()),
            Arg::Long("folder") => given.folder = Some(word(parser)?.into()),
            Arg::Long("beluga") => given.beluga = Some(word(parser)?.into()),
            Arg::Long("redis") => given.redis = Some(word(parser)?.into()),
            other => return Err(text(other.unexpected())),
        }
    }
    given.threads = given.threads.or(Some(1));
    given.rounds = given.rounds.or(Some(if given.quick { 1 } else { 3 }));
    given.turn = given.turn.or(Some(Duration::from_millis(if given.quick { 200 } else { 3000 })));
    let rows = rows.unwrap_or(if given.quick { 1_000 } else { 100_000 });
    let setup = given.setup("clients")?;
    let sql = sql::SysbenchOptions {
        rounds: setup.effort.rounds,
        turn: setup.effort.turn,
        threads,
        data: sql::Data { tables: 4, rows },
        sides: vec![sql::SqlSide::Beluga, sql::SqlSide::MariaDb],
        only: clients::scripts(),
        script_options: Vec::new(),
        page: "clients".into(),
        busy: 0,
        memory: sql::Memory { mib: memory_mib, bounded: false },
        beluga: setup.place.beluga.clone(),
    };
    let options = clients::ClientsOptions { effort: setup.effort, levels, sql };
    Ok(Command::Clients { setup, options })
}

fn peer(parser: &mut Parser) -> Result<Command> {
    let kind = word_of(parser)?;
    let kind = xrpc::peer::PeerKind::from_name(&kind).ok_or(format!("there is no peer {kind:?}"))?;
    match parser.next().map_err(text)? {
        Some(Arg::Long("port")) => Ok(Command::Peer { kind, port: number(parser)? }),
        _ => Err("a peer needs its --port".into()),
    }
}

/// The next argument, which is no option.
fn word_of(parser: &mut Parser) -> Result<String> {
    match parser.next().map_err(text)? {
        Some(Arg::Value(word)) => word.string().map_err(text),
        Some(other) => Err(text(other.unexpected())),
        None => Err("a word is missing".into()),
    }
}

fn part(name: &str) -> Result<String> {
    let names = goals::part_names();
    if names.contains(&name) {
        Ok(name.into())
    } else {
        Err(format!("no part {name:?}; there are {}", names.join(", ")))
    }
}

impl Given {
    fn command(self, command: &str) -> Result<Command> {
        if command == "types" {
            return self.types();
        }
        let options = orca::OrcaOptions {
            scale: self.scale.unwrap_or(if self.quick { 10_000 } else { 500 }),
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 3 }),
            turn: self.turn.unwrap_or(Duration::from_millis(if self.quick { 200 } else { 2000 })),
        };
        let (part, only) = (self.part.clone(), self.only.clone());
        let setup = self.setup(command)?;
        Ok(match command {
            "cases" => Command::Cases { setup, only },
            "goals" => Command::Goals { setup, part },
            "orca" => Command::Orca { setup, options },
            _ => Command::All { setup, options },
        })
    }

    fn types(mut self) -> Result<Command> {
        self.threads = self.threads.or(Some(1));
        self.rounds = self.rounds.or(Some(if self.quick { 1 } else { 3 }));
        self.turn = self.turn.or(Some(Duration::from_millis(if self.quick { 50 } else { 1000 })));
        let largest = self.largest.unwrap_or(if self.quick { 0 } else { 1_000_000 });
        let (only, clients, note) =
            (std::mem::take(&mut self.commands), std::mem::take(&mut self.clients), self.note.take());
        let setup = self.setup("types")?;
        let options = types::TypesOptions { effort: setup.effort, only, clients, note, largest };
        Ok(Command::Types { setup, options })
    }

    fn setup(self, command: &str) -> Result<Setup> {
        let effort = if self.quick { Effort::QUICK } else { Effort::FULL };
        let work = WorkFolder::create(self.folder.as_deref().unwrap_or(Path::new("target")))
            .map_err(|error| error.to_string())?;
        let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("beluga")));
        let place = Place {
            beluga: self.beluga.or(beside).unwrap_or("beluga".into()),
            redis: self.redis.unwrap_or("redis-server".into()),
            work,
        };
        let sides = if self.quick { vec![Side::Beluga, Side::RedisAlways] } else { Side::ALL.to_vec() };
        let out = self.out.or((command == "all").then(|| PathBuf::from("docs/bench")));
        let effort = Effort {
            rounds: self.rounds.unwrap_or(effort.rounds),
            turn: self.turn.unwrap_or(effort.turn),
            threads: self.threads.unwrap_or(effort.threads),
            ..effort
        };
        Ok(Setup { place, sides: self.sides.unwrap_or(sides), effort, quick: self.quick, out })
    }
}

fn word(parser: &mut Parser) -> Result<String> {
    parser.value().and_then(|value| value.string()).map_err(text)
}

fn number<T: std::str::FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>>>(parser: &mut Parser) -> Result<T> {
    parser.value().and_then(|value| value.parse()).map_err(text)
}

fn positive(parser: &mut Parser) -> Result<usize> {
    match number(parser)? {
        0 => Err("0 is not enough".into()),
        count => Ok(count),
    }
}

fn seconds(parser: &mut Parser) -> Result<Duration> {
    let value: f64 = number(parser)?;
    Duration::try_from_secs_f64(value).map_err(|error| format!("{value} seconds: {error}"))
}

fn pair<T>(word: &str, part: impl Fn(&str) -> Option<T>) -> Result<(T, T)> {
    let parts = word.split_once(':').and_then(|(sets, gets)| Some((part(sets)?, part(gets)?)));
    parts.ok_or(format!("{word:?} is not of the form SETS:GETS"))
}

fn list<T>(parser: &mut Parser, part: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let words = word(parser)?;
    words.split(',').map(|word| part(word).ok_or(format!("{word:?} is not known here"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Range;

    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("bench").chain(line.split_ascii_whitespace()).map(OsString::from).collect()
    }

    fn shape(line: &str) -> Shape {
        match parse(words(line)) {
            Ok(Command::Load(shape)) => *shape,
            Ok(_) => panic!("{line}: not a load"),
            Err(error) => panic!("{line}: {error}"),
        }
    }

    #[test]
    fn a_load_is_described_in_memtiers_words() {
        let shape = shape(
            "load -s 127.0.0.1 -p 7000 -t 32 -c 4 --pipeline 32 --ratio 1:0 -d 1024 --random-data --key-minimum 1 \
             --key-maximum 12800000 --key-prefix key_ --key-pattern P:G -n 200000 -a me:secret",
        );
        assert_eq!(shape.address, SocketAddr::from(([127, 0, 0, 1], 7000)));
        assert_eq!((shape.connections, shape.threads, shape.pipeline, shape.value_bytes), (128, 32, 32, 1024));
        assert_eq!((shape.keys, shape.prefix.as_str()), (Range { min: 1, max: 12_800_000 }, "key_"));
        assert_eq!((shape.until, shape.random_data), (Until::Requests(200_000), true));
        let (set_pattern, get_pattern) = (Pattern::Parallel, Pattern::Gaussian);
        assert_eq!(shape.traffic, Traffic::Keys { sets: 1, gets: 0, set_pattern, get_pattern });
        assert_eq!(shape.auth.as_deref(), Some("me:secret"));
    }

    #[test]
    fn a_preload_and_a_rate_are_shapes_like_others() {
        let preload = shape("load --preload --key-maximum 50 -d 16");
        assert_eq!((preload.until, preload.connections), (Until::EveryKeyOnce, 16));
        assert!(!preload.one_by_one && shape("load --one-by-one").one_by_one);
        let open = shape("load --ping --rate 5000 --test-time 0.5 --cores 0,1");
        assert_eq!((open.traffic, open.rate, open.cores), (Traffic::Ping, Some(5000), Some(vec![0, 1])));
        assert_eq!(open.until, Until::Time(Duration::from_millis(500)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_one_line() {
        for line in [
            "",
            "fly",
            "load --wings",
            "load --ratio 1",
            "load --ratio 0:0",
            "load --key-pattern R:Q",
            "load -c 0",
            "load --key-minimum 5 --key-maximum 4",
            "load --test-time -1",
            "goals --part nothing",
            "goals --scale 3",
            "cases --sides beluga,postgres",
            "sysbench --sides redis",
            "sysbench --threads 0",
            "tpcc --sides postgresql",
            "tpcc --warehouses 0",
            "tpch --only 23",
            "tpch --scale 0",
            "xrpc --parts all",
            "xrpc --levels 0",
            "xrpc --levels 5000",
            "types --sides mariadb",
            "types --rounds 0",
            "clients --levels 50",
            "clients --levels 0x1",
            "peer",
            "peer ghost --port 1",
            "peer echo",
        ] {
            let error = parse(words(line)).err().unwrap_or_else(|| panic!("{line:?} was accepted"));
            assert!(!error.is_empty() && !error.contains('\n'), "{line:?}: {error:?}");
        }
    }
}
