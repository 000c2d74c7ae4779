use datum::Storage;
use datum::key::KeyOrder;
use sha2::{Digest, Sha256};

use super::*;
use crate::catalog::foreign_key::Deferral;
use crate::catalog::table::TableColumn;
use crate::key_form::{KeyForm, SHORTENED, WHOLE_MAX};
use crate::types::Collation;

const ID: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// Rows `(id, a, b)`, by id or by `a`, with an index over the parts.
fn table(by_text: bool, unique: bool, parts: Vec<Part>) -> Table {
    let ty = |storage| Type::plain(storage, Type::null().id, (1000, 0), true, Collation::Binary);
    let column = |name: &str, storage, at| TableColumn::new(name.to_owned(), ty(storage), at);
    let columns = [
        column("id", Storage::Int { bytes: 8, signed: true }, ID),
        column("a", Storage::Bytes, A),
        column("b", Storage::Bytes, B),
    ];
    let mut table = Table::draft("t", &columns);
    table.primary = Some(vec![part(if by_text { A } else { ID }, false)]);
    let index = Index {
        id: 2,
        name: "i".into(),
        map: 1,
        unique,
        parts,
        form: KeyForm::Hashed,
        comment: String::new(),
        invisible: false,
        using: false,
        generated: false,
        is_constraint: false,
        included: Vec::new(),
        predicate: None,
        terms: None,
        nulls_equal: false,
        deferral: Deferral::Never,
        is_primary: false,
        is_unseen: false,
    };
    table.indexes.push(index);
    table
}

fn part(column: usize, descending: bool) -> Part {
    Part { column, prefix: None, order: KeyOrder::with_null_least(descending) }
}

fn encoded(value: &Value, descending: bool) -> Vec<u8> {
    let table = table(false, false, vec![part(A, descending)]);
    let mut out = Vec::new();
    encode_part(&table.indexes[0].parts[0], value, &table.columns[A].ty, &mut out);
    out
}

/// A text whose columns take so many bytes: a byte before it, two at its end.
fn text(encoded_bytes: usize, last: u8) -> Value {
    let mut text = vec![b'x'; encoded_bytes - 3];
    *text.last_mut().expect("a text") = last;
    Value::bytes(&text[..])
}

fn shortened(mut columns: Vec<u8>) -> Vec<u8> {
    KeyForm::Hashed.shorten(&mut columns);
    columns
}

#[test]
fn columns_are_whole_up_to_352_bytes() {
    for length in [351, 352, 353, 383, 384, 385, 767, 768, 769, 3000] {
        let whole = encoded(&text(length, b'x'), false);
        assert_eq!(whole.len(), length);
        let short = shortened(whole.clone());
        if length <= WHOLE_MAX {
            assert_eq!(short, whole);
        } else {
            assert_eq!(short.len(), SHORTENED);
            assert_eq!(short[..WHOLE_MAX], whole[..WHOLE_MAX]);
            assert_eq!(short[WHOLE_MAX..], Sha256::digest(&whole)[..]);
        }
        assert_eq!(KeyForm::Hashed.is_shortened(short.len()), length > WHOLE_MAX, "{length}");
        let mut former = whole.clone();
        KeyForm::Whole.shorten(&mut former);
        assert_eq!(former, whole, "the former form keeps everything");
        assert!(!KeyForm::Whole.is_shortened(length));
    }
}

/// Values around the boundaries, with and without the same beginning.
fn values() -> Vec<Value> {
    let mut values = vec![Value::Null, Value::bytes(&[][..]), Value::bytes(&[0; 500][..])];
    for length in [4, 100, 350, 351, 352, 353, 354, 383, 384, 385, 400, 1500] {
        values.extend([text(length, b'x'), text(length, 0), text(length, b'z')]);
        let mut other = vec![b'x'; length - 3];
        other[0] = b'q';
        values.push(Value::bytes(&other[..]));
    }
    values
}

/// QU-27.
#[test]
fn shortened_columns_stand_in_order_but_among_those_of_the_same_beginning() {
    for descending in [false, true] {
        for a in &values() {
            for b in &values() {
                let (a, b) = (encoded(a, descending), encoded(b, descending));
                let (short_a, short_b) = (shortened(a.clone()), shortened(b.clone()));
                assert_eq!(a == b, short_a == short_b);
                let is_tied = a.len() > WHOLE_MAX && b.len() > WHOLE_MAX && a[..WHOLE_MAX] == b[..WHOLE_MAX];
                if !is_tied {
                    assert_eq!(a.cmp(&b), short_a.cmp(&short_b));
                }
                // A bound that is no longer compares with what stands in the map as with the columns.
                if b.len() <= WHOLE_MAX {
                    assert_eq!(a.cmp(&b), short_a.cmp(&b));
                    assert_eq!(a.starts_with(&b), short_a.starts_with(&b));
                }
            }
        }
    }
}

/// QU-28.
#[test]
fn no_columns_in_a_map_are_the_beginning_of_others() {
    for a in &values() {
        for b in &values() {
            let (a, b) = (shortened(encoded(a, false)), shortened(encoded(b, false)));
            assert!(a == b || !a.starts_with(&b));
        }
    }
}

#[test]
fn an_entry_leads_to_its_row_however_long_both_keys_are() {
    for by_text in [false, true] {
        for unique in [false, true] {
            for (a, b) in values().iter().flat_map(|a| values().into_iter().map(move |b| (a.clone(), b))) {
                let table = table(by_text, unique, vec![part(B, true), part(A, false)]);
                let row = [Value::Int(7), a.clone(), b.clone()];
                let (mut own, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
                primary(&table, &row, &mut own).expect("any length");
                entry(&table, &table.indexes[0], &row, &own, &mut key, &mut value).expect("any length");
                assert!(key.len() <= engine::rows::ROW_KEY_MAX);
                assert_eq!(row_key(&key, &value), own);
                let mut columns = encoded(&b, true);
                columns.extend(encoded(&a, false));
                let is_long = columns.len() > WHOLE_MAX || by_text && own.len() > WHOLE_MAX;
                assert_eq!(is_shortened(&table, &table.indexes[0], &key, &value), is_long);
                assert_eq!(&key[..columns_length(&key, &value)], shortened(columns));
                let is_bare = unique && !a.is_null() && !b.is_null();
                assert_eq!(value[0], u8::from(!is_bare));
            }
        }
    }
}

#[test]
fn an_entry_of_the_former_form_has_its_limit() {
    let mut table = table(false, false, vec![part(A, false)]);
    table.indexes[0].form = KeyForm::Whole;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut put = |length: usize| {
        let row = [Value::Int(7), text(length, b'x'), Value::Null];
        let done = entry(&table, &table.indexes[0], &row, &[0; 9], &mut key, &mut value);
        done.map(|()| is_shortened(&table, &table.indexes[0], &key, &value))
    };
    // As long as shortened ones, and whole.
    assert!(!put(SHORTENED).expect("it fits"));
    assert!(!put(768 - 9).expect("it fits"));
    assert!(matches!(put(768 - 8), Err(Fault::KeyTooLong { max: 768, .. })));
}

#[test]
fn a_prefix_is_cut_before_columns_are_shortened() {
    let cut = Part { prefix: Some(300), ..part(A, false) };
    let table = table(false, false, vec![cut]);
    let entry_of = |text: &[u8]| {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let row = [Value::Int(7), Value::bytes(text), Value::Null];
        entry(&table, &table.indexes[0], &row, &[0; 9], &mut key, &mut value).expect("any length");
        (key, value)
    };
    assert_eq!(entry_of(&[b'x'; 300]), entry_of(&[b'x'; 900]));
}
