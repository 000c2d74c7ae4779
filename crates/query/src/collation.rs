//! The names and numbers that MySQL gives to character sets and collations. What they are and how they order is in `datum::collation`.

pub use datum::collation::*;

macro_rules! collation_names {
    ($($name:ident $text:literal $id:literal;)*) => {
        fn collation_row(collation: Collation) -> (&'static str, u16) {
            match collation {
                $(Collation::$name => ($text, $id),)*
            }
        }
    };
}

collation_names! {
    Binary "binary" 63;
    Utf8Uca900AiCi "utf8mb4_0900_ai_ci" 255;
    Utf8GeneralCi "utf8mb4_general_ci" 45;
    Utf8PadBin "utf8mb4_bin" 46;
    Utf8Uca400Ci "utf8mb4_unicode_ci" 224;
    Utf8Uca520Ci "utf8mb4_unicode_520_ci" 246;
    Utf8Bin "utf8mb4_0900_bin" 309;
    Utf8BmpGeneralCi "utf8mb3_general_ci" 33;
    Utf8BmpPadBin "utf8mb3_bin" 83;
    Utf8BmpUca400Ci "utf8mb3_unicode_ci" 192;
    Latin1SwedishCi "latin1_swedish_ci" 8;
    Latin1Bin "latin1_bin" 47;
    AsciiGeneralCi "ascii_general_ci" 11;
    AsciiBin "ascii_bin" 65;
    Dec8SwedishCi "dec8_swedish_ci" 3;
    Dec8Bin "dec8_bin" 69;
    Cp850GeneralCi "cp850_general_ci" 4;
    Cp850Bin "cp850_bin" 80;
    Hp8EnglishCi "hp8_english_ci" 6;
    Hp8Bin "hp8_bin" 72;
    Koi8rGeneralCi "koi8r_general_ci" 7;
    Koi8rBin "koi8r_bin" 74;
    Latin1German1Ci "latin1_german1_ci" 5;
    Latin1DanishCi "latin1_danish_ci" 15;
    Latin1German2Ci "latin1_german2_ci" 31;
    Latin1GeneralCi "latin1_general_ci" 48;
    Latin1GeneralCs "latin1_general_cs" 49;
    Latin1SpanishCi "latin1_spanish_ci" 94;
    Latin2GeneralCi "latin2_general_ci" 9;
    Latin2HungarianCi "latin2_hungarian_ci" 21;
    Latin2CroatianCi "latin2_croatian_ci" 27;
    Latin2Bin "latin2_bin" 77;
    HebrewGeneralCi "hebrew_general_ci" 16;
    HebrewBin "hebrew_bin" 71;
    Koi8uGeneralCi "koi8u_general_ci" 22;
    Koi8uBin "koi8u_bin" 75;
    GreekGeneralCi "greek_general_ci" 25;
    GreekBin "greek_bin" 70;
    Cp1250GeneralCi "cp1250_general_ci" 26;
    Cp1250CroatianCi "cp1250_croatian_ci" 44;
    Cp1250Bin "cp1250_bin" 66;
    Cp1250PolishCi "cp1250_polish_ci" 99;
    Latin5TurkishCi "latin5_turkish_ci" 30;
    Latin5Bin "latin5_bin" 78;
    Armscii8GeneralCi "armscii8_general_ci" 32;
    Armscii8Bin "armscii8_bin" 64;
    Cp866GeneralCi "cp866_general_ci" 36;
    Cp866Bin "cp866_bin" 68;
    Keybcs2GeneralCi "keybcs2_general_ci" 37;
    Keybcs2Bin "keybcs2_bin" 73;
    MacceGeneralCi "macce_general_ci" 38;
    MacceBin "macce_bin" 43;
    MacromanGeneralCi "macroman_general_ci" 39;
    MacromanBin "macroman_bin" 53;
    Cp852GeneralCi "cp852_general_ci" 40;
    Cp852Bin "cp852_bin" 81;
    Latin7EstonianCs "latin7_estonian_cs" 20;
    Latin7GeneralCi "latin7_general_ci" 41;
    Latin7GeneralCs "latin7_general_cs" 42;
    Latin7Bin "latin7_bin" 79;
    Cp1251BulgarianCi "cp1251_bulgarian_ci" 14;
    Cp1251UkrainianCi "cp1251_ukrainian_ci" 23;
    Cp1251Bin "cp1251_bin" 50;
    Cp1251GeneralCi "cp1251_general_ci" 51;
    Cp1251GeneralCs "cp1251_general_cs" 52;
    Cp1256GeneralCi "cp1256_general_ci" 57;
    Cp1256Bin "cp1256_bin" 67;
    Cp1257LithuanianCi "cp1257_lithuanian_ci" 29;
    Cp1257Bin "cp1257_bin" 58;
    Cp1257GeneralCi "cp1257_general_ci" 59;
    Geostd8GeneralCi "geostd8_general_ci" 92;
    Geostd8Bin "geostd8_bin" 93;
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
    Latin1 "latin1" Latin1SwedishCi "cp1252 West European";
    Utf8Bmp "utf8mb3" Utf8BmpGeneralCi "UTF-8 Unicode";
    Utf8 "utf8mb4" Utf8Uca900AiCi "UTF-8 Unicode";
}

/// MySQL's words for a collation.
pub trait CollationName: Sized {
    /// The server's default, utf8mb4_0900_ai_ci.
    const DEFAULT: Collation = Collation::Utf8Uca900AiCi;

    fn name(self) -> &'static str;

    /// The number on the wire, in information_schema and in the catalog.
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
        collation_row(self).0
    }

    fn id(self) -> u16 {
        collation_row(self).1
    }

    fn by_id(id: u16) -> Option<Collation> {
        Collation::ALL.iter().copied().find(|collation| collation.id() == id)
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
        assert_eq!(Charset::by_name("gbk"), None);
    }
}
