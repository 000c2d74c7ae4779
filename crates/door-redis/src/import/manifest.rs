//! The manifest of a multi-part append-only file: which files it has, in their order.
//!
//! ```text
//!   file appendonly.aof.1.base.rdb seq 1 type b      the base; at most one
//!   file appendonly.aof.1.incr.aof seq 1 type i      commands behind it; numbers ascend
//!   file appendonly.aof.0.incr.aof seq 0 type h      history, which is over
//! ```

use crate::import::outcome::ImportError;
use crate::parser::words;

/// Returns the names of the files, the base first.
pub fn read_manifest(text: &[u8]) -> Result<Vec<String>, ImportError> {
    let (mut base, mut others, mut last) = (None, Vec::new(), 0);
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let bad = |what: &str| ImportError::File(format!("line {} of the manifest: {what}", at + 1));
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let words = words(line).ok_or_else(|| bad("a quote is not closed"))?;
        let value = |name: &str| {
            let pair = words.chunks_exact(2).find(|pair| pair[0].eq_ignore_ascii_case(name.as_bytes()));
            let text = pair.and_then(|pair| String::from_utf8(pair[1].clone()).ok());
            text.ok_or_else(|| bad(&format!("'{name}' is missing")))
        };
        let (name, kind) = (value("file")?, value("type")?);
        let number: u64 = value("seq")?.parse().map_err(|_| bad("'seq' is no number"))?;
        if name.contains('/') || name == ".." {
            return Err(bad("a file is named by a path"));
        }
        match kind.as_str() {
            "b" if base.is_none() => base = Some(name),
            "b" => return Err(bad("a second base")),
            "i" if number > last => {
                last = number;
                others.push(name);
            }
            "i" => return Err(bad("numbers do not ascend")),
            "h" => {}
            _ => return Err(bad("an unknown type of file")),
        }
    }
    let names: Vec<String> = base.into_iter().chain(others).collect();
    if names.is_empty() { Err(ImportError::File("the manifest names no file".into())) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    use super::read_manifest;

    #[test]
    fn a_manifest_names_the_base_and_then_the_rest_in_order() {
        let text = b"file a.2.incr.aof seq 2 type i\n# note\nfile \"a b.rdb\" seq 1 type b\r\nfile old seq 1 type h\nfile a.3.incr.aof seq 3 type i\n";
        assert_eq!(read_manifest(text).unwrap(), ["a b.rdb", "a.2.incr.aof", "a.3.incr.aof"]);
        for bad in [
            &b""[..],
            b"file a seq 1",
            b"file a seq x type b",
            b"file ../a seq 1 type b",
            b"file a seq 1 type b\nfile b seq 2 type b",
            b"file a seq 2 type i\nfile b seq 2 type i",
            b"file \"a seq 2 type i",
            b"file a seq 1 type z",
        ] {
            assert!(read_manifest(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
