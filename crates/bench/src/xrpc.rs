//! XRPC under up to 4,096 requests at once: the echo of its sessions beside gRPC and a plain echo; statements told by text, digest and plan beside MySQL's protocol at our own door and at MariaDB.
//!
//! One loop plays all protocols (`load`), servers and peers are processes of their own, sides take turns in an order that alternates. Parts and levels can be measured one by one: figures of the others
//! are taken from the CSV files beside the page, so that it is whole.

#[cfg(feature = "grpc")]
mod grpc;
mod http2;
mod load;
mod mysql;
mod page;
pub mod peer;
mod speech;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use beluga_xrpc::Statement;

use crate::machine;
use crate::measure::median;
use crate::process;
use crate::setup::Setup;
use crate::sql::client::Client;
use crate::sql::{Memory, Programs, SqlServer, SqlSide, XRPC_PORT};

use load::Lane;
use peer::{Peer, PeerKind};
use speech::{Echo, EchoKind, Query, Speech, XrpcForm, XrpcStatements};

pub struct XrpcOptions {
    pub rounds: usize,
    pub turn: Duration,
    pub threads: usize,
    /// Requests at once.
    pub levels: Vec<usize>,
    /// Connections that many sessions are spread over, in the part `spread`.
    pub spreads: Vec<usize>,
    pub rows: u64,
    pub parts: Vec<XrpcPart>,
    pub memory_mib: u64,
    pub beluga: PathBuf,
}

/// The parts of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XrpcPart {
    Echo,
    SelectOne,
    Point,
    /// As many sessions as the highest level has, on more and more connections.
    Spread,
}

impl XrpcPart {
    pub const ALL: [XrpcPart; 4] = [XrpcPart::Echo, XrpcPart::SelectOne, XrpcPart::Point, XrpcPart::Spread];

    pub fn name(self) -> &'static str {
        match self {
            XrpcPart::Echo => "echo",
            XrpcPart::SelectOne => "select1",
            XrpcPart::Point => "point",
            XrpcPart::Spread => "spread",
        }
    }

    pub fn from_name(name: &str) -> Option<XrpcPart> {
        XrpcPart::ALL.into_iter().find(|part| part.name() == name)
    }

    fn sides(self) -> &'static [Way] {
        match self {
            XrpcPart::Echo => &[Way::Echo, Way::Connection, Way::PlainEcho, Way::PlainEchoEach, Way::Grpc],
            XrpcPart::SelectOne => &[Way::Text, Way::Digest, Way::MySqlText, Way::MariaDbText],
            XrpcPart::Point => &[
                Way::Text,
                Way::Digest,
                Way::Plan,
                Way::MySqlText,
                Way::MySqlPrepared,
                Way::MariaDbText,
                Way::MariaDbPrepared,
            ],
            XrpcPart::Spread => &[Way::Echo, Way::Digest],
        }
    }
}

/// A server, a protocol, and a way to tell what is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Of a session that is logged in.
    Echo,
    /// On a number without a session: neither login, queue nor another thread is needed for it.
    Connection,
    PlainEcho,
    /// With a connection, and so a thread, for each request.
    PlainEchoEach,
    Grpc,
    Text,
    Digest,
    Plan,
    MySqlText,
    MySqlPrepared,
    MariaDbText,
    MariaDbPrepared,
}

/// The server behind a variant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Beluga,
    MariaDb,
    Peer(PeerKind),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Echo => "XRPC, session",
            Way::Connection => "XRPC, connection",
            Way::PlainEcho => "plain echo",
            Way::PlainEchoEach => "plain echo, a connection each",
            Way::Grpc => "gRPC (tonic)",
            Way::Text => "XRPC, text",
            Way::Digest => "XRPC, digest",
            Way::Plan => "XRPC, plan",
            Way::MySqlText => "MySQL door, text",
            Way::MySqlPrepared => "MySQL door, prepared",
            Way::MariaDbText => "MariaDB, text",
            Way::MariaDbPrepared => "MariaDB, prepared",
        }
    }

    fn host(self) -> Host {
        match self {
            Way::PlainEcho | Way::PlainEchoEach => Host::Peer(PeerKind::Echo),
            Way::Grpc => Host::Peer(PeerKind::Grpc),
            Way::MariaDbText | Way::MariaDbPrepared => Host::MariaDb,
            _ => Host::Beluga,
        }
    }

    /// Requests of one connection must wait for each other.
    fn is_single(self) -> bool {
        matches!(
            self,
            Way::PlainEchoEach | Way::MySqlText | Way::MySqlPrepared | Way::MariaDbText | Way::MariaDbPrepared
        )
    }
}

/// The most connections that requests share.
const CONNECTIONS_MAX: usize = 32;
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// Everything that is up.
struct XrpcArena {
    beluga: SqlServer,
    mariadb: Option<SqlServer>,
    peers: Vec<(PeerKind, Peer)>,
}

impl XrpcArena {
    fn open(setup: &Setup, options: &XrpcOptions, programs: &Programs) -> io::Result<XrpcArena> {
        let memory = Memory { mib: options.memory_mib, bounded: false };
        let hosts = || options.parts.iter().flat_map(|part| part.sides()).map(|way| way.host());
        let start = |side: SqlSide| -> io::Result<SqlServer> {
            let folder = setup.place.work.path().join(format!("xrpc-{}", side.name().to_lowercase()));
            let server = SqlServer::start(side, programs, &folder, memory, speech::DATABASE)?;
            fill(side, options.rows)?;
            server.settle(SETTLE_PATIENCE);
            Ok(server)
        };
        let mut peers = Vec::new();
        for kind in [PeerKind::Echo, PeerKind::Grpc] {
            if kind.is_built() && hosts().any(|host| host == Host::Peer(kind)) {
                peers.push((kind, Peer::start(kind)?));
            }
        }
        let beluga = start(SqlSide::Beluga)?;
        let has_mariadb = programs.mariadbd.exists() && hosts().any(|host| host == Host::MariaDb);
        let mariadb = if has_mariadb { Some(start(SqlSide::MariaDb)?) } else { None };
        Ok(XrpcArena { beluga, mariadb, peers })
    }

    /// The process that serves; None if it is not there.
    fn pid(&self, host: Host) -> Option<u32> {
        match host {
            Host::Beluga => Some(self.beluga.pid()),
            Host::MariaDb => self.mariadb.as_ref().map(SqlServer::pid),
            Host::Peer(kind) => self.peers.iter().find(|peer| peer.0 == kind).map(|peer| peer.1.pid()),
        }
    }
}

/// The table that is read.
fn fill(side: SqlSide, rows: u64) -> io::Result<()> {
    let mut client = Client::connect(local(side.port()), speech::DATABASE)?;
    let (table, bytes) = (speech::TABLE, speech::TEXT_BYTES);
    client.ask(&format!(
        "create table {table} (id bigint primary key, c char({bytes}) not null) default charset utf8mb4"
    ))?;
    let ids: Vec<u64> = (1..=rows).collect();
    for some in ids.chunks(500) {
        let values: Vec<String> = some.iter().map(|id| format!("({id}, '{:x<bytes$}')", id)).collect();
        client.ask(&format!("insert into {table} values {}", values.join(", ")))?;
    }
    Ok(())
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The number of connections for a number of concurrent requests.
fn lanes(way: Way, query: Query, level: usize, connections: usize) -> io::Result<Vec<Lane>> {
    let connections = if way.is_single() { level } else { connections.min(level) };
    (0..connections)
        .map(|at| {
            let slot_count = level / connections + usize::from(at < level % connections);
            lane(way, query, slot_count, at as u64 + 1)
        })
        .collect()
}

fn lane(way: Way, query: Query, slot_count: usize, seed: u64) -> io::Result<Lane> {
    let mut opening = Vec::new();
    let mysql = |port: u16, telling| -> io::Result<(TcpStream, Box<dyn Speech>)> {
        let (stream, speech) = mysql::MysqlStatements::connect(local(port), telling, query, seed)?;
        Ok((stream, Box::new(speech)))
    };
    let told = |telling| -> io::Result<(TcpStream, Box<dyn Speech>)> {
        Ok((xrpc()?, Box::new(XrpcStatements::new(telling, query, slot_count, seed))))
    };
    let (stream, speech): (TcpStream, Box<dyn Speech>) = match way {
        Way::Echo => (xrpc()?, Box::new(Echo::new(EchoKind::Session, slot_count))),
        Way::Connection => (xrpc()?, Box::new(Echo::new(EchoKind::Connection, slot_count))),
        Way::PlainEcho | Way::PlainEchoEach => {
            (TcpStream::connect(PeerKind::Echo.address())?, Box::new(Echo::new(EchoKind::Connection, slot_count)))
        }
        Way::Grpc => (TcpStream::connect(PeerKind::Grpc.address())?, Box::new(http2::Calls::open(&mut opening))),
        Way::Text => told(XrpcForm::Text(query.sql()))?,
        Way::Digest => told(XrpcForm::Digest(Statement::new(query.sql())))?,
        Way::Plan => told(XrpcForm::plan())?,
        Way::MySqlText => mysql(SqlSide::Beluga.port(), mysql::MysqlForm::Text)?,
        Way::MySqlPrepared => mysql(SqlSide::Beluga.port(), mysql::MysqlForm::Prepared)?,
        Way::MariaDbText => mysql(SqlSide::MariaDb.port(), mysql::MysqlForm::Text)?,
        Way::MariaDbPrepared => mysql(SqlSide::MariaDb.port(), mysql::MysqlForm::Prepared)?,
    };
    Ok(Lane { stream, speech, slot_count, opening })
}

/// A connection to Beluga's XRPC door that is logged in.
fn xrpc() -> io::Result<TcpStream> {
    let options = beluga_xrpc::Options::new(local(XRPC_PORT).to_string());
    let stream = TcpStream::connect(local(XRPC_PORT))?;
    stream.set_nodelay(true)?;
    beluga_xrpc::login(&stream, &options).map_err(io::Error::other)?;
    Ok(stream)
}

/// Figures of a turn, or medians of several.
#[derive(Clone, Copy, Default, Debug)]
struct XrpcFigures {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    server_us: f64,
    client_us: f64,
    wrong_count: f64,
}

fn turn(
    way: Way,
    pid: u32,
    options: &XrpcOptions,
    query: Query,
    (level, connections): (usize, usize),
) -> io::Result<XrpcFigures> {
    let lanes = lanes(way, query, level, connections)?;
    let mut marks = Vec::new();
    let report = load::play(lanes, options.threads, options.turn, || {
        marks.push((process::usage(pid).cpu, machine::own_cpu()));
    })?;
    process::settle(pid, SETTLE_PATIENCE);
    let operations = report.operations.max(1) as f64;
    let spent =
        |of: fn(&(Duration, Duration)) -> Duration| (of(&marks[1]) - of(&marks[0])).as_secs_f64() * 1e6 / operations;
    let quantile = |q| report.latency.value_at_quantile(q) as f64 / 1e6;
    Ok(XrpcFigures {
        per_second: report.operations as f64 / report.elapsed.as_secs_f64(),
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        server_us: spent(|mark| mark.0),
        client_us: spent(|mark| mark.1),
        wrong_count: report.wrong_count as f64,
    })
}

/// A level of a part, played one way.
#[derive(Clone, Debug)]
struct XrpcRow {
    part: XrpcPart,
    level: usize,
    connections: usize,
    way: Way,
    figures: XrpcFigures,
}

/// True when no answer was wrong.
pub fn run(setup: &Setup, options: &XrpcOptions) -> io::Result<bool> {
    machine::allow_open_files(20_000)?;
    let programs = Programs::debian(options.beluga.clone());
    let arena = XrpcArena::open(setup, options, &programs)?;
    let mut rows = Vec::new();
    for part in &options.parts {
        let query = if *part == XrpcPart::SelectOne { Query::One } else { Query::Point { rows: options.rows } };
        for (level, connections) in steps(*part, options) {
            rows.extend(play(&arena, options, (*part, query), (level, connections))?);
        }
    }
    drop(arena);
    page::publish(setup, options, &programs, &rows)?;
    Ok(rows.iter().all(|row| row.figures.wrong_count == 0.0))
}

/// Requests at once, and the connections of those who share them.
fn steps(part: XrpcPart, options: &XrpcOptions) -> Vec<(usize, usize)> {
    let highest = options.levels.iter().copied().max().unwrap_or(1);
    match part {
        XrpcPart::Spread => options.spreads.iter().map(|connections| (highest, *connections)).collect(),
        _ => options.levels.iter().map(|level| (*level, CONNECTIONS_MAX.min(*level))).collect(),
    }
}

/// All rounds of one level.
fn play(
    arena: &XrpcArena,
    options: &XrpcOptions,
    (part, query): (XrpcPart, Query),
    (level, connections): (usize, usize),
) -> io::Result<Vec<XrpcRow>> {
    // Up to there the two are the same.
    let is_played = |way: &Way| *way != Way::PlainEchoEach || level > CONNECTIONS_MAX;
    let ways: Vec<(Way, u32)> = part
        .sides()
        .iter()
        .filter(|way| is_played(way))
        .filter_map(|way| Some((*way, arena.pid(way.host())?)))
        .collect();
    let mut turns: Vec<Vec<XrpcFigures>> = vec![Vec::new(); ways.len()];
    for round in 0..options.rounds {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (way, pid) = ways[at];
            let figures = turn(way, pid, options, query, (level, connections)).map_err(|error| {
                io::Error::other(format!("{}, {}, {level} at once: {error}", part.name(), way.name()))
            })?;
            turns[at].push(figures);
        }
    }
    let rows: Vec<XrpcRow> = ways
        .iter()
        .zip(&turns)
        .map(|((way, _), turns)| {
            let connections = if way.is_single() { level } else { connections };
            XrpcRow { part, level, connections, way: *way, figures: medians(turns) }
        })
        .collect();
    for row in &rows {
        eprintln!(
            "xrpc: {}, {level} on {}: {}: {:.0} a second, {:.2} us of the server, {:.2} of the client",
            part.name(),
            row.connections,
            row.way.name(),
            row.figures.per_second,
            row.figures.server_us,
            row.figures.client_us
        );
    }
    Ok(rows)
}

fn medians(turns: &[XrpcFigures]) -> XrpcFigures {
    let of = |of: fn(&XrpcFigures) -> f64| median(turns.iter().map(of).collect());
    XrpcFigures {
        per_second: of(|turn| turn.per_second),
        p50_ms: of(|turn| turn.p50_ms),
        p99_ms: of(|turn| turn.p99_ms),
        server_us: of(|turn| turn.server_us),
        client_us: of(|turn| turn.client_us),
        wrong_count: turns.iter().map(|turn| turn.wrong_count).sum(),
    }
}
