//! The text of an expression in a statement: what definitions keep of defaults and checks.
//!
//! The location of an expression leaves the parentheses around its parts out, so the text is found between a keyword or parenthesis before it and its end, with as many closing parentheses as it opens.

/// The bytes of quoted parts and comments at a position: (their end), or `None` for a plain byte.
pub(super) fn quoted_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let closing = |quote: u8, escapes: bool| {
        let mut end = at + 1;
        while end < bytes.len() {
            if escapes && bytes[end] == b'\\' {
                end += 2;
                continue;
            }
            if bytes[end] == quote {
                if bytes.get(end + 1) == Some(&quote) {
                    end += 2;
                    continue;
                }
                return end + 1;
            }
            end += 1;
        }
        bytes.len()
    };
    match bytes[at] {
        b'\'' => Some(closing(b'\'', at > 0 && matches!(bytes[at - 1], b'e' | b'E'))),
        b'"' => Some(closing(b'"', false)),
        b'-' if bytes.get(at + 1) == Some(&b'-') => {
            Some(text[at..].find('\n').map_or(bytes.len(), |length| at + length + 1))
        }
        b'/' if bytes.get(at + 1) == Some(&b'*') => {
            Some(text[at..].find("*/").map_or(bytes.len(), |length| at + length + 2))
        }
        b'$' => {
            let tag_end = at + 1 + text[at + 1..].find('$')?;
            let tag = &text[at..=tag_end];
            let is_tag = tag[1..tag.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_tag {
                return None;
            }
            let body = tag_end + 1;
            Some(text[body..].find(tag).map_or(bytes.len(), |length| body + length + tag.len()))
        }
        _ => None,
    }
}

/// Returns the text within the first parentheses after a position.
pub fn within_parentheses(text: &str, from: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut start) = (from, 0usize, None);
    while at < bytes.len() {
        if let Some(end) = quoted_end(text, at) {
            at = end;
            continue;
        }
        match bytes[at] {
            b'(' => {
                depth += 1;
                start.get_or_insert(at + 1);
            }
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.get(start?..at).map(str::trim);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the text from a position to the end of an expression, with the parentheses that it opens closed.
pub fn balanced(text: &str, from: usize, end: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (from, 0usize);
    while at < bytes.len() && (at < end || depth > 0) {
        if let Some(next) = quoted_end(text, at) {
            at = next;
            continue;
        }
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    text.get(from..at).map(str::trim)
}

/// Returns the text after the word, which is at or after the position.
pub fn after_word(text: &str, from: usize, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if let Some(end) = quoted_end(text, at) {
            at = end;
            continue;
        }
        if text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)) {
            return Some(at + word.len());
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_has_the_parentheses_that_it_opens() {
        let text = "create table t (a int default (1 + 2) * 3, check ((a > ')'::int) or true))";
        let from = after_word(text, 0, "default").unwrap();
        assert_eq!(balanced(text, from, text.find(" 3,").unwrap() + 2), Some("(1 + 2) * 3"));
        let check = text.find("check").unwrap();
        assert_eq!(within_parentheses(text, check), Some("(a > ')'::int) or true"));
        let text = "default ((5)), b";
        assert_eq!(balanced(text, 7, text.find('5').unwrap() + 1), Some("((5))"));
    }

    #[test]
    fn parentheses_in_quotes_and_comments_do_not_count() {
        let text = "check (a <> E'\\')' /* ) */ and b <> $x$)$x$ and \")\" is null)";
        assert_eq!(within_parentheses(text, 0), Some(&text[7..text.len() - 1]));
    }
}
