//! Statements with the answers of the real server, as the files of `tests/recorded` have them (`record.py`).
//!
//! A line that begins with `> ` is a statement; what follows is its answer: a line of `#` and the columns (name, type, modifier), then the rows, or the tag, or the error with its detail, hint and position.

use sql_postgres::error::PgError;
use sql_postgres::session::{More, Outcome, Session};

use crate::world::World;

fn answer(session: &mut Session, text: &str) -> String {
    let mut out = String::new();
    let done = script(session, text, &mut out);
    session.take_notices();
    if let Err(error) = done {
        let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or("").to_owned();
        let PgError { state, message, detail, hint, position, context: _, object: _, routine: _ } = &error;
        let (detail, hint) = (text(detail), text(hint));
        out += &format!("ERROR {state} {message} | {detail} | {hint} | {}\n", position.unwrap_or(0));
    }
    out
}

fn script(session: &mut Session, text: &str, out: &mut String) -> Result<(), PgError> {
    let mut script = session.simple(text)?;
    while let Some(outcome) = session.next_of(&mut script)? {
        match outcome {
            Outcome::Done { tag } => *out += &format!("{tag}\n"),
            Outcome::Rows(mut result) => {
                // OIDs of types that users define differ from server to server.
                let oid = |oid: u32| if oid < 16384 { oid.to_string() } else { "user".to_owned() };
                let shown =
                    result.columns().fields().map(|of| format!("{}:{}:{}", of.name, oid(of.type_oid), of.typmod));
                *out += &format!("# {}\n", shown.collect::<Vec<_>>().join(" "));
                loop {
                    let mut bytes = Vec::new();
                    let more = result.write_rows(session, &mut bytes, 1 << 20)?;
                    rows(&bytes, out);
                    if let More::End { .. } = more {
                        break;
                    }
                }
            }
            _ => *out += "another outcome\n",
        }
    }
    Ok(())
}

/// Appends the rows of DataRow messages.
fn rows(mut bytes: &[u8], out: &mut String) {
    while bytes.len() > 5 {
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let (body, rest) = (&bytes[5..1 + length], &bytes[1 + length..]);
        bytes = rest;
        let (mut at, mut values) = (2, Vec::new());
        while at < body.len() {
            let length = i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            at += 4;
            let end = at + usize::try_from(length).unwrap_or(0);
            let value = String::from_utf8_lossy(&body[at..end]).into_owned();
            values.push(if length < 0 { "<NULL>".to_owned() } else { value });
            at = end;
        }
        *out += &format!("{}\n", values.join("|"));
    }
}

fn check(recorded: &str) {
    let mut world = World::new();
    let mut client = world.session();
    let mut wrong = Vec::new();
    let mut lines = recorded.lines().peekable();
    while let Some(line) = lines.next() {
        let statement = line.strip_prefix("> ").expect("a statement");
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("> ")) {
            expected += &format!("{line}\n");
        }
        let found = answer(&mut client.0, statement);
        if found != expected {
            wrong.push(format!("> {statement}\n{found}instead of\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrays_answer_as_the_real_server_does() {
    check(include_str!("../recorded/arrays.txt"));
}

#[test]
fn parts_and_changes_of_documents_answer_as_the_real_server_does() {
    check(include_str!("../recorded/json_paths.txt"));
}

/// The type of a named row is `record` here (docs/protocols/postgres.md).
#[test]
fn rows_as_values_answer_as_the_real_server_does() {
    check(include_str!("../recorded/rows.txt"));
}

#[test]
fn aggregates_of_ordered_sets_answer_as_the_real_server_does() {
    check(include_str!("../recorded/ordered_sets.txt"));
}

/// Statements as servers of APIs and object mappers write them.
#[test]
fn documents_made_of_rows_and_rows_of_documents_answer_as_the_real_server_does() {
    check(include_str!("../recorded/documents_of_rows.txt"));
}

#[test]
fn network_addresses_answer_as_the_real_server_does() {
    check(include_str!("../recorded/network.txt"));
}

#[test]
fn searches_and_cycles_of_recursive_queries_answer_as_on_the_real_server() {
    check(include_str!("../recorded/search_cycle.txt"));
}

#[test]
fn recursion_goes_on_as_far_as_its_rows_are_read() {
    check(include_str!("../recorded/endless.txt"));
}

#[test]
fn constructors_and_tests_of_sql_json_answer_as_the_real_server_does() {
    check(include_str!("../recorded/sql_json.txt"));
}

/// Statements drawn at random.
#[test]
fn random_statements_of_sql_json_answer_as_the_real_server_does() {
    check(include_str!("../recorded/sql_json_random.txt"));
}

#[test]
fn bit_strings_answer_as_the_real_server_does() {
    check(include_str!("../recorded/bits.txt"));
}

#[test]
fn ranges_and_multiranges_answer_as_the_real_server_does() {
    check(include_str!("../recorded/ranges.txt"));
}

#[test]
fn values_of_composite_types_answer_as_the_real_server_does() {
    check(include_str!("../recorded/composites.txt"));
}

#[test]
fn domains_within_rows_answer_as_the_real_server_does() {
    check(include_str!("../recorded/domain_fields.txt"));
}

/// Statements drawn at random.
#[test]
fn random_statements_of_ranges_answer_as_the_real_server_does() {
    check(include_str!("../recorded/ranges_random.txt"));
}

#[test]
fn what_reads_the_round_before_is_computed_in_each_round() {
    check(include_str!("../recorded/rounds.txt"));
}

#[test]
fn numbers_of_many_digits_are_shown_with_an_exponent() {
    check(include_str!("../recorded/exponents.txt"));
}

#[test]
fn full_joins_without_a_condition_between_their_sides_answer_as_on_the_real_server() {
    check(include_str!("../recorded/full_joins.txt"));
}

#[test]
fn parts_of_a_similar_pattern_match_as_on_the_real_server() {
    check(include_str!("../recorded/similar.txt"));
}

#[test]
fn column_definition_lists_and_variadic_nulls_answer_as_the_real_server_does() {
    check(include_str!("../recorded/columns_of_documents.txt"));
}

#[test]
fn a_query_refers_to_itself_only_where_the_real_server_permits_it() {
    check(include_str!("../recorded/recursion.txt"));
}

#[test]
fn groups_series_and_escapes_answer_as_on_the_real_server() {
    check(include_str!("../recorded/groups.txt"));
}

#[test]
fn subscripts_of_documents_answer_as_on_the_real_server() {
    check(include_str!("../recorded/jsonb_subscripts.txt"));
}

#[test]
fn settings_of_the_planner_answer_as_on_the_real_server() {
    check(include_str!("../recorded/planner_settings.txt"));
}

#[test]
fn small_functions_answer_as_on_the_real_server() {
    check(include_str!("../recorded/small_functions.txt"));
}

/// Foreign keys that rows break until their statement has ended.
#[test]
fn foreign_keys_are_checked_behind_the_statement_as_on_the_real_server() {
    check(include_str!("../recorded/foreign_keys.txt"));
}

/// COMMENT ON objects of all kinds, and what becomes of comments.
#[test]
fn comments_answer_as_on_the_real_server() {
    check(include_str!("../recorded/comments.txt"));
}

/// Temporary tables, views and sequences, which hide permanent ones.
#[test]
fn temporary_objects_answer_as_on_the_real_server() {
    check(include_str!("../recorded/temporary.txt"));
}

/// Views, defaults, foreign keys and rights follow what moves.
#[test]
fn relations_move_to_another_schema_as_on_the_real_server() {
    check(include_str!("../recorded/set_schema.txt"));
}

#[test]
fn schemas_are_made_with_their_elements_as_on_the_real_server() {
    check(include_str!("../recorded/create_schema.txt"));
}

#[test]
fn ids_of_transactions_and_wal_positions_answer_as_on_the_real_server() {
    check(include_str!("../recorded/transaction_ids.txt"));
}

/// A sample of none or all rows is the same everywhere; `table_samples` has the others.
#[test]
fn samples_of_tables_are_refused_as_on_the_real_server() {
    check(include_str!("../recorded/table_samples.txt"));
}

#[test]
fn send_functions_answer_as_on_the_real_server() {
    check(include_str!("../recorded/sends.txt"));
}

#[test]
fn settings_of_columns_are_taken_where_they_are_the_case() {
    check(include_str!("../recorded/column_settings.txt"));
}

#[test]
fn row_types_of_relations_answer_as_on_the_real_server() {
    check(include_str!("../recorded/row_types.txt"));
}
