//! Glob patterns of KEYS, SCAN MATCH, CONFIG GET and ACL keys, matched as Redis does.
//!
//! `*` matches any run, `?` any one byte, `[abc]` `[a-z]` `[^x]` one byte of a class; `\` makes the next byte literal. The corner cases are Redis': an unclosed
//! class ends with the pattern, the ends of a range are compared as signed bytes, and an empty text matches only an empty pattern (callers handle a single `*`
//! before). Remembering one star is enough: whatever an earlier star could still try, the later one tries on a longer rest. So matching takes at most pattern x
//! text steps and no stack.

/// Returns whether the whole of `text` matches `pattern`.
pub fn matches(pattern: &[u8], text: &[u8], fold_case: bool) -> bool {
    let mut p = 0;
    let mut t = 0;
    // Where to continue when the part after the latest star fails: in the pattern after the star, in the text one byte further.
    let mut star: Option<(usize, usize)> = None;
    if text.is_empty() {
        return pattern.is_empty();
    }
    loop {
        if t == text.len() {
            // Stars at the end of the pattern match the empty rest.
            while p < pattern.len() && pattern[p] == b'*' {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            // At the end of the text, a retry of a star would leave the same pattern unmatched, or fewer bytes for it.
        } else if p < pattern.len() {
            if pattern[p] == b'*' {
                while p < pattern.len() && pattern[p] == b'*' {
                    p += 1;
                }
                if p == pattern.len() {
                    return true;
                }
                star = Some((p, t));
                continue;
            }
            if let Some(next) = match_one(pattern, p, text[t], fold_case) {
                p = next;
                t += 1;
                continue;
            }
        }
        match star {
            Some((after, from)) if from + 1 < text.len() => {
                star = Some((after, from + 1));
                p = after;
                t = from + 1;
            }
            _ => return false,
        }
    }
}

/// Matches one byte of text against the pattern element at `p`, which is not a star. Returns the start of the next element.
fn match_one(pattern: &[u8], p: usize, byte: u8, fold_case: bool) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => match_class(pattern, p + 1, byte, fold_case),
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte, fold_case).then_some(p + 2),
        literal => same(literal, byte, fold_case).then_some(p + 1),
    }
}

/// Matches a class. `p` is the first byte after the bracket.
fn match_class(pattern: &[u8], mut p: usize, byte: u8, fold_case: bool) -> Option<usize> {
    let inverted = pattern.get(p) == Some(&b'^');
    if inverted {
        p += 1;
    }
    let mut found = false;
    loop {
        let rest = &pattern[p.min(pattern.len())..];
        match rest {
            [] => break,
            [b'\\', literal, ..] => {
                // Redis compares an escaped byte exactly, even where case is ignored elsewhere.
                found |= *literal == byte;
                p += 2;
            }
            [b']', ..] => {
                p += 1;
                break;
            }
            [from, b'-', to, ..] => {
                found |= in_range(*from, *to, byte, fold_case);
                p += 3;
            }
            [literal, ..] => {
                found |= same(*literal, byte, fold_case);
                p += 1;
            }
        }
    }
    (found != inverted).then_some(p)
}

fn in_range(from: u8, to: u8, byte: u8, fold_case: bool) -> bool {
    let (mut low, mut high, mut value) = (from as i8, to as i8, byte as i8);
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    if fold_case {
        low = (low as u8).to_ascii_lowercase() as i8;
        high = (high as u8).to_ascii_lowercase() as i8;
        value = (value as u8).to_ascii_lowercase() as i8;
    }
    low <= value && value <= high
}

fn same(a: u8, b: u8, fold_case: bool) -> bool {
    if fold_case { a.eq_ignore_ascii_case(&b) } else { a == b }
}

#[cfg(test)]
mod tests;
