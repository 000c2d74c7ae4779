use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use engine::{Engine, Options};
use os::{SimClock, SimFolder};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use super::*;

const SCRAMBLE_BYTES: [u8; SCRAMBLE_LEN] = *b"01234567890123456789";
const SHA2: &[u8] = b"caching_sha2_password";
const NATIVE: &[u8] = b"mysql_native_password";

struct World {
    engine: Arc<Engine>,
    digest_cache: DigestCache,
    rsa_key: RsaKey,
    is_encrypted: bool,
    is_local: bool,
}

impl World {
    fn new() -> World {
        let mut options = Options::default();
        options.pager.frame_bytes = 16 << 20;
        options.pager.ring_bytes = 1 << 20;
        options.pager.segment_bytes = 4 << 20;
        let engine = Engine::open(options, SimFolder::new(1), Arc::new(SimClock::new(1))).unwrap();
        let (digest_cache, rsa_key) = (DigestCache::default(), RsaKey::default());
        let world = World { engine, digest_cache, rsa_key, is_encrypted: true, is_local: false };
        world.put("sha", |account| account.verifier = Some(Verifier::caching_sha2(b"secret")));
        world.put("native", |account| account.verifier = Some(Verifier::native(b"secret")));
        world.put("redis", |account| account.passwords = vec![sha256(b"secret")]);
        world.put("off", |account| {
            account.passwords = vec![sha256(b"secret")];
            account.enabled = false;
        });
        world
    }

    fn put(&self, name: &str, change: impl FnOnce(&mut Account)) {
        let mut account = Account { enabled: true, ..Account::new(name) };
        change(&mut account);
        self.engine.accounts().put(account).unwrap();
    }

    fn ground(&self) -> LoginContext<'_> {
        LoginContext {
            accounts: self.engine.accounts(),
            digest_cache: &self.digest_cache,
            rsa_key: &self.rsa_key,
            is_encrypted: self.is_encrypted,
            is_local: self.is_local,
            handles_expired: false,
        }
    }

    fn begin(&self, user: &str, plugin: &[u8], response: &[u8]) -> (LoginExchange, LoginStep) {
        LoginExchange::begin(&self.ground(), user, "localhost", SCRAMBLE_BYTES, plugin, response)
    }

    /// Runs a whole login as a client does; returns the number of answers that the client gave.
    fn login(&self, user: &str, password: &str, plugin: &[u8]) -> (bool, usize) {
        let (mut login, mut step) = self.begin(user, plugin, &digest(plugin, password));
        let mut answers = 1;
        loop {
            let answer = match step {
                LoginStep::Accept(account, _) => {
                    assert!(account.enabled);
                    return (true, answers);
                }
                LoginStep::Deny => return (false, answers),
                LoginStep::Say(payload) => match payload[..] {
                    [0xfe, ref rest @ ..] => {
                        let name = rest.split(|byte| *byte == 0).next().unwrap();
                        assert_eq!(rest[name.len() + 1..rest.len() - 1], SCRAMBLE_BYTES);
                        digest(name, password)
                    }
                    [1, SEND_IT_ALL] if self.is_encrypted => [password.as_bytes(), b"\0"].concat(),
                    [1, SEND_IT_ALL] => vec![KEY_WANTED],
                    [1, ref pem @ ..] => sealed(std::str::from_utf8(pem).unwrap(), password),
                    _ => panic!("{payload:?}"),
                },
            };
            step = login.resume(&self.ground(), &answer);
            answers += 1;
        }
    }
}

fn digest(plugin: &[u8], password: &str) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let xor = |one: &[u8], two: &[u8]| one.iter().zip(two).map(|(a, b)| a ^ b).collect();
    if plugin != SHA2 {
        let single = sha1(password.as_bytes());
        xor(&single, &sha1(&[&SCRAMBLE_BYTES[..], &sha1(&single)].concat()))
    } else {
        let single = sha256(password.as_bytes());
        xor(&single, &sha256(&[&sha256(&single)[..], &SCRAMBLE_BYTES].concat()))
    }
}

fn sealed(pem: &str, password: &str) -> Vec<u8> {
    let mut text = [password.as_bytes(), b"\0"].concat();
    text.iter_mut().zip(SCRAMBLE_BYTES.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).unwrap();
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).unwrap()).unwrap();
    let mut sealed = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, &text, &mut sealed, None).unwrap();
    sealed
}

#[test]
fn the_right_password_opens_by_each_method_and_no_other_does() {
    let world = World::new();
    for (user, plugin, answers) in [
        // The second login of an account is the fast one.
        ("sha", SHA2, 2),
        ("sha", SHA2, 1),
        ("sha", NATIVE, 2),
        ("redis", SHA2, 2),
        ("redis", SHA2, 1),
        ("native", NATIVE, 1),
        ("native", SHA2, 2),
        ("native", b"", 1),
    ] {
        let name = String::from_utf8_lossy(plugin);
        assert!(!world.login(user, "Secret", plugin).0, "{user} by {name}");
        assert!(!world.login(user, "", plugin).0, "{user} by {name}");
        assert_eq!(world.login(user, "secret", plugin), (true, answers), "{user} by {name}");
    }
    for (user, plugin) in [("off", SHA2), ("nobody", SHA2), ("off", NATIVE), ("nobody", NATIVE)] {
        assert!(!world.login(user, "secret", plugin).0, "{user}");
    }
}

#[test]
fn without_tls_the_password_comes_sealed() {
    let world = World { is_encrypted: false, ..World::new() };
    assert_eq!(world.login("sha", "secret", SHA2), (true, 3));
    assert_eq!(world.login("sha", "secret", SHA2), (true, 1));
    assert!(!world.login("sha", "wrong", SHA2).0);
    let (mut login, step) = world.begin("redis", SHA2, &digest(SHA2, "secret"));
    assert_eq!(step, LoginStep::Say(vec![1, SEND_IT_ALL]));
    assert_eq!(login.resume(&world.ground(), b"secret\0"), LoginStep::Deny, "a bare password where others listen");
}

#[test]
fn on_the_same_machine_the_password_may_come_as_it_is() {
    let world = World { is_encrypted: false, is_local: true, ..World::new() };
    for (password, step) in [(&b"wrong\0"[..], false), (b"secret", false), (b"\0", false), (b"secret\0", true)] {
        let (mut login, asked) = world.begin("sha", SHA2, &digest(SHA2, "secret"));
        assert_eq!(asked, LoginStep::Say(vec![1, SEND_IT_ALL]));
        assert_eq!(matches!(login.resume(&world.ground(), password), LoginStep::Accept(..)), step, "{password:?}");
    }
    assert_eq!(world.login("redis", "secret", SHA2), (true, 3), "who asks for the key gets it here too");
    let mut long = vec![b'x'; 255];
    world.put("long", |account| account.passwords = vec![sha256(&long)]);
    assert!(world.login("long", &"x".repeat(200), SHA2) == (false, 3));
    long.push(0);
    let (mut login, _) = world.begin("long", SHA2, &digest(SHA2, "y"));
    assert_eq!(
        login.resume(&world.ground(), &long),
        LoginStep::Deny,
        "as long as what is sealed, it is taken for that"
    );
    // An account that requires TLS is not accepted without it.
    world.put("tls", |account| {
        account.passwords = vec![sha256(b"secret")];
        account.needs_tls = true;
    });
    let (mut login, _) = world.begin("tls", SHA2, &digest(SHA2, "secret"));
    assert_eq!(login.resume(&world.ground(), b"secret\0"), LoginStep::Deny);
}

#[test]
fn a_changed_account_is_asked_for_all_again() {
    let world = World::new();
    assert_eq!(world.login("sha", "secret", SHA2), (true, 2));
    world.put("sha", |account| account.verifier = Some(Verifier::caching_sha2(b"other")));
    assert!(!world.login("sha", "secret", SHA2).0, "the old password is forgotten");
    assert_eq!(world.login("sha", "other", SHA2), (true, 2));
}

#[test]
fn an_account_without_password_takes_none_and_root_is_its_name() {
    let world = World::new();
    for user in ["default", "root", ""] {
        for (password, opens) in [("", true), ("whatever", false)] {
            assert_eq!(world.login(user, password, SHA2), (opens, 1), "{user}");
            assert_eq!(world.login(user, password, b""), (opens, 1), "{user}");
            // A client whose method was not offered gets its scramble first.
            assert_eq!(world.login(user, password, NATIVE), (opens, 2), "{user}");
            assert_eq!(world.login(user, password, b"sha256_password"), (opens, 2), "{user}");
        }
    }
    let (login, step) = world.begin("root", SHA2, &digest(SHA2, "x"));
    assert_eq!((login.has_password, step), (true, LoginStep::Deny), "the error says that a password was used");
    world.put("root", |account| account.passwords = vec![sha256(b"secret")]);
    assert!(!world.login("root", "", SHA2).0);
    assert!(world.login("root", "secret", SHA2).0);
}

#[test]
fn nobody_can_tell_an_unknown_name_from_a_wrong_password_by_the_steps() {
    let world = World::new();
    // Unknown names appear to have the methods of known accounts, each always the same one.
    let method = |name: &str| {
        let (login, _) = world.begin(name, b"mysql_clear_password", b"12345");
        login.expects
    };
    let names: Vec<String> = (0..64).map(|nth| format!("nobody{nth}")).collect();
    for of in ["sha", "native"] {
        let like = names.iter().find(|name| method(name) == method(of));
        let like = like.expect("about one of five accounts is native");
        for plugin in [SHA2, NATIVE, b"mysql_clear_password"] {
            for _ in 0..2 {
                assert_eq!(world.begin(of, plugin, b"12345").1, world.begin(like, plugin, b"12345").1);
                let wrong = [0_u8; 20];
                assert_eq!(world.begin(of, plugin, &wrong).1, world.begin(like, plugin, &wrong).1);
            }
        }
    }
}

#[test]
fn scrambles_have_no_byte_that_clients_stumble_over() {
    for _ in 0..500 {
        let scramble = new_scramble();
        assert!(scramble.iter().all(|byte| *byte != 0 && *byte != b'$' && *byte < 128));
    }
}
