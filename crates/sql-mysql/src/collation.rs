//! The names and numbers that MySQL gives to character sets and collations. `datum::collation` has the order of each.

pub use datum::collation::*;

macro_rules! collation_names {
    ($($name:ident $text:literal;)*) => {
        fn collation_name(collation: Collation) -> &'static str {
            match collation {
                $(Collation::$name => $text,)*
            }
        }
    };
}

collation_names! {
    Binary "binary";
    Utf8Uca900AiCi "utf8mb4_0900_ai_ci";
    Utf8Uca900AsCi "utf8mb4_0900_as_ci";
    Utf8Uca900AsCs "utf8mb4_0900_as_cs";
    Utf8GeneralCi "utf8mb4_general_ci";
    Utf8PadBin "utf8mb4_bin";
    Utf8Uca400Ci "utf8mb4_unicode_ci";
    Utf8Uca520Ci "utf8mb4_unicode_520_ci";
    Utf8Bin "utf8mb4_0900_bin";
    Utf8BmpGeneralCi "utf8mb3_general_ci";
    Utf8BmpPadBin "utf8mb3_bin";
    Utf8BmpUca400Ci "utf8mb3_unicode_ci";
    Utf8BmpUca520Ci "utf8mb3_unicode_520_ci";
    Latin1SwedishCi "latin1_swedish_ci";
    Latin1Bin "latin1_bin";
    AsciiGeneralCi "ascii_general_ci";
    AsciiBin "ascii_bin";
    Dec8SwedishCi "dec8_swedish_ci";
    Dec8Bin "dec8_bin";
    Cp850GeneralCi "cp850_general_ci";
    Cp850Bin "cp850_bin";
    Hp8EnglishCi "hp8_english_ci";
    Hp8Bin "hp8_bin";
    Koi8rGeneralCi "koi8r_general_ci";
    Koi8rBin "koi8r_bin";
    Latin1German1Ci "latin1_german1_ci";
    Latin1DanishCi "latin1_danish_ci";
    Latin1German2Ci "latin1_german2_ci";
    Latin1GeneralCi "latin1_general_ci";
    Latin1GeneralCs "latin1_general_cs";
    Latin1SpanishCi "latin1_spanish_ci";
    Latin2GeneralCi "latin2_general_ci";
    Latin2HungarianCi "latin2_hungarian_ci";
    Latin2CroatianCi "latin2_croatian_ci";
    Latin2Bin "latin2_bin";
    HebrewGeneralCi "hebrew_general_ci";
    HebrewBin "hebrew_bin";
    Koi8uGeneralCi "koi8u_general_ci";
    Koi8uBin "koi8u_bin";
    GreekGeneralCi "greek_general_ci";
    GreekBin "greek_bin";
    Cp1250GeneralCi "cp1250_general_ci";
    Cp1250CroatianCi "cp1250_croatian_ci";
    Cp1250Bin "cp1250_bin";
    Cp1250PolishCi "cp1250_polish_ci";
    Latin5TurkishCi "latin5_turkish_ci";
    Latin5Bin "latin5_bin";
    Armscii8GeneralCi "armscii8_general_ci";
    Armscii8Bin "armscii8_bin";
    Cp866GeneralCi "cp866_general_ci";
    Cp866Bin "cp866_bin";
    Keybcs2GeneralCi "keybcs2_general_ci";
    Keybcs2Bin "keybcs2_bin";
    MacceGeneralCi "macce_general_ci";
    MacceBin "macce_bin";
    MacromanGeneralCi "macroman_general_ci";
    MacromanBin "macroman_bin";
    Cp852GeneralCi "cp852_general_ci";
    Cp852Bin "cp852_bin";
    Latin7EstonianCs "latin7_estonian_cs";
    Latin7GeneralCi "latin7_general_ci";
    Latin7GeneralCs "latin7_general_cs";
    Latin7Bin "latin7_bin";
    Cp1251BulgarianCi "cp1251_bulgarian_ci";
    Cp1251UkrainianCi "cp1251_ukrainian_ci";
    Cp1251Bin "cp1251_bin";
    Cp1251GeneralCi "cp1251_general_ci";
    Cp1251GeneralCs "cp1251_general_cs";
    Cp1256GeneralCi "cp1256_general_ci";
    Cp1256Bin "cp1256_bin";
    Cp1257LithuanianCi "cp1257_lithuanian_ci";
    Cp1257Bin "cp1257_bin";
    Cp1257GeneralCi "cp1257_general_ci";
    Geostd8GeneralCi "geostd8_general_ci";
    Geostd8Bin "geostd8_bin";
    Swe7SwedishCi "swe7_swedish_ci";
    Swe7Bin "swe7_bin";
    Big5ChineseCi "big5_chinese_ci";
    Big5Bin "big5_bin";
    UjisJapaneseCi "ujis_japanese_ci";
    UjisBin "ujis_bin";
    SjisJapaneseCi "sjis_japanese_ci";
    SjisBin "sjis_bin";
    EuckrKoreanCi "euckr_korean_ci";
    EuckrBin "euckr_bin";
    Gb2312ChineseCi "gb2312_chinese_ci";
    Gb2312Bin "gb2312_bin";
    GbkChineseCi "gbk_chinese_ci";
    GbkBin "gbk_bin";
    Cp932JapaneseCi "cp932_japanese_ci";
    Cp932Bin "cp932_bin";
    EucjpmsJapaneseCi "eucjpms_japanese_ci";
    EucjpmsBin "eucjpms_bin";
    Gb18030ChineseCi "gb18030_chinese_ci";
    Gb18030Bin "gb18030_bin";
    Gb18030Uca520Ci "gb18030_unicode_520_ci";
    Ucs2GeneralCi "ucs2_general_ci";
    Ucs2Bin "ucs2_bin";
    Ucs2Uca400Ci "ucs2_unicode_ci";
    Ucs2Uca520Ci "ucs2_unicode_520_ci";
    Utf16GeneralCi "utf16_general_ci";
    Utf16Bin "utf16_bin";
    Utf16Uca400Ci "utf16_unicode_ci";
    Utf16Uca520Ci "utf16_unicode_520_ci";
    Utf16LeGeneralCi "utf16le_general_ci";
    Utf16LeBin "utf16le_bin";
    Utf32GeneralCi "utf32_general_ci";
    Utf32Bin "utf32_bin";
    Utf32Uca400Ci "utf32_unicode_ci";
    Utf32Uca520Ci "utf32_unicode_520_ci";
}

macro_rules! charset_names {
    ($($name:ident $text:literal $collation:ident $description:literal;)*) => {
        fn charset_row(charset: Charset) -> (&'static str, Collation, &'static str) {
            match charset {
                $(Charset::$name => ($text, Collation::$collation, $description),)*
            }
        }
    };
}

// Name, default collation, description.
charset_names! {
    Binary "binary" Binary "Binary pseudo charset";
    Ascii "ascii" AsciiGeneralCi "US ASCII";
    Dec8 "dec8" Dec8SwedishCi "DEC West European";
    Cp850 "cp850" Cp850GeneralCi "DOS West European";
    Hp8 "hp8" Hp8EnglishCi "HP West European";
    Koi8r "koi8r" Koi8rGeneralCi "KOI8-R Relcom Russian";
    Latin2 "latin2" Latin2GeneralCi "ISO 8859-2 Central European";
    Hebrew "hebrew" HebrewGeneralCi "ISO 8859-8 Hebrew";
    Koi8u "koi8u" Koi8uGeneralCi "KOI8-U Ukrainian";
    Greek "greek" GreekGeneralCi "ISO 8859-7 Greek";
    Cp1250 "cp1250" Cp1250GeneralCi "Windows Central European";
    Latin5 "latin5" Latin5TurkishCi "ISO 8859-9 Turkish";
    Armscii8 "armscii8" Armscii8GeneralCi "ARMSCII-8 Armenian";
    Cp866 "cp866" Cp866GeneralCi "DOS Russian";
    Keybcs2 "keybcs2" Keybcs2GeneralCi "DOS Kamenicky Czech-Slovak";
    Macce "macce" MacceGeneralCi "Mac Central European";
    Macroman "macroman" MacromanGeneralCi "Mac West European";
    Cp852 "cp852" Cp852GeneralCi "DOS Central European";
    Latin7 "latin7" Latin7GeneralCi "ISO 8859-13 Baltic";
    Cp1251 "cp1251" Cp1251GeneralCi "Windows Cyrillic";
    Cp1256 "cp1256" Cp1256GeneralCi "Windows Arabic";
    Cp1257 "cp1257" Cp1257GeneralCi "Windows Baltic";
    Geostd8 "geostd8" Geostd8GeneralCi "GEOSTD8 Georgian";
    Swe7 "swe7" Swe7SwedishCi "7bit Swedish";
    Latin1 "latin1" Latin1SwedishCi "cp1252 West European";
    Gb2312 "gb2312" Gb2312ChineseCi "GB2312 Simplified Chinese";
    Gbk "gbk" GbkChineseCi "GBK Simplified Chinese";
    Big5 "big5" Big5ChineseCi "Big5 Traditional Chinese";
    Sjis "sjis" SjisJapaneseCi "Shift-JIS Japanese";
    Cp932 "cp932" Cp932JapaneseCi "SJIS for Windows Japanese";
    Ujis "ujis" UjisJapaneseCi "EUC-JP Japanese";
    Eucjpms "eucjpms" EucjpmsJapaneseCi "UJIS for Windows Japanese";
    Euckr "euckr" EuckrKoreanCi "EUC-KR Korean";
    Gb18030 "gb18030" Gb18030ChineseCi "China National Standard GB18030";
    Utf16 "utf16" Utf16GeneralCi "UTF-16 Unicode";
    Ucs2 "ucs2" Ucs2GeneralCi "UCS-2 Unicode";
    Utf32 "utf32" Utf32GeneralCi "UTF-32 Unicode";
    Utf16Le "utf16le" Utf16LeGeneralCi "UTF-16LE Unicode";
    Utf8Bmp "utf8mb3" Utf8BmpGeneralCi "UTF-8 Unicode";
    Utf8 "utf8mb4" Utf8Uca900AiCi "UTF-8 Unicode";
}

/// MySQL's words for a collation.
pub trait CollationName: Sized {
    /// The server's default, utf8mb4_0900_ai_ci.
    const DEFAULT: Collation = Collation::Utf8Uca900AiCi;

    fn name(self) -> &'static str;

    /// The number on the wire and in information_schema. Collations have the same number in files.
    fn id(self) -> u16;

    fn by_id(id: u16) -> Option<Self>;

    /// By name, in any case.
    fn by_name(name: &str) -> Option<Self>;

    /// The `_bin` collation of the same character set.
    #[must_use]
    fn binary_twin(self) -> Self;
}

impl CollationName for Collation {
    fn name(self) -> &'static str {
        collation_name(self)
    }

    fn id(self) -> u16 {
        self.code()
    }

    fn by_id(id: u16) -> Option<Collation> {
        Collation::of_code(id)
    }

    fn by_name(name: &str) -> Option<Collation> {
        let wanted = name.to_ascii_lowercase();
        let wanted = match wanted.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => wanted,
        };
        Collation::ALL.iter().copied().find(|collation| collation.name() == wanted)
    }

    fn binary_twin(self) -> Collation {
        match self.charset() {
            Charset::Binary => Collation::Binary,
            Charset::Utf8 => Collation::Utf8PadBin,
            charset => {
                let is_twin = |other: &Collation| other.charset() == charset && other.name().ends_with("_bin");
                Collation::ALL.iter().copied().find(is_twin).unwrap_or(Collation::Utf8PadBin)
            }
        }
    }
}

/// MySQL's words for a character set.
pub trait CharsetName: Sized {
    fn name(self) -> &'static str;

    fn description(self) -> &'static str;

    fn default_collation(self) -> Collation;

    /// By name, in any case.
    fn by_name(name: &str) -> Option<Self>;
}

impl CharsetName for Charset {
    fn name(self) -> &'static str {
        charset_row(self).0
    }

    fn description(self) -> &'static str {
        charset_row(self).2
    }

    fn default_collation(self) -> Collation {
        charset_row(self).1
    }

    fn by_name(name: &str) -> Option<Charset> {
        let wanted = name.to_ascii_lowercase();
        let wanted = if wanted == "utf8" { "utf8mb3" } else { &wanted };
        Charset::ALL.iter().copied().find(|charset| charset.name() == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        for collation in Collation::ALL {
            assert_eq!(Collation::by_name(collation.name()), Some(*collation));
            assert_eq!(Collation::by_id(collation.id()), Some(*collation));
        }
        assert_eq!(Collation::by_name("utf8_general_ci"), Some(Collation::Utf8BmpGeneralCi));
        assert_eq!(Collation::by_name("nope"), None);
        for charset in Charset::ALL {
            assert_eq!(Charset::by_name(charset.name()), Some(*charset));
            assert_eq!(charset.default_collation().charset(), *charset);
        }
        assert_eq!(Charset::by_name("tis620"), None);
    }
}
