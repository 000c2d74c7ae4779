//! The hash of a certificate to which SCRAM-SHA-256-PLUS binds (RFC 5929, section 4.1).

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Returns the value of `tls-server-end-point` for a certificate in DER: its hash by the function of its signature, or by SHA-256 where that is MD5 or SHA-1.
/// `None` if the signature has no hash function of its own, as Ed25519.
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, outer, _) = element(certificate)?;
    let (SEQUENCE, _, rest) = element(outer)? else { return None };
    let (SEQUENCE, algorithm, _) = element(rest)? else { return None };
    let (OBJECT_IDENTIFIER, identifier, _) = element(algorithm)? else { return None };
    let function = match identifier {
        // sha256WithRSAEncryption, ecdsa-with-SHA256, and those with MD5 and SHA-1.
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" | b"\x2a\x86\x48\xce\x3d\x04\x03\x02" => &SHA256,
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04" | b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05" => &SHA256,
        b"\x2a\x86\x48\xce\x3d\x04\x01" => &SHA256,
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" | b"\x2a\x86\x48\xce\x3d\x04\x03\x03" => &SHA384,
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" | b"\x2a\x86\x48\xce\x3d\x04\x03\x04" => &SHA512,
        _ => return None,
    };
    Some(digest(function, certificate).as_ref().to_vec())
}

/// Cuts one element off DER: its tag, its content, and the bytes behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Four bytes of length suffice for any certificate.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_is_hashed_as_its_signature_says() {
        let pem = include_bytes!("../../reactor/tests/it/tls/certificate.pem");
        let certificate = CertificateDer::from_pem_slice(pem).unwrap();
        let hash = end_point(&certificate).expect("a common signature");
        assert_eq!(hash, digest(&SHA256, &certificate).as_ref());
        for length in 0..certificate.len() {
            assert_eq!(end_point(&certificate[..length]), None, "cut to {length} bytes");
        }
        let made = |identifier: &[u8]| {
            let algorithm = [&[OBJECT_IDENTIFIER, identifier.len() as u8][..], identifier].concat();
            let content = [&[SEQUENCE, 0, SEQUENCE, algorithm.len() as u8][..], &algorithm].concat();
            [&[SEQUENCE, content.len() as u8][..], &content].concat()
        };
        assert_eq!(end_point(&made(b"\x2a\x86\x48\xce\x3d\x04\x03\x03")).map(|hash| hash.len()), Some(48));
        assert_eq!(end_point(&made(b"\x2b\x65\x70")), None, "Ed25519");
    }
}
