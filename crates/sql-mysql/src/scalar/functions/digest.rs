//! MD5 and the SHA family, for the functions of these names. They are not used for secrets; doors have their own digests.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

pub fn md5(bytes: &[u8]) -> Vec<u8> {
    Md5::digest(bytes).to_vec()
}

pub fn sha1(bytes: &[u8]) -> Vec<u8> {
    Sha1::digest(bytes).to_vec()
}

pub fn sha224(bytes: &[u8]) -> Vec<u8> {
    Sha224::digest(bytes).to_vec()
}

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

pub fn sha384(bytes: &[u8]) -> Vec<u8> {
    Sha384::digest(bytes).to_vec()
}

pub fn sha512(bytes: &[u8]) -> Vec<u8> {
    Sha512::digest(bytes).to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::encode::hex_text;
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        let shown = |digest: Vec<u8>| hex_text(&digest, false);
        assert_eq!(shown(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(shown(md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(shown(sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(shown(sha224(b"abc")), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
        assert_eq!(shown(sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(shown(sha384(b"abc")).starts_with("cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"));
        assert!(shown(sha512(b"abc")).starts_with("ddaf35a193617abacc417349ae204131"));
    }
}
