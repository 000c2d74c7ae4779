//! String functions. Positions count characters (bytes in binary strings) from 1, or from the end if they are negative.

use stdx::memory;

use super::entry::{
    Args, FunctionEntry, MANY, Returns, first_length, longest, row, string_value, sum_of_lengths, too_long,
};
use crate::error;
use crate::scalar::keyword_argument::{TrimSide, Word};
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::{cast, compare, convert};
use crate::types::{CharsetName as _, Collation, CollationName as _, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["concat"], 1, MANY, Returns::Text(sum_of_lengths), Run::Strict(concat)),
    row(&["concat_ws"], 2, MANY, Returns::Text(sum_of_lengths), Run::Values(concat_ws)),
    row(&["length", "octet_length"], 1, 1, Returns::Int, Run::Strict(length)),
    row(&["char_length", "character_length"], 1, 1, Returns::Int, Run::Strict(char_length)),
    row(&["bit_length"], 1, 1, Returns::Int, Run::Strict(bit_length)),
    row(&["upper", "ucase"], 1, 1, Returns::Text(first_length), Run::Strict(upper)),
    row(&["lower", "lcase"], 1, 1, Returns::Text(first_length), Run::Strict(lower)),
    row(&["substring", "substr", "mid"], 2, 3, Returns::Custom(type_of_first), Run::Strict(substring)),
    row(&["left"], 2, 2, Returns::Custom(type_of_first), Run::Strict(left)),
    row(&["right"], 2, 2, Returns::Custom(type_of_first), Run::Strict(right)),
    row(&["trim"], 1, 2, Returns::Text(first_length), Run::Strict(trim)),
    row(&["ltrim"], 1, 1, Returns::Text(first_length), Run::Strict(ltrim)),
    row(&["rtrim"], 1, 1, Returns::Text(first_length), Run::Strict(rtrim)),
    row(&["lpad"], 3, 3, Returns::Custom(type_of_padded), Run::Strict(lpad)),
    row(&["rpad"], 3, 3, Returns::Custom(type_of_padded), Run::Strict(rpad)),
    row(&["repeat"], 2, 2, Returns::Custom(type_of_long), Run::Strict(repeat)),
    row(&["space"], 1, 1, Returns::Plain(u32::MAX / 4), Run::Strict(space)),
    row(&["replace"], 3, 3, Returns::Custom(type_of_replaced), Run::Strict(replace)),
    row(&["reverse"], 1, 1, Returns::Text(first_length), Run::Strict(reverse)),
    row(&["insert"], 4, 4, Returns::Custom(type_of_inserted), Run::Strict(insert)),
    row(&["instr"], 2, 2, Returns::Int, Run::Strict(instr)),
    row(&["locate"], 2, 3, Returns::Int, Run::Strict(locate)),
    row(&["substring_index"], 3, 3, Returns::Custom(type_of_first), Run::Strict(substring_index)),
    row(&["strcmp"], 2, 2, Returns::Int, Run::Strict(strcmp)),
    row(&["ascii"], 1, 1, Returns::Int, Run::Strict(ascii)),
    row(&["ord"], 1, 1, Returns::Int, Run::Strict(ord)),
    row(&["char"], 1, MANY, Returns::Bytes(MANY_BYTES), Run::Values(char_)),
    row(&["elt"], 2, MANY, Returns::Text(sum_of_lengths), Run::Values(elt)),
    row(&["field"], 2, MANY, Returns::Int, Run::Values(field)),
    row(&["find_in_set"], 2, 2, Returns::Int, Run::Strict(find_in_set)),
    row(&["make_set"], 2, MANY, Returns::Text(sum_of_lengths), Run::Values(make_set)),
    row(&["export_set"], 3, 5, Returns::Text(longest), Run::Strict(export_set)),
    row(&["quote"], 1, 1, Returns::Text(quoted_length), Run::Values(quote)),
    row(&["format"], 2, 3, Returns::Plain(90), Run::Values(format)),
    row(&["soundex"], 1, 1, Returns::Text(first_length), Run::Strict(soundex)),
    row(&["charset"], 1, 1, Returns::Plain(64), Run::Values(charset)),
    row(&["collation"], 1, 1, Returns::Plain(64), Run::Values(collation)),
];

const MANY_BYTES: u32 = 16_000_000;

/// The first argument alone determines collation and length.
fn type_of_first(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    super::entry::text_type(&arguments[..1], first_length(arguments), "substring", settings)
}

fn type_of_padded(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    type_by_first(arguments, padded_length(arguments), "lpad", settings)
}

fn type_of_replaced(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    type_by_first(arguments, replaced_length(arguments), "replace", settings)
}

fn type_of_inserted(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    type_by_first(arguments, sum_of_lengths(arguments), "insert", settings)
}

/// The first argument decides whether the result is binary: binary arguments beside a text have become text.
fn type_by_first(arguments: &[Expr], length: u32, name: &str, settings: &Settings) -> Result<Type> {
    let counted = if arguments[0].kind().is_bytes() { &arguments[..1] } else { arguments };
    super::entry::text_type(counted, length, name, settings)
}

fn type_of_long(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let length =
        literal_count(&arguments[1]).map_or(u32::MAX / 4, |count| first_length(arguments).saturating_mul(count));
    super::entry::text_type(&arguments[..1], length, "repeat", settings)
}

/// Returns an argument that is a literal number.
fn literal_count(argument: &Expr) -> Option<u32> {
    match argument {
        Expr::Literal(Value::Int(count), _) => Some(u32::try_from(*count).unwrap_or(0)),
        _ => None,
    }
}

fn padded_length(arguments: &[Expr]) -> u32 {
    literal_count(&arguments[1]).unwrap_or(u32::MAX / 4)
}

/// The longest result replaces each character.
fn replaced_length(arguments: &[Expr]) -> u32 {
    first_length(arguments).saturating_mul(first_length(&arguments[2..]).max(1))
}

fn quoted_length(arguments: &[Expr]) -> u32 {
    first_length(arguments).saturating_mul(2).saturating_add(2).max(4)
}

fn concat(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let mut out = Vec::new();
    (0..args.len()).for_each(|place| args.append(place, &mut out, ctx));
    Ok(string_value(call, out, ctx))
}

fn concat_ws(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::Null);
    }
    let separator = args.bytes(0, ctx);
    let parts: Vec<Vec<u8>> =
        (1..args.len()).filter(|place| !args.is_null(*place)).map(|place| args.bytes(place, ctx)).collect();
    Ok(string_value(call, parts.join(&separator[..]), ctx))
}

fn length(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let length = match &values[0] {
        Value::Text(text) => call.arguments[0].ty().charset().encode(text).len(),
        _ => Args::new(call, values).own_bytes(0, ctx).len(),
    };
    Ok(Value::Int(length as i64))
}

fn char_length(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let length = match &values[0] {
        Value::Bytes(bytes) => bytes.len(),
        _ => Args::new(call, values).text(0, ctx).chars().count(),
    };
    Ok(Value::Int(length as i64))
}

fn bit_length(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(Args::new(call, values).own_bytes(0, ctx).len() as i64 * 8))
}

/// Maps letters whose other case is a single letter; MySQL leaves all others unchanged.
fn map_case(text: &str, of: impl Fn(char, &mut Vec<char>)) -> Text {
    let mut mapped = Vec::with_capacity(2);
    let one = |c: char| {
        mapped.clear();
        of(c, &mut mapped);
        if let [one] = mapped[..] { one } else { c }
    };
    text.chars().map(one).collect::<String>().into()
}

pub fn upper_text(text: &str) -> Text {
    if text.is_ascii() {
        text.to_ascii_uppercase().into()
    } else {
        map_case(text, |c, out| out.extend(c.to_uppercase()))
    }
}

pub fn lower_text(text: &str) -> Text {
    if text.is_ascii() {
        text.to_ascii_lowercase().into()
    } else {
        map_case(text, |c, out| out.extend(c.to_lowercase()))
    }
}

fn upper(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    change_case(call, values, upper_text, ctx)
}

fn lower(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    change_case(call, values, lower_text, ctx)
}

/// Binary strings have no case.
fn change_case(call: &Call, values: &[Value], change: fn(&str) -> Text, ctx: &EvalContext) -> Result<Value> {
    Ok(match &values[0] {
        Value::Bytes(_) => values[0].clone(),
        _ => Value::Text(change(&Args::new(call, values).text(0, ctx))),
    })
}

/// A string that is cut by positions of characters or of bytes.
enum Cut<'c> {
    Text(&'c Text),
    Bytes(&'c [u8]),
}

impl Cut<'_> {
    fn count(&self) -> i64 {
        match self {
            Cut::Text(text) if text.is_ascii() => text.len() as i64,
            Cut::Text(text) => text.chars().count() as i64,
            Cut::Bytes(bytes) => bytes.len() as i64,
        }
    }

    /// `length` from `start`, which counts from 0; both lie within.
    fn part(&self, start: i64, length: i64) -> Value {
        let (start, end) = (start.max(0) as usize, (start.max(0) + length.max(0)) as usize);
        match self {
            Cut::Text(text) if text.is_ascii() => Value::text(&text[start.min(text.len())..end.min(text.len())]),
            Cut::Text(text) => {
                let at = |place| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
                Value::text(&text[at(start)..at(end)])
            }
            Cut::Bytes(bytes) => Value::bytes(&bytes[start.min(bytes.len())..end.min(bytes.len())]),
        }
    }
}

fn cut(args: &Args<'_>, ctx: &EvalContext, then: impl FnOnce(Cut<'_>) -> Value) -> Value {
    match args.get(0) {
        Value::Bytes(bytes) => then(Cut::Bytes(bytes)),
        _ => then(Cut::Text(&args.text(0, ctx))),
    }
}

fn substring(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let from = args.int(1, ctx)?;
    let length = args.int_or(2, i64::MAX, ctx)?;
    Ok(cut(&args, ctx, |whole| {
        let count = whole.count();
        let start = if from < 0 { count.saturating_add(from) } else { from - 1 };
        if from == 0 || start < 0 || start >= count || length <= 0 {
            return whole.part(0, 0);
        }
        whole.part(start, length.min(count - start))
    }))
}

fn left(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let length = args.int(1, ctx)?;
    Ok(cut(&args, ctx, |whole| whole.part(0, length.min(whole.count()))))
}

fn right(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let length = args.int(1, ctx)?.max(0);
    Ok(cut(&args, ctx, |whole| {
        let length = length.min(whole.count());
        whole.part(whole.count() - length, length)
    }))
}

fn trim(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let side = if let Word::Trim(side) = Word::of(call) { side } else { TrimSide::Both };
    trimmed(call, values, side, ctx)
}

fn ltrim(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    trimmed(call, values, TrimSide::Leading, ctx)
}

fn rtrim(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    trimmed(call, values, TrimSide::Trailing, ctx)
}

fn trimmed(call: &Call, values: &[Value], side: TrimSide, ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let what = if args.len() > 1 { args.bytes(1, ctx) } else { b" ".to_vec() };
    let whole = args.bytes(0, ctx);
    let mut rest = &whole[..];
    if !what.is_empty() {
        while side != TrimSide::Trailing && rest.starts_with(&what) {
            rest = &rest[what.len()..];
        }
        while side != TrimSide::Leading && rest.ends_with(&what) {
            rest = &rest[..rest.len() - what.len()];
        }
    }
    Ok(string_value(call, rest.to_vec(), ctx))
}

fn lpad(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    padded(call, values, true, ctx)
}

fn rpad(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    padded(call, values, false, ctx)
}

fn padded(call: &Call, values: &[Value], front: bool, ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let length = args.int(1, ctx)?;
    if length < 0 {
        return Ok(Value::Null);
    }
    if length as u64 > ctx.state().max_allowed_packet as u64 {
        return Ok(too_long(call, ctx));
    }
    let length = length as usize;
    let _claim = memory::claim(2 * length)?;
    // The padded string decides what is counted, also where binary padding makes the result binary.
    if matches!(values[0], Value::Bytes(_)) {
        let (whole, fill) = (args.bytes(0, ctx), args.bytes(2, ctx));
        let missing = length.saturating_sub(whole.len());
        let fill = fill.iter().copied().cycle().take(missing);
        let padded: Vec<u8> = match front {
            true => fill.chain(whole.iter().copied()).collect(),
            false => whole.iter().copied().chain(fill).collect(),
        };
        return Ok(Value::bytes(&padded[..length.min(padded.len())]));
    }
    let (whole, fill) = (args.text(0, ctx), args.text(2, ctx));
    let count = whole.chars().count();
    if count >= length {
        let whole: String = whole.chars().take(length).collect();
        return Ok(string_value(call, whole.into_bytes(), ctx));
    }
    let fill: String = fill.chars().cycle().take(length - count).collect();
    let padded = if front { fill + &whole } else { whole.to_string() + &fill };
    Ok(string_value(call, padded.into_bytes(), ctx))
}

fn repeat(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let count = args.int(1, ctx)?.max(0) as usize;
    let piece = args.bytes(0, ctx);
    if piece.len().saturating_mul(count) > ctx.state().max_allowed_packet {
        return Ok(too_long(call, ctx));
    }
    let claim = memory::claim(2 * piece.len() * count)?;
    let whole = piece.repeat(count);
    drop(claim);
    Ok(string_value(call, whole, ctx))
}

fn space(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let count = Args::new(call, values).int(0, ctx)?.max(0) as usize;
    if count > ctx.state().max_allowed_packet {
        return Ok(too_long(call, ctx));
    }
    let _claim = memory::claim(2 * count)?;
    Ok(string_value(call, vec![b' '; count], ctx))
}

/// Compares bytes, so case counts.
fn replace(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (whole, from, to) = (args.bytes(0, ctx), args.bytes(1, ctx), args.bytes(2, ctx));
    if from.is_empty() {
        return Ok(string_value(call, whole, ctx));
    }
    let mut out = Vec::with_capacity(whole.len());
    let mut rest = &whole[..];
    while let Some(at) = find(rest, &from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&to);
        rest = &rest[at + from.len()..];
        if out.len() > ctx.state().max_allowed_packet {
            return Ok(too_long(call, ctx));
        }
        if out.len() + rest.len() > out.capacity() {
            grow(&mut out, rest.len())?;
        }
    }
    out.extend_from_slice(rest);
    Ok(string_value(call, out, ctx))
}

/// Room for so many bytes more, and for twice as many as there are: a claim for each doubling.
fn grow(out: &mut Vec<u8>, more: usize) -> Result<()> {
    let _claim = memory::claim(out.len() + more)?;
    out.reserve(out.len() + more);
    Ok(())
}

pub fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    whole.windows(part.len().max(1)).position(|window| window == part)
}

fn reverse(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    Ok(match args.get(0) {
        Value::Bytes(bytes) => Value::from_bytes(bytes.iter().rev().copied().collect()),
        _ => Value::text(args.text(0, ctx).chars().rev().collect::<String>()),
    })
}

fn insert(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (at, length) = (args.int(1, ctx)?, args.int(2, ctx)?);
    if matches!(values[0], Value::Bytes(_)) {
        let (mut whole, new) = (args.bytes(0, ctx), args.bytes(3, ctx));
        let count = whole.len() as i64;
        if (1..=count).contains(&at) {
            let from = at as usize - 1;
            let length = if length < 0 { count } else { length }.min(count - at + 1) as usize;
            whole.splice(from..from + length, new);
        }
        return Ok(string_value(call, whole, ctx));
    }
    let whole = args.text(0, ctx);
    let count = whole.chars().count() as i64;
    if at < 1 || at > count {
        return Ok(string_value(call, whole.as_bytes().to_vec(), ctx));
    }
    let length = if length < 0 { count } else { length }.min(count - at + 1);
    let mut out: String = whole.chars().take(at as usize - 1).collect();
    out.push_str(&args.text(3, ctx));
    out.extend(whole.chars().skip((at - 1 + length) as usize));
    Ok(string_value(call, out.into_bytes(), ctx))
}

fn instr(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    position(call, values, 0, 1, 1, ctx)
}

fn locate(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let from = Args::new(call, values).int_or(2, 1, ctx)?;
    position(call, values, 1, 0, from, ctx)
}

/// Returns the first position of the part, in the call's collation.
fn position(
    call: &Call,
    values: &[Value],
    whole: usize,
    part: usize,
    from: i64,
    ctx: &mut EvalContext,
) -> Result<Value> {
    let args = Args::new(call, values);
    // The searched string decides: a binary needle is searched in a text as characters.
    let (in_bytes, collation) = match call.arguments[whole].ty() {
        ty if ty.kind().is_bytes() => (true, Collation::Binary),
        ty if ty.kind().is_text() && call.arguments[part].kind().is_bytes() => (false, ty.collation),
        _ => (call.arguments[part].kind().is_bytes(), call.collation),
    };
    if from < 1 {
        return Ok(Value::Int(0));
    }
    let found = if in_bytes {
        let (whole, part) = (args.bytes(whole, ctx), args.bytes(part, ctx));
        let start = from as usize - 1;
        whole
            .get(start..)
            .and_then(|rest| if part.is_empty() { Some(0) } else { find(rest, &part) })
            .map(|at| at + start)
    } else {
        // As MySQL does, the part meets pieces with as many bytes: 'é' is not found in 'e'.
        let (whole, part) = (args.text(whole, ctx), args.text(part, ctx));
        let start = from as usize - 1;
        let ends = whole.char_indices().map(|(at, _)| at).chain([whole.len()]);
        let same = |at: usize| {
            whole.get(at..at + part.len()).is_some_and(|piece| collation.equal(piece.as_bytes(), part.as_bytes()))
        };
        ends.enumerate().skip(start).find(|(_, at)| part.is_empty() || same(*at)).map(|(place, _)| place)
    };
    Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn substring_index(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (whole, mark, count) = (args.bytes(0, ctx), args.bytes(1, ctx), args.int(2, ctx)?);
    if mark.is_empty() || count == 0 {
        return Ok(string_value(call, Vec::new(), ctx));
    }
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(found) = find(&whole[at..], &mark) {
        marks.push(at + found);
        at += found + mark.len();
    }
    let wanted = count.unsigned_abs() as usize;
    let part = if marks.len() < wanted {
        &whole[..]
    } else if count > 0 {
        &whole[..marks[wanted - 1]]
    } else {
        &whole[marks[marks.len() - wanted] + mark.len()..]
    };
    Ok(string_value(call, part.to_vec(), ctx))
}

fn strcmp(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let order = call.collation.compare(&args.bytes(0, ctx), &args.bytes(1, ctx));
    Ok(Value::Int(order as i64))
}

fn ascii(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(Args::new(call, values).own_bytes(0, ctx).first().map_or(0, |byte| i64::from(*byte))))
}

/// ORD: returns the bytes of the first character as a number.
fn ord(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if let Value::Bytes(bytes) = args.get(0) {
        return Ok(Value::Int(bytes.first().map_or(0, |byte| i64::from(*byte))));
    }
    let text = args.text(0, ctx);
    let length = text.chars().next().map_or(0, char::len_utf8);
    let bytes = call.arguments[0].ty().charset().encode(&text[..length]);
    Ok(Value::Int(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))))
}

fn char_(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let mut out = Vec::new();
    for place in (0..args.len()).filter(|place| !args.is_null(*place)) {
        let number = args.int(place, ctx)? as u32;
        let bytes = number.to_be_bytes();
        let skipped = bytes.iter().take(3).take_while(|byte| **byte == 0).count();
        out.extend_from_slice(&bytes[skipped..]);
    }
    Ok(string_value(call, out, ctx))
}

fn elt(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::Null);
    }
    let place = usize::try_from(args.int(0, ctx)?).unwrap_or(0);
    if place == 0 || place >= args.len() || args.is_null(place) {
        return Ok(Value::Null);
    }
    Ok(string_value(call, args.bytes(place, ctx), ctx))
}

/// FIELD compares strings if all arguments are strings, integers if all are integers, else doubles.
fn field(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::Int(0));
    }
    let strings = call.arguments.iter().all(|argument| argument.ty().is_string());
    for place in 1..args.len() {
        if args.is_null(place) {
            continue;
        }
        let same = match strings {
            true => call.collation.equal(&args.bytes(0, ctx), &args.bytes(place, ctx)),
            false => {
                let domain = compare::domain(&call.arguments[0].ty(), &call.arguments[place].ty(), call.collation);
                compare::order(domain, args.get(0), args.get(place), ctx)?.is_eq()
            }
        };
        if same {
            return Ok(Value::Int(place as i64));
        }
    }
    Ok(Value::Int(0))
}

fn find_in_set(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    // FIND_IN_SET of a SET column returns the member's position in the definition.
    let of_set = call.arguments[1].ty();
    if let (Kind::Set, Value::UInt(bits)) = (of_set.kind(), &values[1]) {
        let wanted = args.text(0, ctx);
        let mut members = of_set.members().iter().enumerate();
        let found = members.find(|(_, member)| of_set.collation.equal(member.as_bytes(), wanted.as_bytes()));
        return Ok(Value::Int(match found {
            Some((bit, _)) if bits >> bit & 1 == 1 => bit as i64 + 1,
            _ => 0,
        }));
    }
    let (wanted, set) = (args.text(0, ctx), args.text(1, ctx));
    if set.is_empty() {
        return Ok(Value::Int(0));
    }
    let found = set.split(',').position(|member| call.collation.equal(member.as_bytes(), wanted.as_bytes()));
    Ok(Value::Int(found.map_or(0, |place| place as i64 + 1)))
}

fn make_set(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::Null);
    }
    let bits = convert::to_bits(args.get(0), ctx)?;
    let chosen = (1..args.len().min(65)).filter(|place| bits >> (place - 1) & 1 == 1 && !args.is_null(*place));
    let parts: Vec<Vec<u8>> = chosen.map(|place| args.bytes(place, ctx)).collect();
    Ok(string_value(call, parts.join(&b","[..]), ctx))
}

fn export_set(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let bits = convert::to_bits(args.get(0), ctx)?;
    let (on, off) = (args.bytes(1, ctx), args.bytes(2, ctx));
    let separator = if args.len() > 3 { args.bytes(3, ctx) } else { b",".to_vec() };
    let count = args.int_or(4, 64, ctx)?;
    let count = if (0..=64).contains(&count) { count } else { 64 };
    let longest = on.len().max(off.len()) + separator.len();
    if longest * count as usize > ctx.state().max_allowed_packet {
        return Ok(too_long(call, ctx));
    }
    let _claim = memory::claim(longest * count as usize)?;
    let parts: Vec<&[u8]> = (0..count).map(|bit| if bits >> bit & 1 == 1 { &on[..] } else { &off[..] }).collect();
    Ok(string_value(call, parts.join(&separator[..]), ctx))
}

/// QUOTE: returns the string as an SQL literal.
fn quote(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) {
        return Ok(Value::text("NULL"));
    }
    let mut out = vec![b'\''];
    for byte in args.bytes(0, ctx) {
        match byte {
            0 => out.extend_from_slice(b"\\0"),
            0x1A => out.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            other => out.push(other),
        }
    }
    out.push(b'\'');
    Ok(string_value(call, out, ctx))
}

/// FORMAT: separates thousands by commas. Locales other than en_US are not served.
fn format(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(0) || args.is_null(1) {
        return Ok(Value::Null);
    }
    if args.len() > 2 && !args.is_null(2) && !args.text(2, ctx).eq_ignore_ascii_case("en_US") {
        return Err(error::not_supported("FORMAT with a locale other than en_US"));
    }
    let scale = args.int(1, ctx)?.clamp(0, 30) as u8;
    let shown = match args.get(0) {
        Value::Double(_) | Value::Float(_) => {
            let number = args.f64(0, ctx)?;
            crate::scalar::decimal::Decimal::from_f64(number)
                .map_or_else(|| number.to_string(), |d| d.rounded(scale.into()).to_string())
        }
        _ => args.decimal(0, ctx)?.rounded(scale.into()).to_string(),
    };
    let (sign, digits) = shown.strip_prefix('-').map_or(("", &shown[..]), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    Ok(Value::text(out))
}

fn soundex(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let text = Args::new(call, values).text(0, ctx);
    let mut out = String::new();
    let mut last = b'0';
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        let code = match c.to_ascii_uppercase() {
            letter @ 'A'..='Z' => CODES[(letter as u8 - b'A') as usize],
            _ => b'0',
        };
        if out.is_empty() {
            out.push(c.to_ascii_uppercase());
            last = code;
        } else if code != last && code != b'0' {
            // Vowels do not come between two of the same code.
            last = code;
            out.push(code as char);
        }
    }
    while !out.is_empty() && out.chars().count() < 4 {
        out.push('0');
    }
    Ok(string_value(call, out.into_bytes(), ctx))
}

fn collation_of(call: &Call) -> Collation {
    let ty = cast::present_type(&call.arguments[0].ty());
    match ty.kind() {
        Kind::Null => Collation::Binary,
        _ if ty.is_string() => ty.collation,
        _ => Collation::Binary,
    }
}

fn charset(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(collation_of(call).charset().name()))
}

fn collation(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(collation_of(call).name()))
}
