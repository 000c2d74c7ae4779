//! LATENCY: the spikes that the latency monitor recorded, and the distribution of each command's execution times.

use std::fmt::Write;

use crate::call::{Call, Result};
use crate::command::Command;
use crate::commands::{help as lines, shown};
use crate::latency::Event;
use crate::session::Session;
use crate::sparkline;
use crate::table::{self, COMMANDS};

pub fn latest(session: &mut Session, call: &mut Call<'_>) -> Result {
    let events = session.shared.stats.monitor.all();
    call.reply.array(events.len());
    for (name, event) in events {
        let last = event.samples.last().expect("an event begins with a sample");
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        call.reply.integer(last.unix_seconds as i64);
        call.reply.integer(last.milliseconds as i64);
        call.reply.integer(event.milliseconds_max as i64);
    }
    Ok(())
}

pub fn history(session: &mut Session, call: &mut Call<'_>) -> Result {
    let samples = session.shared.stats.monitor.get(call.args[2]).unwrap_or_default().samples;
    call.reply.array(samples.len());
    for sample in samples {
        call.reply.array(2);
        call.reply.integer(sample.unix_seconds as i64);
        call.reply.integer(sample.milliseconds as i64);
    }
    Ok(())
}

pub fn reset(session: &mut Session, call: &mut Call<'_>) -> Result {
    let monitor = &session.shared.stats.monitor;
    let count = match call.args {
        [_, _] => monitor.reset(None),
        _ => call.args[2..].iter().map(|event| monitor.reset(Some(event))).sum(),
    };
    call.reply.integer(count as i64);
    Ok(())
}

pub fn graph(session: &mut Session, call: &mut Call<'_>) -> Result {
    let named = session.shared.stats.monitor.all().into_iter();
    let named = named.into_iter().find(|(name, _)| call.args[2].eq_ignore_ascii_case(name.as_bytes()));
    let Some((name, event)) = named else {
        call.reply.error(&format!("ERR No samples available for event '{}'", shown(call.args[2])));
        return Ok(());
    };
    let now = session.now_ms() / 1000;
    let values: Vec<(u64, String)> = event
        .samples
        .iter()
        .map(|sample| (sample.milliseconds, age(now.saturating_sub(sample.unix_seconds))))
        .collect();
    let high = values.iter().map(|(value, _)| *value).max().unwrap_or(0);
    let low = values.iter().map(|(value, _)| *value).min().unwrap_or(0);
    let text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n{}",
        event.milliseconds_max,
        "-".repeat(80),
        sparkline::render(&values)
    );
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

/// Formats an age in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns the upper end of a histogram step: 1.024 microseconds and its doublings, in nanoseconds and in microseconds as Redis shows it.
fn step_end(step: u32) -> (u64, u64) {
    let end = 1024_u64 << step;
    // Redis' own histogram has two significant digits and reports the upper end of the bucket.
    (end, (end + (end >> 7) - 1) / 1000)
}

const STEPS: u32 = 24;

pub fn histogram(session: &mut Session, call: &mut Call<'_>) -> Result {
    let asked: Vec<&'static Command> = match call.args {
        [_, _] => COMMANDS.iter().collect(),
        _ => call.args[2..].iter().filter_map(|name| table::find_full(name)).flat_map(with_subcommands).collect(),
    };
    let stats = &session.shared.stats;
    let timed = asked.into_iter().filter_map(|row| Some((row, stats.commands[row.index()].times()?.snapshot())));
    let timed: Vec<_> = timed.filter(|(_, times)| times.count > 0).collect();
    call.reply.map(timed.len());
    for (row, times) in timed {
        let mut steps = Vec::new();
        let mut seen = 0;
        for (end, microseconds) in (0..STEPS).map(step_end) {
            let count = times.count_up_to(end);
            if count > seen {
                steps.push((microseconds, count));
            }
            seen = count;
        }
        call.reply.bulk(row.name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"calls");
        call.reply.integer(times.count as i64);
        call.reply.bulk(b"histogram_usec");
        call.reply.map(steps.len());
        for (microseconds, count) in steps {
            call.reply.integer(microseconds as i64);
            call.reply.integer(count as i64);
        }
    }
    Ok(())
}

/// Returns a command and its subcommands. Of a container, only the subcommands are timed.
fn with_subcommands(row: &'static Command) -> Vec<&'static Command> {
    std::iter::once(row).chain(row.subcommands()).collect()
}

pub fn doctor(session: &mut Session, call: &mut Call<'_>) -> Result {
    let monitor = &session.shared.stats.monitor;
    let events = monitor.all();
    let mut text = match (events.is_empty(), monitor.is_on()) {
        (true, false) => {
            "Latency monitoring is disabled. CONFIG SET latency-monitor-threshold <milliseconds> enables it.\n"
                .to_owned()
        }
        (true, true) => "No command has taken as long as latency-monitor-threshold.\n".to_owned(),
        (false, _) => "Latency spikes were observed:\n\n".to_owned(),
    };
    for (at, (name, event)) in events.iter().enumerate() {
        let _ = writeln!(text, "{}. {name}: {}", at + 1, summary(event));
    }
    let times = session.shared.stats.times();
    let quantile = |q: f64| times.quantile(q) / 1000;
    let _ = writeln!(
        text,
        "\nAll requests: {}. Time in the server without the wait for the disk: p50 {} us, p99 {} us, p99.9 {} us, longest {} us.",
        times.count,
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        times.max / 1000
    );
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

fn summary(event: &Event) -> String {
    let count = event.samples.len().max(1) as u64;
    let mean = event.samples.iter().map(|sample| sample.milliseconds).sum::<u64>() / count;
    let deviation = event.samples.iter().map(|sample| sample.milliseconds.abs_diff(mean)).sum::<u64>() / count;
    format!(
        "{count} latency spikes (average {mean}ms, mean deviation {deviation}ms). Worst all time event {}ms.",
        event.milliseconds_max
    )
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "DOCTOR",
            "    Return a human readable latency analysis report.",
            "GRAPH <event>",
            "    Return an ASCII latency graph for the <event> class.",
            "HISTORY <event>",
            "    Return time-latency samples for the <event> class.",
            "LATEST",
            "    Return the latest latency samples for all events.",
            "RESET [<event> ...]",
            "    Reset latency data of one or more <event> classes.",
            "    (default: reset all data for all event classes)",
            "HISTOGRAM [COMMAND ...]",
            "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
            "    If no commands are specified then all histograms are replied.",
        ],
    );
    Ok(())
}
