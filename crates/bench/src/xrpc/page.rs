//! The page: goals first, then all figures. Parts and levels that were not measured now come from the CSV files of an earlier run.

use std::fs;
use std::io;

use super::{CONNECTIONS_MAX, Way, XrpcFigures, XrpcOptions, XrpcPart, XrpcRow};
use crate::setup::Setup;
use crate::sql::{Programs, SqlSide};
use crate::svg::{Chart, Panel};
use crate::table::{Cell, Table, grouped};

const COLUMNS: [&str; 9] =
    ["requests", "connections", "side", "per second", "p50 ms", "p99 ms", "server CPU us", "client CPU us", "wrong"];

/// All rows of the page.
struct Rows(Vec<XrpcRow>);

impl Rows {
    /// Takes the levels of an earlier run that were not measured now.
    fn complete(&mut self, earlier: Vec<XrpcRow>) {
        let is_same = |a: &XrpcRow, b: &XrpcRow| {
            (a.part, a.level) == (b.part, b.level) && (a.part != XrpcPart::Spread || a.connections == b.connections)
        };
        let missing: Vec<XrpcRow> =
            earlier.into_iter().filter(|old| !self.0.iter().any(|new| is_same(new, old))).collect();
        self.0.extend(missing);
        self.0.sort_by_key(|row| {
            (row.part as usize, row.level, if row.part == XrpcPart::Spread { row.connections } else { 0 })
        });
    }

    fn of(&self, part: XrpcPart, way: Way) -> impl Iterator<Item = &XrpcRow> {
        self.0.iter().filter(move |row| row.part == part && row.way == way)
    }

    fn at(&self, part: XrpcPart, way: Way, level: usize) -> Option<&XrpcFigures> {
        self.of(part, way).find(|row| row.level == level).map(|row| &row.figures)
    }

    /// Compares one variant with another, at the levels that both have: the smallest and the largest quotient.
    fn beside(
        &self,
        part: XrpcPart,
        (ours, theirs): (Way, Way),
        levels: (usize, usize),
        of: fn(&XrpcFigures) -> f64,
    ) -> Option<(f64, f64)> {
        let quotients: Vec<f64> = self
            .of(part, ours)
            .filter(|row| (levels.0..=levels.1).contains(&row.level))
            .filter_map(|row| Some(of(&row.figures) / of(self.at(part, theirs, row.level)?)))
            .collect();
        (!quotients.is_empty()).then(|| {
            quotients
                .iter()
                .fold((f64::INFINITY, 0.0), |(low, high), each| (f64::min(low, *each), f64::max(high, *each)))
        })
    }

    /// The lowest speed from the peak on, as a part of it.
    fn after_peak(&self, part: XrpcPart, way: Way) -> Option<f64> {
        let speeds: Vec<f64> = self.of(part, way).map(|row| row.figures.per_second).collect();
        let peak = (0..speeds.len()).max_by(|a, b| speeds[*a].total_cmp(&speeds[*b]))?;
        Some(speeds[peak..].iter().copied().fold(f64::INFINITY, f64::min) / speeds[peak])
    }

    /// From this many requests on, every processor is busy with the load, on any machine.
    fn saturated(&self, part: XrpcPart, ways: (Way, Way)) -> Option<f64> {
        let quotients: Vec<f64> = self
            .of(part, ways.0)
            .filter(|row| row.level >= SATURATED)
            .filter_map(|row| Some(row.figures.server_us / self.at(part, ways.1, row.level)?.server_us))
            .collect();
        (!quotients.is_empty()).then(|| crate::measure::median(quotients))
    }
}

const SATURATED: usize = 64;

/// Missed goals first.
fn goals(rows: &Rows) -> Table {
    let mut found_all: Vec<(String, f64, f64)> = Vec::new();
    let mut goal = |what: String, wanted: f64, found: Option<f64>| {
        let Some(found) = found else { return };
        found_all.push((what, wanted, found));
    };
    let speed = |figures: &XrpcFigures| figures.per_second;
    let low = |part, ways, levels| rows.beside(part, ways, levels, speed).map(|found| found.0);
    let all = (1, usize::MAX);
    goal(
        "echo of a session beside gRPC, speed at its worst level".into(),
        2.0,
        low(XrpcPart::Echo, (Way::Echo, Way::Grpc), all),
    );
    goal(
        "echo of a session: server CPU of gRPC's to ours, from 64 at once".into(),
        2.0,
        rows.saturated(XrpcPart::Echo, (Way::Grpc, Way::Echo)),
    );
    goal(
        "echo of a session beside the plain echo, up to 64 at once, worst level".into(),
        0.95,
        low(XrpcPart::Echo, (Way::Echo, Way::PlainEcho), (1, 64)),
    );
    goal(
        "echo of a session beside a plain echo with a connection and thread for each request, beyond 64".into(),
        1.0,
        low(XrpcPart::Echo, (Way::Echo, Way::PlainEchoEach), (65, usize::MAX)),
    );
    goal(
        format!(
            "echo of a session beside a plain echo with {CONNECTIONS_MAX} connections, each read and answered in batches, beyond 64"
        ),
        1.0,
        low(XrpcPart::Echo, (Way::Echo, Way::PlainEcho), (65, usize::MAX)),
    );
    for (part, way) in [
        (XrpcPart::Echo, Way::Echo),
        (XrpcPart::SelectOne, Way::Digest),
        (XrpcPart::Point, Way::Digest),
        (XrpcPart::Point, Way::Plan),
    ] {
        let what = format!("no fall from the peak on: {}, {}", part.name(), way.name());
        goal(what, 0.85, rows.after_peak(part, way));
    }
    goal(
        "server CPU of texts to that of plans, from 64 at once".into(),
        1.4,
        rows.saturated(XrpcPart::Point, (Way::Text, Way::Plan)),
    );
    goal(
        "digest beside our MySQL door, select 1, worst level".into(),
        1.0,
        low(XrpcPart::SelectOne, (Way::Digest, Way::MySqlText), all),
    );
    for theirs in [Way::MySqlText, Way::MySqlPrepared] {
        let what = format!("digest beside our {}, point select, worst level", theirs.name());
        goal(what, 1.0, low(XrpcPart::Point, (Way::Digest, theirs), all));
    }
    for way in [Way::Echo, Way::Digest] {
        let on = |connections| {
            rows.of(XrpcPart::Spread, way).find(|row| row.connections == connections).map(|row| row.figures.per_second)
        };
        let found = on(4).zip(on(32)).map(|(few, many)| few / many);
        goal(format!("all sessions on 4 connections beside 32: {}", way.name()), 0.85, found);
    }
    found_all.sort_by_key(|(_, wanted, found)| found >= wanted);
    let mut table = Table::new(&["goal", "wanted", "found", "verdict"]);
    for (what, wanted, found) in found_all {
        let verdict = if found >= wanted { "pass" } else { "**miss**" };
        table.row(vec![what.into(), format!("≥ {wanted}").into(), Cell::Number(found, 2), verdict.into()]);
    }
    table
}

fn table(rows: &Rows, part: XrpcPart) -> Table {
    let mut table = Table::new(&COLUMNS);
    for row in rows.0.iter().filter(|row| row.part == part) {
        let figures = &row.figures;
        table.row(vec![
            Cell::Number(row.level as f64, 0),
            Cell::Number(row.connections as f64, 0),
            row.way.name().into(),
            Cell::Number(figures.per_second, 0),
            Cell::Number(figures.p50_ms, 3),
            Cell::Number(figures.p99_ms, 3),
            Cell::Number(figures.server_us, 2),
            Cell::Number(figures.client_us, 2),
            Cell::Number(figures.wrong_count, 0),
        ]);
    }
    table
}

/// Rows of a part as an earlier run wrote them.
fn read(text: &str, part: XrpcPart) -> Vec<XrpcRow> {
    text.lines().skip(1).filter_map(|line| row(line, part)).collect()
}

fn row(line: &str, part: XrpcPart) -> Option<XrpcRow> {
    // A name with a comma is in quotes.
    let (first, rest) = line.split_once(',')?;
    let (second, rest) = rest.split_once(',')?;
    let (name, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once("\",")?,
        None => rest.split_once(',')?,
    };
    let way = part.sides().iter().copied().find(|way| way.name() == name)?;
    let numbers: Vec<f64> = rest.split(',').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [per_second, p50_ms, p99_ms, server_us, client_us, wrong_count] = numbers[..] else { return None };
    let figures = XrpcFigures { per_second, p50_ms, p99_ms, server_us, client_us, wrong_count };
    Some(XrpcRow { part, level: first.parse().ok()?, connections: second.parse().ok()?, way, figures })
}

fn chart(rows: &Rows, part: XrpcPart) -> Chart {
    let ways: Vec<Way> = part.sides().iter().copied().filter(|way| rows.of(part, *way).next().is_some()).collect();
    let mut steps: Vec<(usize, usize)> = Vec::new();
    for row in rows.0.iter().filter(|row| row.part == part && !row.way.is_single()) {
        if !steps.contains(&(row.level, row.connections)) {
            steps.push((row.level, row.connections));
        }
    }
    let find = |way: Way, (level, connections): (usize, usize)| {
        rows.of(part, way).find(|row| row.level == level && (way.is_single() || row.connections == connections))
    };
    let panel = |title: &str, of: fn(&XrpcFigures) -> f64| Panel {
        title: title.into(),
        groups: steps
            .iter()
            .map(|step| {
                let name = if part == XrpcPart::Spread { step.1 } else { step.0 };
                let values = ways.iter().map(|way| find(*way, *step).map_or(0.0, |row| of(&row.figures))).collect();
                (name.to_string(), values)
            })
            .collect(),
    };
    let axis = if part == XrpcPart::Spread { "by connections" } else { "by requests at once" };
    Chart {
        title: format!("{}, {axis}", part.name()),
        unit: "thousand per second; us of the server's processors for each".into(),
        series: ways.iter().map(|way| way.name().to_string()).collect(),
        panels: vec![
            panel("thousand per second", |figures| figures.per_second / 1e3),
            panel("server CPU, us", |figures| figures.server_us),
        ],
        logarithmic: false,
    }
}

pub fn publish(setup: &Setup, options: &XrpcOptions, programs: &Programs, measured: &[XrpcRow]) -> io::Result<()> {
    let mut rows = Rows(measured.to_vec());
    let mut earlier = Vec::new();
    for part in XrpcPart::ALL {
        let file = setup.out.as_ref().map(|out| out.join(format!("xrpc-{}.csv", part.name())));
        if let Some(text) = file.and_then(|file| fs::read_to_string(file).ok()) {
            let count = rows.0.len();
            rows.complete(read(&text, part));
            if rows.0.len() > count {
                earlier.push(part.name());
            }
        }
    }
    let parts: Vec<XrpcPart> =
        XrpcPart::ALL.into_iter().filter(|part| rows.0.iter().any(|row| row.part == *part)).collect();
    let versions: Vec<String> =
        [SqlSide::Beluga, SqlSide::MariaDb].iter().map(|side| programs.version(*side)).collect();
    let mut page = String::from("# XRPC beside gRPC, a plain echo, MySQL's protocol and MariaDB\n\n");
    page += &setup.machine()?;
    page += "- To reproduce: `apt-get install mariadb-server`, then `cargo build --release -p server` and `cargo run --release -p bench --features grpc -- xrpc --out docs/bench`.\n\n";
    page += &format!(
        "Servers: {}; tonic as its documentation builds it (tokio's multi-thread runtime with a worker for each processor, TCP_NODELAY, no login), and a plain echo that reads and answers frames of the same lengths \
         with a thread for each connection. The echo of a session (`XRPC, session`) is a CapabilitiesGet on the number of a logged-in session: it passes the session's queue, a worker thread runs it, and its reply \
         takes the path of all replies of a session. `XRPC, connection` is the same message on a number without a session, which the receiving thread answers at once; no goal uses it. Each is a process of its own, and so is the client: {} threads, each with \
         an epoll loop over its connections that drives every protocol with the same code, receives once and sends once a turn, and checks each reply. Protocols are spoken by `clients/rust` (XRPC), \
         and by minimal clients for MySQL's protocol and HTTP/2. Requests share up to {CONNECTIONS_MAX} connections (XRPC: a session each; gRPC: a stream each); in MySQL's protocol each has a connection of its own. \
         A request is sent as soon as the reply to the previous one has arrived. Turns of {:.1} s after a warm-up, {} rounds in alternating order, medians. The point select reads a column of 120 characters of one of {} rows; \
         prepared statements of MySQL's protocol are executed in binary, XRPC's text has a `?` and its argument. All data is in memory. Client and servers share the processors: where all are busy, throughput reflects the cost of both, \
         and server CPU per operation that of the server alone.\n\n",
        versions.join(", "),
        options.threads,
        options.turn.as_secs_f64(),
        options.rounds,
        grouped(options.rows as f64, 0),
    );
    if !earlier.is_empty() {
        page += &format!("Figures of an earlier run, possibly on another machine: {}.\n\n", earlier.join(", "));
    }
    let goals = goals(&rows);
    if !goals.is_empty() {
        page += &format!("{}\n", goals.markdown());
    }
    let tables: Vec<(String, Table)> =
        parts.iter().map(|part| (format!("xrpc-{}", part.name()), table(&rows, *part))).collect();
    let charts: Vec<(String, Chart)> =
        parts.iter().map(|part| (format!("xrpc-{}", part.name()), chart(&rows, *part))).collect();
    for (((name, table), (_, chart)), part) in tables.iter().zip(&charts).zip(&parts) {
        page += &format!("## {}\n\n![{}]({name}.svg)\n\n{}\n", heading(*part), chart.title, table.markdown());
    }
    let tables: Vec<(&str, &Table)> = tables.iter().map(|(name, table)| (&**name, table)).collect();
    let charts: Vec<(&str, &Chart)> = charts.iter().map(|(name, chart)| (&**name, chart)).collect();
    setup.publish("xrpc", page.trim_end(), &tables, &charts)
}

fn heading(part: XrpcPart) -> &'static str {
    match part {
        XrpcPart::Echo => "Echo",
        XrpcPart::SelectOne => "select 1",
        XrpcPart::Point => "A row by its primary key",
        XrpcPart::Spread => "Many sessions on few connections",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(way: Way, level: usize, per_second: f64) -> XrpcRow {
        let figures = XrpcFigures { per_second, server_us: 1e6 / per_second, ..XrpcFigures::default() };
        XrpcRow { part: XrpcPart::Echo, level, connections: level.min(32), way, figures }
    }

    #[test]
    fn rows_come_back_from_their_file() {
        let rows = Rows(vec![row_of(Way::PlainEchoEach, 64, 1234.0), row_of(Way::Echo, 1, 50.0)]);
        let found = read(&table(&rows, XrpcPart::Echo).csv(), XrpcPart::Echo);
        assert_eq!(found.len(), 2);
        let mut newer = Rows(vec![row_of(Way::Echo, 64, 60.0)]);
        newer.complete(found.clone());
        let levels: Vec<_> = newer.0.iter().map(|row| (row.way, row.level)).collect();
        assert_eq!(levels, [(Way::Echo, 1), (Way::Echo, 64)]);
        assert_eq!((found[0].way, found[0].level, found[0].figures.per_second), (Way::PlainEchoEach, 64, 1234.0));
    }

    #[test]
    fn goals_take_the_worst_level() {
        let rows = Rows(vec![
            row_of(Way::Echo, 1, 100.0),
            row_of(Way::Echo, 64, 400.0),
            row_of(Way::Echo, 128, 300.0),
            row_of(Way::Grpc, 1, 50.0),
            row_of(Way::Grpc, 64, 100.0),
        ]);
        let found = rows.beside(XrpcPart::Echo, (Way::Echo, Way::Grpc), (1, 64), |figures| figures.per_second);
        assert_eq!(found, Some((2.0, 4.0)));
        assert_eq!(rows.after_peak(XrpcPart::Echo, Way::Echo), Some(0.75));
        assert_eq!(rows.saturated(XrpcPart::Echo, (Way::Grpc, Way::Echo)), Some(4.0));
    }
}
