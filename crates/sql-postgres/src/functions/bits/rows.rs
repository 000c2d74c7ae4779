//! Rows of `pg_proc`, `pg_operator` and `pg_cast` of bit strings.

use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};

use crate::functions::CastContext::{Explicit, Implicit};
use crate::functions::CastMethod::{Binary, Function};
use crate::functions::rows::{I, cast, folded, operator, row, strict};
use crate::functions::{PgCast, PgFunction, PgOperator, bits, compare};
use crate::types::oid::{BIT, BOOL, INT4, INT8, VARBIT};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(1683, "bit", &[INT4, INT4], 0, BIT, I, true, strict!("bit", bits::of_integer, I)),
    row(1685, "bit", &[BIT, INT4, BOOL], 0, BIT, I, true, strict!("bit", bits::bit_length_coercion, I)),
    row(2075, "bit", &[INT8, INT4], 0, BIT, I, true, strict!("bit", bits::of_integer, I)),
    row(2242, "bit_and", &[BIT], 0, BIT, I, true, folded(&bits::BIT_AND)),
    row(6162, "bit_count", &[BIT], 0, INT8, I, true, strict!("bit_count", bits::bit_count, I)),
    row(1812, "bit_length", &[BIT], 0, INT4, I, true, strict!("bit_length", bits::length, I)),
    row(2243, "bit_or", &[BIT], 0, BIT, I, true, folded(&bits::BIT_OR)),
    row(6167, "bit_xor", &[BIT], 0, BIT, I, true, folded(&bits::BIT_XOR)),
    row(1673, "bitand", &[BIT, BIT], 0, BIT, I, true, strict!("bitand", bits::and, I)),
    row(1679, "bitcat", &[VARBIT, VARBIT], 0, VARBIT, I, true, strict!("bitcat", bits::concatenate, I)),
    row(1596, "bitcmp", &[BIT, BIT], 0, INT4, I, true, strict!("bitcmp", compare::compare, I)),
    row(1581, "biteq", &[BIT, BIT], 0, BOOL, I, true, strict!("biteq", compare::equal, I)),
    row(1592, "bitge", &[BIT, BIT], 0, BOOL, I, true, strict!("bitge", compare::greater_equal, I)),
    row(1593, "bitgt", &[BIT, BIT], 0, BOOL, I, true, strict!("bitgt", compare::greater, I)),
    row(1594, "bitle", &[BIT, BIT], 0, BOOL, I, true, strict!("bitle", compare::less_equal, I)),
    row(1595, "bitlt", &[BIT, BIT], 0, BOOL, I, true, strict!("bitlt", compare::less, I)),
    row(1582, "bitne", &[BIT, BIT], 0, BOOL, I, true, strict!("bitne", compare::not_equal, I)),
    row(1676, "bitnot", &[BIT], 0, BIT, I, true, strict!("bitnot", bits::not, I)),
    row(1674, "bitor", &[BIT, BIT], 0, BIT, I, true, strict!("bitor", bits::or, I)),
    row(1677, "bitshiftleft", &[BIT, INT4], 0, BIT, I, true, strict!("bitshiftleft", bits::shift_left, I)),
    row(1678, "bitshiftright", &[BIT, INT4], 0, BIT, I, true, strict!("bitshiftright", bits::shift_right, I)),
    row(1675, "bitxor", &[BIT, BIT], 0, BIT, I, true, strict!("bitxor", bits::xor, I)),
    row(3032, "get_bit", &[BIT, INT4], 0, INT4, I, true, strict!("get_bit", bits::get_bit, I)),
    row(1684, "int4", &[BIT], 0, INT4, I, true, strict!("int4", bits::to_int4, I)),
    row(2076, "int8", &[BIT], 0, INT8, I, true, strict!("int8", bits::to_int8, I)),
    row(1681, "length", &[BIT], 0, INT4, I, true, strict!("length", bits::length, I)),
    row(1682, "octet_length", &[BIT], 0, INT4, I, true, strict!("octet_length", bits::octet_length, I)),
    row(3030, "overlay", &[BIT, BIT, INT4, INT4], 0, BIT, I, true, strict!("overlay", bits::overlay, I)),
    row(3031, "overlay", &[BIT, BIT, INT4], 0, BIT, I, true, strict!("overlay", bits::overlay, I)),
    row(1698, "position", &[BIT, BIT], 0, INT4, I, true, strict!("position", bits::position, I)),
    row(3033, "set_bit", &[BIT, INT4, INT4], 0, BIT, I, true, strict!("set_bit", bits::set_bit, I)),
    row(1680, "substring", &[BIT, INT4, INT4], 0, BIT, I, true, strict!("substring", bits::substring, I)),
    row(1699, "substring", &[BIT, INT4], 0, BIT, I, true, strict!("substring", bits::substring, I)),
    row(1687, "varbit", &[VARBIT, INT4, BOOL], 0, VARBIT, I, true, strict!("varbit", bits::varbit_length_coercion, I)),
    row(1672, "varbitcmp", &[VARBIT, VARBIT], 0, INT4, I, true, strict!("varbitcmp", compare::compare, I)),
    row(1666, "varbiteq", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbiteq", compare::equal, I)),
    row(1668, "varbitge", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbitge", compare::greater_equal, I)),
    row(1669, "varbitgt", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbitgt", compare::greater, I)),
    row(1670, "varbitle", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbitle", compare::less_equal, I)),
    row(1671, "varbitlt", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbitlt", compare::less, I)),
    row(1667, "varbitne", &[VARBIT, VARBIT], 0, BOOL, I, true, strict!("varbitne", compare::not_equal, I)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(1793, "#", (BIT, BIT, BIT), 1675, (1793, 0), None),
    operator(1791, "&", (BIT, BIT, BIT), 1673, (1791, 0), None),
    operator(1786, "<", (BIT, BIT, BOOL), 1595, (1787, 1789), Some(Less)),
    operator(1806, "<", (VARBIT, VARBIT, BOOL), 1671, (1807, 1809), Some(Less)),
    operator(1795, "<<", (BIT, INT4, BIT), 1677, (0, 0), None),
    operator(1788, "<=", (BIT, BIT, BOOL), 1594, (1789, 1787), Some(LessEqual)),
    operator(1808, "<=", (VARBIT, VARBIT, BOOL), 1670, (1809, 1807), Some(LessEqual)),
    operator(1785, "<>", (BIT, BIT, BOOL), 1582, (1785, 1784), Some(NotEqual)),
    operator(1805, "<>", (VARBIT, VARBIT, BOOL), 1667, (1805, 1804), Some(NotEqual)),
    operator(1784, "=", (BIT, BIT, BOOL), 1581, (1784, 1785), Some(Equal)),
    operator(1804, "=", (VARBIT, VARBIT, BOOL), 1666, (1804, 1805), Some(Equal)),
    operator(1787, ">", (BIT, BIT, BOOL), 1593, (1786, 1788), Some(Greater)),
    operator(1807, ">", (VARBIT, VARBIT, BOOL), 1669, (1806, 1808), Some(Greater)),
    operator(1789, ">=", (BIT, BIT, BOOL), 1592, (1788, 1786), Some(GreaterEqual)),
    operator(1809, ">=", (VARBIT, VARBIT, BOOL), 1668, (1808, 1806), Some(GreaterEqual)),
    operator(1796, ">>", (BIT, INT4, BIT), 1678, (0, 0), None),
    operator(1792, "|", (BIT, BIT, BIT), 1674, (1792, 0), None),
    operator(1797, "||", (VARBIT, VARBIT, VARBIT), 1679, (0, 0), None),
    operator(1794, "~", (0, BIT, BIT), 1676, (0, 0), None),
];

/// Rows of `pg_cast`.
#[rustfmt::skip]
pub static CASTS: &[PgCast] = &[
    cast(INT8, BIT, 2075, Explicit, Function),
    cast(INT4, BIT, 1683, Explicit, Function),
    cast(BIT, INT8, 2076, Explicit, Function),
    cast(BIT, INT4, 1684, Explicit, Function),
    cast(BIT, BIT, 1685, Implicit, Function),
    cast(BIT, VARBIT, 0, Implicit, Binary),
    cast(VARBIT, BIT, 0, Implicit, Binary),
    cast(VARBIT, VARBIT, 1687, Implicit, Function),
];
