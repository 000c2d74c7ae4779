use super::*;

fn opens(account: &Account, password: &[u8]) -> bool {
    Account::has_password(Some(account), password) && account.enabled
}

#[test]
fn accounts_come_back_as_they_were_put_in() {
    let account = Account {
        name: "ann".into(),
        id: 77,
        enabled: true,
        nopass: false,
        passwords: vec![sha256(b"one"), sha256(b"two")],
        verifier: Some(Verifier::native(b"three")),
        scram: Some(Scram::of(b"two", Some(sha256(b"two")))),
        rules: "~a:* +get".into(),
        grants: Some(vec![7; 3000]),
        needs_tls: true,
        expired: true,
        role: RoleAttributes { is_super: true, valid_until: Some(-5), connections_max: 3, ..Default::default() },
    };
    assert_eq!(Account::decode("ann", &account.encode()), Some(account.clone()));
    let bytes = account.encode();
    assert_eq!(Account::decode("ann", &bytes[..40]), None);
    let account = Account { verifier: None, ..account };
    assert_eq!(Account::decode("ann", &account.encode()), Some(account.clone()));
    let alone = Some(Scram::of(b"four", None));
    for scram in [alone, None] {
        let account = Account { scram, ..account.clone() };
        assert_eq!(Account::decode("ann", &account.encode()), Some(account));
    }
}

#[test]
fn an_account_of_the_first_format_is_read() {
    let digest = sha256(b"one");
    let bytes = [&[1, ENABLED, 1, 0, 0, 0][..], &digest, b"~a:* +get"].concat();
    let account = Account { enabled: true, passwords: vec![digest], rules: "~a:* +get".into(), ..Account::new("ann") };
    assert_eq!(Account::decode("ann", &bytes), Some(account));
    assert_eq!(Account::decode("ann", &[&[6], &bytes[1..]].concat()), None);
}

#[test]
fn an_account_of_the_third_format_is_read() {
    let digest = sha256(b"one");
    let bytes = [&[3, ENABLED | GRANTED, 1, 0, 0, 0][..], &digest, &[0, 2, 0, 0, 0, 7, 7], b"~a:* +get"].concat();
    let (enabled, passwords, grants) = (true, vec![digest], Some(vec![7, 7]));
    let account = Account { enabled, passwords, grants, rules: "~a:* +get".into(), ..Account::new("ann") };
    assert_eq!(Account::decode("ann", &bytes), Some(account));
}

#[test]
fn a_plain_password_gets_a_verifier_that_goes_with_it() {
    let mut account = Account { enabled: true, ..Account::new("ann") };
    account.add_password(b"one");
    account.add_password(b"two");
    let scram = account.scram.clone().expect("the last password has one");
    assert!(scram.verifier.accepts(b"two") && scram.digest == Some(sha256(b"two")));
    account.add_password(b"two");
    assert_eq!(account.scram.as_ref(), Some(&scram), "the same password makes no new one");
    assert!(account.remove_digest(&sha256(b"one")) && account.scram.is_some());
    assert!(account.remove_digest(&sha256(b"two")) && account.scram.is_none());
    assert!(!account.remove_digest(&sha256(b"two")));
    account.set_password(b"three");
    assert!(opens(&account, b"three") && !opens(&account, b"two"));
    account.verifier = None;
    assert!(opens(&account, b"three") && !opens(&account, b"four"), "the verifier for SCRAM suffices");
    account.set_password(b"");
    assert!(account.has_empty_password() && account.scram.is_none());
}

#[test]
fn any_of_the_passwords_opens_and_no_other() {
    let mut account = Account { enabled: true, passwords: vec![sha256(b"one"), sha256(b"two")], ..Account::new("ann") };
    assert!(opens(&account, b"one") && opens(&account, b"two"));
    assert!(!opens(&account, b"three"));
    account.verifier = Some(Verifier::caching_sha2(b"three"));
    assert!(opens(&account, b"one") && opens(&account, b"three") && !opens(&account, b"four"));
    account.enabled = false;
    assert!(!opens(&account, b"one") && !opens(&account, b"three"));
    assert!(opens(&Account::default_account(), b"whatever"));
}

#[test]
fn names_that_no_protocol_could_carry_are_refused() {
    for name in ["", "a b", "a\nb", "a\0", &"x".repeat(NAME_MAX + 1)] {
        assert!(Account::new(name).check().is_err(), "{name:?}");
    }
    assert!(Account::new("ann-1_ä").check().is_ok());
}
