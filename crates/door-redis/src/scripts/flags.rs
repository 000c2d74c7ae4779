//! The first line of a script or a library: `#!lua flags=no-writes,allow-oom`.

use redis_lua::FLAGS;

/// Flags of a script or a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags {
    pub no_writes: bool,
}

impl ScriptFlags {
    /// Returns the flags by their names. Those about memory, replicas and clusters allow what is allowed here anyway.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> ScriptFlags {
        let mut flags = ScriptFlags::default();
        names.for_each(|name| flags.no_writes |= name == "no-writes");
        flags
    }
}

/// Returns the flags of a script, if its first line has any, and where its code begins. The error is a reply.
pub fn read(text: &[u8]) -> Result<(Option<ScriptFlags>, usize), String> {
    if !text.starts_with(b"#!") {
        return Ok((None, 0));
    }
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return Err("ERR Invalid script shebang".to_owned());
    };
    let line = String::from_utf8_lossy(&text[..end]).into_owned();
    let mut words = line.split([' ', '\t', '\r', '\x0b', '\x0c']).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    let mut flags = ScriptFlags::default();
    for word in words {
        let Some(list) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}"));
        };
        let names: Vec<&str> = list.split(',').filter(|name| !list.is_empty() || !name.is_empty()).collect();
        if let Some(unknown) = names.iter().find(|name| !FLAGS.contains(name)) {
            return Err(format!("ERR Unexpected flag in script shebang: {unknown}"));
        }
        flags.no_writes |= ScriptFlags::of(names.into_iter()).no_writes;
    }
    Ok((Some(flags), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_gives_flags_and_stays_a_line() {
        assert_eq!(read(b"return 1"), Ok((None, 0)));
        let flags = ScriptFlags { no_writes: true };
        assert_eq!(read(b"#!lua flags=allow-oom,no-writes\nreturn 1"), Ok((Some(flags), 31)));
        assert_eq!(read(b"#!lua flags=\nx"), Ok((Some(ScriptFlags::default()), 12)));
        assert!(read(b"#!lua").is_err());
        assert!(read(b"#!lua flags=x\n").is_err());
    }
}
