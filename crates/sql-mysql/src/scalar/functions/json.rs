//! JSON functions.
//!
//! A text argument is parsed where a document is expected (error 3141 if invalid), and is a string where a value is expected. JSON's null is a value, unlike SQL's NULL.

use super::entry::{Args, FunctionEntry, MANY, Returns, row};
use crate::error;
use crate::scalar::json::path::{Leg, Path, Place};
use crate::scalar::json::{self, Json, Members, Node, table};
use crate::scalar::settings::Settings;
use crate::scalar::{bind, cast, like};
use crate::types::{Collation, Kind, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(&["json_extract"], 2, MANY, Returns::Kind(Kind::Json), Run::Strict(json_extract)),
    row(&["json_unquote"], 1, 1, Returns::Custom(type_of_long_text), Run::Strict(json_unquote)),
    row(&["json_value"], 2, 2, Returns::Custom(type_of_value), Run::Strict(json_value)),
    row(&["json_object"], 0, MANY, Returns::Kind(Kind::Json), Run::Values(json_object)),
    row(&["json_array"], 0, MANY, Returns::Kind(Kind::Json), Run::Values(json_array)),
    row(&["json_quote"], 1, 1, Returns::Custom(type_of_long_text), Run::Strict(json_quote)),
    row(&["json_valid"], 1, 1, Returns::Truth, Run::Strict(json_valid)),
    row(&["json_type"], 1, 1, Returns::Custom(type_of_name), Run::Strict(json_type)),
    row(&["json_length"], 1, 2, Returns::Int, Run::Strict(json_length)),
    row(&["json_depth"], 1, 1, Returns::Int, Run::Strict(json_depth)),
    row(&["json_keys"], 1, 2, Returns::Kind(Kind::Json), Run::Strict(json_keys)),
    row(&["json_contains"], 2, 3, Returns::Truth, Run::Strict(json_contains)),
    row(&["json_contains_path"], 3, MANY, Returns::Truth, Run::Strict(json_contains_path)),
    row(&["json_overlaps"], 2, 2, Returns::Truth, Run::Strict(json_overlaps)),
    row(&["member of"], 2, 2, Returns::Truth, Run::Strict(member_of)),
    row(&["json_search"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_search)),
    row(&["json_set"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_set)),
    row(&["json_insert"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_insert)),
    row(&["json_replace"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_replace)),
    row(&["json_remove"], 2, MANY, Returns::Kind(Kind::Json), Run::Strict(json_remove)),
    row(&["json_array_append", "json_append"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_array_append)),
    row(&["json_array_insert"], 3, MANY, Returns::Kind(Kind::Json), Run::Values(json_array_insert)),
    row(&["json_merge_patch"], 2, MANY, Returns::Kind(Kind::Json), Run::Values(json_merge_patch)),
    row(&["json_merge_preserve", "json_merge"], 2, MANY, Returns::Kind(Kind::Json), Run::Strict(json_merge_preserve)),
    row(&["json_pretty"], 1, 1, Returns::Custom(type_of_long_text), Run::Strict(json_pretty)),
    row(&["json_storage_free"], 1, 1, Returns::Int, Run::Strict(json_storage_free)),
    row(&["json_storage_size"], 1, 1, Returns::Int, Run::Strict(json_storage_size)),
];

/// Text extracted from documents has the collation of documents, which compares by code points.
fn type_of_long_text(_: &[Expr], _: &Settings) -> Result<Type> {
    Ok(bind::string_type(u32::MAX / 4, Collation::Utf8PadBin))
}

fn type_of_name(_: &[Expr], _: &Settings) -> Result<Type> {
    Ok(bind::string_type(51, Collation::Utf8PadBin))
}

fn type_of_value(_: &[Expr], _: &Settings) -> Result<Type> {
    Ok(bind::string_type(512, Collation::Utf8Bin))
}

/// The argument as a document; errors 3141, 3146.
fn document(args: &Args<'_>, place: usize) -> Result<Json> {
    let name = args.call.function.name();
    match args.get(place) {
        Value::Json(json) => Ok(json.clone()),
        Value::Text(text) => {
            json::parse(text).map(Json::from).map_err(|fault| json::argument_error(fault, place + 1, name))
        }
        _ => Err(error::INVALID_TYPE_FOR_JSON.raise(&[&(place + 1), &name])),
    }
}

/// The argument as a value within a document: text is a string.
fn node(args: &Args<'_>, place: usize, ctx: &EvalContext) -> Node {
    let ty = args.call.arguments[place].ty();
    match cast::present(args.get(place).clone(), &ty, ctx) {
        Value::Int(number) if ty.is_truth() => Node::Bool(number != 0),
        shown => Node::scalar(&shown),
    }
}

fn path(args: &Args<'_>, place: usize, ctx: &EvalContext) -> Result<Path> {
    Path::parse(&args.text(place, ctx))
}

/// Wildcards are error 3149 in functions that change a document or need a single place.
fn plain_path(args: &Args<'_>, place: usize, ctx: &EvalContext) -> Result<Path> {
    let path = path(args, place, ctx)?;
    if path.is_wild() {
        return Err(error::INVALID_JSON_PATH_WILDCARD.raise(&[]));
    }
    Ok(path)
}

fn value(node: Node) -> Value {
    Value::Json(Json::from(node))
}

fn json_extract(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let root = document(&args, 0)?;
    let mut many = args.len() > 2;
    let mut found = Vec::new();
    for place in 1..args.len() {
        let path = path(&args, place, ctx)?;
        many |= path.is_wild();
        found.extend(path.find(root.node()).into_iter().cloned());
    }
    Ok(match (many, found.len()) {
        (_, 0) => Value::Null,
        (false, _) => found.pop().map_or(Value::Null, value),
        (true, _) => value(Node::Array(found)),
    })
}

fn json_unquote(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if let Value::Json(json) = &values[0] {
        return Ok(Value::text(json.node().unquoted()));
    }
    let args = Args::new(call, values);
    let text = args.text(0, ctx);
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return Ok(Value::Text(text));
    }
    Ok(Value::text(document(&args, 0)?.node().unquoted()))
}

fn json_value(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let root = match document(&args, 0) {
        Err(wrong) if error::code_of(&wrong) == error::INVALID_JSON_TEXT_IN_PARAM.code => return Ok(Value::Null),
        root => root?,
    };
    let path = plain_path(&args, 1, ctx)?;
    Ok(match path.find(root.node())[..] {
        [Node::Null] | [] => Value::Null,
        // An array or object yields its text.
        [Node::Array(_) | Node::Object(_), ..] if call.ty.kind().is_text() => {
            let text = path.find(root.node())[0].to_string();
            if text.chars().count() > call.ty.length as usize { Value::Null } else { Value::text(text) }
        }
        // A value that does not fit the type of RETURNING is NULL (the default of ON ERROR).
        [found, ..] => table::stored(found, &call.ty, "json_value", ctx).unwrap_or_default(),
    })
}

fn json_object(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.len() % 2 == 1 {
        return Err(error::WRONG_PARAMCOUNT_TO_NATIVE_FCT.raise(&[&"json_object"]));
    }
    let mut members = Vec::with_capacity(args.len() / 2);
    for place in (0..args.len()).step_by(2) {
        if args.is_null(place) {
            return Err(error::JSON_DOCUMENT_NULL_KEY.raise(&[]));
        }
        members.push((args.text(place, ctx).as_str().into(), node(&args, place + 1, ctx)));
    }
    Ok(value(Node::Object(Members::new(members))))
}

fn json_array(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    Ok(value(Node::Array((0..args.len()).map(|place| node(&args, place, ctx)).collect())))
}

fn json_quote(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match values[0].as_string_bytes() {
        Some(_) => Ok(Value::text(json::quote(&Args::new(call, values).text(0, ctx)))),
        None => Err(error::INVALID_TYPE_FOR_JSON.raise(&[&1, &"json_quote"])),
    }
}

fn json_valid(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::from(match &values[0] {
        Value::Json(_) => true,
        Value::Text(text) => json::parse(text).is_ok(),
        _ => false,
    }))
}

fn json_type(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(json::type_name(document(&Args::new(call, values), 0)?.node())))
}

/// Returns the value at the path, or the document if there is no path.
fn at_path(args: &Args<'_>, place: usize, ctx: &EvalContext) -> Result<Option<Json>> {
    let root = document(args, 0)?;
    if place >= args.len() {
        return Ok(Some(root));
    }
    let path = plain_path(args, place, ctx)?;
    Ok(path.find(root.node()).first().map(|found| Json::from((*found).clone())))
}

fn json_length(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let found = at_path(&Args::new(call, values), 1, ctx)?;
    Ok(found.map_or(Value::Null, |found| Value::Int(found.node().length() as i64)))
}

fn json_depth(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(document(&Args::new(call, values), 0)?.node().depth() as i64))
}

fn json_keys(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let found = at_path(&Args::new(call, values), 1, ctx)?;
    Ok(match found.as_ref().map(Json::node) {
        Some(Node::Object(members)) => {
            value(Node::Array(members.iter().map(|(name, _)| Node::String(name.into())).collect()))
        }
        _ => Value::Null,
    })
}

/// JSON_CONTAINS: an array contains a candidate if one of its elements does; an object, if each member of the candidate is contained in the member of that name.
fn contains(whole: &Node, part: &Node) -> bool {
    match (whole, part) {
        (Node::Array(elements), Node::Array(parts)) => {
            parts.iter().all(|part| elements.iter().any(|element| contains(element, part)))
        }
        (Node::Array(elements), part) => elements.iter().any(|element| contains(element, part)),
        (Node::Object(members), Node::Object(parts)) => {
            parts.iter().all(|(name, part)| members.get(name).is_some_and(|member| contains(member, part)))
        }
        (Node::Object(_), _) | (_, Node::Array(_) | Node::Object(_)) => false,
        (whole, part) => whole.compare(part).is_eq(),
    }
}

fn json_contains(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let part = document(&args, 1)?;
    let whole = at_path(&args, 2, ctx)?;
    Ok(whole.map_or(Value::Null, |whole| Value::from(contains(whole.node(), part.node()))))
}

/// Reads 'one' or 'all'; error 3154 for any other word.
fn one_or_all(args: &Args<'_>, ctx: &EvalContext) -> Result<bool> {
    match args.text(1, ctx).to_ascii_lowercase().as_str() {
        "one" => Ok(true),
        "all" => Ok(false),
        _ => Err(error::JSON_BAD_ONE_OR_ALL_ARG.raise(&[&args.call.function.name()])),
    }
}

fn json_contains_path(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let root = document(&args, 0)?;
    let one = one_or_all(&args, ctx)?;
    for place in 2..args.len() {
        let there = !path(&args, place, ctx)?.find(root.node()).is_empty();
        if there == one {
            return Ok(Value::from(one));
        }
    }
    Ok(Value::from(!one))
}

fn json_overlaps(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (a, b) = (document(&args, 0)?, document(&args, 1)?);
    let equal = |a: &Node, b: &Node| a.compare(b).is_eq();
    Ok(Value::from(match (a.node(), b.node()) {
        (Node::Array(a), Node::Array(b)) => a.iter().any(|a| b.iter().any(|b| equal(a, b))),
        (Node::Array(list), one) | (one, Node::Array(list)) => list.iter().any(|element| equal(element, one)),
        (Node::Object(a), Node::Object(b)) => a.iter().any(|(name, a)| b.get(name).is_some_and(|b| equal(a, b))),
        (a, b) => equal(a, b),
    }))
}

fn member_of(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (wanted, list) = (node(&args, 0, ctx), document(&args, 1)?);
    let equal = |element: &Node| element.compare(&wanted).is_eq();
    Ok(Value::from(match list.node() {
        Node::Array(elements) => elements.iter().any(equal),
        one => equal(one),
    }))
}

/// JSON_SEARCH: returns the paths of the strings that match the pattern.
fn json_search(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if (0..args.len()).any(|place| place != 3 && args.is_null(place)) {
        return Ok(Value::Null);
    }
    let root = document(&args, 0)?;
    let one = one_or_all(&args, ctx)?;
    let pattern = args.text(2, ctx);
    let escape = match args.len() > 3 && !args.is_null(3) {
        true => like::escape_char(args.get(3))?,
        false => Some('\\'),
    };
    let mut found = Vec::new();
    search(
        root.node(),
        "$".to_owned(),
        &mut |text| like::matches(Collation::Utf8PadBin, text.as_bytes(), pattern.as_bytes(), escape),
        &mut found,
    );
    if args.len() > 4 {
        let mut within = Vec::new();
        for place in 4..args.len() {
            within.push(path(&args, place, ctx)?);
        }
        let inside = |at: &str| within.iter().any(|path| leads_into(path, at));
        found.retain(|at| inside(at));
    }
    if one {
        found.truncate(1);
    }
    Ok(match found.len() {
        0 => Value::Null,
        1 => value(Node::String(found.swap_remove(0).into())),
        _ => value(Node::Array(found.into_iter().map(|at| Node::String(at.into())).collect())),
    })
}

/// Returns whether the place lies at or below one that the path names.
fn leads_into(path: &Path, at: &str) -> bool {
    fn fits(legs: &[Leg], place: &[Leg]) -> bool {
        match (legs.split_first(), place.split_first()) {
            (None, _) => true,
            (Some((Leg::Anywhere, rest)), _) => (0..=place.len()).any(|skipped| fits(rest, &place[skipped..])),
            (Some(_), None) => false,
            (Some((leg, rest)), Some((found, below))) => {
                let same = match (leg, found) {
                    (Leg::AnyMember, Leg::Member(_)) | (Leg::AnyElement, Leg::Element(_)) => true,
                    (leg, found) => leg == found,
                };
                same && fits(rest, below)
            }
        }
    }
    Path::parse(at).is_ok_and(|place| fits(&path.legs, &place.legs))
}

fn search(node: &Node, at: String, wanted: &mut dyn FnMut(&str) -> bool, found: &mut Vec<String>) {
    match node {
        Node::String(text) if wanted(text) => {
            found.push(at);
        }
        Node::Array(elements) => {
            elements.iter().enumerate().for_each(|(place, node)| search(node, format!("{at}[{place}]"), wanted, found));
        }
        Node::Object(members) => members.iter().for_each(|(name, node)| {
            let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let leg = if plain { format!("{at}.{name}") } else { format!("{at}.{}", json::quote(name)) };
            search(node, leg, wanted, found);
        }),
        _ => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Set,
    Insert,
    Replace,
}

fn json_set(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    changed(call, values, ctx, |root, legs, new| put(root, legs, new, Change::Set))
}

fn json_insert(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    changed(call, values, ctx, |root, legs, new| put(root, legs, new, Change::Insert))
}

fn json_replace(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    changed(call, values, ctx, |root, legs, new| put(root, legs, new, Change::Replace))
}

/// Pairs of a path and a value, one after the other; NULL for a NULL document or path.
fn changed(
    call: &Call,
    values: &[Value],
    ctx: &mut EvalContext,
    change: impl Fn(&mut Node, &[Leg], Node),
) -> Result<Value> {
    let args = Args::new(call, values);
    if args.len().is_multiple_of(2) {
        return Err(error::WRONG_PARAMCOUNT_TO_NATIVE_FCT.raise(&[&call.function.name()]));
    }
    if args.is_null(0) || (1..args.len()).step_by(2).any(|place| args.is_null(place)) {
        return Ok(Value::Null);
    }
    let mut root = document(&args, 0)?.node().clone();
    for place in (1..args.len()).step_by(2) {
        let path = plain_path(&args, place, ctx)?;
        change(&mut root, &path.legs, node(&args, place + 1, ctx));
    }
    if root.depth() > json::DEPTH_MAX {
        return Err(error::JSON_DOCUMENT_TOO_DEEP.raise(&[]));
    }
    Ok(value(root))
}

/// Returns the place that a path without wildcards names, if it exists.
fn place_mut<'n>(root: &'n mut Node, legs: &[Leg]) -> Option<&'n mut Node> {
    let Some((leg, rest)) = legs.split_first() else {
        return Some(root);
    };
    match (leg, root) {
        (Leg::Member(name), Node::Object(members)) => place_mut(members.get_mut(name)?, rest),
        (Leg::Element(place), Node::Array(elements)) => {
            let index = place.index(elements.len())?;
            place_mut(elements.get_mut(index)?, rest)
        }
        (Leg::Element(place), scalar) if !matches!(scalar, Node::Array(_)) && place.index(1) == Some(0) => {
            place_mut(scalar, rest)
        }
        _ => None,
    }
}

fn put(root: &mut Node, legs: &[Leg], new: Node, change: Change) {
    if let Some(old) = place_mut(root, legs) {
        if change != Change::Insert {
            *old = new;
        }
        return;
    }
    let Some((last, parents)) = legs.split_last() else {
        return;
    };
    if change == Change::Replace {
        return;
    }
    match (last, place_mut(root, parents)) {
        (Leg::Member(name), Some(Node::Object(members))) => members.set(name, new),
        (Leg::Element(Place::Front(_)), Some(Node::Array(elements))) => elements.push(new),
        (Leg::Element(Place::Last(_)), Some(Node::Array(elements))) => elements.insert(0, new),
        // A scalar becomes an array that begins with it, or ends with it if the index counts from the end.
        (Leg::Element(Place::Front(1..)), Some(single)) => {
            let old = std::mem::replace(single, Node::Null);
            *single = Node::Array(vec![old, new]);
        }
        (Leg::Element(Place::Last(1..)), Some(single)) => {
            let old = std::mem::replace(single, Node::Null);
            *single = Node::Array(vec![new, old]);
        }
        _ => {}
    }
}

fn json_remove(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let mut root = document(&args, 0)?.node().clone();
    for place in 1..args.len() {
        let path = plain_path(&args, place, ctx)?;
        let Some((last, parents)) = path.legs.split_last() else {
            return Err(error::JSON_VACUOUS_PATH.raise(&[]));
        };
        match (last, place_mut(&mut root, parents)) {
            (Leg::Member(name), Some(Node::Object(members))) => {
                members.remove(name);
            }
            (Leg::Element(place), Some(Node::Array(elements))) => {
                if let Some(index) = place.index(elements.len()).filter(|index| *index < elements.len()) {
                    elements.remove(index);
                }
            }
            _ => {}
        }
    }
    Ok(value(root))
}

fn json_array_append(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    changed(call, values, ctx, |root, legs, new| match place_mut(root, legs) {
        Some(Node::Array(elements)) => elements.push(new),
        Some(other) => {
            let old = std::mem::replace(other, Node::Null);
            *other = Node::Array(vec![old, new]);
        }
        None => {}
    })
}

fn json_array_insert(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    for place in (1..args.len()).step_by(2).filter(|place| !args.is_null(*place)) {
        if !matches!(path(&args, place, ctx)?.legs.last(), Some(Leg::Element(_))) {
            return Err(error::NULL_IN_JSON_PATH_ARRAY.raise(&[]));
        }
    }
    changed(call, values, ctx, |root, legs, new| {
        let Some((Leg::Element(place), parents)) = legs.split_last() else {
            return;
        };
        if let Some(Node::Array(elements)) = place_mut(root, parents) {
            let index = place.index(elements.len()).unwrap_or(0).min(elements.len());
            elements.insert(index, new);
        }
    })
}

/// JSON_MERGE_PATCH, as RFC 7396 defines it.
fn patched(target: Node, patch: &Node) -> Node {
    let Node::Object(changes) = patch else {
        return patch.clone();
    };
    let mut members = if let Node::Object(members) = target { members } else { Members::default() };
    for (name, change) in changes.iter() {
        match change {
            Node::Null => {
                members.remove(name);
            }
            change => {
                let old = members.remove(name).unwrap_or(Node::Null);
                members.set(name, patched(old, change));
            }
        }
    }
    Node::Object(members)
}

/// A document other than an object replaces all earlier arguments, even NULL.
fn json_merge_patch(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let mut merged: Option<Node> = None;
    for place in 0..args.len() {
        if args.is_null(place) {
            merged = None;
            continue;
        }
        let next = document(&args, place)?;
        merged = match (merged, next.node()) {
            (Some(target), patch) => Some(patched(target, patch)),
            (None, patch) if place == 0 || !matches!(patch, Node::Object(_)) => Some(patch.clone()),
            (None, _) => None,
        };
    }
    Ok(merged.map_or(Value::Null, value))
}

fn merged(a: Node, b: Node) -> Node {
    match (a, b) {
        (Node::Object(mut members), Node::Object(others)) => {
            for (name, other) in others.iter() {
                let both = match members.remove(name) {
                    Some(own) => merged(own, other.clone()),
                    None => other.clone(),
                };
                members.set(name, both);
            }
            Node::Object(members)
        }
        (a, b) => {
            let list = |node| if let Node::Array(elements) = node { elements } else { vec![node] };
            let mut elements = list(a);
            elements.extend(list(b));
            Node::Array(elements)
        }
    }
}

fn json_merge_preserve(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let mut whole = document(&args, 0)?.node().clone();
    for place in 1..args.len() {
        whole = merged(whole, document(&args, place)?.node().clone());
    }
    Ok(value(whole))
}

fn json_pretty(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut out = String::new();
    pretty(document(&Args::new(call, values), 0)?.node(), 0, &mut out);
    Ok(Value::text(out))
}

fn pretty(node: &Node, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match node {
        Node::Array(elements) if !elements.is_empty() => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                line(out, depth + 1);
                pretty(element, depth + 1, out);
            }
            line(out, depth);
            out.push(']');
        }
        Node::Object(members) if !members.is_empty() => {
            out.push('{');
            for (place, (name, member)) in members.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                line(out, depth + 1);
                out.push_str(&json::quote(name));
                out.push_str(": ");
                pretty(member, depth + 1, out);
            }
            line(out, depth);
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// JSON_STORAGE_FREE is always 0, because a changed document is written whole.
fn json_storage_free(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    document(&Args::new(call, values), 0)?;
    Ok(Value::Int(0))
}

fn json_storage_size(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bytes = Vec::new();
    document(&Args::new(call, values), 0)?.encode(&mut bytes);
    Ok(Value::Int(bytes.len() as i64))
}
