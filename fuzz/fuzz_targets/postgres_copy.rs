//! The data of COPY FROM in each format: records and fields, or an error, that do not depend on how the data is cut; and what COPY TO writes of them is read as the same fields.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sql_postgres::copy::input::{FieldValue, Next, RecordReader};
use sql_postgres::copy::{CopyFormat, CopyOptions, output};
use syntax::postgres::parse_script;
use syntax::postgres::tree::Statement;

const OPTIONS: &[&str] = &[
    "",
    "(delimiter ',', null '')",
    "(header)",
    "(format csv)",
    "(format csv, quote '''', escape '\\', delimiter ';', null 'x')",
    "(format csv, header match, force_null (b))",
    "(format csv, quote '\"', escape '\"', delimiter E'\\t')",
    "(format binary)",
];

fn options() -> &'static [CopyOptions] {
    static READ: OnceLock<Vec<CopyOptions>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |text: &&str| {
            let text = format!("copy t (a, b) from stdin {text}");
            let statements = parse_script(&text, &|| false).expect("the statement is right");
            let Statement::Copy(copy) = &statements[0].statement else { panic!("no COPY") };
            CopyOptions::read(&copy.options, true, &text).expect("the options are right")
        };
        OPTIONS.iter().map(read).collect()
    })
}

type Record = Vec<Result<Option<Vec<u8>>, String>>;

/// Reads the data in pieces of this many bytes. Returns the records, and the error that ended them.
fn read(options: &CopyOptions, data: &[u8], piece: usize) -> (Vec<Record>, Option<String>) {
    let mut reader = RecordReader::new(options.clone(), vec!["a".to_owned(), "b".to_owned()]);
    let mut records = Vec::new();
    let mut pieces = data.chunks(piece);
    loop {
        match reader.next_record() {
            Err(error) => return (records, Some(format!("{} {}", error.state, error.message))),
            Ok(Next::End) => return (records, None),
            Ok(Next::Header) => {}
            Ok(Next::More) => match pieces.next() {
                Some(piece) => reader.add(piece),
                None => reader.complete(),
            },
            Ok(Next::Record) => {
                let field = |nth| match reader.field(nth) {
                    Ok(FieldValue::Bytes(bytes)) => Ok(Some(bytes.to_vec())),
                    Ok(FieldValue::Null | FieldValue::Default) => Ok(None),
                    Err(error) => Err(error.message),
                };
                records.push((0..2).map(field).collect());
                let _ = reader.shown();
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    let options = &options()[usize::from(*choice) % OPTIONS.len()];
    let whole = read(options, data, usize::MAX);
    assert_eq!(whole, read(options, data, 1));
    assert_eq!(whole, read(options, data, 1 + usize::from(*choice) / OPTIONS.len()));
    if options.format == CopyFormat::Binary || OPTIONS[usize::from(*choice) % OPTIONS.len()].contains("header") {
        return;
    }
    for record in whole.0 {
        let [Ok(a), Ok(b)] = &record[..] else { continue };
        // Fields are texts: the reader of their values refuses bytes that are none.
        if [a, b].into_iter().flatten().any(|value| std::str::from_utf8(value).is_err()) {
            continue;
        }
        let mut line = Vec::new();
        for (nth, value) in [a, b].into_iter().enumerate() {
            if nth > 0 {
                line.push(options.delimiter);
            }
            match value {
                None => line.extend_from_slice(options.null.as_bytes()),
                Some(value) if options.format == CopyFormat::Text => output::text_field(value, options.delimiter, &mut line),
                Some(value) => output::csv_field(value, options, false, false, &mut line),
            }
        }
        line.push(b'\n');
        assert_eq!(read(options, &line, usize::MAX), (vec![record], None), "{}", String::from_utf8_lossy(&line));
    }
});
