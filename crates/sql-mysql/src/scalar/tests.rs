//! Expressions from text to value: the recorded corpus, and what a line of it cannot say.

mod exact_number;
mod keys;

use syntax::tree;

use super::*;
use crate::parse::statement::Statement;
use crate::parse::{parse, parse_expression};
use crate::scalar::bind::Binder;
use crate::scalar::modes::SqlMode;
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::store::store;
use crate::scalar::temporal::Timestamp;
use crate::types::{self, CollationName as _, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::assignment::Place;
use query::nodes::context::{EvalContext, Level};
use query::nodes::expr::Expr;

fn bind(text: &str) -> Result<Expr> {
    let node = parse_expression(text)?;
    let settings = Settings::default();
    let mut nothing = |_: &tree::Expr| Ok(None);
    Binder::new(&settings, &mut nothing).bind(&node)
}

fn context() -> EvalContext {
    let mut ctx = EvalContext::new();
    // 2026-11-21 12:34:56.789012
    ctx.now = Timestamp(1_795_264_496_789_012);
    ctx.state_mut().session.version = "8.0.36".into();
    ctx.state_mut().session.user = "me@localhost".into();
    ctx.state_mut().session.current_user = "me@%".into();
    ctx.state_mut().session.database = Some("test".into());
    ctx.state_mut().session.connection_id = 7;
    ctx
}

/// The type's name, and the value or the error as a client sees it; then the codes of the warnings.
fn outcome(text: &str) -> (String, String) {
    let expr = match bind(text) {
        Ok(expr) => bind::present(expr),
        Err(fault) => {
            let error = crate::error::rendered(&fault);
            return ("error".to_owned(), format!("{} {}", error.code, error.message));
        }
    };
    let (ty, mut ctx) = (expr.ty(), context());
    let name = ty.name();
    match expr.eval(&[], &mut ctx) {
        Err(fault) => {
            let error = crate::error::rendered(&fault);
            (name, format!("error {} {}", error.code, error.message))
        }
        Ok(value) => {
            let mut shown = match &value {
                Value::Null => "NULL".to_owned(),
                Value::Bytes(bytes) => format!("{bytes:?}"),
                value => convert::to_text(value, &ty).replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t"),
            };
            if !fits(&value, &ty) {
                shown.push_str(" !type");
            }
            for warning in ctx.warnings.iter().map(|(_, fault)| crate::error::rendered(fault)) {
                shown.push_str(&format!(" !{}", warning.code));
            }
            (name, shown)
        }
    }
}

/// The variant that the type promises.
fn fits(value: &Value, ty: &Type) -> bool {
    match value {
        Value::Null => true,
        Value::Int(_) => ty.kind().is_integer() && !ty.is_unsigned(),
        Value::UInt(_) => (ty.kind().is_integer() && ty.is_unsigned()) || ty.kind() == Kind::Year,
        Value::Decimal(decimal) => ty.kind() == Kind::Decimal && decimal.scale() == ty.scale.into(),
        Value::Double(_) => ty.kind() == Kind::Double,
        Value::Float(_) => ty.kind() == Kind::Float,
        Value::Text(_) => ty.kind().is_text(),
        Value::Bytes(_) => ty.kind().is_bytes(),
        Value::Date(_) => ty.kind() == Kind::Date,
        Value::Time(_) => ty.kind() == Kind::Time,
        Value::DateTime(_) => ty.kind() == Kind::DateTime,
        Value::Timestamp(_) => ty.kind() == Kind::Timestamp,
        Value::Interval(_) | Value::Array(_) | Value::Record(_) => false,
        Value::Json(_) => ty.kind() == Kind::Json,
    }
}

/// Lines of expression, type and outcome with tabs between; UPDATE=1 writes what comes out, to be read before it is kept.
#[test]
fn recorded_expressions_keep_their_results() {
    let path = std::env::var("CORPUS")
        .unwrap_or_else(|_| format!("{}/src/scalar/tests/corpus.txt", env!("CARGO_MANIFEST_DIR")));
    let corpus = std::fs::read_to_string(&path).expect("the corpus is there");
    let (mut written, mut wrong) = (String::new(), Vec::new());
    for line in corpus.lines() {
        if line.is_empty() || line.starts_with("--") {
            written.push_str(&format!("{line}\n"));
            continue;
        }
        let text = line.split('\t').next().unwrap_or("");
        let (ty, shown) = outcome(text);
        let found = format!("{text}\t{ty}\t{shown}");
        if found != line {
            wrong.push(format!("was {line}\nnow {found}"));
        }
        written.push_str(&format!("{found}\n"));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, written).expect("the corpus is written");
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_chain_is_no_deep_tree_and_a_deep_tree_is_refused() {
    let chain = vec!["1"; 3000].join(" and ");
    assert_eq!(outcome(&chain).1, "1");
    let settings = Settings::default();
    let nested = |depth| {
        let one = parse_expression("1").expect("a number");
        let node = (0..depth).fold(one, |inner, _| {
            let kind = tree::ExprKind::Unary { op: tree::UnaryOp::BitNot, operand: Box::new(inner) };
            tree::Expr { kind, span: tree::Span::default() }
        });
        Binder::new(&settings, &mut |_: &tree::Expr| Ok(None)).bind(&node)
    };
    assert_eq!(crate::error::rendered(&nested(5000).expect_err("too deep")).code, 1436);
    assert_eq!(nested(120).expect("as deep as a text may be").eval(&[], &mut context()), Ok(Value::UInt(1)));
}

#[test]
fn a_chain_groups_from_the_left_and_is_refused_when_its_tree_would_be_too_deep() {
    assert_eq!(outcome("10 - 3 - 2 + 1").1, "6");
    assert_eq!(outcome("1 xor 1 xor 1").1, "1");
    assert_eq!(outcome(&vec!["1"; 100].join(" + ")).1, "100");
    for link in [" + 1", " xor 1"] {
        assert_eq!(
            crate::error::rendered(&bind(&format!("1{}", link.repeat(100_000))).expect_err("too deep")).code,
            1436
        );
    }
}

#[test]
fn an_overflow_names_its_beginning_of_the_chain() {
    let message = |text: &str| outcome(text).1;
    let out_of_range = |text: &str| format!("error 1690 BIGINT value is out of range in '{text}'");
    let most = i64::MAX;
    assert_eq!(message(&format!("{most} + 1 + 2")), out_of_range(&format!("({most} + 1)")));
    assert_eq!(message(&format!("{most} - 1 + 2 - 3")), out_of_range(&format!("(({most} - 1) + 2)")));
    let zeros = " + 0".repeat(50);
    let cut = message(&format!("{most}{zeros} + 1000000000000000000{zeros}"));
    assert!(cut.contains("((((") && cut.ends_with("...'") && cut.len() < 400, "{cut}");
    assert_eq!(message(&format!("{most}{} + 1", zeros.repeat(3))), out_of_range("(...)"));
}

#[test]
fn a_strict_statement_that_changes_rows_refuses_bad_data() {
    let mut ctx = context();
    ctx.changes_rows = true;
    for (text, code) in [("'12x' + 1", 1292), ("1 / 0", 1365), ("cast('x' as date)", 1292)] {
        let expr = bind(text).expect("binds");
        assert_eq!(crate::error::rendered(&expr.eval(&[], &mut ctx).expect_err(text)).code, code);
    }
    ctx.ignore = true;
    assert_eq!(bind("1 / 0").expect("binds").eval(&[], &mut ctx), Ok(Value::Null));
}

#[test]
fn stored_forms_are_shown_by_present() {
    let members = Some(["a", "b"].map(Box::from).into());
    let mut ctx = context();
    ctx.zone = temporal::parse_zone("+02:00").expect("a zone");
    let one = Type { members, ..Type::of_kind(Kind::Enum) };
    let cases = [
        (Value::UInt(2), one.clone(), Value::text("b")),
        (Value::UInt(3), one.clone().with_kind(Kind::Set), Value::text("a,b")),
        (Value::UInt(5), Type { length: 3, ..Type::of_kind(Kind::Bit) }, Value::bytes([5])),
    ];
    for (stored, ty, shown) in cases {
        let expr = bind::present(Expr::Column(0, ty));
        assert_eq!(expr.eval(&[stored], &mut ctx), Ok(shown));
    }
    let at = bind::present(Expr::Column(0, Type::of_kind(Kind::Timestamp)));
    let value = at.eval(&[Value::Timestamp(Timestamp(1_000_000))], &mut ctx).expect("shown");
    assert_eq!(convert::to_text(&value, &at.ty()).as_str(), "1970-01-01 02:00:01");
    // Against a string an ENUM is its name, against a number its place.
    let settings = Settings::default();
    for (other, truth) in [
        (Expr::Literal(Value::text("B"), Type::text(1, settings.collation)), 1),
        (Expr::integer(2), 1),
        (Expr::integer(1), 0),
    ] {
        let same =
            bind::compare(&settings, query::nodes::comparison::Comparison::Equal, Expr::Column(0, one.clone()), other)
                .expect("binds");
        assert_eq!(same.eval(&[Value::UInt(2)], &mut ctx), Ok(Value::Int(truth)));
    }
}

#[test]
fn a_clock_put_forward_and_back_has_its_times() {
    let zone = temporal::parse_zone("Europe/Berlin").expect("the machine has zones");
    let at = |text: &str| temporal::parse_datetime(text, temporal::Strictness::default()).expect("a date").value;
    assert_eq!(temporal::timestamp(&zone, at("2026-03-29 01:59:59")), Some(Timestamp(1_774_745_999_000_000)));
    assert_eq!(temporal::timestamp(&zone, at("2026-03-29 02:30:00")), Some(Timestamp(1_774_746_000_000_000)));
    assert_eq!(temporal::timestamp(&zone, at("2026-10-25 02:30:00")), Some(Timestamp(1_792_888_200_000_000)));
    assert_eq!(zone.local(Timestamp(1_792_891_800_000_000)), at("2026-10-25 02:30:00"));
}

/// The ends of every range, and nonsense, to every function: an error or a value, never a panic.
#[test]
fn no_function_fails_at_the_ends_of_ranges() {
    let odd = [
        "null",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1e308",
        "-1e308",
        "1e-320",
        "99999999999999999999999999999999999999999999999999999999999999999",
        "0.000000000000000000000000000001",
        "''",
        "'%'",
        "'\u{1F600}'",
        "'9999-12-31 23:59:59.999999'",
        "'0000-00-00'",
        "date '9999-12-31'",
        "time '838:59:59'",
        "x'ff00'",
        "'$[0]'",
        "'{\"a\": [1]}'",
    ];
    let mut next = 0usize;
    let mut wrong = Vec::new();
    // Locks are a session's, which there is none of here.
    let left_out = ["sleep", "benchmark", "random_bytes"];
    let is_tried = |name: &str| !left_out.contains(&name) && !name.ends_with("_lock") && !name.ends_with("_locks");
    for function in functions::all().filter(|function| is_tried(function.name())) {
        let name = function.name();
        let counts = function.arity.min..=function.arity.max.min(function.arity.min + 2);
        for (count, round) in counts.flat_map(|count| (0..60).map(move |round| (count, round))) {
            let arguments: Vec<&str> = (0..count)
                .map(|place| {
                    next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    odd[if count == 1 { round % odd.len() } else { (next >> 33 ^ place) % odd.len() }]
                })
                .collect();
            let call = match name {
                "extract" | "member of" => continue,
                "date_add" | "date_sub" => format!("{name}({}, interval {} month)", arguments[0], arguments[1]),
                "timestampdiff" | "timestampadd" => format!("{name}(second, {})", arguments.join(", ")),
                _ => format!("{name}({})", arguments.join(", ")),
            };
            let (ty, shown) = outcome(&call);
            if shown.ends_with("!type") {
                wrong.push(format!("{call}: {shown} is no {ty}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the value that a column of that type holds after the assignment, or the error, under the default mode and without its
/// strictness.
fn stored(declared: &str, value: &str) -> (String, String) {
    let parsed = parse(&format!("create table t (c {declared})"), SqlMode::DEFAULT).expect("a definition");
    let Statement::CreateTable(create) = parsed.statement else { panic!("{declared}") };
    let ty = bind::data_type(&create.columns[0].ty.data, types::Collation::DEFAULT, "").expect("a type");
    let node = parse_expression(value).expect("an expression");
    let settings = Settings::default();
    let mut nothing = |_: &tree::Expr| Ok(None);
    let expr = Binder::new(&settings, &mut nothing).bind_assignment(&node, &ty).expect("binds");
    let run = |mode: SqlMode| {
        let mut ctx = context();
        ctx.set_sql_mode(mode);
        let value = expr.eval(&[], &mut ctx).expect("evaluates");
        match store(value, &ty, Place { column: "c", row: 1 }, &mut ctx) {
            Err(fault) => format!("error {}", crate::error::rendered(&fault).code),
            Ok(value) => {
                let kept = bind::present(Expr::Literal(value, ty.clone()));
                let shown = kept.eval(&[], &mut ctx).expect("shown");
                let mut text = match &shown {
                    Value::Null => "NULL".to_owned(),
                    Value::Bytes(_) => {
                        format!("{shown:?}").trim_start_matches("Bytes(").trim_end_matches(')').to_owned()
                    }
                    shown => convert::to_text(shown, &kept.ty()).to_string(),
                };
                for (level, warning) in ctx.warnings.iter() {
                    text.push_str(if *level == Level::Note { " ~" } else { " !" });
                    text.push_str(&crate::error::rendered(warning).code.to_string());
                }
                text
            }
        }
    };
    (run(SqlMode::DEFAULT), run(SqlMode::DEFAULT.without(SqlMode::STRICT_TRANS_TABLES)))
}

/// Lines of type, value, and what is stored in a strict and in another mode.
#[test]
fn recorded_values_are_stored_as_before() {
    let path = std::env::var("STORES")
        .unwrap_or_else(|_| format!("{}/src/scalar/tests/stores.txt", env!("CARGO_MANIFEST_DIR")));
    let recorded = std::fs::read_to_string(&path).expect("the recorded values are there");
    let mut written = String::new();
    for line in recorded.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        match parts[..] {
            [declared, value, ..] if !line.starts_with("--") => {
                let (strict, lenient) = stored(declared, value);
                written.push_str(&format!("{declared}\t{value}\t{strict}\t{lenient}\n"));
            }
            _ => written.push_str(&format!("{line}\n")),
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, written).expect("the recorded values are written");
        return;
    }
    for (was, now) in recorded.lines().zip(written.lines()) {
        assert_eq!(was, now);
    }
}

#[test]
fn a_seed_gives_the_same_sequence_in_every_statement() {
    let (expr, mut ctx) = (bind("rand(1)").expect("binds"), context());
    for _ in 0..2 {
        for number in [0.40540353712197724, 0.8716141803857071, 0.1418603212962489] {
            assert_eq!(expr.eval(&[], &mut ctx), Ok(Value::Double(number)));
        }
        ctx.now = Timestamp(ctx.now.0 + 1);
    }
}
