//! MYSQL41: the client proves that it knows a password without sending it, as mysql_native_password does.

use sha1::{Digest, Sha1};

/// `schema NUL user NUL proof`. The schema stays empty: requests name theirs. The proof of no password is empty.
pub fn response(user: &str, password: &str, salt: &[u8], schema: &str) -> Vec<u8> {
    let mut out = [schema.as_bytes(), b"\0", user.as_bytes(), b"\0"].concat();
    if !password.is_empty() {
        let once = Sha1::digest(password.as_bytes());
        let twice = Sha1::digest(once);
        let mixed = Sha1::new().chain_update(salt).chain_update(twice).finalize();
        out.push(b'*');
        out.extend(once.iter().zip(mixed).flat_map(|(a, b)| format!("{:02x}", a ^ b).into_bytes()));
    }
    out
}
