//! REGEXP_LIKE and the other REGEXP functions. Each thread caches compiled patterns by their text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fancy_regex::Regex;
use stdx::memory;

use super::entry::{Args, FunctionEntry, Returns, longest, row, string_value, too_long};
use crate::error;
use crate::scalar::state::StateOf as _;
use crate::types::CollationName as _;
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["regexp_like"], 2, 3, Returns::Truth, Run::Strict(regexp_like)),
    row(&["regexp_instr"], 2, 6, Returns::Int, Run::Strict(regexp_instr)),
    row(&["regexp_substr"], 2, 5, Returns::Text(longest), Run::Strict(regexp_substr)),
    row(&["regexp_replace"], 3, 6, Returns::Text(longest), Run::Strict(regexp_replace)),
];

/// The capacity of a thread's pattern cache, which is cleared when it is full.
const KEPT_MAX: usize = 64;

thread_local! {
    static KEPT: RefCell<HashMap<String, Rc<Regex>>> = RefCell::new(HashMap::new());
}

fn compile(call: &Call, pattern: &str, matching: &str) -> Result<Rc<Regex>> {
    let mut insensitive = call.collation.name().ends_with("_ci");
    let (mut lines, mut dot_all) = (false, false);
    for letter in matching.chars() {
        match letter {
            'c' => insensitive = false,
            'i' => insensitive = true,
            'm' => lines = true,
            'n' => dot_all = true,
            'u' => {}
            _ => return Err(error::WRONG_ARGUMENTS.raise(&[&call.function.name()])),
        }
    }
    if pattern.is_empty() {
        return Err(error::REGEXP_ILLEGAL_ARGUMENT.raise(&[]));
    }
    let flags = [(insensitive, 'i'), (lines, 'm'), (dot_all, 's')];
    let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, letter)| *letter).collect();
    let whole = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
    // POSIX word boundaries, from older statements.
    let whole = whole.replace("[[:<:]]", "\\b").replace("[[:>:]]", "\\b");
    KEPT.with_borrow_mut(|kept| {
        if let Some(regex) = kept.get(&whole) {
            return Ok(regex.clone());
        }
        let compiled = Regex::new(&whole).map_err(|wrong| match wrong {
            fancy_regex::Error::ParseError(at, _) => {
                let prefix = whole.len() - pattern.len().min(whole.len());
                error::REGEXP_RULE_SYNTAX.raise(&[&1, &(at.saturating_sub(prefix) + 1)])
            }
            _ => error::REGEXP_RULE_SYNTAX.raise(&[&1, &1]),
        })?;
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let compiled = Rc::new(compiled);
        kept.insert(whole, compiled.clone());
        Ok(compiled)
    })
}

/// A search with back references may exceed the library's backtracking limit, which is an error of the statement.
fn gave_up(_: fancy_regex::Error) -> datum::Fault {
    error::REGEXP_TIME_OUT.raise(&[])
}

fn matching(args: &Args<'_>, place: usize, ctx: &EvalContext) -> Text {
    if place < args.len() { args.text(place, ctx) } else { Text::default() }
}

fn regexp_like(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let regex = compile(call, &args.text(1, ctx), &matching(&args, 2, ctx))?;
    Ok(Value::from(regex.is_match(args.text(0, ctx).as_str()).map_err(gave_up)?))
}

/// The byte at which the character with that number (from 1) begins; error 3686 beyond the end.
fn start_of(text: &str, position: i64) -> Result<usize> {
    let beyond = || error::REGEXP_INDEX_OUTOFBOUNDS.raise(&[]);
    let place = usize::try_from(position).ok().and_then(|place| place.checked_sub(1)).ok_or_else(beyond)?;
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().nth(place).ok_or_else(beyond)
}

fn occurrence(regex: &Regex, text: &str, from: usize, which: i64) -> Result<Option<(usize, usize)>> {
    let mut found = None;
    let mut at = from;
    for _ in 0..which.max(1) {
        if at > text.len() {
            return Ok(None);
        }
        let Some(hit) = regex.find_from_pos(text, at).map_err(gave_up)? else {
            return Ok(None);
        };
        found = Some((hit.start(), hit.end()));
        at = match hit.end() > hit.start() {
            true => hit.end(),
            false => hit.end() + text[hit.end()..].chars().next().map_or(1, char::len_utf8),
        };
    }
    Ok(found)
}

fn regexp_instr(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (position, which) = (args.int_or(2, 1, ctx)?, args.int_or(3, 1, ctx)?);
    let after = args.int_or(4, 0, ctx)? != 0;
    let regex = compile(call, &args.text(1, ctx), &matching(&args, 5, ctx))?;
    let text = args.text(0, ctx);
    let found = occurrence(&regex, &text, start_of(&text, position)?, which)?;
    Ok(Value::Int(found.map_or(0, |(start, end)| {
        let at = if after { end } else { start };
        text[..at].chars().count() as i64 + 1
    })))
}

fn regexp_substr(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (position, which) = (args.int_or(2, 1, ctx)?, args.int_or(3, 1, ctx)?);
    let regex = compile(call, &args.text(1, ctx), &matching(&args, 4, ctx))?;
    let text = args.text(0, ctx);
    let found = occurrence(&regex, &text, start_of(&text, position)?, which)?;
    Ok(found.map_or(Value::Null, |(start, end)| string_value(call, text.as_bytes()[start..end].to_vec(), ctx)))
}

/// `which` 0 replaces all of them. `$1` in the replacement is a group, a backslash takes a character's meaning.
fn regexp_replace(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (position, which) = (args.int_or(3, 1, ctx)?, args.int_or(4, 0, ctx)?);
    let regex = compile(call, &args.text(1, ctx), &matching(&args, 5, ctx))?;
    let (whole, replacement) = (args.text(0, ctx), args.text(2, ctx));
    let text: &str = &whole;
    let mut at = start_of(text, position)?;
    let mut out = text[..at].to_owned();
    let mut count = 0;
    while at <= text.len() {
        let Some(groups) = regex.captures_from_pos(text, at).map_err(gave_up)? else {
            break;
        };
        let Some(hit) = groups.get(0) else {
            break;
        };
        count += 1;
        if out.len() > ctx.state().max_allowed_packet {
            return Ok(too_long(call, ctx));
        }
        let more = replacement.len() * (1 + groups.len()) + hit.end() - at;
        if out.len() + more > out.capacity() {
            let _claim = memory::claim(out.len() + more)?;
            out.reserve(out.len() + more);
        }
        out.push_str(&text[at..hit.start()]);
        match which == 0 || which == count {
            true => expand(&replacement, &groups, &mut out)?,
            false => out.push_str(&text[hit.start()..hit.end()]),
        }
        at = hit.end();
        if hit.end() == hit.start() {
            let Some(next) = text[at..].chars().next() else {
                at = text.len();
                break;
            };
            out.push(next);
            at += next.len_utf8();
        }
        if which == count {
            break;
        }
    }
    out.push_str(&text[at.min(text.len())..]);
    Ok(string_value(call, out.into_bytes(), ctx))
}

fn expand(replacement: &str, groups: &fancy_regex::Captures<'_, str>, out: &mut String) -> Result<()> {
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => {
                let digit = chars.next().and_then(|digit| digit.to_digit(10));
                let group = digit.filter(|digit| (*digit as usize) < groups.len());
                let group = group.ok_or_else(|| error::REGEXP_INDEX_OUTOFBOUNDS.raise(&[]))?;
                out.push_str(groups.get(group as usize).map_or("", |group| group.as_str()));
            }
            other => out.push(other),
        }
    }
    Ok(())
}
