use super::*;

#[test]
fn accounts_come_back_as_they_were_put_in() {
    let account = Account {
        name: "ann".into(),
        enabled: true,
        nopass: false,
        passwords: vec![sha256(b"one"), sha256(b"two")],
        rules: "~a:* +get".into(),
    };
    assert_eq!(Account::decode("ann", &account.encode()), Some(account.clone()));
    let bytes = account.encode();
    assert_eq!(Account::decode("ann", &bytes[..40]), None);
}

#[test]
fn any_of_the_passwords_opens_and_no_other() {
    let mut account = Account { enabled: true, passwords: vec![sha256(b"one"), sha256(b"two")], ..Account::new("ann") };
    assert!(account.accepts(&sha256(b"one")) && account.accepts(&sha256(b"two")));
    assert!(!account.accepts(&sha256(b"three")));
    account.enabled = false;
    assert!(!account.accepts(&sha256(b"one")));
    assert!(Account::default_account().accepts(&sha256(b"whatever")));
}

#[test]
fn names_that_no_protocol_could_carry_are_refused() {
    for name in ["", "a b", "a\nb", "a\0", &"x".repeat(NAME_MAX + 1)] {
        assert!(Account::new(name).check().is_err(), "{name:?}");
    }
    assert!(Account::new("ann-1_ä").check().is_ok());
}
