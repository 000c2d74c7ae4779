//! Base64 with the alphabet of RFC 4648, section 4, as SQL reads and writes it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Padding is required. Bits of the last digit that no byte holds are ignored.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Returns the text without line breaks, padded with `=`.
pub fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Returns the bytes of a padded text; white space in it is skipped. `None` for anything else.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_with_spaces_and_padding() {
        for (text, bytes) in
            [("", &b""[..]), ("QQ==", b"A"), ("Q Q\n= =", b"A"), ("QR==", b"A"), ("QUI=", b"AB"), ("QUJD", b"ABC")]
        {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Q", "QQ", "QQ=", "Q===", "====", "QQ==QQ==", "QQ-=", "=QQ="] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
        assert_eq!([encode(b"A"), encode(b"AB"), encode(b"ABC"), encode(b"")], ["QQ==", "QUI=", "QUJD", ""]);
    }
}
