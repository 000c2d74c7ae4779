//! Types of columns and of casts.

/// A declared type with its character set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    pub data: DataType,
    /// CHARACTER SET, ASCII, UNICODE, BYTE; NATIONAL is utf8mb3.
    pub charset: Option<String>,
    /// The attribute BINARY: the character set's binary collation.
    pub binary: bool,
    /// COLLATE directly after the type.
    pub collation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    Integer {
        size: IntegerSize,
        width: Option<u64>,
        sign: Sign,
    },
    /// BOOL, BOOLEAN.
    Boolean,
    /// BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
    Serial,
    Decimal {
        precision: Option<u64>,
        scale: Option<u64>,
        sign: Sign,
    },
    /// FLOAT, FLOAT(precision), FLOAT(digits, scale).
    Float {
        precision: Option<u64>,
        scale: Option<u64>,
        sign: Sign,
    },
    /// DOUBLE, DOUBLE(digits, scale), REAL.
    Double {
        digits: Option<(u64, u64)>,
        sign: Sign,
    },
    Bit(Option<u64>),
    Char(Option<u64>),
    VarChar(u64),
    Binary(Option<u64>),
    VarBinary(u64),
    Text {
        size: TextSize,
        length: Option<u64>,
    },
    Blob {
        size: TextSize,
        length: Option<u64>,
    },
    Enum(Vec<String>),
    Set(Vec<String>),
    Date,
    Time(Option<u64>),
    DateTime(Option<u64>),
    Timestamp(Option<u64>),
    Year(Option<u64>),
    Json,
    /// GEOMETRY, POINT and their like, in lower case.
    Spatial(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sign {
    pub unsigned: bool,
    /// Implies UNSIGNED.
    pub zerofill: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerSize {
    Tiny,
    Small,
    Medium,
    Int,
    Big,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSize {
    Tiny,
    Normal,
    Medium,
    Long,
}

/// The type of CAST, CONVERT and RETURNING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastType {
    Signed,
    Unsigned,
    Char { length: Option<u64>, charset: Option<String> },
    NationalChar(Option<u64>),
    Binary(Option<u64>),
    Date,
    Time(Option<u64>),
    DateTime(Option<u64>),
    Year,
    Decimal { precision: Option<u64>, scale: Option<u64> },
    Float(Option<u64>),
    Double,
    Json,
    Spatial(String),
}
