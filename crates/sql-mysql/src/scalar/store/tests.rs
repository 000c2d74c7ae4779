use super::*;
use crate::scalar::modes::SqlMode;
use crate::types::Collation;

fn stored(value: Value, ty: &Type, mode: SqlMode) -> (Result<Value>, Vec<u16>) {
    let mut ctx = EvalContext::new();
    ctx.set_sql_mode(mode);
    let stored = store(value, ty, Place { column: "c", row: 1 }, &mut ctx);
    let codes = ctx.warnings.iter().map(|(_, fault)| crate::error::rendered(fault).code).collect();
    (stored, codes)
}

/// The value that is stored when the mode is not strict, the warning's code, and the error of a strict mode.
fn check(value: Value, ty: &Type, lenient: &str, code: u16) {
    let lax = SqlMode::DEFAULT.without(SqlMode::STRICT_TRANS_TABLES);
    let (loose, warnings) = stored(value.clone(), ty, lax);
    let loose = cast::present(loose.expect("not strict"), ty, &EvalContext::new());
    assert_eq!(convert::to_text(&loose, ty).as_str(), lenient, "{value:?}");
    let (strict, _) = stored(value.clone(), ty, SqlMode::DEFAULT);
    assert_eq!(
        strict.as_ref().map_or_else(|error| crate::error::rendered(error).code, |_| 0),
        code,
        "{value:?} {strict:?}"
    );
    if code == 0 {
        assert_eq!(
            strict.map(|v| convert::to_text(&cast::present(v, ty, &EvalContext::new()), ty).to_string()),
            Ok(lenient.to_owned())
        );
    } else {
        assert!(!warnings.is_empty(), "{value:?}");
    }
}

#[test]
fn numbers_fit_or_complain() {
    let tiny = Type::of_kind(Kind::TinyInt);
    check(Value::Int(127), &tiny, "127", 0);
    check(Value::Int(128), &tiny, "127", 1264);
    check(Value::Int(-129), &tiny, "-128", 1264);
    check(Value::text("12"), &tiny, "12", 0);
    check(Value::text("1.5"), &tiny, "2", 0);
    check(Value::text("12abc"), &tiny, "12", 1265);
    check(Value::text("abc"), &tiny, "0", 1366);
    check(Value::text(""), &tiny, "0", 1366);
    check(Value::Int(-1), &Type::unsigned(), "0", 1264);
    check(Value::Double(2.5), &tiny, "2", 0);
    let decimal = Type::decimal(5, 2);
    check(Value::text("1.005"), &decimal, "1.01", 0);
    check(Value::Int(1000), &decimal, "999.99", 1264);
    check(Value::text("x"), &decimal, "0.00", 1366);
    check(Value::text("1.5x"), &Type::double(), "1.5", 1265);
}

#[test]
fn strings_fit_or_complain() {
    let short = Type::text(3, Collation::DEFAULT);
    check(Value::text("abcd"), &short, "abc", 1406);
    check(Value::text("abc  "), &short, "abc", 0);
    check(Value::text("日本語"), &short, "日本語", 0);
    check(Value::Int(1234), &short, "123", 1406);
    check(Value::text("ab "), &short.clone().with_kind(Kind::Char), "ab", 0);
    check(Value::text("€😀"), &Type::text(3, Collation::Utf8BmpGeneralCi), "€?", 1366);
    check(Value::bytes([0x61, 0xFF]), &short, "a", 1366);
    let (padded, _) = stored(Value::text("a"), &Type { length: 3, ..Type::of_kind(Kind::Binary) }, SqlMode::DEFAULT);
    assert_eq!(padded, Ok(Value::bytes(b"a\0\0")));
}

#[test]
fn dates_fit_or_complain() {
    let date = Type::of_kind(Kind::Date);
    check(Value::text("2026-11-21"), &date, "2026-11-21", 0);
    check(Value::text("2026-02-30"), &date, "0000-00-00", 1292);
    check(Value::text("0000-00-00"), &date, "0000-00-00", 1292);
    check(Value::text("2026-00-10"), &date, "0000-00-00", 1292);
    check(Value::Int(20261121), &date, "2026-11-21", 0);
    check(Value::text("2026-11-21 10:00:00"), &date, "2026-11-21", 0);
    let at = Type::temporal(Kind::DateTime, 0);
    check(Value::text("2026-11-21 10:00:00.5"), &at, "2026-11-21 10:00:01", 0);
    check(Value::text("nonsense"), &at, "0000-00-00 00:00:00", 1292);
    check(Value::text("2039-01-01"), &Type::of_kind(Kind::Timestamp), "0000-00-00 00:00:00", 1292);
    check(Value::text("900:00:00"), &Type::of_kind(Kind::Time), "838:59:59", 1292);
    check(Value::Int(1), &Type::of_kind(Kind::Year), "2001", 0);
    check(Value::Int(1800), &Type::of_kind(Kind::Year), "0000", 1264);
}

#[test]
fn members_fit_or_complain() {
    let members = Some(["a", "b b", "c"].map(Box::from).into());
    let one = Type { members: members.clone(), collation: Collation::DEFAULT, ..Type::of_kind(Kind::Enum) };
    check(Value::text("B B "), &one, "b b", 0);
    check(Value::Int(3), &one, "c", 0);
    check(Value::text("2"), &one, "b b", 0);
    check(Value::text("x"), &one, "", 1265);
    let many = Type { members, collation: Collation::DEFAULT, ..Type::of_kind(Kind::Set) };
    check(Value::text("c,a"), &many, "a,c", 0);
    check(Value::Int(3), &many, "a,b b", 0);
    check(Value::text("a,x"), &many, "a", 1265);
    check(Value::text(""), &many, "", 0);
}

#[test]
fn null_is_refused_by_name_and_json_by_place() {
    let (refused, _) = stored(Value::Null, &Type::integer().with_nullable(false), SqlMode::NONE);
    assert_eq!(crate::error::rendered(&refused.expect_err("not null")).message, "Column 'c' cannot be null");
    let (refused, _) = stored(Value::text("{"), &Type::of_kind(Kind::Json), SqlMode::NONE);
    assert_eq!(crate::error::rendered(&refused.expect_err("not json")).code, 3140);
}
