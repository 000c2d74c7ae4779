//! Printed trees: that they parse to themselves, and the style of expressions.

use syntax::postgres::tree::Statement;
use syntax::postgres::{parse_expression, parse_script, parse_type_name};

use super::corpus::cases;
use super::generate::Random;

const SEEDS: u64 = 20_000;

/// The text of a statement that has one.
pub(super) fn printed(statement: &Statement) -> Option<String> {
    match statement {
        Statement::Select(query) => Some(query.to_string()),
        Statement::Insert(insert) => Some(insert.to_string()),
        Statement::Update(update) => Some(update.to_string()),
        Statement::Delete(delete) => Some(delete.to_string()),
        Statement::Merge(merge) => Some(merge.to_string()),
        _ => None,
    }
}

/// Returns the difference between the statements and those that their printed text is read as.
fn problem_of(text: &str) -> Option<String> {
    for raw in parse_script(text, &|| false).ok()? {
        let Some(printed) = printed(&raw.statement) else { continue };
        match parse_script(&printed, &|| false) {
            Ok(again) if again.len() == 1 && again[0].statement == raw.statement => {}
            Ok(_) => return Some(format!("{text}\n  {printed}\n  is another tree")),
            Err(error) => return Some(format!("{text}\n  {printed}\n  {} at {}", error.message(&printed), error.at)),
        }
    }
    None
}

fn assert_none(mut problems: Vec<String>) {
    problems.sort_by_key(String::len);
    problems.dedup();
    let shown = problems.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "{} texts:\n{shown}", problems.len());
}

#[test]
fn printed_statements_of_the_corpus_parse_to_themselves() {
    assert_none(cases().iter().filter_map(|case| problem_of(&case.text)).collect());
}

#[test]
fn printed_random_statements_parse_to_themselves() {
    let texts: Vec<String> = (0..SEEDS).map(|seed| Random::new(seed).text('s', (seed % 6) as usize)).collect();
    if let Some(file) = std::env::var_os("SYNTAX_TEXTS") {
        let short: Vec<&str> = texts.iter().map(String::as_str).filter(|text| text.len() < 600).collect();
        std::fs::write(file, short.join("\n")).expect("a file for the texts");
    }
    assert_none(texts.iter().filter_map(|text| problem_of(text)).collect());
    let read = texts.iter().filter(|text| parse_script(text, &|| false).is_ok()).count();
    assert!(read > texts.len() / 2, "{read} of {} texts were read", texts.len());
}

#[test]
fn damaged_bytes_are_read_or_refused_at_a_place_of_the_text() {
    let mut random = Random::new(7);
    let pieces = [
        "\\",
        "'",
        "\"",
        "$",
        "E'",
        "U&'",
        "U&\"",
        "\\u",
        "\\x",
        "ä",
        "😀",
        "/*",
        "--",
        "0x",
        "\0",
        "\n",
        "(",
        ")",
        "[",
        "$a$",
        "uescape '!'",
        "1e",
        "b'",
    ];
    for case in cases() {
        for _ in 0..8 {
            let mut text: Vec<char> = case.text.chars().collect();
            let at = random.below(text.len() + 1);
            let piece = pieces[random.below(pieces.len())];
            text.splice(at..(at + random.below(3)).min(text.len()), piece.chars());
            let text: String = text.into_iter().collect();
            if let Err(error) = parse_script(&text, &|| false) {
                assert!(error.at <= error.end && error.end <= text.len(), "{text:?}: {error:?}");
                assert!(!error.message(&text).is_empty());
            }
        }
    }
}

#[test]
fn expressions_have_the_style_of_postgresql() {
    for (text, printed) in [
        ("a+1-b", "((a + 1) - b)"),
        ("a = 1 and b <> 'x' or not c", "(((a = 1) AND (b <> 'x')) OR (NOT c))"),
        ("a::int", "(a)::integer"),
        ("'1'::numeric(10,2)", "'1'::numeric(10, 2)"),
        ("-1::int", "(- 1::integer)"),
        ("(-1)::int", "(-1)::integer"),
        ("date '2020-01-01'", "'2020-01-01'::date"),
        ("A.\"B\".\"select\"", "a.\"B\".\"select\""),
        ("a in (1, 2) and b is not null", "((a IN (1, 2)) AND (b IS NOT NULL))"),
        ("case when a then 1 else 2 end", "CASE WHEN a THEN 1 ELSE 2 END"),
        ("a at time zone 'utc'", "(a AT TIME ZONE 'utc')"),
        ("extract(epoch from a)", "EXTRACT(epoch FROM a)"),
        ("trim(leading 'x' from a)", "TRIM(LEADING 'x' FROM a)"),
        (
            "count(*) filter (where a > 1) over (partition by b)",
            "count(*) FILTER (WHERE (a > 1)) OVER (PARTITION BY b)",
        ),
        ("a like 'x%' escape '\\'", "(a LIKE 'x%' ESCAPE E'\\\\')"),
        ("lower(a) collate \"C\"", "(lower(a) COLLATE \"C\")"),
        ("array[1,2][1]", "syntax error"),
        ("(array[1,2])[1]", "(ARRAY[1, 2])[1]"),
    ] {
        let found = match parse_expression(text) {
            Ok(expr) => expr.to_string(),
            Err(_) => "syntax error".to_owned(),
        };
        assert_eq!(found, printed, "{text}");
    }
}

#[test]
fn queries_have_the_style_of_postgresql() {
    for (text, printed) in [
        (
            "select a, b as c from t x left join s.u using (a) where a > 1 group by a having count(*) > 1 order by 1 desc nulls last limit 5 offset 2",
            "SELECT a, b AS c FROM t AS x LEFT JOIN s.u USING (a) WHERE (a > 1) GROUP BY a HAVING (count(*) > 1) ORDER BY 1 DESC NULLS LAST OFFSET 2 LIMIT 5",
        ),
        ("(select 1) union all (select 2 limit 1)", "SELECT 1 UNION ALL (SELECT 2 LIMIT 1)"),
        ("table t", "SELECT * FROM t"),
        ("with a as (delete from t returning *) select from a", "WITH a AS (DELETE FROM t RETURNING *) SELECT FROM a"),
    ] {
        let statements = parse_script(text, &|| false).expect(text);
        assert_eq!(super::print::printed(&statements[0].statement).as_deref(), Some(printed), "{text}");
    }
}

#[test]
fn types_have_the_spelling_of_sql() {
    for (text, printed) in [
        ("int4", "int4"),
        ("int", "integer"),
        ("pg_catalog.int4", "integer"),
        ("varchar(3)", "character varying(3)"),
        ("char", "character(1)"),
        ("timestamp(3) with time zone", "timestamp(3) with time zone"),
        ("timestamptz", "timestamptz"),
        ("float(3)", "real"),
        ("interval day to second(2)", "interval day to second(2)"),
        ("\"Odd\".t[]", "\"Odd\".t[]"),
    ] {
        let ty = parse_type_name(text).expect(text);
        assert_eq!(ty.to_string(), printed, "{text}");
        assert_eq!(parse_type_name(printed).expect(printed), ty, "{printed}");
    }
}

#[test]
fn statements_have_their_bytes_and_parameters() {
    let text = " select 1 ;; /* x */ insert into t values ($2, $1);  ";
    let statements = parse_script(text, &|| false).expect("a script");
    let found: Vec<_> = statements.iter().map(|raw| (&text[raw.start..raw.end], raw.parameters)).collect();
    assert_eq!(found, [("select 1", 0), ("insert into t values ($2, $1)", 2)]);
    assert!(parse_script(" ; -- nothing", &|| false).expect("a script").is_empty());
}
