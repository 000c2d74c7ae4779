//! Arbitrary SQL, to PostgreSQL's trees and back: parsing ends with trees or an error, and a tree's text is read as that tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syntax::postgres::tree::Statement;
use syntax::postgres::{Problem, parse_script};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let statements = match parse_script(&text, &|| false) {
        Ok(statements) => statements,
        Err(error) => {
            assert!(error.at <= error.end && error.end <= text.len());
            let _ = error.message(&text);
            return;
        }
    };
    for raw in statements {
        let printed = match &raw.statement {
            Statement::Select(query) => query.to_string(),
            Statement::Insert(insert) => insert.to_string(),
            Statement::Update(update) => update.to_string(),
            Statement::Delete(delete) => delete.to_string(),
            Statement::Merge(merge) => merge.to_string(),
            _ => continue,
        };
        let again = match parse_script(&printed, &|| false) {
            Ok(again) => again,
            // Printed expressions have more parentheses than the text that they were read from.
            Err(error) if error.problem == Problem::TooDeep => continue,
            Err(error) => panic!("{} of {printed}", error.message(&printed)),
        };
        assert!(again.len() == 1 && again[0].statement == raw.statement, "{printed}");
    }
});
