//! FORMAT=TRADITIONAL: the twelve columns that MySQL's clients know.

use super::block::{Block, Shown, blocks};
use super::{Explained, Verb};
use crate::batch::Row;
use crate::types::{Collation, CollationName as _, Column, MysqlType as _, Type};
use crate::value::Value;
use query::nodes::node::JoinKind;

pub fn columns() -> Vec<Column> {
    let text = |length: u32| Type::text(length, Collation::DEFAULT);
    let columns = [
        ("id", Type::unsigned()),
        ("select_type", text(19).with_nullable(false)),
        ("table", text(64)),
        ("partitions", text(1024)),
        ("type", text(10)),
        ("possible_keys", text(4096)),
        ("key", text(64)),
        ("key_len", text(4096)),
        ("ref", text(2048)),
        ("rows", Type::unsigned()),
        ("filtered", Type { scale: 2, length: 5, ..Type::double() }),
        ("Extra", text(255)),
    ];
    columns.into_iter().map(|(name, ty)| Column::computed(name, ty)).collect()
}

pub fn rows(explained: &Explained<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    if matches!(explained.verb, Verb::Insert | Verb::Replace) {
        let target =
            Shown { name: explained.table.map(str::to_owned), access: Some("ALL"), rows: -1.0, ..Shown::default() };
        rows.push(row(&Block { id: 1, kind: explained.verb.name(), ..Block::default() }, &target, true));
        if explained.node.is_none() {
            return rows;
        }
    }
    for block in blocks(explained) {
        for (nth, shown) in block.tables.iter().enumerate() {
            rows.push(row(&block, shown, nth == 0));
        }
    }
    rows
}

fn row(block: &Block, shown: &Shown, is_first: bool) -> Row {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
    let list = |list: &[String]| if list.is_empty() { Value::Null } else { Value::text(list.join(",")) };
    let is_counted = shown.name.is_some() && shown.rows > 0.0;
    vec![
        if block.id == 0 { Value::Null } else { Value::UInt(block.id as u64) },
        Value::text(block.kind),
        text(shown.name.clone()),
        Value::Null,
        text(shown.access.map(str::to_owned)),
        list(&shown.possible),
        text(shown.key.clone()),
        text(shown.key.as_ref().map(|_| shown.key_length.clone())),
        list(&shown.by),
        if is_counted { Value::UInt(shown.rows.round().max(1.0) as u64) } else { Value::Null },
        if is_counted { Value::Double((shown.filtered * 100.0).round() / 100.0) } else { Value::Null },
        extra(block, shown, is_first),
    ]
}

fn extra(block: &Block, shown: &Shown, is_first: bool) -> Value {
    let mut words: Vec<&str> = shown.message.into_iter().chain(shown.union.as_deref()).collect();
    let mut add = |holds: bool, word: &'static str| {
        if holds {
            words.push(word);
        }
    };
    let is_const = shown.access == Some("const") && shown.conditions.len() <= shown.by.len();
    add(!shown.conditions.is_empty() && !is_const, "Using where");
    add(shown.covers, "Using index");
    add(shown.pushes, "Using index condition");
    add(shown.backward, "Backward index scan");
    add(is_first && (block.groups || block.is_distinct), "Using temporary");
    add(is_first && (block.sorts || block.has_windows), "Using filesort");
    add(shown.decides == Some(JoinKind::Semi), "FirstMatch");
    add(shown.decides == Some(JoinKind::Anti), "Not exists");
    add(shown.hashes, "Using join buffer (hash join)");
    if words.is_empty() { Value::Null } else { Value::text(words.join("; ")) }
}
