//! Functions and operators of regular expressions.

use datum::Result;
use fancy_regex::{Captures, Regex};
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Prefix;

use crate::error::{PgError, state};
use crate::functions::args::{self, integer, invalid, text};
use crate::functions::text::regex::{RegexOptions, compile, fixed_prefix, gave_up};
use crate::functions::text::strings::byte_of;
use crate::types::array::list;
use crate::types::oid;
use crate::value::Value;

fn is_match(values: &[Value], options: RegexOptions) -> Result<bool> {
    let regex = compile(text(values, 1)?, options)?;
    Ok(regex.is_match(text(values, 0)?).map_err(gave_up)?)
}

pub fn matches(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_match(values, RegexOptions::PLAIN)?.into())
}

pub fn matches_not(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok((!is_match(values, RegexOptions::PLAIN)?).into())
}

pub fn imatches(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_match(values, RegexOptions::IGNORE_CASE)?.into())
}

pub fn imatches_not(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok((!is_match(values, RegexOptions::IGNORE_CASE)?).into())
}

/// See `Function::prefix`.
pub fn prefix(call: &Call, value: &mut dyn FnMut(&Expr) -> Option<Value>) -> Option<Prefix> {
    let Value::Text(pattern) = value(&call.arguments[1])? else { return None };
    let (prefix, is_whole) = fixed_prefix(&pattern)?;
    Some(Prefix { bytes: prefix.into_bytes(), is_whole })
}

/// Returns the options of a flags argument that must not ask for all matches.
fn local_flags(values: &[Value], at: usize, function: &str) -> Result<RegexOptions> {
    let options = if values.len() > at { RegexOptions::of_flags(text(values, at)?)? } else { RegexOptions::PLAIN };
    if options.is_global {
        return Err(invalid(format!("{function}() does not support the \"global\" option")));
    }
    Ok(options)
}

/// Returns an argument that counts from 1, or `absent`.
fn ordinal(values: &[Value], at: usize, name: &str, absent: i64) -> Result<i64> {
    if values.len() <= at {
        return Ok(absent);
    }
    match integer(values, at)? {
        number if number < 1 => Err(invalid(format!("invalid value for parameter \"{name}\": {number}"))),
        number => Ok(number),
    }
}

pub fn regexp_like(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_match(values, local_flags(values, 2, "regexp_like")?)?.into())
}

/// The matches in a text, from a byte on. An empty match is followed by a search one character further.
struct Matches<'m> {
    regex: &'m Regex,
    text: &'m str,
    from: usize,
}

impl<'m> Matches<'m> {
    fn next(&mut self) -> Result<Option<Captures<'m, str>>> {
        if self.from > self.text.len() {
            return Ok(None);
        }
        let Some(found) = self.regex.captures_from_pos(self.text, self.from).map_err(gave_up)? else {
            self.from = self.text.len() + 1;
            return Ok(None);
        };
        let whole = found.get(0).map_or(0..0, |whole| whole.range());
        self.from = whole.end;
        if whole.is_empty() {
            self.from += self.text[whole.end..].chars().next().map_or(1, char::len_utf8);
        }
        Ok(Some(found))
    }
}

pub fn regexp_count(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let start = ordinal(values, 2, "start", 1)?;
    let options = local_flags(values, 3, "regexp_count")?;
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    let Some(from) = byte_before(text, start) else { return Ok(Value::Int(0)) };
    let mut matches = Matches { regex: &regex, text, from };
    let mut count = 0;
    while matches.next()?.is_some() {
        count += 1;
        if count % 1024 == 0 {
            ctx.check_killed()?;
        }
    }
    Ok(Value::Int(count))
}

/// Returns the pieces of a text between the matches of a pattern. An empty match at an end of the text, or directly behind another match, splits nothing.
pub fn split_pieces(values: &[Value], name: &'static str) -> Result<Vec<std::ops::Range<usize>>> {
    let options = local_flags(values, 2, name)?;
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    let mut matches = Matches { regex: &regex, text, from: 0 };
    let (mut pieces, mut last) = (Vec::new(), 0);
    while let Some(found) = matches.next()? {
        let whole = found.get(0).map_or(0..0, |whole| whole.range());
        if whole.start < text.len() && whole.end > last {
            pieces.push(last..whole.start);
            last = whole.end;
        }
    }
    pieces.push(last..text.len());
    Ok(pieces)
}

/// Returns the byte at which the character of a number from 1 begins; `None` if it is behind the end.
fn byte_before(text: &str, start: i64) -> Option<usize> {
    let skipped = usize::try_from(start - 1).ok()?;
    (skipped <= text.chars().count()).then(|| byte_of(text, skipped))
}

/// Returns the nth match from a character on.
fn nth<'m>(regex: &'m Regex, text: &'m str, start: i64, wanted: i64) -> Result<Option<Captures<'m, str>>> {
    let Some(from) = byte_before(text, start) else { return Ok(None) };
    let mut matches = Matches { regex, text, from };
    for _ in 1..wanted {
        if matches.next()?.is_none() {
            return Ok(None);
        }
    }
    matches.next()
}

fn group(values: &[Value], at: usize) -> Result<usize> {
    if values.len() <= at {
        return Ok(0);
    }
    match integer(values, at)? {
        number if number < 0 => Err(invalid(format!("invalid value for parameter \"subexpr\": {number}"))),
        number => Ok(number as usize),
    }
}

pub fn regexp_instr(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (start, wanted) = (ordinal(values, 2, "start", 1)?, ordinal(values, 3, "n", 1)?);
    let end_option = if values.len() > 4 { integer(values, 4)? } else { 0 };
    if !(0..=1).contains(&end_option) {
        return Err(invalid(format!("invalid value for parameter \"endoption\": {end_option}")));
    }
    let group = group(values, 6)?;
    let options = local_flags(values, 5, "regexp_instr")?;
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    let found = nth(&regex, text, start, wanted)?;
    let place = found.and_then(|found| found.get(group).map(|part| part.range()));
    let at = place.map(|place| if end_option == 1 { place.end } else { place.start });
    Ok(Value::Int(at.map_or(0, |at| text[..at].chars().count() as i64 + 1)))
}

pub fn regexp_substr(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (start, wanted) = (ordinal(values, 2, "start", 1)?, ordinal(values, 3, "n", 1)?);
    let group = group(values, 5)?;
    let options = local_flags(values, 4, "regexp_substr")?;
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    let found = nth(&regex, text, start, wanted)?;
    Ok(found.and_then(|found| found.get(group).map(|part| Value::text(part.as_str()))).unwrap_or_default())
}

/// `substring(text, pattern)`: the first group if there is one, else the whole match.
pub fn substring(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let regex = compile(text(values, 1)?, RegexOptions::PLAIN)?;
    first_match(&regex, text(values, 0)?)
}

pub fn first_match(regex: &Regex, text: &str) -> Result<Value> {
    let Some(found) = regex.captures(text).map_err(gave_up)? else { return Ok(Value::Null) };
    let group = usize::from(found.len() > 1);
    Ok(found.get(group).map(|part| Value::text(part.as_str())).unwrap_or_default())
}

/// Returns the groups of a match, or the whole of one without groups.
fn groups(found: &Captures<'_, str>) -> Value {
    let first = usize::from(found.len() > 1);
    let value = |nth: usize| found.get(nth).map(|part| Value::text(part.as_str())).unwrap_or_default();
    list(oid::TEXT, (first..found.len()).map(value).collect())
}

/// Returns the groups of the first match, or with the flag `g` of all of them.
pub fn all_matches(values: &[Value], ctx: &EvalContext) -> Result<Vec<Value>> {
    let options = if values.len() > 2 { RegexOptions::of_flags(text(values, 2)?)? } else { RegexOptions::PLAIN };
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    let mut matches = Matches { regex: &regex, text, from: 0 };
    let mut found = Vec::new();
    while let Some(next) = matches.next()? {
        found.push(groups(&next));
        if !options.is_global {
            break;
        }
        if found.len() % 1024 == 0 {
            ctx.check_killed()?;
            drop(args::claim(found.iter().map(Value::heap_bytes).sum())?);
        }
    }
    Ok(found)
}

pub fn split_to_array(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let pieces = split_pieces(values, "regexp_split_to_array")?;
    let text = text(values, 0)?;
    Ok(list(oid::TEXT, pieces.into_iter().map(|piece| Value::text(&text[piece])).collect()))
}

pub fn regexp_match(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let options = if values.len() > 2 { RegexOptions::of_flags(text(values, 2)?)? } else { RegexOptions::PLAIN };
    if options.is_global {
        let message = "regexp_match() does not support the \"global\" option";
        let hint = "Use the regexp_matches function instead.";
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message).hint(hint).into());
    }
    let (text, regex) = (text(values, 0)?, compile(text(values, 1)?, options)?);
    Ok(regex.captures(text).map_err(gave_up)?.map_or(Value::Null, |found| groups(&found)))
}

/// `regexp_replace` with flags, or without.
pub fn replace(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let flags = if values.len() > 3 { text(values, 3)? } else { "" };
    if flags.starts_with(|first: char| first.is_ascii_digit()) {
        let first = &flags[..1];
        let hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.";
        let message = format!("invalid regular expression option: \"{first}\"");
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message).hint(hint).into());
    }
    let options = RegexOptions::of_flags(flags)?;
    let wanted = if options.is_global { 0 } else { 1 };
    replaced(values, options, (1, wanted), ctx)
}

/// `regexp_replace` from a position.
pub fn replace_from(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let start = ordinal(values, 3, "start", 1)?;
    let wanted = if values.len() > 4 { Some(integer(values, 4)?) } else { None };
    if let Some(negative) = wanted.filter(|wanted| *wanted < 0) {
        return Err(invalid(format!("invalid value for parameter \"n\": {negative}")));
    }
    let options = if values.len() > 5 { RegexOptions::of_flags(text(values, 5)?)? } else { RegexOptions::PLAIN };
    let wanted = wanted.unwrap_or(if options.is_global { 0 } else { 1 });
    replaced(values, options, (start, wanted), ctx)
}

/// Replaces the nth match from a character on; all of them if `wanted` is 0.
fn replaced(values: &[Value], options: RegexOptions, (start, wanted): (i64, i64), ctx: &EvalContext) -> Result<Value> {
    let (text, replacement) = (text(values, 0)?, text(values, 2)?);
    let regex = compile(args::text(values, 1)?, options)?;
    let Some(from) = byte_before(text, start) else { return Ok(values[0].clone()) };
    let mut matches = Matches { regex: &regex, text, from };
    let (mut out, mut copied, mut count) = (String::new(), 0, 0);
    while let Some(found) = matches.next()? {
        count += 1;
        if wanted != 0 && count != wanted {
            continue;
        }
        let whole = found.get(0).map_or(0..0, |whole| whole.range());
        out.push_str(&text[copied..whole.start]);
        append_replacement(replacement, &found, &mut out);
        copied = whole.end;
        if wanted != 0 {
            break;
        }
        if count % 1024 == 0 {
            ctx.check_killed()?;
            drop(args::claim(out.len())?);
        }
    }
    if copied == 0 && out.is_empty() && count == 0 {
        return Ok(values[0].clone());
    }
    out.push_str(&text[copied..]);
    Ok(Value::Text(out.into()))
}

/// `\1` to `\9` are the groups, `\&` the whole match.
fn append_replacement(replacement: &str, found: &Captures<'_, str>, out: &mut String) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let Some(next) = rest[at + 1..].chars().next() else {
            out.push('\\');
            return;
        };
        rest = &rest[at + 1..];
        let group = match next {
            '1'..='9' => next.to_digit(10).map(|group| group as usize),
            '&' => Some(0),
            _ => None,
        };
        match group {
            Some(group) => {
                out.push_str(found.get(group).map_or("", |part| part.as_str()));
                rest = &rest[1..];
            }
            None => {
                out.push('\\');
                if next == '\\' {
                    rest = &rest[1..];
                }
            }
        }
    }
    out.push_str(rest);
}
