//! COPY TO: the fields of a row as text or csv.

use crate::copy::options::CopyOptions;

/// Appends a value of the text format, with escapes.
pub fn text_field(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for byte in value {
        let escaped = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            byte if *byte == delimiter => *byte,
            byte => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escaped]);
    }
}

/// Appends a value of the csv format, in quotes where it must be. `is_only` if the row has no other column.
pub fn csv_field(value: &[u8], options: &CopyOptions, force_quote: bool, is_only: bool, out: &mut Vec<u8>) {
    let CopyOptions { delimiter, quote, escape, null, .. } = options;
    let needs = |byte: &u8| byte == delimiter || byte == quote || matches!(byte, b'\n' | b'\r');
    let is_marked = value == null.as_bytes() || (is_only && value == b"\\.");
    if !force_quote && !is_marked && !value.iter().any(needs) {
        out.extend_from_slice(value);
        return;
    }
    out.push(*quote);
    for byte in value {
        if byte == quote || byte == escape {
            out.push(*escape);
        }
        out.push(*byte);
    }
    out.push(*quote);
}
