//! Types of columns and casts.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::Result;
use crate::tree::{CastType, ColumnType, DataType, IntegerSize, Sign, TextSize};

const SPATIAL: [Kw; 9] = [
    Kw::GEOMCOLLECTION,
    Kw::GEOMETRY,
    Kw::GEOMETRYCOLLECTION,
    Kw::POINT,
    Kw::MULTIPOINT,
    Kw::LINESTRING,
    Kw::MULTILINESTRING,
    Kw::POLYGON,
    Kw::MULTIPOLYGON,
];

impl Parser<'_> {
    /// A column's type with its character set and COLLATE.
    pub(super) fn column_type(&mut self) -> Result<ColumnType> {
        let kw = self.kw();
        let plain = |data| ColumnType { data, charset: None, binary: false, collation: None };
        if SPATIAL.contains(&kw) {
            self.take();
            return Ok(plain(DataType::Spatial(kw.text().to_ascii_lowercase())));
        }
        let size = match kw {
            Kw::TINYINT | Kw::INT1 => Some(IntegerSize::Tiny),
            Kw::SMALLINT | Kw::INT2 => Some(IntegerSize::Small),
            Kw::MEDIUMINT | Kw::INT3 | Kw::MIDDLEINT => Some(IntegerSize::Medium),
            Kw::INT | Kw::INTEGER | Kw::INT4 => Some(IntegerSize::Int),
            Kw::BIGINT | Kw::INT8 => Some(IntegerSize::Big),
            _ => None,
        };
        if let Some(size) = size {
            self.take();
            let width = self.length()?;
            return Ok(plain(DataType::Integer { size, width, sign: self.sign() }));
        }
        if kw == Kw::OTHER || kw.is_reserved() && !self.begins_type() {
            return Err(self.error());
        }
        self.take();
        let data = match kw {
            Kw::BOOL | Kw::BOOLEAN => DataType::Boolean,
            Kw::SERIAL => DataType::Serial,
            Kw::DECIMAL | Kw::DEC | Kw::NUMERIC | Kw::FIXED => {
                let (precision, scale) = self.digits()?;
                DataType::Decimal { precision, scale, sign: self.sign() }
            }
            Kw::FLOAT | Kw::FLOAT4 => {
                let (precision, scale) = self.digits()?;
                DataType::Float { precision, scale, sign: self.sign() }
            }
            Kw::DOUBLE | Kw::FLOAT8 | Kw::REAL => {
                if kw == Kw::DOUBLE {
                    self.word(Kw::PRECISION);
                }
                let digits = match self.at(Kind::Open) {
                    true => match self.digits()? {
                        (Some(precision), Some(scale)) => Some((precision, scale)),
                        _ => return Err(self.error_at(self.last_end - 1)),
                    },
                    false => None,
                };
                let sign = self.sign();
                if kw == Kw::REAL && self.mode.real_as_float {
                    let (precision, scale) = digits.unzip();
                    DataType::Float { precision, scale, sign }
                } else {
                    DataType::Double { digits, sign }
                }
            }
            Kw::BIT => DataType::Bit(self.length()?),
            Kw::DATE => DataType::Date,
            Kw::TIME => DataType::Time(self.length()?),
            Kw::DATETIME => DataType::DateTime(self.length()?),
            Kw::TIMESTAMP => DataType::Timestamp(self.length()?),
            Kw::YEAR => {
                let width = self.length()?;
                self.sign();
                DataType::Year(width)
            }
            Kw::JSON => DataType::Json,
            Kw::BINARY => DataType::Binary(self.length()?),
            Kw::VARBINARY => DataType::VarBinary(self.length()?.ok_or_else(|| self.error())?),
            Kw::TINYBLOB => DataType::Blob { size: TextSize::Tiny, length: None },
            Kw::BLOB => DataType::Blob { size: TextSize::Normal, length: self.length()? },
            Kw::MEDIUMBLOB => DataType::Blob { size: TextSize::Medium, length: None },
            Kw::LONGBLOB => DataType::Blob { size: TextSize::Long, length: None },
            Kw::LONG if self.word(Kw::VARBINARY) => DataType::Blob { size: TextSize::Medium, length: None },
            _ => return self.text_type(kw),
        };
        let mut ty = plain(data);
        // `BLOB COLLATE binary` and their like are left to the binder.
        if self.kw() == Kw::COLLATE {
            ty.collation = self.collate()?;
        }
        Ok(ty)
    }

    /// Whether the reserved word that is next begins a type.
    fn begins_type(&self) -> bool {
        matches!(
            self.kw(),
            Kw::DECIMAL
                | Kw::DEC
                | Kw::NUMERIC
                | Kw::FLOAT
                | Kw::FLOAT4
                | Kw::FLOAT8
                | Kw::DOUBLE
                | Kw::REAL
                | Kw::BINARY
                | Kw::VARBINARY
                | Kw::TINYBLOB
                | Kw::BLOB
                | Kw::MEDIUMBLOB
                | Kw::LONGBLOB
                | Kw::LONG
                | Kw::CHAR
                | Kw::CHARACTER
                | Kw::VARCHAR
                | Kw::VARCHARACTER
                | Kw::TINYTEXT
                | Kw::MEDIUMTEXT
                | Kw::LONGTEXT
                | Kw::SET
        )
    }

    /// A type of characters, after its first word.
    fn text_type(&mut self, kw: Kw) -> Result<ColumnType> {
        let mut national = false;
        let data = match kw {
            Kw::CHAR | Kw::CHARACTER => {
                if self.word(Kw::VARYING) {
                    self.var_char()?
                } else {
                    DataType::Char(self.length()?)
                }
            }
            Kw::VARCHAR | Kw::VARCHARACTER => self.var_char()?,
            Kw::NATIONAL => {
                national = true;
                match self.take().kw {
                    Kw::CHAR | Kw::CHARACTER if self.word(Kw::VARYING) => self.var_char()?,
                    Kw::CHAR | Kw::CHARACTER => DataType::Char(self.length()?),
                    Kw::VARCHAR | Kw::VARCHARACTER => self.var_char()?,
                    _ => return Err(self.error_at(self.last_end)),
                }
            }
            Kw::NCHAR => {
                national = true;
                if self.word(Kw::VARCHAR) || self.word(Kw::VARYING) {
                    self.var_char()?
                } else {
                    DataType::Char(self.length()?)
                }
            }
            Kw::NVARCHAR => {
                national = true;
                self.var_char()?
            }
            Kw::TINYTEXT => DataType::Text { size: TextSize::Tiny, length: None },
            Kw::TEXT => DataType::Text { size: TextSize::Normal, length: self.length()? },
            Kw::MEDIUMTEXT => DataType::Text { size: TextSize::Medium, length: None },
            Kw::LONGTEXT => DataType::Text { size: TextSize::Long, length: None },
            Kw::LONG => {
                if matches!(self.kw(), Kw::CHAR | Kw::CHARACTER) && self.peek(1).is(Kw::VARYING) {
                    self.take();
                    self.take();
                } else {
                    self.any(&[Kw::VARCHAR, Kw::VARCHARACTER]);
                }
                DataType::Text { size: TextSize::Medium, length: None }
            }
            Kw::ENUM => DataType::Enum(self.members()?),
            Kw::SET => DataType::Set(self.members()?),
            _ => return Err(self.error_at(self.last_end.saturating_sub(kw.text().len() as u32))),
        };
        let (mut charset, mut binary) = (national.then(|| "utf8mb3".to_owned()), false);
        if !national {
            loop {
                if charset.is_none() && self.charset_words() {
                    charset = Some(self.charset_name()?);
                } else if charset.is_some() && matches!(self.kw(), Kw::ASCII | Kw::UNICODE | Kw::BYTE) {
                    return Err(self.error());
                } else if self.word(Kw::ASCII) {
                    charset = Some("latin1".to_owned());
                } else if self.word(Kw::UNICODE) {
                    charset = Some("ucs2".to_owned());
                } else if self.word(Kw::BYTE) {
                    charset = Some("binary".to_owned());
                } else if !binary && self.word(Kw::BINARY) {
                    binary = true;
                } else {
                    break;
                }
            }
        } else {
            binary = self.word(Kw::BINARY);
        }
        let collation = if self.kw() == Kw::COLLATE { self.collate()? } else { None };
        Ok(ColumnType { data, charset, binary, collation })
    }

    fn collate(&mut self) -> Result<Option<String>> {
        self.take();
        self.charset_name().map(Some)
    }

    fn var_char(&mut self) -> Result<DataType> {
        match self.length()? {
            Some(length) => Ok(DataType::VarChar(length)),
            None => Err(self.error()),
        }
    }

    fn members(&mut self) -> Result<Vec<String>> {
        self.expect(Kind::Open)?;
        let list = self.list(|parser| match parser.kind() {
            Kind::Hex | Kind::Bits => {
                let (crate::tree::Literal::Hex(bytes) | crate::tree::Literal::Bits(bytes)) = parser.literal()? else {
                    return Err(parser.error());
                };
                String::from_utf8(bytes).map_err(|_| parser.error())
            }
            _ => parser.string(),
        })?;
        self.expect(Kind::Close)?;
        Ok(list)
    }

    fn sign(&mut self) -> Sign {
        let mut sign = Sign::default();
        loop {
            match self.kw() {
                Kw::UNSIGNED => sign.unsigned = true,
                Kw::ZEROFILL => sign.zerofill = true,
                Kw::SIGNED => {}
                _ => return sign,
            }
            self.take();
        }
    }

    /// `(precision)`, `(precision, scale)`
    fn digits(&mut self) -> Result<(Option<u64>, Option<u64>)> {
        if !self.accept(Kind::Open) {
            return Ok((None, None));
        }
        let precision = self.number()?;
        let scale = if self.accept(Kind::Comma) { Some(self.number()?) } else { None };
        self.expect(Kind::Close)?;
        Ok((Some(precision), scale))
    }

    pub(super) fn cast_type(&mut self) -> Result<CastType> {
        let kw = self.kw();
        if SPATIAL.contains(&kw) && kw != Kw::GEOMETRY {
            self.take();
            return Ok(CastType::Spatial(kw.text().to_ascii_lowercase()));
        }
        let known = matches!(
            kw,
            Kw::SIGNED
                | Kw::UNSIGNED
                | Kw::CHAR
                | Kw::CHARACTER
                | Kw::NCHAR
                | Kw::NATIONAL
                | Kw::BINARY
                | Kw::DATE
                | Kw::TIME
                | Kw::DATETIME
                | Kw::YEAR
                | Kw::DECIMAL
                | Kw::DEC
                | Kw::FLOAT
                | Kw::FLOAT4
                | Kw::FLOAT8
                | Kw::DOUBLE
                | Kw::REAL
                | Kw::JSON
        );
        if !known {
            return Err(self.error());
        }
        self.take();
        Ok(match kw {
            Kw::SIGNED | Kw::UNSIGNED => {
                self.any(&[Kw::INT, Kw::INTEGER]);
                if kw == Kw::SIGNED { CastType::Signed } else { CastType::Unsigned }
            }
            Kw::CHAR | Kw::CHARACTER => self.cast_char()?,
            Kw::NCHAR => CastType::NationalChar(self.length()?),
            Kw::NATIONAL => {
                self.any(&[Kw::CHAR, Kw::CHARACTER]).ok_or_else(|| self.error())?;
                CastType::NationalChar(self.length()?)
            }
            Kw::BINARY => CastType::Binary(self.length()?),
            Kw::DATE => CastType::Date,
            Kw::TIME => CastType::Time(self.length()?),
            Kw::DATETIME => CastType::DateTime(self.length()?),
            Kw::YEAR => CastType::Year,
            Kw::DECIMAL | Kw::DEC => {
                let (precision, scale) = self.digits()?;
                CastType::Decimal { precision, scale }
            }
            Kw::FLOAT | Kw::FLOAT4 => CastType::Float(self.length()?),
            Kw::FLOAT8 => CastType::Double,
            Kw::DOUBLE => {
                self.word(Kw::PRECISION);
                CastType::Double
            }
            Kw::REAL if self.mode.real_as_float => CastType::Float(None),
            Kw::REAL => CastType::Double,
            _ => CastType::Json,
        })
    }

    fn cast_char(&mut self) -> Result<CastType> {
        let length = self.length()?;
        let charset = if self.charset_words() {
            Some(self.charset_name()?)
        } else if self.word(Kw::BINARY) {
            if self.charset_words() { Some(self.charset_name()?) } else { None }
        } else if self.word(Kw::ASCII) {
            Some("latin1".to_owned())
        } else if self.word(Kw::UNICODE) {
            Some("ucs2".to_owned())
        } else if self.word(Kw::BYTE) {
            Some("binary".to_owned())
        } else {
            None
        };
        Ok(CastType::Char { length, charset })
    }
}
