//! Functions of bytea, and encodings.

use crate::functions::rows::{I, S, row, strict};
use crate::functions::{PgFunction, bytea, text};
use crate::types::oid::{BOOL, BYTEA, INT4, INT8, NAME, TEXT};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(6163, "bit_count", &[BYTEA], 0, INT8, I, true, strict!("bit_count", bytea::bit_count, I)),
    row(2015, "btrim", &[BYTEA, BYTEA], 0, BYTEA, I, true, strict!("btrim", bytea::btrim, I)),
    row(2011, "byteacat", &[BYTEA, BYTEA], 0, BYTEA, I, true, strict!("byteacat", bytea::concatenate, I)),
    row(2005, "bytealike", &[BYTEA, BYTEA], 0, BOOL, I, true, strict!("bytealike", text::like::bytea_like, I, text::like::prefix)),
    row(2006, "byteanlike", &[BYTEA, BYTEA], 0, BOOL, I, true, strict!("byteanlike", text::like::bytea_not_like, I)),
    row(1714, "convert_from", &[BYTEA, NAME], 0, TEXT, S, true, strict!("convert_from", bytea::convert_from, S)),
    row(1717, "convert_to", &[TEXT, NAME], 0, BYTEA, S, true, strict!("convert_to", bytea::convert_to, S)),
    row(1947, "decode", &[TEXT, TEXT], 0, BYTEA, I, true, strict!("decode", bytea::decode, I)),
    row(1946, "encode", &[BYTEA, TEXT], 0, TEXT, I, true, strict!("encode", bytea::encode, I)),
    row(723, "get_bit", &[BYTEA, INT8], 0, INT4, I, true, strict!("get_bit", bytea::get_bit, I)),
    row(721, "get_byte", &[BYTEA, INT4], 0, INT4, I, true, strict!("get_byte", bytea::get_byte, I)),
    row(1713, "length", &[BYTEA, NAME], 0, INT4, S, true, strict!("length", bytea::length_in, S)),
    row(2010, "length", &[BYTEA], 0, INT4, I, true, strict!("length", text::strings::octet_length, I)),
    row(2007, "like", &[BYTEA, BYTEA], 0, BOOL, I, true, strict!("like", text::like::bytea_like, I, text::like::prefix)),
    row(2009, "like_escape", &[BYTEA, BYTEA], 0, BYTEA, I, true, strict!("like_escape", text::like::like_escape_bytea, I)),
    row(6195, "ltrim", &[BYTEA, BYTEA], 0, BYTEA, I, true, strict!("ltrim", bytea::ltrim, I)),
    row(2321, "md5", &[BYTEA], 0, TEXT, I, true, strict!("md5", bytea::md5, I)),
    row(2008, "notlike", &[BYTEA, BYTEA], 0, BOOL, I, true, strict!("notlike", text::like::bytea_not_like, I)),
    row(720, "octet_length", &[BYTEA], 0, INT4, I, true, strict!("octet_length", text::strings::octet_length, I)),
    row(749, "overlay", &[BYTEA, BYTEA, INT4, INT4], 0, BYTEA, I, true, strict!("overlay", bytea::overlay, I)),
    row(752, "overlay", &[BYTEA, BYTEA, INT4], 0, BYTEA, I, true, strict!("overlay", bytea::overlay, I)),
    row(2014, "position", &[BYTEA, BYTEA], 0, INT4, I, true, strict!("position", bytea::position, I)),
    row(6196, "rtrim", &[BYTEA, BYTEA], 0, BYTEA, I, true, strict!("rtrim", bytea::rtrim, I)),
    row(724, "set_bit", &[BYTEA, INT8, INT4], 0, BYTEA, I, true, strict!("set_bit", bytea::set_bit, I)),
    row(722, "set_byte", &[BYTEA, INT4, INT4], 0, BYTEA, I, true, strict!("set_byte", bytea::set_byte, I)),
    row(3419, "sha224", &[BYTEA], 0, BYTEA, I, true, strict!("sha224", bytea::sha224, I)),
    row(3420, "sha256", &[BYTEA], 0, BYTEA, I, true, strict!("sha256", bytea::sha256, I)),
    row(3421, "sha384", &[BYTEA], 0, BYTEA, I, true, strict!("sha384", bytea::sha384, I)),
    row(3422, "sha512", &[BYTEA], 0, BYTEA, I, true, strict!("sha512", bytea::sha512, I)),
    row(2085, "substr", &[BYTEA, INT4, INT4], 0, BYTEA, I, true, strict!("substr", bytea::substring, I)),
    row(2086, "substr", &[BYTEA, INT4], 0, BYTEA, I, true, strict!("substr", bytea::substring, I)),
    row(2012, "substring", &[BYTEA, INT4, INT4], 0, BYTEA, I, true, strict!("substring", bytea::substring, I)),
    row(2013, "substring", &[BYTEA, INT4], 0, BYTEA, I, true, strict!("substring", bytea::substring, I)),
];
