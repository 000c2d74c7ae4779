//! The commands: one table, and what each does.

use std::sync::Arc;

use query::error::{self, Result};
use query::letters::{decode, not_text};
use query::{Count, Kill, Outcome};

use crate::conversation::{Conversation, Next, Turn};
use crate::errors;
use crate::literals;
use crate::params;
use crate::protocol::{capability, status};
use crate::reply::Ending;
use crate::rows::RowWriter;
use crate::statements::Cursor;
use crate::wire::{NULL, Reader, put_bytes};

/// What errors call COM_STMT_EXECUTE.
const EXECUTE: &str = "mysqld_stmt_execute";

/// What a command may give back: an error becomes its reply.
pub type Reply = Result<Next>;

struct Command {
    code: u8,
    run: fn(&mut Conversation, &mut Turn<'_, '_>, &[u8], usize) -> Reply,
}

/// Each with its code. CHANGE_USER (0x11) is the session's own: it leads back to the login.
const COMMANDS: &[Command] = &[
    Command { code: 0x01, run: |_, _, _, _| Ok(Next::Close) },
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

/// Runs the command that `payload` holds.
pub fn run(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Next {
    let command = payload.split_first().and_then(|(code, rest)| {
        let found = COMMANDS.iter().find(|command| command.code == *code)?;
        Some((found, rest))
    });
    let reply = match command {
        Some((command, rest)) => (command.run)(conversation, turn, rest, size),
        None => Err(error::UNKNOWN_COM.bare()),
    };
    told(turn, reply, size)
}

/// An error is the reply.
pub fn told(turn: &mut Turn<'_, '_>, reply: Reply, size: usize) -> Next {
    reply.unwrap_or_else(|error| {
        turn.error(&error);
        Next::Done(size)
    })
}

fn ok(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, size: usize) -> Reply {
    let changes = conversation.changes(turn.capabilities);
    let ending = Ending { status: conversation.status_word(), changes: &changes, ..Ending::default() };
    turn.writer().ok(&ending);
    Ok(Next::Done(size))
}

fn malformed() -> error::SqlError {
    errors::MALFORMED.bare()
}

fn query(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let mut reader = Reader(payload);
    if turn.capabilities & capability::QUERY_ATTRIBUTES != 0 {
        let attributes = params::read_attributes(&mut reader, conversation.client_charset()).ok_or_else(malformed)?;
        conversation.sql.give_attributes(attributes);
    }
    let text = statement_text(conversation, reader.0)?;
    Ok(conversation.run_text(turn, &text, size))
}

/// The text of a statement. Bytes that are no text are allowed inside its literals.
fn statement_text<'p>(conversation: &Conversation, payload: &'p [u8]) -> Result<std::borrow::Cow<'p, str>> {
    let charset = conversation.client_charset();
    // MySQL takes no notice of a zero at the end, which some clients send.
    let payload = payload.strip_suffix(&[0]).unwrap_or(payload);
    if let Some(text) = decode(payload, charset) {
        return Ok(text);
    }
    let escapes = !conversation.sql.status().no_backslash_escapes;
    literals::as_text(payload, escapes).map(Into::into).ok_or_else(|| not_text(payload, charset))
}

fn init_db(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let name = conversation.text(payload)?;
    conversation.prepare_to_run(turn);
    conversation.sql.use_database(&name)?;
    conversation.write_done(turn, (0, 0, ""), false);
    Ok(Next::Done(size))
}

fn field_list(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let mut reader = Reader(payload);
    let table = conversation.text(reader.terminated().ok_or_else(malformed)?)?;
    let like = conversation.text(reader.0)?;
    conversation.prepare_to_run(turn);
    let columns = conversation.sql.fields(&table, &like)?;
    let results = conversation.results();
    for (column, default) in &columns {
        turn.writer().packet(|out| {
            crate::columns::put_column(out, column, results);
            match default {
                Some(text) => put_bytes(out, text.as_bytes()),
                None => out.push(NULL),
            }
        });
    }
    let ending = conversation.ending(false);
    conversation.write_rows_end(turn, ending);
    Ok(Next::Done(size))
}

/// One line of words, without a status.
fn statistics(_: &mut Conversation, turn: &mut Turn<'_, '_>, _: &[u8], size: usize) -> Reply {
    let shared = turn.shared;
    let uptime = (shared.clock.monotonic_ns() - shared.started_ns) / 1_000_000_000;
    let questions = shared.stats.commands.get();
    let line = format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Queries per second avg: {:.3}",
        shared.clients.count(),
        questions as f64 / uptime.max(1) as f64,
    );
    turn.writer().packet(|out| out.extend_from_slice(line.as_bytes()));
    Ok(Next::Done(size))
}

/// FLUSH of what the bits name, as mysqladmin and mariadb-dump ask for it.
fn refresh(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    const NAMES: [(u8, &str); 4] = [(1, "PRIVILEGES"), (2, "LOGS"), (8, "HOSTS"), (16, "STATUS")];
    const TABLES: u8 = 4;
    let bits = Reader(payload).u8().ok_or_else(malformed)?;
    let known = NAMES.iter().fold(TABLES, |all, (bit, _)| all | bit);
    // There are no threads to forget, no replica and no binary log.
    const NOTHING: u8 = 32 | 64 | 128;
    if bits & !(known | NOTHING) != 0 {
        return Err(error::UNKNOWN_COM.bare());
    }
    let names: Vec<&str> = NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    // The right to it is asked for in any case.
    let text = match &names[..] {
        [] if bits & TABLES != 0 => "FLUSH TABLES".to_owned(),
        [] => "FLUSH LOGS".to_owned(),
        // No statement names tables beside others, and FLUSH TABLES has nothing to close.
        names => format!("FLUSH {}", names.join(", ")),
    };
    Ok(conversation.run_text(turn, &text, size))
}

fn process_info(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, _: &[u8], size: usize) -> Reply {
    Ok(conversation.run_text(turn, "SHOW PROCESSLIST", size))
}

fn process_kill(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let id = Reader(payload).u32().ok_or_else(malformed)?;
    conversation.sql.end(id.into(), Kill::Connection)?;
    ok(conversation, turn, size)
}

fn ping(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, _: &[u8], size: usize) -> Reply {
    ok(conversation, turn, size)
}

fn reset_connection(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, _: &[u8], size: usize) -> Reply {
    conversation.reset();
    ok(conversation, turn, size)
}

fn set_option(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    conversation.multi_statements = match Reader(payload).u16() {
        Some(0) => true,
        Some(1) => false,
        _ => return Err(error::UNKNOWN_COM.bare()),
    };
    let ending = conversation.ending(false);
    conversation.write_rows_end(turn, ending);
    Ok(Next::Done(size))
}

fn prepare(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let text = statement_text(conversation, payload)?;
    let prepared = conversation.sql.prepare(&text)?;
    let id = conversation.statements.add(prepared.clone())?;
    let ending = conversation.ending(false);
    let (columns, parameters) = (prepared.columns.len() as u16, prepared.parameters.len() as u16);
    turn.writer().packet(|out| {
        out.push(0);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&ending.warnings.to_le_bytes());
    });
    for list in [&prepared.parameters, &prepared.columns].into_iter().filter(|list| !list.is_empty()) {
        conversation.write_definitions(turn, list, &ending);
    }
    Ok(Next::Done(size))
}

fn execute(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    execute_of(conversation, turn, (payload, None), size)
}

/// The same; if the payload is a part of bytes that values can share, of which.
pub fn execute_of(
    conversation: &mut Conversation,
    turn: &mut Turn<'_, '_>,
    (payload, owner): (&[u8], Option<&Arc<Vec<u8>>>),
    size: usize,
) -> Reply {
    /// How many values come stands before them, though the statement has no parameters.
    const COUNTED: u8 = 8;
    let charset = conversation.client_charset();
    let begun_ns = turn.shared.clock.monotonic_ns();
    let Conversation { statements, sql, .. } = conversation;
    let (id, statement, mut reader) = statements.named(payload, EXECUTE)?;
    if let Some(error) = statement.long_error.take() {
        statement.forget_long();
        return Err(error);
    }
    let flags = reader.u8().ok_or_else(malformed)?;
    reader.u32().ok_or_else(malformed)?;
    let named = turn.capabilities & capability::QUERY_ATTRIBUTES != 0;
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
    // The values are the statement's now, until it has run.
    let _room = statement.long_room.take();
    conversation.prepare_to_run(turn);
    if named {
        conversation.sql.give_attributes(attributes);
    }
    conversation.may_leave();
    let outcome = conversation.sql.execute_prepared(&handle, parameters);
    if matches!(outcome, Ok(Outcome::Away)) {
        return Ok(conversation.leave_prepared(turn, (id, flags), begun_ns, size));
    }
    turn.shared.stats.times.record(turn.shared.clock.monotonic_ns() - begun_ns);
    conversation.obey_changes();
    answer_execution(conversation, turn, outcome, (id, flags), size)
}

/// The reply to COM_STMT_EXECUTE of that statement, with those flags.
pub fn answer_execution(
    conversation: &mut Conversation,
    turn: &mut Turn<'_, '_>,
    outcome: Result<Outcome>,
    (id, flags): (u32, u8),
    size: usize,
) -> Reply {
    const CURSOR: u8 = 1;
    match outcome? {
        Outcome::Done { affected, last_insert_id, info } => {
            conversation.write_done(turn, (affected, last_insert_id, &info), false);
            Ok(Next::Done(size))
        }
        Outcome::Rows(result) if flags & CURSOR != 0 => {
            turn.writer().packet(|out| crate::wire::put_length(out, result.columns().len() as u64));
            let ending = conversation.ending(false);
            let ending = Ending { status: ending.status | status::CURSOR_EXISTS, ..ending };
            conversation.write_definitions(turn, result.columns(), &ending);
            if turn.capabilities & capability::DEPRECATE_EOF != 0 {
                conversation.write_rows_end(turn, ending);
            }
            let writer = RowWriter::new(conversation.results(), true);
            conversation.statements.open_cursor(id, Cursor::new(result, writer), EXECUTE)?;
            Ok(Next::Done(size))
        }
        Outcome::Rows(result) => Ok(conversation.begin_rows(turn, result, size)),
        // LOAD DATA cannot be prepared, and what is away has been looked at.
        Outcome::File(_) | Outcome::Away => Err(error::UNSUPPORTED_PS.bare()),
    }
}

/// Has no reply: an error is told by the execution.
fn send_long_data(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    conversation.sql.count(Count::StmtSendLongData);
    let packet_max = conversation.packet_max();
    let mut reader = Reader(payload);
    let head = reader.u32().zip(reader.u16());
    if let Some((id, parameter)) = head
        && let Ok(statement) = conversation.statements.get(id, "mysqld_stmt_send_long_data")
    {
        match statement.long.get_mut(usize::from(parameter)) {
            Some(long) => {
                let long = long.get_or_insert_default();
                if long.len() + reader.0.len() > packet_max {
                    statement.long_error = Some(errors::PACKET_TOO_LARGE.bare());
                } else {
                    // The value, and the row that it becomes a part of.
                    let bytes = 2 * reader.0.len() as u64;
                    let has_room = match &mut statement.long_room {
                        Some(room) => room.grow(bytes),
                        None => {
                            statement.long_room = turn.shared.room.take(bytes);
                            statement.long_room.is_some()
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
    Ok(Next::Done(size))
}

/// Has no reply.
fn close(conversation: &mut Conversation, _: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    conversation.sql.count(Count::StmtClose);
    if let Some(id) = Reader(payload).u32() {
        conversation.statements.close(id, &mut conversation.sql);
    }
    Ok(Next::Done(size))
}

fn reset_statement(conversation: &mut Conversation, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    let Conversation { statements, sql, .. } = conversation;
    sql.count(Count::StmtReset);
    let (_, statement, _) = statements.named(payload, "mysqld_stmt_reset")?;
    statement.forget_long();
    statement.long_error = None;
    if let Some(cursor) = statement.cursor.take() {
        cursor.close(sql);
    }
    ok(conversation, turn, size)
}

fn fetch(conversation: &mut Conversation, _: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Reply {
    conversation.sql.count(Count::StmtFetch);
    let (id, statement, mut reader) = conversation.statements.named(payload, "mysqld_stmt_fetch")?;
    let count = reader.u32().ok_or_else(malformed)?;
    if statement.cursor.is_none() {
        return Err(errors::NO_OPEN_CURSOR.with(&[&id]));
    }
    Ok(conversation.begin_fetch(id, count, size))
}
