//! The commands: one table of command codes, and a function for each.

use std::borrow::Cow;
use std::sync::Arc;

use sql_mysql::charset::{decode, not_text};
use sql_mysql::error::{self, Result};
use sql_mysql::{Count, Kill, Outcome};

use crate::command_context::{CommandContext, CommandResult, Progress};
use crate::connection_state::ConnectionState;
use crate::errors;
use crate::literals;
use crate::params;
use crate::protocol::capability;
use crate::replies::EXECUTE;
use crate::reply::OkPacket;
use crate::wire::{NULL, Reader, put_bytes};

struct Command {
    code: u8,
    run: fn(&mut ConnectionState, &mut CommandContext<'_, '_>, &[u8], usize) -> CommandResult,
}

/// Commands by their code. The session handles COM_CHANGE_USER (0x11) itself, because it leads back to the login.
const COMMANDS: &[Command] = &[
    Command { code: 0x01, run: |_, _, _, _| Ok(Progress::Close) },
    Command { code: 0x02, run: init_db },
    Command { code: 0x03, run: query },
    Command { code: 0x04, run: field_list },
    Command { code: 0x07, run: refresh },
    Command { code: 0x09, run: statistics },
    Command { code: 0x0a, run: process_info },
    Command { code: 0x0c, run: process_kill },
    Command { code: 0x0e, run: ping },
    Command { code: 0x16, run: prepare },
    Command { code: 0x17, run: execute },
    Command { code: 0x18, run: send_long_data },
    Command { code: 0x19, run: close },
    Command { code: 0x1a, run: reset_statement },
    Command { code: 0x1b, run: set_option },
    Command { code: 0x1c, run: fetch },
    Command { code: 0x1f, run: reset_connection },
];

/// Runs the command in `payload`; `size` is what it occupies in the input. Its reply is held until the session's durability LSN (DM-3).
pub fn run(state: &mut ConnectionState, context: &mut CommandContext<'_, '_>, payload: &[u8], size: usize) -> Progress {
    let progress = dispatch(state, context, payload, size);
    context.io.hold_until_durable(state.sql.durability_lsn());
    progress
}

/// Calls the command's function. The caller raises the durability LSN of the output.
pub fn dispatch(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> Progress {
    let command = payload.split_first().and_then(|(code, rest)| {
        let found = COMMANDS.iter().find(|command| command.code == *code)?;
        Some((found, rest))
    });
    let reply = match command {
        Some((command, rest)) => (command.run)(state, context, rest, size),
        None => Err(error::UNKNOWN_COM.bare()),
    };
    context.finish(reply, size)
}

fn ok(state: &mut ConnectionState, context: &mut CommandContext<'_, '_>, size: usize) -> CommandResult {
    let changes = state.changes(context.capabilities);
    let ending = OkPacket { status: state.status_word(), changes: &changes, ..OkPacket::default() };
    context.writer().ok(&ending);
    Ok(Progress::Done(size))
}

fn malformed() -> error::SqlError {
    errors::MALFORMED.bare()
}

fn query(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let mut reader = Reader(payload);
    if context.capabilities & capability::QUERY_ATTRIBUTES != 0 {
        let attributes = params::read_attributes(&mut reader, state.client_charset()).ok_or_else(malformed)?;
        state.sql.give_attributes(attributes);
    }
    let text = statement_text(state, reader.0)?;
    Ok(state.run_text(context, &text, size))
}

/// Decodes the text of a statement. Bytes that are not text are allowed inside its literals.
fn statement_text<'p>(state: &ConnectionState, payload: &'p [u8]) -> Result<Cow<'p, str>> {
    let charset = state.client_charset();
    // MySQL ignores a trailing zero byte, which some clients send.
    let payload = payload.strip_suffix(&[0]).unwrap_or(payload);
    let text = decode(payload, charset);
    if let Some(text) =
        text.filter(|text| matches!(text, Cow::Borrowed(_)) || literals::is_reversible(text, payload, charset))
    {
        return Ok(text);
    }
    let escapes = !state.sql.status().no_backslash_escapes;
    literals::as_text(payload, charset, escapes).map(Into::into).ok_or_else(|| not_text(payload, charset))
}

fn init_db(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let name = state.text(payload)?;
    state.prepare_to_run(context);
    state.sql.use_database(&name)?;
    state.write_done(context, (0, 0, ""), false);
    Ok(Progress::Done(size))
}

fn field_list(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let mut reader = Reader(payload);
    let table = state.text(reader.terminated().ok_or_else(malformed)?)?;
    let like = state.text(reader.0)?;
    state.prepare_to_run(context);
    let columns = state.sql.fields(&table, &like)?;
    let results = state.results();
    for (column, default) in &columns {
        context.writer().packet(|out| {
            crate::columns::put_column(out, column, results);
            match default {
                Some(text) => put_bytes(out, text.as_bytes()),
                None => out.push(NULL),
            }
        });
    }
    let ending = state.ok_packet(false);
    state.write_rows_end(context, ending);
    Ok(Progress::Done(size))
}

/// Answers COM_STATISTICS with one line of text, without a status.
fn statistics(_: &mut ConnectionState, context: &mut CommandContext<'_, '_>, _: &[u8], size: usize) -> CommandResult {
    let shared = context.shared;
    let uptime = (shared.clock.monotonic_ns() - shared.started_ns) / 1_000_000_000;
    let questions = shared.stats.commands.get();
    let line = format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Queries per second avg: {:.3}",
        shared.clients.count(),
        questions as f64 / uptime.max(1) as f64,
    );
    context.writer().packet(|out| out.extend_from_slice(line.as_bytes()));
    Ok(Progress::Done(size))
}

/// Runs the FLUSH statements named by the bits of COM_REFRESH, as mysqladmin and mariadb-dump send it.
fn refresh(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    const NAMES: [(u8, &str); 4] = [(1, "PRIVILEGES"), (2, "LOGS"), (8, "HOSTS"), (16, "STATUS")];
    const TABLES: u8 = 4;
    let bits = Reader(payload).u8().ok_or_else(malformed)?;
    let known = NAMES.iter().fold(TABLES, |all, (bit, _)| all | bit);
    // THREADS, SLAVE and MASTER: there is no thread cache, no replica and no binary log.
    const NOTHING: u8 = 32 | 64 | 128;
    if bits & !(known | NOTHING) != 0 {
        return Err(error::UNKNOWN_COM.bare());
    }
    let names: Vec<&str> = NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    // The privilege is checked in any case.
    let text = match &names[..] {
        [] if bits & TABLES != 0 => "FLUSH TABLES".to_owned(),
        [] => "FLUSH LOGS".to_owned(),
        // No statement flushes tables beside others, and FLUSH TABLES has nothing to close.
        names => format!("FLUSH {}", names.join(", ")),
    };
    Ok(state.run_text(context, &text, size))
}

fn process_info(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    _: &[u8],
    size: usize,
) -> CommandResult {
    Ok(state.run_text(context, "SHOW PROCESSLIST", size))
}

fn process_kill(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let id = Reader(payload).u32().ok_or_else(malformed)?;
    state.sql.end(id.into(), Kill::Connection)?;
    ok(state, context, size)
}

fn ping(state: &mut ConnectionState, context: &mut CommandContext<'_, '_>, _: &[u8], size: usize) -> CommandResult {
    ok(state, context, size)
}

fn reset_connection(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    _: &[u8],
    size: usize,
) -> CommandResult {
    state.reset();
    ok(state, context, size)
}

fn set_option(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    state.multi_statements = match Reader(payload).u16() {
        Some(0) => true,
        Some(1) => false,
        _ => return Err(error::UNKNOWN_COM.bare()),
    };
    let ending = state.ok_packet(false);
    state.write_rows_end(context, ending);
    Ok(Progress::Done(size))
}

fn prepare(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let text = statement_text(state, payload)?;
    let prepared = state.sql.prepare(&text)?;
    let id = state.statements.add(prepared.clone())?;
    let ending = state.ok_packet(false);
    let (columns, parameters) = (prepared.columns.len() as u16, prepared.parameters.len() as u16);
    context.writer().packet(|out| {
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&ending.warnings.to_le_bytes());
    });
    for list in [&prepared.parameters, &prepared.columns].into_iter().filter(|list| !list.is_empty()) {
        state.write_definitions(context, list, &ending);
    }
    Ok(Progress::Done(size))
}

fn execute(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    execute_of(state, context, (payload, None), size)
}

/// Runs COM_STMT_EXECUTE. If the payload is a slice of bytes that values can share, `owner` holds them.
pub fn execute_of(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    (payload, owner): (&[u8], Option<&Arc<Vec<u8>>>),
    size: usize,
) -> CommandResult {
    /// The number of values precedes them, even if the statement has no parameters.
    const COUNTED: u8 = 8;
    let charset = state.client_charset();
    let begun_ns = context.shared.clock.monotonic_ns();
    let ConnectionState { statements, sql, .. } = state;
    let (id, statement, mut reader) = statements.named(payload, EXECUTE)?;
    if let Some(error) = statement.long_error.take() {
        statement.forget_long();
        return Err(error);
    }
    let flags = reader.u8().ok_or_else(malformed)?;
    reader.u32().ok_or_else(malformed)?;
    let named = context.capabilities & capability::QUERY_ATTRIBUTES != 0;
    let (bound, long) = (&mut statement.bound, &mut statement.long);
    let given = if named && (flags & COUNTED != 0 || !long.is_empty()) {
        params::read_named((&mut reader, owner), bound, long, charset)
    } else {
        params::read((&mut reader, owner), bound, long, charset).map(|values| (values, Vec::new()))
    };
    let (parameters, attributes) = given.ok_or_else(|| error::WRONG_ARGUMENTS.with(&[&EXECUTE]))?;
    if let Some(cursor) = statement.cursor.take() {
        cursor.close(sql);
    }
    let handle = statement.prepared.handle.clone();
    // The statement owns the values until it has run.
    let _room = statement.long_reservation.take();
    state.prepare_to_run(context);
    if named {
        state.sql.give_attributes(attributes);
    }
    state.allow_suspension();
    let outcome = state.sql.execute_prepared(&handle, parameters);
    if matches!(outcome, Ok(Outcome::Suspended)) {
        return Ok(state.suspend_prepared(context, (id, flags), begun_ns, size));
    }
    context.shared.stats.times.record(context.shared.clock.monotonic_ns() - begun_ns);
    state.refresh_settings();
    state.answer_execution(context, outcome, (id, flags), size)
}

/// Appends a piece of a parameter. The command has no reply: the execution reports the error.
fn send_long_data(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    state.sql.count(Count::StmtSendLongData);
    let packet_max = state.packet_max();
    let mut reader = Reader(payload);
    let head = reader.u32().zip(reader.u16());
    if let Some((id, parameter)) = head
        && let Ok(statement) = state.statements.get(id, "mysqld_stmt_send_long_data")
    {
        match statement.long.get_mut(usize::from(parameter)) {
            Some(long) => {
                let long = long.get_or_insert_default();
                if long.len() + reader.0.len() > packet_max {
                    statement.long_error = Some(errors::PACKET_TOO_LARGE.bare());
                } else {
                    // The value, and the row that it becomes a part of.
                    let bytes = 2 * reader.0.len() as u64;
                    let has_room = match &mut statement.long_reservation {
                        Some(memory_budget) => memory_budget.grow(bytes),
                        None => {
                            statement.long_reservation = context.shared.memory_budget.take(bytes);
                            statement.long_reservation.is_some()
                        }
                    };
                    match has_room {
                        true => long.extend_from_slice(reader.0),
                        false => statement.long_error = Some(errors::OUT_OF_RESOURCES.bare()),
                    }
                }
            }
            None => statement.long_error = Some(error::WRONG_ARGUMENTS.with(&[&"mysqld_stmt_send_long_data"])),
        }
    }
    Ok(Progress::Done(size))
}

/// Closes a prepared statement. The command has no reply.
fn close(state: &mut ConnectionState, _: &mut CommandContext<'_, '_>, payload: &[u8], size: usize) -> CommandResult {
    state.sql.count(Count::StmtClose);
    if let Some(id) = Reader(payload).u32() {
        state.statements.close(id, &mut state.sql);
    }
    Ok(Progress::Done(size))
}

fn reset_statement(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: &[u8],
    size: usize,
) -> CommandResult {
    let ConnectionState { statements, sql, .. } = state;
    sql.count(Count::StmtReset);
    let (_, statement, _) = statements.named(payload, "mysqld_stmt_reset")?;
    statement.forget_long();
    statement.long_error = None;
    if let Some(cursor) = statement.cursor.take() {
        cursor.close(sql);
    }
    ok(state, context, size)
}

fn fetch(state: &mut ConnectionState, _: &mut CommandContext<'_, '_>, payload: &[u8], size: usize) -> CommandResult {
    state.sql.count(Count::StmtFetch);
    let (id, statement, mut reader) = state.statements.named(payload, "mysqld_stmt_fetch")?;
    let count = reader.u32().ok_or_else(malformed)?;
    if statement.cursor.is_none() {
        return Err(errors::NO_OPEN_CURSOR.with(&[&id]));
    }
    Ok(state.begin_fetch(id, count, size))
}
