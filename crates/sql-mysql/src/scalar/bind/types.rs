//! Types of declarations and casts, and the common type of several expressions.

use crate::scalar::charsets;
use syntax::tree::{CastType, ColumnType, DataType, IntegerSize, Sign, TextSize};

use crate::error;
use crate::scalar::decimal::{PRECISION_MAX, SCALE_MAX};
use crate::scalar::operators;
use crate::scalar::operators::Derivation;
use crate::scalar::settings::Settings;
use crate::types::{
    Charset, CharsetName as _, Collation, CollationName as _, Kind, MysqlExpr as _, MysqlType as _, Type,
};
use crate::value::Value;
use datum::Result;
use query::nodes::expr::Expr;

/// Returns the collation in which these strings are compared. Error 1267 if two have equal claims.
pub fn merge_collations(exprs: &[&Expr], op: &str, settings: &Settings) -> Result<Collation> {
    let mut best: Option<(Derivation, Collation)> = None;
    let mut clash = None;
    for expr in exprs {
        let ty = expr.ty();
        let collation = match ty.kind() {
            Kind::Json => Collation::Utf8PadBin,
            _ if ty.is_string() => ty.collation,
            _ => settings.collation,
        };
        let found = (Derivation::of(expr), collation);
        let Some(known) = best else {
            best = Some(found);
            continue;
        };
        let merged = stronger(known, found);
        match merged {
            Some(merged) => best = Some(merged),
            None => clash = Some((known, found)),
        }
        if let (Some(clashed), Some(merged)) = (clash, merged)
            && merged.0 < clashed.0.0
        {
            clash = None;
        }
    }
    if let Some((a, b)) = clash {
        let names = [a.1.name(), derivation_name(a.0), b.1.name(), derivation_name(b.0)];
        return Err(error::CANT_AGGREGATE_2COLLATIONS.raise(&[&names[0], &names[1], &names[2], &names[3], &op]));
    }
    Ok(best.map_or(settings.collation, |(_, collation)| collation))
}

fn stronger(a: (Derivation, Collation), b: (Derivation, Collation)) -> Option<(Derivation, Collation)> {
    if a.1 == b.1 {
        return Some((a.0.min(b.0), a.1));
    }
    if a.0 != b.0 {
        let (strong, weak) = if a.0 < b.0 { (a, b) } else { (b, a) };
        // Characters that a narrower set cannot hold make the wider one win, unless the weak side is a literal.
        let narrow = contains(weak.1.charset(), strong.1.charset())
            && weak.0 <= Derivation::Implicit
            && strong.0 != Derivation::Explicit;
        return Some(if narrow { weak } else { strong });
    }
    if a.0 == Derivation::Explicit {
        return None;
    }
    let binary = |side: (Derivation, Collation)| side.1 == side.1.binary_twin();
    match (a.1.charset(), b.1.charset()) {
        (Charset::Binary, _) => Some(a),
        (_, Charset::Binary) => Some(b),
        (x, y) if contains(y, x) => Some(b),
        (x, y) if contains(x, y) => Some(a),
        (x, y) if x != y => None,
        _ if binary(a) => Some(a),
        _ if binary(b) => Some(b),
        _ if a.0 >= Derivation::Coercible => Some(a),
        _ => None,
    }
}

/// True where MySQL knows that one set has all characters of another, narrower one.
fn contains(wide: Charset, narrow: Charset) -> bool {
    match (wide, narrow) {
        (Charset::Binary, _) | (_, Charset::Binary) => false,
        (wide, narrow) if wide == narrow => false,
        (Charset::Utf8, _) | (_, Charset::Ascii) => true,
        (wide, narrow) => wide.is_unicode() && !narrow.is_unicode(),
    }
}

fn derivation_name(derivation: Derivation) -> &'static str {
    match derivation {
        Derivation::Explicit => "EXPLICIT",
        Derivation::None => "NONE",
        Derivation::Implicit => "IMPLICIT",
        Derivation::System => "SYSCONST",
        Derivation::Coercible => "COERCIBLE",
        Derivation::Numeric => "NUMERIC",
        Derivation::Ignorable => "IGNORABLE",
    }
}

/// Returns the common type of these expressions, for CASE, IF and COALESCE.
pub fn common_type(exprs: &[&Expr], op: &str, settings: &Settings) -> Result<Type> {
    let mut ty: Option<Type> = None;
    for expr in exprs {
        let found = expr.ty();
        ty = Some(match ty {
            Some(ty) => union_type(&ty, &found)?,
            None => union_type(&found, &found)?,
        });
    }
    let mut ty = ty.unwrap_or_else(Type::null);
    if ty.kind().is_text() {
        let strings: Vec<&Expr> = exprs.iter().copied().filter(|expr| expr.kind() != Kind::Null).collect();
        ty.collation = merge_collations(&strings, op, settings)?;
    }
    Ok(ty)
}

/// Returns the type that holds the values of both, for CASE and UNION.
pub fn union_type(a: &Type, b: &Type) -> Result<Type> {
    let nullable = a.nullable || b.nullable;
    if a.kind() == Kind::Null || b.kind() == Kind::Null {
        let other = if a.kind() == Kind::Null { b } else { a };
        return Ok(shown(other).with_nullable(true));
    }
    let (a, b) = (&shown(a), &shown(b));
    let ty = match (a.kind(), b.kind()) {
        (x, y) if x == y && x.is_integer() && a.is_unsigned() == b.is_unsigned() => {
            Type { length: a.length.max(b.length), ..a.clone() }
        }
        (x, y) if x.is_integer() && y.is_integer() => union_of_integers(a, b),
        (Kind::Year, Kind::Year) | (Kind::Json, Kind::Json) | (Kind::Bit, Kind::Bit) | (Kind::Date, Kind::Date) => {
            Type { length: a.length.max(b.length), ..a.clone() }
        }
        (x, y) if numeric(x) && numeric(y) => union_of_numbers(a, b),
        (x, y) if x.is_temporal() && y.is_temporal() => {
            let kind = if x == y { x } else { Kind::DateTime };
            Type::temporal(kind, a.scale.max(b.scale))
        }
        _ => union_of_strings(a, b),
    };
    Ok(ty.with_zerofill(false).with_nullable(nullable))
}

/// ENUM and SET count as text beside all other types and beside each other.
fn shown(ty: &Type) -> Type {
    match ty.kind() {
        Kind::Enum | Kind::Set => crate::scalar::cast::present_type(ty),
        _ => ty.clone(),
    }
}

fn numeric(kind: Kind) -> bool {
    kind.is_number() || matches!(kind, Kind::Year | Kind::Bit)
}

fn union_of_integers(a: &Type, b: &Type) -> Type {
    const BY_WIDTH: [Kind; 5] = [Kind::TinyInt, Kind::SmallInt, Kind::MediumInt, Kind::Int, Kind::BigInt];
    let width = |ty: &Type| BY_WIDTH.iter().position(|kind| *kind == ty.kind()).unwrap_or(4);
    let (wide, narrow) = if width(a) >= width(b) { (a, b) } else { (b, a) };
    if wide.is_unsigned() == narrow.is_unsigned() || (!wide.is_unsigned() && width(wide) > width(narrow)) {
        return Type { length: a.length.max(b.length), ..wide.clone() };
    }
    // Signed and unsigned: the next wider signed one, a decimal beyond the widest.
    match BY_WIDTH.get(width(wide) + 1) {
        Some(kind) => Type::of_kind(*kind),
        None => Type::decimal(20, 0),
    }
}

fn is_narrow(a: &Type, b: &Type) -> bool {
    let whole = b.kind().is_integer() || b.kind() == Kind::Year;
    a.kind() == Kind::Float && a.scale >= Type::FLOATING && whole && b.kind() != Kind::Int
}

fn union_of_numbers(a: &Type, b: &Type) -> Type {
    let float = |ty: &Type| matches!(ty.kind(), Kind::Float | Kind::Double);
    match (float(a), float(b)) {
        (true, true) if a.kind() == b.kind() && a.scale == b.scale => a.clone(),
        // A FLOAT stays a FLOAT beside smaller integers; INT makes it a DOUBLE, and so does a BIGINT before it.
        _ if is_narrow(a, b) || (is_narrow(b, a) && a.kind() != Kind::BigInt) => Type::of_kind(Kind::Float),
        (true, _) | (_, true) => {
            let digits = |ty: &Type| if float(ty) || ty.kind() == Kind::Decimal { ty.scale } else { 0 };
            Type { scale: digits(a).max(digits(b)).min(Type::FLOATING), ..Type::double() }
        }
        _ => {
            let side = |ty: &Type| crate::scalar::arithmetic::operand(ty);
            let (a, b) = (side(a), side(b));
            let whole = |ty: &Type| {
                if ty.kind() == Kind::Decimal { ty.length - u32::from(ty.scale) } else { ty.length.min(20) }
            };
            let scale = a.scale.max(b.scale);
            if scale == 0 && a.kind() == Kind::BigInt && b.kind() == Kind::BigInt {
                return Type::integer().with_unsigned(a.is_unsigned() && b.is_unsigned());
            }
            let precision = (whole(&a).max(whole(&b)) + u32::from(scale)).min(PRECISION_MAX);
            Type::decimal(precision, scale).with_unsigned(a.is_unsigned() && b.is_unsigned())
        }
    }
}

fn union_of_strings(a: &Type, b: &Type) -> Type {
    let is_bytes = |ty: &Type| ty.kind().is_bytes() || ty.kind() == Kind::Bit;
    let bytes = is_bytes(a) || is_bytes(b);
    // Characters may take several bytes each.
    let bytes_of = |ty: &Type| match ty.kind().is_text() {
        true => display_length(ty).saturating_mul(ty.charset().max_bytes()),
        false => display_length(ty),
    };
    let length = if bytes { bytes_of(a).max(bytes_of(b)) } else { display_length(a).max(display_length(b)) };
    if bytes {
        return string_type(length, Collation::Binary);
    }
    let collation = match (a.kind().is_text(), b.kind().is_text()) {
        (true, false) => a.collation,
        (false, true) => b.collation,
        // The text consists of digits; the caller that merges the sides sets the collation.
        (false, false) => Collation::DEFAULT,
        _ => stronger((Derivation::Implicit, a.collation), (Derivation::Implicit, b.collation))
            .map_or(a.collation, |(_, c)| c),
    };
    string_type(length, collation)
}

/// Returns VARCHAR or VARBINARY up to their maximum, else the smallest TEXT or BLOB type that holds the length.
pub fn string_type(length: u32, collation: Collation) -> Type {
    let bytes = u64::from(length) * u64::from(collation.charset().max_bytes());
    let binary = collation == Collation::Binary;
    let kind = match (bytes, binary) {
        (0..=65_535, false) => Kind::VarChar,
        (0..=65_535, true) => Kind::VarBinary,
        (65_536..=16_777_215, false) => Kind::MediumText,
        (65_536..=16_777_215, true) => Kind::MediumBlob,
        (_, false) => Kind::LongText,
        (_, true) => Kind::LongBlob,
    };
    Type { length, collation, ..Type::of_kind(kind) }
}

/// Returns the display width of a type.
pub fn display_length(ty: &Type) -> u32 {
    match ty.kind() {
        Kind::Decimal => ty.length + u32::from(ty.scale > 0) + 1,
        Kind::Date => 10,
        Kind::Time => 10 + u32::from(ty.scale) + u32::from(ty.scale > 0),
        Kind::DateTime | Kind::Timestamp => 19 + u32::from(ty.scale) + u32::from(ty.scale > 0),
        _ => ty.length,
    }
}

/// Converts a text that becomes bytes into its own character set, which the client sent.
pub fn as_sent(expr: Expr) -> Expr {
    let ty = expr.ty();
    if !ty.kind().is_text() || !ty.charset().has_own_encoding() {
        return expr;
    }
    match expr {
        Expr::Literal(Value::Text(text), ty) => {
            let bytes = string_type(display_length(&ty), Collation::Binary).with_nullable(ty.nullable);
            Expr::Literal(Value::bytes(ty.charset().encode(&text)), bytes)
        }
        // The length is unlimited, because a cached plan may run with longer parameters.
        expr => operators::cast(expr, Type::of_kind(Kind::LongBlob).with_nullable(ty.nullable)),
    }
}

/// Returns the expression as a value of the result column of a UNION.
pub fn unified(expr: Expr, ty: &Type) -> Expr {
    let expr = if ty.kind().is_bytes() { as_sent(expr) } else { expr };
    operators::unify(expr, ty)
}

/// The digits of a DECIMAL and how many of them stand behind the point. Errors say `column`.
fn exact(precision: Option<u64>, scale: Option<u64>, column: &str) -> Result<(u32, u8)> {
    let precision = precision.filter(|precision| *precision > 0).unwrap_or(10);
    let scale = scale.unwrap_or(0);
    if scale > u64::from(SCALE_MAX) {
        return Err(error::TOO_BIG_SCALE.raise(&[&scale, &column, &SCALE_MAX]));
    }
    if precision > u64::from(PRECISION_MAX) {
        return Err(error::TOO_BIG_PRECISION.raise(&[&precision, &column, &PRECISION_MAX]));
    }
    if precision < scale {
        return Err(error::M_BIGGER_THAN_D.raise(&[&column]));
    }
    Ok((precision as u32, scale as u8))
}

fn fraction(scale: Option<u64>, what: &str) -> Result<u8> {
    match scale.unwrap_or(0) {
        scale @ 0..=6 => Ok(scale as u8),
        scale => Err(error::TOO_BIG_PRECISION.raise(&[&scale, &what, &6])),
    }
}

fn characters(length: Option<u64>, default: u32) -> u32 {
    length.map_or(default, |length| u32::try_from(length).unwrap_or(u32::MAX))
}

/// Returns the type of a CAST without the character set of CHAR. CHAR without a length is unlimited.
pub fn cast_type(to: &CastType, inner: &Expr, settings: &Settings) -> Result<Type> {
    let text = |length: &Option<u64>| {
        let length = characters(*length, u32::MAX);
        Type { length, ..string_type(length, settings.collation) }
    };
    let ty = match to {
        CastType::Signed => Type::integer(),
        CastType::Unsigned => Type::unsigned(),
        CastType::Char { length, charset: _ } => text(length),
        CastType::NationalChar(length) => text(length),
        CastType::Binary(Some(length)) => Type { length: characters(Some(*length), 0), ..Type::of_kind(Kind::Binary) },
        CastType::Binary(None) => charset_type("binary", inner)?,
        CastType::Date => Type::of_kind(Kind::Date),
        CastType::Time(scale) => Type::temporal(Kind::Time, fraction(*scale, "time")?),
        CastType::DateTime(scale) => Type::temporal(Kind::DateTime, fraction(*scale, "datetime")?),
        CastType::Year => Type::of_kind(Kind::Year),
        CastType::Decimal { precision, scale } => {
            let (precision, scale) = exact(*precision, *scale, "")?;
            Type::decimal(precision, scale)
        }
        CastType::Float(precision) => floating(Kind::Float, *precision, None, Sign::default(), "")?,
        CastType::Double => Type::double(),
        CastType::Json => json_type(),
        CastType::Spatial(name) => return Err(error::not_supported(name.to_uppercase())),
    };
    Ok(ty.with_nullable(true))
}

fn json_type() -> Type {
    Type { collation: Collation::Utf8PadBin, ..Type::of_kind(Kind::Json) }
}

/// Returns the type of CONVERT(expr USING charset) and `_charset'text'`.
pub fn charset_type(name: &str, inner: &Expr) -> Result<Type> {
    let charset = charsets::charset(name)?;
    let length = match inner.kind() {
        Kind::Null => u32::MAX,
        _ => display_length(&crate::scalar::cast::present_type(&inner.ty()))
            .saturating_mul(if charset == Charset::Binary { 4 } else { 1 }),
    };
    Ok(string_type(length, charset.default_collation()))
}

/// A column definition's type; errors 1425, 1426, 1427, 1074, 1439, which name the column. Members of ENUM and SET are as written.
pub fn data_type(data: &DataType, collation: Collation, column: &str) -> Result<Type> {
    let text = |kind: Kind, length: u32| Type { length, collation, ..Type::of_kind(kind) };
    let bytes = |kind: Kind, length: u32| Type { length, ..Type::of_kind(kind) };
    let limited = |ty: Type, limit: u32| match ty.length > limit {
        true => Err(error::TOO_BIG_FIELDLENGTH.raise(&[&column, &limit])),
        false => Ok(ty),
    };
    let bytes_max = collation.charset().max_bytes();
    // Characters of the set `binary` are bytes.
    let is_bytes = collation == Collation::Binary;
    let called = |what| if column.is_empty() { what } else { column };
    Ok(match data {
        DataType::Integer { size, width, sign } => integer_type(*size, *width, *sign),
        DataType::Boolean => Type { length: 1, ..Type::of_kind(Kind::TinyInt) },
        DataType::Serial => integer_type(IntegerSize::Big, None, Sign { unsigned: true, zerofill: false }),
        DataType::Decimal { precision, scale, sign } => {
            let (precision, scale) = exact(*precision, *scale, column)?;
            signed(Type::decimal(precision, scale), *sign)
        }
        DataType::Float { precision, scale, sign } => floating(Kind::Float, *precision, *scale, *sign, column)?,
        DataType::Double { digits, sign } => {
            let (length, scale) = digits.unzip();
            floating(Kind::Double, length, scale, *sign, column)?
        }
        DataType::Bit(length) => limited(bytes(Kind::Bit, characters(*length, 1)), 64)?,
        DataType::Char(length) if is_bytes => limited(bytes(Kind::Binary, characters(*length, 1)), 255)?,
        DataType::VarChar(length) if is_bytes => limited(bytes(Kind::VarBinary, characters(Some(*length), 1)), 65_535)?,
        DataType::Text { size, length } if is_bytes => {
            data_type(&DataType::Blob { size: *size, length: *length }, collation, column)?
        }
        DataType::Char(length) => limited(text(Kind::Char, characters(*length, 1)), 255)?,
        DataType::VarChar(length) => limited(text(Kind::VarChar, characters(Some(*length), 1)), 65_535 / bytes_max)?,
        DataType::Binary(length) => limited(bytes(Kind::Binary, characters(*length, 1)), 255)?,
        DataType::VarBinary(length) => limited(bytes(Kind::VarBinary, characters(Some(*length), 1)), 65_535)?,
        DataType::Text { size, length } => {
            match sized(*size, length.map(|length| length.saturating_mul(bytes_max.into()))) {
                TextSize::Tiny => text(Kind::TinyText, 255),
                TextSize::Normal => text(Kind::Text, 65_535),
                TextSize::Medium => text(Kind::MediumText, 16_777_215),
                TextSize::Long => text(Kind::LongText, u32::MAX),
            }
        }
        DataType::Blob { size, length } => match sized(*size, *length) {
            TextSize::Tiny => bytes(Kind::TinyBlob, 255),
            TextSize::Normal => bytes(Kind::Blob, 65_535),
            TextSize::Medium => bytes(Kind::MediumBlob, 16_777_215),
            TextSize::Long => bytes(Kind::LongBlob, u32::MAX),
        },
        DataType::Enum(members) => member_type(Kind::Enum, members, collation, column)?,
        DataType::Set(members) => member_type(Kind::Set, members, collation, column)?,
        DataType::Date => Type::of_kind(Kind::Date),
        DataType::Time(scale) => Type::temporal(Kind::Time, fraction(*scale, called("time"))?),
        DataType::DateTime(scale) => Type::temporal(Kind::DateTime, fraction(*scale, called("datetime"))?),
        DataType::Timestamp(scale) => Type::temporal(Kind::Timestamp, fraction(*scale, called("timestamp"))?),
        DataType::Year(_) => Type::of_kind(Kind::Year),
        DataType::Json => json_type(),
        DataType::Spatial(name) => return Err(error::not_supported(name.to_uppercase())),
    })
}

/// The collation of a declared type: its own, else its character set's, else `default`.
pub fn declared_collation(ty: &ColumnType, default: Collation) -> Result<Collation> {
    let ColumnType { data: _, charset, binary, collation } = ty;
    let charset = charset.as_deref().map(charsets::charset).transpose()?;
    let of_charset = charset.map_or(default, Charset::default_collation);
    match collation {
        Some(name) => {
            let collation = charsets::collation(name)?;
            match charset {
                Some(charset) if collation.charset() != charset => {
                    Err(error::COLLATION_CHARSET_MISMATCH.raise(&[&collation.name(), &charset.name()]))
                }
                _ => Ok(collation),
            }
        }
        None if *binary => Ok(of_charset.binary_twin()),
        None => Ok(of_charset),
    }
}

/// TEXT and BLOB with a length are the smallest that hold so many bytes.
fn sized(size: TextSize, bytes: Option<u64>) -> TextSize {
    match (size, bytes) {
        (TextSize::Normal, Some(0)) | (_, None) => size,
        (TextSize::Normal, Some(..=255)) => TextSize::Tiny,
        (TextSize::Normal, Some(..=65_535)) => TextSize::Normal,
        (TextSize::Normal, Some(..=16_777_215)) => TextSize::Medium,
        (TextSize::Normal, Some(_)) => TextSize::Long,
        (size, Some(_)) => size,
    }
}

fn signed(ty: Type, sign: Sign) -> Type {
    let Sign { unsigned, zerofill } = sign;
    ty.with_unsigned(unsigned || zerofill).with_zerofill(zerofill)
}

fn integer_type(size: IntegerSize, width: Option<u64>, sign: Sign) -> Type {
    let kind = match size {
        IntegerSize::Tiny => Kind::TinyInt,
        IntegerSize::Small => Kind::SmallInt,
        IntegerSize::Medium => Kind::MediumInt,
        IntegerSize::Int => Kind::Int,
        IntegerSize::Big => Kind::BigInt,
    };
    let ty = signed(Type::of_kind(kind), sign);
    // An unsigned type needs no place for a sign, except that 20 digits are 20 digits.
    let default = if ty.is_unsigned() && kind != Kind::BigInt { ty.length - 1 } else { ty.length };
    let length = width.filter(|width| *width > 0).map_or(default, |width| width as u32);
    Type { length, ..ty }
}

/// FLOAT(p) is a DOUBLE from 25 bits on; FLOAT(m,d) rounds to d digits.
fn floating(kind: Kind, precision: Option<u64>, scale: Option<u64>, sign: Sign, column: &str) -> Result<Type> {
    let ty = match (precision, scale) {
        (_, Some(_)) => {
            let (length, scale) = exact(precision, scale, column)?;
            Type { length, scale, ..Type::of_kind(kind) }
        }
        (Some(bits), None) if bits > 53 => return Err(error::WRONG_FIELD_SPEC.raise(&[&column])),
        (Some(25..), None) => Type::double(),
        _ => Type::of_kind(kind),
    };
    Ok(signed(ty, sign))
}

/// Trailing spaces of a member do not count; error 1291 for a duplicate member.
fn member_type(kind: Kind, members: &[String], collation: Collation, column: &str) -> Result<Type> {
    const ENUM_MAX: usize = 65_535;
    if kind == Kind::Enum && members.len() > ENUM_MAX {
        return Err(error::TOO_BIG_ENUM.raise(&[&column]));
    }
    let names: Vec<Box<str>> = members.iter().map(|name| name.trim_end_matches(' ').into()).collect();
    // Equal members follow each other when sorted, in the order of the declaration.
    let mut sorted: Vec<usize> = (0..names.len()).collect();
    sorted.sort_by(|a, b| collation.compare(names[*a].as_bytes(), names[*b].as_bytes()));
    let twice = sorted.windows(2).filter(|pair| collation.equal(names[pair[0]].as_bytes(), names[pair[1]].as_bytes()));
    if let Some(first) = twice.map(|pair| pair[0]).min() {
        return Err(error::DUPLICATED_VALUE_IN_TYPE.raise(&[&column, &names[first], &kind.name().to_uppercase()]));
    }
    // A value of a SET is its members with commas between them.
    if let Some(torn) = names.iter().find(|name| kind == Kind::Set && name.contains(',')) {
        return Err(error::ILLEGAL_VALUE_FOR_TYPE.raise(&[&"set", torn]));
    }
    if kind == Kind::Set && names.len() > 64 {
        return Err(error::TOO_MANY_VALUES_FOR_TYPE.raise(&[&column]));
    }
    Ok(Type { members: Some(names.into()), collation, ..Type::of_kind(kind) })
}
