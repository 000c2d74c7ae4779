//! Caps on statements, decided in one pass over the text before the parser sees it.
//!
//! The parser, the binder, the planner, the executor and the destructors of their trees are recursive, so what a text may nest is what a worker's stack bears. The pass knows no grammar. It splits the text
//! into words, literals and signs and counts what makes trees deep: open brackets and CASE, operators in front of an operand, tokens of one operand chain, terms of one AND/OR chain, query blocks within query
//! blocks, joins, set operations. Each count is an upper bound of the depth it stands for: a construct that this file has never heard of still consists of tokens.
//!
//! docs/protocols/mysql.md has the table of these limits; a test compares it with the constants.

use crate::error::{self, Result};
use crate::parse::lexical::skip;
use crate::scalar::SqlMode;

/// Open brackets, CASE ... END and operators in front of an operand, all within each other.
pub const NESTING_MAX: usize = 120;
/// Query blocks within query blocks: as MySQL.
pub const BLOCKS_MAX: usize = 63;
/// Tokens of an operand chain: between commas, AND, OR, brackets and clauses.
pub const CHAIN_TOKENS_MAX: usize = 10_000;
/// AND, OR, XOR, `||` and `&&` between commas, brackets and clauses.
pub const TERMS_MAX: usize = 25_000;
/// NOT in front of operands of one term: they nest where comparisons follow.
pub const NOTS_MAX: usize = 100;
/// BETWEEN whose operand ends in another BETWEEN (`1 BETWEEN 0 AND 1 BETWEEN 0 AND 1`): each copies what is left of it.
pub const BETWEENS_MAX: usize = 50;
/// Tables of one FROM: as MySQL.
pub const TABLES_MAX: usize = 61;
/// UNION, INTERSECT and EXCEPT side by side.
pub const SETS_MAX: usize = 10_000;
/// Words, literals and signs of a statement that the parser reads at once.
pub const TOKENS_MAX: usize = 2_000_000;

/// Counts within one pair of brackets, one CASE or the whole statement.
#[derive(Clone, Copy, Default)]
struct Level {
    is_case: bool,
    has_block: bool,
    /// Operators right here that wait for their operand.
    prefixes: usize,
    chain: usize,
    terms: usize,
    nots: usize,
    /// BETWEEN in a row, each with nothing but its own AND since the one before.
    betweens: usize,
    /// AND since the last BETWEEN; OR and its like count as several.
    ands: usize,
    joins: usize,
    sets: usize,
}

impl Level {
    fn begin_operand(&mut self) {
        (self.chain, self.nots) = (0, 0);
    }

    fn begin_clause(&mut self) {
        self.begin_operand();
        (self.terms, self.betweens, self.ands) = (0, 0, 0);
    }
}

struct Scan {
    levels: Vec<Level>,
    /// Levels and their prefixes.
    nesting: usize,
    blocks: usize,
    tokens: usize,
    /// The deepest nesting and the longest chain so far.
    deepest: usize,
    longest: usize,
}

/// Refuses a text that is too deep, too long or of too many tables. Returns about how many bytes of stack its tree takes, for `stdx::stack::expect`. `text` has its version comments opened.
pub fn check(text: &str, mode: SqlMode) -> Result<usize> {
    /// Of the parser's frames for one level, and of a destructor's for one link of a chain.
    const LEVEL_BYTES: usize = 32 << 10;
    const LINK_BYTES: usize = 400;
    // Shorter texts can exceed nothing.
    if text.len() <= NESTING_MAX.min(BLOCKS_MAX) {
        return Ok(0);
    }
    let (bytes, escapes) = (text.as_bytes(), !mode.has(SqlMode::NO_BACKSLASH_ESCAPES));
    let mut scan = Scan { levels: vec![Level::default()], nesting: 0, blocks: 0, tokens: 0, deepest: 0, longest: 0 };
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let word = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        if word > 0 {
            scan.word(&bytes[at..at + word])?;
            at += word;
            continue;
        }
        let end = skip(bytes, at, escapes).min(bytes.len());
        match byte {
            b'#' => {}
            b'/' | b'-' if end > at + 1 => {}
            b'\'' | b'"' | b'`' => scan.operand()?,
            b'|' | b'&' if bytes.get(at + 1) == Some(&byte) => {
                scan.term()?;
                at += 1;
            }
            sign => scan.sign(sign)?,
        }
        at = end.max(at + 1);
    }
    Ok(scan.deepest * LEVEL_BYTES + scan.longest * LINK_BYTES)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | 0x80..)
}

impl Scan {
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or_else(|| unreachable!("the statement's own level is never closed"))
    }

    fn token(&mut self) -> Result<()> {
        self.tokens += 1;
        if self.tokens > TOKENS_MAX {
            return Err(error::TOO_MANY_TOKENS.with(&[&TOKENS_MAX]));
        }
        let level = self.level();
        level.chain += 1;
        let length = level.chain + level.terms + level.sets;
        self.longest = self.longest.max(length);
        if self.level().chain > CHAIN_TOKENS_MAX {
            return Err(too_deep(format!("an operand chain of more than {CHAIN_TOKENS_MAX} tokens")));
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<()> {
        self.nesting += 1;
        self.deepest = self.deepest.max(self.nesting);
        if self.nesting > NESTING_MAX {
            return Err(too_deep(format!(
                "brackets, CASE and prefix operators nested deeper than {NESTING_MAX} levels"
            )));
        }
        Ok(())
    }

    fn open(&mut self, is_case: bool) -> Result<()> {
        self.deeper()?;
        self.levels.push(Level { is_case, ..Level::default() });
        Ok(())
    }

    fn close(&mut self) {
        if self.levels.len() > 1 {
            let closed = self.levels.pop().unwrap_or_default();
            self.nesting -= 1 + closed.prefixes;
            self.blocks -= usize::from(closed.has_block);
        }
        self.end_operand();
    }

    /// An operand has come: what stood in front of it waits no longer.
    fn end_operand(&mut self) {
        self.nesting -= std::mem::take(&mut self.level().prefixes);
    }

    fn operand(&mut self) -> Result<()> {
        self.token()?;
        self.end_operand();
        Ok(())
    }

    fn prefix(&mut self) -> Result<()> {
        self.token()?;
        self.level().prefixes += 1;
        self.deeper()
    }

    fn term(&mut self) -> Result<()> {
        self.end_operand();
        let level = self.level();
        level.begin_operand();
        level.terms += 1;
        if level.terms > TERMS_MAX {
            return Err(too_deep(format!("a condition of more than {TERMS_MAX} terms")));
        }
        self.token()
    }

    fn clause(&mut self) -> Result<()> {
        self.end_operand();
        self.level().begin_clause();
        self.token()
    }

    fn sign(&mut self, sign: u8) -> Result<()> {
        match sign {
            b'(' | b'[' | b'{' => {
                self.token()?;
                self.open(false)
            }
            b')' | b']' | b'}' => {
                // A bracket ends whatever CASE is still open within.
                while self.levels.len() > 1 && self.level().is_case {
                    self.close();
                }
                self.close();
                self.token()
            }
            b',' | b';' => self.clause(),
            b'+' | b'-' | b'~' | b'!' => self.prefix(),
            _ => self.token(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<()> {
        const LONGEST: usize = 13;
        let mut lower = [0; LONGEST];
        if word.len() > LONGEST {
            return self.operand();
        }
        let lower = &mut lower[..word.len()];
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        match &*lower {
            b"select" => self.block(),
            b"and" => {
                self.level().ands += 1;
                self.term()
            }
            b"or" | b"xor" => {
                self.level().ands += 2;
                self.term()
            }
            b"between" => {
                let level = self.level();
                level.betweens = if level.ands <= 1 { level.betweens + 1 } else { 1 };
                level.ands = 0;
                if level.betweens > BETWEENS_MAX {
                    return Err(too_deep(format!("more than {BETWEENS_MAX} BETWEEN, each the operand of the next")));
                }
                self.operand()
            }
            b"where" | b"having" | b"on" | b"when" | b"then" | b"else" => self.clause(),
            b"case" => {
                self.token()?;
                self.open(true)
            }
            b"end" => {
                if self.level().is_case {
                    self.close();
                }
                self.token()
            }
            b"not" => {
                let level = self.level();
                level.nots += 1;
                if level.nots > NOTS_MAX {
                    return Err(too_deep(format!("more than {NOTS_MAX} NOT in one term")));
                }
                self.prefix()
            }
            b"binary" | b"interval" | b"explain" | b"describe" | b"desc" | b"analyze" => self.prefix(),
            b"join" | b"straight_join" => {
                let level = self.level();
                level.joins += 1;
                if level.joins > TABLES_MAX {
                    return Err(error::TOO_MANY_TABLES.with(&[&TABLES_MAX]));
                }
                self.clause()
            }
            b"union" | b"intersect" | b"except" => {
                let level = self.level();
                level.sets += 1;
                level.joins = 0;
                if level.sets > SETS_MAX {
                    return Err(too_deep(format!("more than {SETS_MAX} set operations side by side")));
                }
                self.clause()
            }
            _ => self.operand(),
        }
    }

    fn block(&mut self) -> Result<()> {
        let level = self.level();
        level.joins = 0;
        if !std::mem::replace(&mut level.has_block, true) {
            self.blocks += 1;
            if self.blocks > BLOCKS_MAX {
                return Err(error::TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.with(&[&BLOCKS_MAX]));
            }
        }
        self.clause()
    }
}

fn too_deep(what: String) -> error::SqlError {
    error::STACK_OVERRUN.with(&[&what])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> u16 {
        check(text, SqlMode::DEFAULT).map_or_else(|error| error.code, |_| 0)
    }

    fn nested(count: usize, open: &str, inner: &str, close: &str) -> String {
        format!("select {}{inner}{}", open.repeat(count), close.repeat(count))
    }

    #[test]
    fn every_kind_of_nesting_ends_at_its_limit() {
        let kinds = [
            ("(", ")"),
            ("abs(", ")"),
            ("case when 1 then ", " end"),
            ("- ", ""),
            ("~", ""),
            ("not ", ""),
            ("!", ""),
            ("binary ", ""),
            ("-(", ")"),
            ("[", "]"),
        ];
        for (open, close) in kinds {
            assert_eq!(code(&nested(50, open, "1", close)), 0, "{open}");
            for count in [NESTING_MAX + 1, 100_000] {
                assert_eq!(code(&nested(count, open, "1", close)), 1436, "{open} {count}");
                assert_eq!(code(&nested(count, open, "", "")), 1436, "{open} {count} alone");
            }
        }
        assert_eq!(code(&nested(NESTING_MAX - 1, "(", "1", ")")), 0);
        assert_eq!(code(&nested(BLOCKS_MAX - 1, "(select ", "1", ")")), 0);
        assert_eq!(code(&nested(BLOCKS_MAX, "(select ", "1", ")")), 1473);
        assert_eq!(code(&nested(1_000, "explain ", "1", "")), 1436);
    }

    #[test]
    fn chains_end_at_their_limits() {
        for (link, max) in
            [("+1", 5_000), (" is null", 5_000), ("->'$.a'", 3_300), ("::int", 3_000), (" isnull", 9_000)]
        {
            assert_eq!(code(&format!("select 1{}", link.repeat(max - 100))), 0, "{link}");
            assert_eq!(code(&format!("select 1{}", link.repeat(2 * max))), 1436, "{link}");
        }
        let between = " between 0 and 1";
        assert_eq!(code(&format!("select 1{}", between.repeat(BETWEENS_MAX))), 0);
        assert_eq!(code(&format!("select 1{}", between.repeat(BETWEENS_MAX + 1))), 1436);
        assert_eq!(code(&format!("select 1{}", " or a between 1 and 2".repeat(8_000))), 0);
        for link in [" or 1", "||1", "&&1", " and 1=1", " xor 1", " and a between 1 and 2"] {
            assert_eq!(code(&format!("select 1{}", link.repeat(12_000))), 0, "{link}");
            assert_eq!(code(&format!("select 1{}", link.repeat(26_000))), 1436, "{link}");
        }
        assert_eq!(code(&format!("select 1{}", " or 1".repeat(20_000))), 0);
        assert_eq!(code(&format!("select 1{}", " = not 1".repeat(200))), 1436);
        assert_eq!(code(&format!("select 1{}", " = -1".repeat(2000))), 0);
        assert_eq!(code(&format!("select 1{}", " union select 1".repeat(9_999))), 0);
        assert_eq!(code(&format!("select 1{}", " union select 1".repeat(10_001))), 1436);
        assert_eq!(code(&format!("select 1 from t{}", " join t on 1".repeat(60))), 0);
        assert_eq!(code(&format!("select 1 from t{}", " join t on 1".repeat(62))), 1116);
        let blocks = "select 1 from t join t union ".repeat(100);
        assert_eq!(code(&format!("{blocks} select 1")), 0);
    }

    #[test]
    fn lists_are_long() {
        for (head, item) in [("select 1", ",1"), ("insert into t values (1)", ",(1+1)"), ("select 1 in (1", ",-1")] {
            assert_eq!(code(&format!("{head}{}", item.repeat(200_000))), 0, "{head}");
        }
        let arms = "when 1 then 2 ".repeat(100_000);
        assert_eq!(code(&format!("select case {arms} end")), 0);
        assert_eq!(code(&format!("select 1{}", ",1".repeat(TOKENS_MAX))), 3170);
    }

    #[test]
    fn what_stands_in_quotes_and_comments_is_one_token_or_none() {
        let many = "(".repeat(1000);
        for text in [
            format!("select '{many}'"),
            format!("select \"{many}\" -- {many}\n"),
            format!("select /* {many} */ 1 # {many}"),
        ] {
            assert_eq!(code(&text), 0, "{text}");
        }
        assert_eq!(code(&format!("select '{}'", "\\'(".repeat(1000))), 0);
    }

    #[test]
    fn brackets_that_do_not_fit_are_left_to_the_parser() {
        let ends = ") end ] } case ) end when ".repeat(1000);
        assert_eq!(code(&format!("select {ends}")), 0);
        let ends = "- ) - ) (-( -) ".repeat(20);
        assert_eq!(code(&format!("select {ends}")), 0);
    }

    #[test]
    fn the_documents_tell_the_limits() {
        let page = include_str!("../../../../docs/protocols/mysql.md");
        let page = page.split("### Limits of a statement").nth(1).expect("the chapter");
        let limits = [
            NESTING_MAX,
            BLOCKS_MAX,
            NOTS_MAX,
            BETWEENS_MAX,
            TABLES_MAX,
            CHAIN_TOKENS_MAX,
            TERMS_MAX,
            SETS_MAX,
            TOKENS_MAX,
        ];
        let rows = limits.map(|limit| {
            let digits = limit.to_string();
            let mut shown = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    shown.push(',');
                }
                shown.push(digit);
            }
            format!("| {shown} |")
        });
        for row in rows {
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_pass_is_quick() {
        let texts = [nested(1_000_000, "(", "1", ""), format!("select 1{}", ", 1 + -2 and (3)".repeat(60_000))];
        for text in texts {
            let begun = std::time::Instant::now();
            let _ = check(&text, SqlMode::DEFAULT);
            assert!(begun.elapsed().as_millis() < 1000);
        }
    }
}
