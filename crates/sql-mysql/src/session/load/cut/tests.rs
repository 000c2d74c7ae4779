use super::*;

fn csv() -> Format {
    Format { field_end: b",".to_vec(), enclosed: Some(b'"'), ..Format::default() }
}

/// All records as text, NULL as `~`; a mark where something was cut off. In pieces of that size.
fn all(format: &Format, count: usize, skip: u64, bytes: &[u8], piece: usize) -> String {
    let cutter = Cutter::new(format.clone(), count, None, skip);
    drained(cutter, count, bytes, piece)
}

fn drained(mut cutter: Cutter, count: usize, bytes: &[u8], piece: usize) -> String {
    let (mut pieces, mut out) = (bytes.chunks(piece), String::new());
    loop {
        match cutter.next() {
            Cut::End => return out,
            Cut::More => match pieces.next() {
                Some(piece) => cutter.add(piece),
                None => cutter.end(),
            },
            Cut::Record(more) => {
                let fields = (0..count)
                    .map_while(|nth| cutter.field(nth))
                    .map(|field| field.map_or("~".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned()));
                out += &fields.collect::<Vec<_>>().join("|");
                out += if more { "|...;" } else { ";" };
            }
        }
    }
}

/// However the bytes are cut into pieces.
fn check(format: &Format, count: usize, skip: u64, bytes: &str, expected: &str) {
    for piece in [1, 2, 3, 7, 1000] {
        assert_eq!(all(format, count, skip, bytes.as_bytes(), piece), expected, "{bytes:?} in pieces of {piece}");
    }
}

#[test]
fn tabs_and_escapes() {
    let plain = Format::default();
    check(&plain, 2, 0, "1\ta\n2\tb\n", "1|a;2|b;");
    check(&plain, 2, 0, "1\ta\n2\tb", "1|a;2|b;");
    check(&plain, 2, 0, "\\N\ta\\tb\\\\\n\\Nx\tN\n", "~|a\tb\\;Nx|N;");
    check(&plain, 2, 0, "1\n\n1\t2\t3\n1\t2\t\n", "1;;1|2|...;1|2;");
    check(&plain, 3, 0, "1\t2\t", "1|2;");
    check(&plain, 2, 0, "1\ta\\\nb\n", "1|a\nb;");
    check(&plain, 2, 2, "head\nh\\\nx\n1\t2\n", "1|2;");
    check(&plain, 2, 5, "a\nb\n", "");
    check(&plain, 2, 0, "", "");
}

#[test]
fn quotes() {
    check(&csv(), 2, 0, "\"a,b\",\"c\"\"d\"\n", "a,b|c\"d;");
    check(&csv(), 2, 0, "NULL,\"NULL\"\n\\N,\"\\N\"\n", "~|NULL;~|~;");
    check(&csv(), 2, 0, "\"a\"b\",c\n", "a\"b|c;");
    check(&csv(), 2, 0, "\"a\nb\",2\nx\"y,z\n", "a\nb|2;x\"y|z;");
    check(&csv(), 1, 0, "\"open", "\"open;");
    let doubled = Format { escape: Some(b'"'), ..csv() };
    check(&doubled, 2, 0, "\"fie\"\"ld1\",\"\\n\"\n", "fie\"ld1|\\n;");
    let bare = Format { escape: None, ..csv() };
    check(&bare, 2, 0, "\\N,a\\\n", "\\N|a\\;");
}

#[test]
fn long_separators_and_starts_of_lines() {
    let long = Format {
        field_end: b"||".to_vec(),
        line_start: b"xxx".to_vec(),
        line_end: b"\r\n".to_vec(),
        ..Format::default()
    };
    check(&long, 2, 0, "xxxa|b||c\r\nno\r\nyyxxxxd||e\rf\r\n", "a|b|c;xd|e\rf;");
    let same = Format { field_end: b",".to_vec(), line_end: b",".to_vec(), ..Format::default() };
    check(&same, 2, 1, "a,b,c,d,e,f", "a|b;c|d;e|f;");
    let one_line = Format { line_end: Vec::new(), ..Format::default() };
    check(&one_line, 2, 0, "a\tb\tc\td", "a|b;c|d;");
}

#[test]
fn fields_of_a_width_each() {
    let fixed = |line_end: &[u8]| Format { field_end: Vec::new(), line_end: line_end.to_vec(), ..Format::default() };
    let check = |format: &Format, widths: &[usize], skip: u64, bytes: &str, expected: &str| {
        for piece in [1, 2, 3, 7, 1000] {
            let cutter = Cutter::new(format.clone(), widths.len(), Some(widths.to_vec()), skip);
            let found = drained(cutter, widths.len(), bytes.as_bytes(), piece);
            assert_eq!(found, expected, "{bytes:?} in pieces of {piece}");
        }
    };
    let (lines, bare) = (fixed(b"\n"), fixed(b""));
    check(&lines, &[3, 2], 0, "1  ab\n22 d\n\n333\n", "1  |ab;22 |d;;333;");
    check(&lines, &[3, 2], 0, "1  abmore\n2  cd\n", "1  |ab|...;2  |cd;");
    check(&lines, &[3, 2], 1, "head\n2  cd", "2  |cd;");
    check(&lines, &[3, 2], 0, "a\\nb\\Nx\n\\", "a\nb|Nx;\\;");
    check(&bare, &[3, 2], 0, "1  ab2\n cde", "1  |ab;2\n |cd;e;");
    check(&bare, &[3, 2], 1, "1  ab2  cd", "2  |cd;");
    check(&bare, &[0], 0, "ab", ";;");
    check(&Format { line_start: b">".to_vec(), ..fixed(b";") }, &[2], 0, "x>ab;y>cde;>", "ab;cd|...;");
    check(&lines, &[3], 0, "", "");
}
