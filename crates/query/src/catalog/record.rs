//! Encoding of definitions in the engine's catalog map.
//!
//! ```text
//!   's' name                     a schema: collation, object id, maker
//!   't' id (8) piece (2)         a table's definition, cut into pieces that fit a record
//!   'v' id (8) piece (2)         a view, likewise (`view`)
//!   'q' id (8)                   a sequence (`sequence`)
//!   'n' id (8)                   its position: values up to this one are reserved
//!   'a' id (8)                   AUTO_INCREMENT: numbers below are reserved
//!   'p' id (8)                   maps of a temporary table (4 each): garbage after a restart
//!   'i' id (8) piece (2)         a table's statistics, likewise (`statistics`)
//!   'c'                          timestamps for clients: numbers below are reserved (`timestamps`)
//!   'y' id (8) piece (2)         a type that users define, likewise (`user_type`)
//!   'r' kind of (8) piece (2)    an owner and privileges, likewise (`access`)
//!   'd' database (8) role (4) piece (2)   settings of new sessions, likewise (`session_default`)
//!   'f' database (8) role (4) schema (8) kind piece (2)   privileges on new objects, likewise (`default_access`)
//!   'u' id (8)                   rows of the table, or of its parents, changed while foreign keys were not checked
//! ```

use std::sync::{Arc, OnceLock};

use datum::row::Layout;
use datum::{Fault, Result};
use engine::rows::{CATALOG, Inserted, Transaction};

use crate::catalog::codec::{In, Out, damaged};
use crate::catalog::foreign_key::Deferral;
use crate::catalog::object_id::{Maker, UNNUMBERED};
use crate::catalog::table::{Check, Index, KeptQuery, Table, TableId};
use crate::catalog::table_state::TableState;
use crate::engine_fault::engine_fault;
use crate::key_form::KeyForm;
use crate::nodes::term_test::TermForm;

/// The version of a definition. Version 1 ends before the foreign keys, version 2 before the generated columns, version 3 before the options; up to version 4 types have the kinds of `codec::FORMER`, and keys no form: `KeyForm::Whole`.
/// Version 5 ends before the maker and the object ids, which `Catalog::open` gives to its parts. Version 6 ends before what partial indexes and included columns need, version 7 before the deferral of foreign keys, version 8 before the deferral of unique keys and the kept query.
const VERSION: u8 = 11;
/// The deferrals by number.
const DEFERRALS: [Deferral; 3] = [Deferral::Never, Deferral::Immediate, Deferral::Deferred];
/// The size of a piece in bytes.
pub const PIECE: usize = 1000;

pub const TIMESTAMPS_KEY: &[u8] = b"c";

/// The first byte of the keys of persisted variables.
pub const PERSISTED: u8 = b'g';

pub fn schema_key(name: &str) -> Vec<u8> {
    [b"s", name.as_bytes()].concat()
}

pub fn table_key(id: u64, piece: u16) -> Vec<u8> {
    [&b"t"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub fn sequence_key(id: u64) -> Vec<u8> {
    [&b"q"[..], &id.to_be_bytes()].concat()
}

pub fn position_key(id: u64) -> Vec<u8> {
    [&b"n"[..], &id.to_be_bytes()].concat()
}

pub fn auto_key(id: u64) -> Vec<u8> {
    [&b"a"[..], &id.to_be_bytes()].concat()
}

pub fn temporary_key(id: u64) -> Vec<u8> {
    [&b"p"[..], &id.to_be_bytes()].concat()
}

pub fn statistics_key(id: u64, piece: u16) -> Vec<u8> {
    [&b"i"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub fn unchecked_key(id: u64) -> Vec<u8> {
    [&b"u"[..], &id.to_be_bytes()].concat()
}

/// Stores a record in pieces behind the key, in place of the one that was there, or removes it.
pub fn put_pieces(txn: &mut Transaction, key: &[u8], record: Option<&[u8]>) -> Result<()> {
    let of_piece = |piece: u16| [key, &piece.to_be_bytes()].concat();
    let mut pieces = 0;
    for bytes in record.into_iter().flat_map(|record| record.chunks(PIECE)) {
        put(txn, &of_piece(pieces), bytes)?;
        pieces += 1;
    }
    while txn.delete(CATALOG, &of_piece(pieces)).map_err(engine_fault)? {
        pieces += 1;
    }
    Ok(())
}

/// Stores a record of the catalog map, new or in place of the one with that key.
pub fn put(txn: &mut Transaction, key: &[u8], value: &[u8]) -> Result<()> {
    if txn.insert(CATALOG, key, value, &mut Vec::new()).map_err(engine_fault)? == Inserted::Exists {
        txn.update(CATALOG, key, value).map_err(engine_fault)?;
    }
    Ok(())
}

pub fn put_table_record(txn: &mut Transaction, table: &Table) -> Result<()> {
    forget_pieces(txn, table.id)?;
    for (piece, bytes) in encode_table(table)?.chunks(PIECE).enumerate() {
        put(txn, &table_key(table.id, piece as u16), bytes)?;
    }
    Ok(())
}

pub fn forget_pieces(txn: &mut Transaction, id: TableId) -> Result<()> {
    let mut piece = 0;
    while txn.delete(CATALOG, &table_key(id, piece)).map_err(engine_fault)? {
        piece += 1;
    }
    Ok(())
}

pub fn encode_table(table: &Table) -> Result<Vec<u8>> {
    let mut out = Out::default();
    out.byte(VERSION);
    out.number(table.id);
    out.text(&table.schema);
    out.text(&table.name);
    out.number(table.version);
    out.number(u64::from(table.map));
    out.count(table.slots.len());
    table.slots.iter().for_each(|storage| out.storage(*storage));
    out.count(table.columns.len());
    for column in &table.columns {
        out.column(column)?;
    }
    out.byte(u8::from(table.primary.is_some()));
    out.parts(table.primary.as_deref().unwrap_or(&[]));
    out.byte(table.primary_form.code());
    out.count(table.indexes.len());
    for index in &table.indexes {
        out.text(&index.name);
        out.number(u64::from(index.map));
        out.byte(
            u8::from(index.unique)
                | u8::from(index.invisible) << 1
                | u8::from(index.generated) << 2
                | u8::from(index.using) << 3
                | u8::from(index.is_constraint) << 4
                | u8::from(index.nulls_equal) << 5,
        );
        out.parts(&index.parts);
        out.byte(index.form.code());
        out.text(&index.comment);
    }
    out.count(table.checks.len());
    for check in &table.checks {
        out.text(&check.name);
        out.text(&check.text);
        out.byte(u8::from(check.enforced));
    }
    out.collation(table.collation);
    out.text(&table.comment);
    out.number(table.created as u64);
    out.count(table.foreign_keys.len());
    table.foreign_keys.iter().for_each(|key| out.foreign_key(key));
    let generated = table.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.generated.as_ref()?)));
    out.count(generated.clone().count());
    for (at, generated) in generated {
        out.number(at as u64);
        out.text(&generated.text);
        out.byte(u8::from(generated.stored) | u8::from(generated.hidden) << 1);
    }
    out.byte(u8::from(table.primary_using));
    out.count(table.options.len());
    for (name, value) in &table.options {
        out.text(name);
        out.text(value);
    }
    encode_objects(table, &mut out);
    encode_indexes(table, &mut out);
    table.foreign_keys.iter().for_each(|key| out.byte(key.deferral as u8));
    table.indexes.iter().for_each(|index| out.byte(index.deferral as u8 | u8::from(index.is_primary) << 2));
    encode_query(table.query.as_deref(), &mut out);
    // The part that version 10 has added.
    table.indexes.iter().for_each(|index| out.byte(TermForm::code(index.terms)));
    // The part that version 11 has added.
    table.checks.iter().for_each(|check| out.byte(u8::from(check.is_validated)));
    table.foreign_keys.iter().for_each(|key| out.byte(u8::from(key.is_validated)));
    Ok(out.0)
}

/// Appends the part that version 9 has added.
fn encode_query(query: Option<&KeptQuery>, out: &mut Out) {
    let Some(KeptQuery { text, modes, is_populated }) = query else { return out.byte(0) };
    out.byte(1 + u8::from(*is_populated));
    out.text(text);
    out.text(modes);
}

fn decode_query(from: &mut In<'_>) -> Result<Option<Box<KeptQuery>>> {
    let is_populated = match from.byte()? {
        0 => return Ok(None),
        1 => false,
        2 => true,
        _ => return Err(damaged()),
    };
    Ok(Some(Box::new(KeptQuery { text: from.text()?, modes: from.text()?, is_populated })))
}

/// Appends the part that version 7 has added.
fn encode_indexes(table: &Table, out: &mut Out) {
    for index in &table.indexes {
        out.count(index.included.len());
        index.included.iter().for_each(|column| out.number(*column as u64));
        out.number(index.predicate.map_or(u64::MAX, |column| column as u64));
    }
}

fn decode_indexes(table: &mut Table, from: &mut In<'_>) -> Result<()> {
    let count = table.columns.len();
    let column = |number: u64| usize::try_from(number).ok().filter(|at| *at < count).ok_or_else(damaged);
    for index in &mut table.indexes {
        index.included = from.list(|from| column(from.number()?))?;
        index.predicate = Some(from.number()?).filter(|number| *number != u64::MAX).map(column).transpose()?;
    }
    Ok(())
}

/// Appends the part that version 6 has added.
fn encode_objects(table: &Table, out: &mut Out) {
    out.byte(table.maker.0);
    out.number(table.primary_id);
    out.text(&table.primary_name);
    table.indexes.iter().for_each(|index| out.number(index.id));
    table.checks.iter().for_each(|check| out.number(check.id));
    table.foreign_keys.iter().for_each(|key| out.number(key.id));
    for column in &table.columns {
        out.byte(column.identity as u8);
        out.count(column.sequences.len());
        column.sequences.iter().for_each(|id| out.number(*id));
    }
}

fn decode_objects(table: &mut Table, from: &mut In<'_>) -> Result<()> {
    table.maker = from.maker()?;
    table.primary_id = from.number()?;
    table.primary_name = from.text()?;
    if (table.primary_id == UNNUMBERED) != table.primary.is_none() {
        return Err(damaged());
    }
    for index in &mut table.indexes {
        index.id = from.object_id()?;
    }
    for check in &mut table.checks {
        check.id = from.object_id()?;
    }
    for key in &mut table.foreign_keys {
        key.id = from.object_id()?;
    }
    for column in &mut table.columns {
        column.identity = from.identity()?;
        column.sequences = from.list(In::object_id)?;
    }
    Ok(())
}

pub fn decode_table(bytes: &[u8]) -> Result<Table> {
    let mut from = In(bytes);
    let format = from.byte()?;
    if !(1..=VERSION).contains(&format) {
        return Err(Fault::corrupt("a table of a later version"));
    }
    let (id, schema, name, version) = (from.number()?, from.text()?, from.text()?, from.number()?);
    let map = from.number()? as u32;
    let slots = from.list(In::storage)?;
    let mut columns = from.list(In::column)?;
    let count = columns.len();
    if columns.iter().any(|column| column.slot >= slots.len()) {
        return Err(damaged());
    }
    let has_primary = from.byte()? != 0;
    let primary = from.parts(count)?;
    let form = |from: &mut In<'_>| {
        let code = if format < 5 { KeyForm::Whole.code() } else { from.byte()? };
        KeyForm::of_code(code).ok_or_else(damaged)
    };
    let primary_form = form(&mut from)?;
    let indexes = from.list(|from| {
        let (name, map, flags) = (from.text()?, from.number()? as u32, from.byte()?);
        let (parts, form, comment) = (from.parts(count)?, form(from)?, from.text()?);
        Ok(Index {
            id: UNNUMBERED,
            name,
            map,
            unique: flags & 1 != 0,
            invisible: flags & 2 != 0,
            generated: flags & 4 != 0,
            using: flags & 8 != 0,
            is_constraint: flags & 16 != 0,
            nulls_equal: flags & 32 != 0,
            deferral: Deferral::Never,
            is_primary: false,
            is_unseen: false,
            included: Vec::new(),
            predicate: None,
            terms: None,
            parts,
            form,
            comment,
        })
    })?;
    let checks = from.list(|from| {
        let (name, text, enforced) = (from.text()?, from.text()?, from.byte()? != 0);
        Ok(Check { id: UNNUMBERED, name, text, enforced, is_validated: true })
    })?;
    let (collation, comment, created) = (from.collation()?, from.text()?, from.number()? as i64);
    let foreign_keys = if format < 2 { Vec::new() } else { from.list(|from| from.foreign_key(count))? };
    for (at, generated) in if format < 3 { Vec::new() } else { from.list(In::generated)? } {
        columns.get_mut(at).ok_or_else(damaged)?.generated = Some(generated);
    }
    let primary_using = format >= 4 && from.byte()? != 0;
    let options = if format < 4 { Vec::new() } else { from.list(|from| Ok((from.text()?, from.text()?)))? };
    let mut table = Table {
        id,
        maker: Maker::default(),
        schema,
        name,
        version,
        map,
        columns,
        slots,
        layout: Layout::default(),
        slot_columns: Vec::new(),
        primary: has_primary.then_some(primary),
        primary_id: UNNUMBERED,
        primary_name: String::new(),
        primary_form,
        indexes,
        checks,
        foreign_keys,
        collation,
        comment,
        options,
        primary_using,
        created,
        temporary: false,
        keyspace: None,
        query: None,
        is_unseen: false,
        computes: false,
        live: Arc::new(TableState::new(version)),
        formulas: OnceLock::new(),
    };
    if format >= 6 {
        decode_objects(&mut table, &mut from)?;
    }
    if format >= 7 {
        decode_indexes(&mut table, &mut from)?;
    }
    if format >= 8 {
        for key in &mut table.foreign_keys {
            key.deferral = *DEFERRALS.get(usize::from(from.byte()?)).ok_or_else(damaged)?;
        }
    }
    if format >= 9 {
        for index in &mut table.indexes {
            let byte = from.byte()?;
            index.deferral = *DEFERRALS.get(usize::from(byte & 3)).ok_or_else(damaged)?;
            index.is_primary = byte & 4 != 0;
        }
        table.query = decode_query(&mut from)?;
    }
    if format >= 10 {
        for index in &mut table.indexes {
            index.terms = TermForm::of_code(from.byte()?).ok_or_else(damaged)?;
            let is_fit = index.parts.len() == 1 && !index.unique && index.included.is_empty();
            if index.terms.is_some() && !is_fit {
                return Err(damaged());
            }
        }
    }
    if format >= 11 {
        for check in &mut table.checks {
            check.is_validated = from.byte()? != 0;
        }
        for key in &mut table.foreign_keys {
            key.is_validated = from.byte()? != 0;
        }
    }
    Ok(table.with_derived_fields())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::keyspace_table;

    /// Each older version ends where the next one continues.
    #[test]
    fn definitions_of_earlier_versions_are_read() {
        let of_form = |primary_form| {
            let mut table =
                Table { version: 2, primary_form, ..keyspace_table::table(&keyspace_table::TABLES[0]).copy() };
            table.number_parts(None, || 9);
            encode_table(&table.with_derived_fields()).unwrap()
        };
        // Of the objects: the maker, the number and name of the primary key, no list, and for each column two.
        let objects = 1 + 8 + 4 + keyspace_table::table(&keyspace_table::TABLES[0]).columns.len() * (1 + 4);
        // Version 8 ends before the kept query: one byte without it.
        let query = 1;
        let (bytes, other) = (of_form(KeyForm::Whole), of_form(KeyForm::Hashed));
        assert_eq!(bytes[0], VERSION);
        assert_eq!(decode_table(&other).unwrap().primary_form, KeyForm::Hashed);
        let form_at = bytes.iter().zip(&other).position(|(a, b)| a != b).expect("the form of the primary key");
        // Behind the foreign keys: the generated columns; the flag and the options. The lists are empty.
        for (version, missing) in [(5, 0), (4, 0), (3, 1 + 4), (2, 1 + 4 + 4), (1, 1 + 4 + 4 + 4)] {
            let mut earlier = bytes[..bytes.len() - query - objects - missing].to_vec();
            earlier[0] = version;
            // Up to version 4 keys have no form: they are whole.
            if version <= 4 {
                earlier.remove(form_at);
            }
            let mut table = decode_table(&earlier).unwrap();
            assert_eq!((table.primary_id, table.maker), (UNNUMBERED, Maker(0)));
            table.number_parts(None, || 9);
            assert_eq!(encode_table(&table).unwrap(), bytes, "version {version}");
        }
        let mut unknown = bytes.clone();
        unknown[form_at] = 2;
        assert!(decode_table(&unknown).is_err());
        let mut later = bytes.clone();
        later[0] = VERSION + 1;
        assert!(decode_table(&later).is_err());
    }

    #[test]
    fn a_kept_query_comes_back_from_its_bytes() {
        for is_populated in [false, true] {
            let query = KeptQuery { text: "SELECT 1".into(), modes: "public".into(), is_populated };
            let mut table = Table {
                version: 2,
                query: Some(Box::new(query)),
                ..keyspace_table::table(&keyspace_table::TABLES[0]).copy()
            };
            table.number_parts(None, || 9);
            let bytes = encode_table(&table.with_derived_fields()).unwrap();
            let read = decode_table(&bytes).unwrap();
            assert_eq!(read.query.as_ref().map(|query| query.is_populated), Some(is_populated));
            assert_eq!(encode_table(&read).unwrap(), bytes);
            (0..bytes.len()).for_each(|end| assert!(decode_table(&bytes[..end]).is_err(), "{end} bytes"));
        }
    }
}
