//! Values of every type from a client's text and from its binary parameters: a value or an error; the text and the binary form of a value are read as that value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sql_postgres::types::io::{IoContext, input, output, receive, send};
use sql_postgres::types::registry::{TYPES, TypeKind, column_type};
use sql_postgres::value::Value;

fuzz_target!(|data: &[u8]| {
    let [which, modifier, data @ ..] = data else { return };
    let types = TYPES.iter().filter(|row| row.kind == TypeKind::Base);
    let Some(row) = types.clone().nth(usize::from(which >> 1) % types.count()) else { return };
    let io = IoContext::default();
    // A modifier cuts values, so their forms are read without one.
    let (plain, ty) = (column_type(row.oid, -1, true), column_type(row.oid, i32::from(*modifier as i8), true));
    let is_binary = which & 1 == 1;
    let read = |ty| match (is_binary, std::str::from_utf8(data)) {
        (true, _) => receive(ty, data, &io),
        (false, Ok(text)) if !text.contains('\0') => input(ty, text, &io),
        (false, _) => Ok(Value::Null),
    };
    let _ = read(&ty);
    let Ok(value) = read(&plain) else { return };
    if matches!(value, Value::Null) {
        return;
    }
    let (mut text, mut bytes) = (Vec::new(), Vec::new());
    if output(&value, &plain, &io, &mut text).is_ok() {
        let text = String::from_utf8(text).expect("texts are UTF-8");
        let again = match input(&plain, &text, &io) {
            Ok(again) => again,
            // `04:08z24:08` is the zone z and 24 hours: PostgreSQL also writes such a displacement, and does not read it.
            Err(error) if row.name == "timetz" && error.state == "22009" => return,
            Err(error) => panic!("{} {text}: {}", row.name, error.message),
        };
        let mut once_more = Vec::new();
        output(&again, &plain, &io, &mut once_more).expect("it has a form");
        assert_eq!(text.as_bytes(), once_more, "{}", row.name);
    }
    if send(&value, &plain, &io, &mut bytes).is_ok() {
        let again = receive(&plain, &bytes, &io);
        let again = again.unwrap_or_else(|error| panic!("{} {bytes:?}: {}", row.name, error.message));
        let mut once_more = Vec::new();
        send(&again, &plain, &io, &mut once_more).expect("it has a form");
        assert_eq!(bytes, once_more, "{}", row.name);
    }
});
