//! Functions that return properties of the session and the server, from `EvalContext`.

use super::entry::{Args, FunctionEntry, MANY, Returns, row, sleeping, volatile};
use crate::error;
use crate::scalar::operators::Derivation;
use crate::scalar::state::StateOf as _;
use crate::types::MysqlExpr as _;
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["version"], 0, 0, Returns::Plain(64), Run::Values(version)),
    row(&["database", "schema"], 0, 0, Returns::Plain(64), Run::Values(database)),
    row(&["user", "session_user", "system_user"], 0, 0, Returns::Plain(288), Run::Values(user)),
    row(&["current_user"], 0, 0, Returns::Plain(288), Run::Values(current_user)),
    row(&["current_role"], 0, 0, Returns::Plain(288), Run::Values(current_role)),
    row(&["connection_id"], 0, 0, Returns::UInt, Run::Values(connection_id)),
    volatile(row(&["nextval"], 1, 1, Returns::UInt, Run::Values(nextval))),
    volatile(row(&["last_insert_id"], 0, 1, Returns::UInt, Run::Values(last_insert_id))),
    volatile(row(&["mysql_query_attribute_string"], 1, 1, Returns::Plain(u32::MAX / 4), Run::Strict(attribute))),
    row(&["row_count"], 0, 0, Returns::Int, Run::Values(row_count)),
    row(&["found_rows"], 0, 0, Returns::Int, Run::Values(found_rows)),
    volatile(row(&["uuid"], 0, 0, Returns::Plain(36), Run::Values(uuid))),
    row(&["uuid_to_bin"], 1, 2, Returns::Bytes(16), Run::Strict(uuid_to_bin)),
    row(&["bin_to_uuid"], 1, 2, Returns::Plain(36), Run::Strict(bin_to_uuid)),
    row(&["is_uuid"], 1, 1, Returns::Truth, Run::Strict(is_uuid)),
    row(&["inet_aton"], 1, 1, Returns::UInt, Run::Strict(inet_aton)),
    row(&["inet_ntoa"], 1, 1, Returns::Plain(15), Run::Strict(inet_ntoa)),
    row(&["inet6_aton"], 1, 1, Returns::Bytes(16), Run::Strict(inet6_aton)),
    row(&["inet6_ntoa"], 1, 1, Returns::Plain(39), Run::Strict(inet6_ntoa)),
    row(&["is_ipv4"], 1, 1, Returns::Truth, Run::Strict(is_ipv4)),
    row(&["is_ipv6"], 1, 1, Returns::Truth, Run::Strict(is_ipv6)),
    row(&["is_ipv4_compat"], 1, 1, Returns::Truth, Run::Strict(is_ipv4_compat)),
    row(&["is_ipv4_mapped"], 1, 1, Returns::Truth, Run::Strict(is_ipv4_mapped)),
    row(&["coercibility"], 1, 1, Returns::Int, Run::Values(coercibility)),
    row(&["name_const"], 2, 2, Returns::Union(1), Run::Values(name_const)),
    row(&["format_bytes"], 1, 1, Returns::Plain(20), Run::Strict(format_bytes)),
    row(&["format_pico_time"], 1, 1, Returns::Plain(20), Run::Strict(format_pico_time)),
    volatile(row(&["random_bytes"], 1, 1, Returns::Bytes(1024), Run::Strict(random_bytes))),
    volatile(row(&["uuid_short"], 0, 0, Returns::UInt, Run::Values(uuid_short))),
    sleeping(volatile(row(&["sleep"], 1, 1, Returns::Int, Run::Values(sleep)))),
    volatile(row(&["benchmark"], 2, 2, Returns::Int, Run::Lazy(benchmark))),
    // These need features that do not exist here, so they are refused and not ignored.
    absent(&["extractvalue"]),
    absent(&["gtid_subset"]),
    absent(&["gtid_subtract"]),
    absent(&["icu_version"]),
    absent(&["json_schema_valid"]),
    absent(&["json_schema_validation_report"]),
    absent(&["load_file"]),
    absent(&["master_pos_wait"]),
    absent(&["ps_current_thread_id"]),
    absent(&["ps_thread_id"]),
    absent(&["roles_graphml"]),
    absent(&["source_pos_wait"]),
    absent(&["statement_digest"]),
    absent(&["statement_digest_text"]),
    absent(&["updatexml"]),
    absent(&["validate_password_strength"]),
    absent(&["wait_for_executed_gtid_set"]),
    absent(&["weight_string"]),
];

const fn absent(names: &'static [&'static str]) -> FunctionEntry {
    volatile(row(names, 0, MANY, Returns::Int, Run::Values(not_served)))
}

fn not_served(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Err(error::not_supported(format!("function {}", call.function.name())))
}

fn version(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(ctx.state().session.version.clone()))
}

fn database(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(ctx.state().session.database.clone().map_or(Value::Null, Value::Text))
}

fn user(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(ctx.state().session.user.clone()))
}

fn current_user(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(ctx.state().session.current_user.clone()))
}

fn current_role(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let role = &ctx.state().session.current_role;
    Ok(if role.is_empty() { Value::text("NONE") } else { Value::Text(role.clone()) })
}

fn connection_id(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(ctx.state().session.connection_id))
}

/// Returns the query attribute of that name, or NULL if the client has sent none.
fn attribute(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let name = Args::new(call, values).text(0, ctx);
    let named = ctx.state().session.attributes.iter().find(|(known, _)| *known == *name);
    Ok(named.and_then(|(_, text)| text.clone()).map_or(Value::Null, Value::Text))
}

/// NEXTVAL of the only sequence, whose name the binder has checked.
fn nextval(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let take = ctx.state().take_timestamp.clone();
    let (timestamp, durability_lsn) = take.ok_or_else(|| error::not_supported("NEXTVAL here"))?()?;
    ctx.state_mut().session.durability_lsn = ctx.state().session.durability_lsn.max(durability_lsn);
    Ok(Value::UInt(timestamp))
}

fn last_insert_id(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values.is_empty() {
        return Ok(Value::UInt(ctx.state().session.last_insert_id));
    }
    if values[0].is_null() {
        ctx.state_mut().session.set_last_insert_id = Some(0);
        return Ok(Value::Null);
    }
    let id = Args::new(call, values).int(0, ctx)? as u64;
    ctx.state_mut().session.set_last_insert_id = Some(id);
    Ok(Value::UInt(id))
}

fn row_count(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(ctx.state().session.row_count))
}

fn found_rows(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(ctx.state().session.found_rows as i64))
}

/// UUID version 1: the time, a sequence of this process, and a random node with the multicast bit that marks it as no network card's.
fn uuid(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static TICKS: AtomicU64 = AtomicU64::new(0);
    static NODE: LazyLock<u64> = LazyLock::new(|| fresh_bits() >> 16 | 1 << 40);
    static SEQUENCE: LazyLock<u64> = LazyLock::new(|| fresh_bits() >> 50);
    // Units of 100 ns since 1582, each used once.
    const SINCE_1582: u64 = 122_192_928_000_000_000;
    let now = crate::scalar::temporal::Timestamp::now().0 as u64 * 10 + SINCE_1582;
    let last = TICKS.fetch_max(now, Ordering::Relaxed);
    let ticks = if last >= now { TICKS.fetch_add(1, Ordering::Relaxed) + 1 } else { now };
    let (low, middle, high) = (ticks as u32, (ticks >> 32) as u16, (ticks >> 48) as u16 & 0x0FFF | 0x1000);
    Ok(Value::text(format!("{low:08x}-{middle:04x}-{high:04x}-{:04x}-{:012x}", *SEQUENCE | 0x8000, *NODE)))
}

/// UUID_SHORT: ascends within a process, and across processes by the time of their start.
fn uuid_short(_: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        AtomicU64::new((crate::scalar::temporal::Timestamp::now().0 as u64 / 1_000_000) << 24 | 1 << 56)
    });
    Ok(Value::UInt(NEXT.fetch_add(1, Ordering::Relaxed)))
}

static SLEEP: stdx::wait::Reason = stdx::wait::Reason::bounded("sleep");

/// In slices, so that a kill is seen: it ends a query's sleep with 1, as the end of its time does. Whether the query ends with it is for those to say who ask for more rows.
fn sleep(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    use std::time::{Duration, Instant};
    const SLICE: Duration = Duration::from_millis(20);
    let seconds = if values[0].is_null() { -1.0 } else { Args::new(call, values).f64(0, ctx)? };
    if seconds < 0.0 {
        return Err(error::WRONG_ARGUMENTS.raise(&[&"sleep."]));
    }
    let end = Duration::try_from_secs_f64(seconds).ok().and_then(|length| Instant::now().checked_add(length));
    if ctx.sleeps.suspends {
        return sleep_suspended(end, ctx);
    }
    let Some(_waiting) = stdx::wait::try_announce(&SLEEP) else { return Err(error::CANT_CREATE_THREAD.raise(&[])) };
    loop {
        if let Some(result) = result_of_sleep(end, ctx)? {
            return Ok(Value::Int(result));
        }
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.min(SLICE));
    }
}

/// SLEEP in a statement that can suspend: the statement restarts at the end of the sleep.
fn sleep_suspended(end: Option<std::time::Instant>, ctx: &mut EvalContext) -> Result<Value> {
    if let Some(result) = ctx.sleeps.next_result() {
        return Ok(Value::Int(result));
    }
    let end = ctx.sleeps.end(end);
    let result = result_of_sleep(end, ctx)?.ok_or_else(|| error::SUSPENDED.raise(&[]))?;
    ctx.sleeps.finish(result);
    Ok(Value::Int(result))
}

/// Returns the result of SLEEP, or None while it continues.
fn result_of_sleep(end: Option<std::time::Instant>, ctx: &mut EvalContext) -> Result<Option<i64>> {
    let now = std::time::Instant::now();
    match ctx.check_wait() {
        Err(error) if ctx.changes_rows => return Err(error),
        Err(_) => return Ok(Some(1)),
        Ok(()) => {}
    }
    if ctx.deadline.is_some_and(|deadline| now >= deadline) {
        ctx.has_woken = true;
        return Ok(Some(1));
    }
    Ok(end.is_some_and(|end| now >= end).then_some(0))
}

/// BENCHMARK: evaluates the second argument as often as the first says.
fn benchmark(call: &Call, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let count = call.arguments[0].eval(row, ctx)?;
    if count.is_null() {
        return Ok(Value::Null);
    }
    for _ in 0..crate::scalar::convert::to_i64(&count, ctx)? {
        ctx.check_killed()?;
        call.arguments[1].eval(row, ctx)?;
    }
    Ok(Value::Int(0))
}

/// Returns random bits of this process, taken from the seeds of the standard library's hash maps.
fn fresh_bits() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn random_bytes(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let length = Args::new(call, values).int(0, ctx)?;
    if !(1..=1024).contains(&length) {
        return Err(error::DATA_OUT_OF_RANGE.raise(&[&"length", &"random_bytes"]));
    }
    let mut bytes = vec![0; length as usize];
    let read =
        std::fs::File::open("/dev/urandom").and_then(|mut source| std::io::Read::read_exact(&mut source, &mut bytes));
    read.map_err(|_| error::UNKNOWN_ERROR.raise(&[&"no random numbers from the system"]))?;
    Ok(Value::from_bytes(bytes))
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let dashed = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    if !dashed && text.len() != 32 {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// UUID_TO_BIN: the second argument moves the slowly changing parts of the time to the front.
fn uuid_to_bin(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let text = args.text(0, ctx);
    let wrong = || error::WRONG_VALUE_FOR_TYPE.raise(&[&"string", &text, &"uuid_to_bin"]);
    let bytes = parse_uuid(&text).ok_or_else(wrong)?;
    if args.int_or(1, 0, ctx)? == 0 {
        return Ok(Value::bytes(bytes));
    }
    Ok(Value::bytes([&bytes[6..8], &bytes[4..6], &bytes[..4], &bytes[8..]].concat()))
}

fn bin_to_uuid(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let bytes = args.bytes(0, ctx);
    if bytes.len() != 16 {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        return Err(error::WRONG_VALUE_FOR_TYPE.raise(&[&"string", &shown, &"bin_to_uuid"]));
    }
    let ordered = match args.int_or(1, 0, ctx)? {
        0 => bytes,
        _ => [&bytes[4..8], &bytes[2..4], &bytes[..2], &bytes[8..]].concat(),
    };
    let hex: String = ordered.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::text(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
}

fn is_uuid(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(parse_uuid(&Args::new(call, values).text(0, ctx)).is_some()))
}

/// INET_ATON: a short form omits the middle, so 127.1 is 127.0.0.1.
fn inet_aton(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let text = Args::new(call, values).text(0, ctx);
    // An empty part between two dots is 0; after the last dot it is an error.
    let part = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<u8>().ok().map(u64::from) };
    let is_ended = text.is_empty() || text.ends_with('.');
    let parts: Option<Vec<u64>> = text.split('.').map(part).collect::<Option<Vec<u64>>>().filter(|_| !is_ended);
    Ok(match parts.as_deref() {
        Some([first, middle @ .., last]) if middle.len() <= 2 => {
            let mut number = *first;
            for place in 0..2 {
                number = number << 8 | middle.get(place).copied().unwrap_or(0);
            }
            Value::UInt(number << 8 | last)
        }
        Some([last]) => Value::UInt(*last),
        _ => Value::Null,
    })
}

fn inet_ntoa(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let number = Args::new(call, values).int(0, ctx)?;
    Ok(u32::try_from(number).map_or(Value::Null, |bits| Value::text(std::net::Ipv4Addr::from(bits).to_string())))
}

fn inet6_aton(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let text = Args::new(call, values).text(0, ctx);
    Ok(match text.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => Value::bytes(address.octets()),
        Ok(std::net::IpAddr::V6(address)) => Value::bytes(address.octets()),
        Err(_) => Value::Null,
    })
}

fn inet6_ntoa(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if call.arguments[0].kind().is_text() {
        return Ok(Value::Null);
    }
    let bytes = Args::new(call, values).bytes(0, ctx);
    let address = match bytes.len() {
        4 => <[u8; 4]>::try_from(&bytes[..]).ok().map(std::net::IpAddr::from),
        16 => <[u8; 16]>::try_from(&bytes[..]).ok().map(std::net::IpAddr::from),
        _ => None,
    };
    Ok(address.map_or(Value::Null, |address| Value::text(address.to_string())))
}

fn is_ipv4(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let text = Args::new(call, values).text(0, ctx);
    let is_part = |part: &str| matches!(part.len(), 1..=3) && part.bytes().all(|digit| digit.is_ascii_digit());
    let fits = |part: &str| is_part(part) && part.parse::<u8>().is_ok();
    Ok(Value::from(text.split('.').count() == 4 && text.split('.').all(fits)))
}

fn is_ipv6(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(Args::new(call, values).text(0, ctx).parse::<std::net::Ipv6Addr>().is_ok()))
}

/// The address in a string of sixteen bytes, as INET6_ATON makes them.
fn ipv6_of(call: &Call, values: &[Value], ctx: &EvalContext) -> Option<std::net::Ipv6Addr> {
    <[u8; 16]>::try_from(Args::new(call, values).bytes(0, ctx)).ok().map(std::net::Ipv6Addr::from)
}

/// ::1.2.3.4, but neither :: nor ::1.
fn is_ipv4_compat(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(ipv6_of(call, values, ctx).is_some_and(|address| (2..1 << 32).contains(&address.to_bits()))))
}

/// ::ffff:1.2.3.4
fn is_ipv4_mapped(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(ipv6_of(call, values, ctx).is_some_and(|address| address.to_ipv4_mapped().is_some())))
}

fn coercibility(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(Derivation::of(&call.arguments[0]) as i64))
}

fn name_const(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(values[1].clone())
}

/// Picoseconds in the largest unit that they fill.
fn format_pico_time(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    const UNITS: [(f64, &str); 7] =
        [(8.64e16, "d"), (3.6e15, "h"), (6e13, "min"), (1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];
    let time = Args::new(call, values).f64(0, ctx)?;
    let Some((unit, name)) = UNITS.iter().find(|(unit, _)| time.abs() >= *unit) else {
        return Ok(Value::text(format!("{:3} ps", time as i64)));
    };
    let count = time / unit;
    if count.abs() < 100_000.0 {
        return Ok(Value::text(format!("{count:.2} {name}")));
    }
    let shown = format!("{count:.2e}");
    let (digits, power) = shown.split_once('e').unwrap_or((&shown, "0"));
    Ok(Value::text(format!("{digits}e+{power:0>2} {name}")))
}

fn format_bytes(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let count = Args::new(call, values).f64(0, ctx)?;
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = units.iter().enumerate().rev().find(|(power, _)| count.abs() >= 1024f64.powi(*power as i32));
    Ok(Value::text(match power {
        Some((power @ 1.., unit)) => format!("{:.2} {unit}", count / 1024f64.powi(power as i32)),
        _ => format!("{count:4.0} bytes"),
    }))
}
