//! Authentication: MYSQL41, a challenge that only the password answers, over the one list of accounts.
//!
//! The client answers twenty random bytes with SHA1(password) XOR SHA1(salt + SHA1(SHA1(password))), as hexadecimal digits behind a `*`: the proof of
//! mysql_native_password. An account therefore needs the verifier of that method, or accepts any password, or has none. An account that keeps only a slow hash
//! cannot log in through this protocol, which has no way to request the password itself.

use engine::{Account, Verifier, sha1};

pub const SALT: usize = 20;

/// A client's answer to the challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    pub schema: &'a [u8],
    pub user: &'a [u8],
    proof: Proof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// The client sent no password.
    None,
    Digest([u8; 20]),
    /// The proof is not in the protocol's form.
    Bad,
}

impl<'a> Answer<'a> {
    /// Reads schema, user and proof, separated by zero bytes. Returns `None` if the form is wrong or the user is empty.
    pub fn read(data: &'a [u8]) -> Option<Answer<'a>> {
        let mut parts = data.splitn(3, |byte| *byte == 0);
        let (schema, user) = (parts.next()?, parts.next().filter(|user| !user.is_empty())?);
        let proof = parts.next().unwrap_or_default();
        let proof = match proof.strip_suffix(b"\0").unwrap_or(proof) {
            b"" => Proof::None,
            digits => digest(digits).map_or(Proof::Bad, Proof::Digest),
        };
        Some(Answer { schema, user, proof })
    }

    pub fn has_password(&self) -> bool {
        self.proof != Proof::None
    }
}

/// Decodes `*` and forty digits to twenty bytes.
fn digest(text: &[u8]) -> Option<[u8; 20]> {
    let digits: &[u8; 40] = text.strip_prefix(b"*")?.try_into().ok()?;
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let half = |digit: u8| char::from(digit).to_digit(16).map(|half| half as u8);
        *byte = half(pair[0])? << 4 | half(pair[1])?;
    }
    Some(bytes)
}

/// The result of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Denied,
    /// The password is right, but the account may not log in.
    Locked,
    Expired,
}

/// Judges the answer to `salt`. `account` is the user's account, if there is one; `is_encrypted` says that the connection uses TLS. An unknown user takes the
/// same steps as a wrong password (DX-7).
pub fn judge(account: Option<&Account>, answer: &Answer<'_>, salt: &[u8; SALT], is_encrypted: bool) -> Verdict {
    let proof = match answer.proof {
        Proof::Digest(bytes) => bytes,
        Proof::None | Proof::Bad => [0; 20],
    };
    let double_sha1 = match account.and_then(|account| account.verifier.as_ref()) {
        Some(Verifier::Native { double_sha1 }) => *double_sha1,
        _ => [0; 20],
    };
    let fits = is_proof(proof, &double_sha1, salt);
    let Some(account) = account else { return Verdict::Denied };
    let has_verifier = matches!(account.verifier, Some(Verifier::Native { .. }));
    let is_right = match answer.proof {
        proof if account.nopass => proof == Proof::None,
        Proof::Digest(_) => has_verifier && fits,
        Proof::None => account.has_empty_password(),
        Proof::Bad => false,
    };
    match account {
        _ if !is_right || account.needs_tls && !is_encrypted => Verdict::Denied,
        account if !account.enabled => Verdict::Locked,
        account if account.expired => Verdict::Expired,
        _ => Verdict::Accepted,
    }
}

/// Returns whether the proof was made with the password whose SHA1(SHA1()) is given.
fn is_proof(mut proof: [u8; 20], double_sha1: &[u8; 20], salt: &[u8; SALT]) -> bool {
    let salted = sha1(&[&salt[..], double_sha1].concat());
    proof.iter_mut().zip(salted).for_each(|(byte, salt)| *byte ^= salt);
    let difference = sha1(&proof).iter().zip(double_sha1).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Returns random bytes for a challenge, none of them zero.
pub fn new_salt() -> [u8; SALT] {
    let mut salt = [0; SALT];
    os::entropy(&mut salt).expect("the kernel has random bytes");
    salt.map(|byte| byte.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALTED: &[u8; SALT] = b"ABCDEFGHIJKLMNOPQRST";
    /// For user root, schema db, password secret and that salt.
    const GOLDEN: &[u8] = b"db\0root\0*28441590674285e7d03cae7af237504797f70e91";

    fn account() -> Account {
        Account { enabled: true, verifier: Some(Verifier::native(b"secret")), ..Account::new("root") }
    }

    fn verdict(account: &Account, answer: &[u8]) -> Verdict {
        judge(Some(account), &Answer::read(answer).unwrap(), SALTED, false)
    }

    #[test]
    fn the_golden_answer_opens() {
        let answer = Answer::read(GOLDEN).unwrap();
        assert_eq!((answer.schema, answer.user, answer.has_password()), (&b"db"[..], &b"root"[..], true));
        assert_eq!(verdict(&account(), GOLDEN), Verdict::Accepted);
        assert_eq!(verdict(&account(), &GOLDEN.to_ascii_uppercase()), Verdict::Accepted);
        let Some(Verifier::Native { double_sha1 }) = account().verifier else { unreachable!() };
        assert_eq!(double_sha1[..4], [0x14, 0xe6, 0x55, 0x67]);
    }

    #[test]
    fn nothing_else_does() {
        let wrong = [&GOLDEN[..48], b"2"].concat();
        for answer in [&wrong[..], b"db\0root\0", b"db\0root", b"db\0root\0*2844", b"\0root\0secret"] {
            assert_eq!(verdict(&account(), answer), Verdict::Denied, "{answer:?}");
        }
        let golden = Answer::read(GOLDEN).unwrap();
        assert_eq!(judge(Some(&account()), &golden, b"BBCDEFGHIJKLMNOPQRST", false), Verdict::Denied);
        assert_eq!(judge(None, &golden, SALTED, false), Verdict::Denied);
        let slow = Account { verifier: Some(Verifier::caching_sha2(b"secret")), ..account() };
        assert_eq!(verdict(&slow, GOLDEN), Verdict::Denied);
        let none = Account { verifier: None, ..account() };
        assert_eq!(verdict(&none, b"\0root\0*0000000000000000000000000000000000000000"), Verdict::Denied);
    }

    #[test]
    fn accounts_without_a_password_open_to_those_who_send_none() {
        let empty = Account { verifier: None, passwords: vec![engine::sha256(b"")], ..account() };
        assert_eq!(verdict(&empty, b"\0root\0"), Verdict::Accepted);
        assert_eq!(verdict(&empty, GOLDEN), Verdict::Denied);
        let any = Account { verifier: None, nopass: true, ..account() };
        assert_eq!((verdict(&any, b"\0root\0"), verdict(&any, GOLDEN)), (Verdict::Accepted, Verdict::Denied));
    }

    #[test]
    fn only_who_has_the_password_hears_that_the_account_is_locked() {
        let locked = Account { enabled: false, ..account() };
        assert_eq!((verdict(&locked, GOLDEN), verdict(&locked, b"\0root\0")), (Verdict::Locked, Verdict::Denied));
        let expired = Account { expired: true, ..account() };
        assert_eq!(verdict(&expired, GOLDEN), Verdict::Expired);
        let private = Account { needs_tls: true, ..account() };
        assert_eq!(verdict(&private, GOLDEN), Verdict::Denied);
        assert_eq!(judge(Some(&private), &Answer::read(GOLDEN).unwrap(), SALTED, true), Verdict::Accepted);
    }

    #[test]
    fn nobody_is_no_answer() {
        for bad in [&b""[..], b"db", b"db\0", b"\0\0"] {
            assert_eq!(Answer::read(bad), None, "{bad:?}");
        }
        assert!(new_salt().iter().all(|byte| *byte != 0));
    }
}
