use engine::Account;

use super::rules::{Bad, Draft, join_selectors};
use super::*;
use crate::table;
use crate::users::log::{Access, AccessLog};

/// Returns the account that ACL SETUSER makes of a new one with these words.
fn user(words: &str) -> Result<User, Bad> {
    let mut draft = Draft::new("bob", false);
    let args: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    for word in join_selectors(&args).expect("brackets are closed") {
        draft.change(&word)?;
    }
    Ok(User::new(Arc::new(draft.finish().expect("all of it is text"))))
}

fn rules_of(words: &str) -> String {
    user(words).unwrap_or_else(|bad| panic!("{}", bad.0)).account.rules.clone()
}

fn check(user: &User, request: &'static str) -> Result<(), Denied> {
    let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    user.check(table::of_request(&args).expect("served"), &args)
}

fn check_with(words: &str, request: &'static str) -> Result<(), Denied> {
    check(&user(words).unwrap_or_else(|bad| panic!("{}", bad.0)), request)
}

#[test]
fn rules_apply_in_order() {
    let words = "~app:* %R~shared:* +@all -@dangerous -set +info";
    assert_eq!(check_with(words, "get app:1"), Ok(()));
    assert_eq!(check_with(words, "set app:1 x"), Err(Denied::Command));
    assert_eq!(check_with(words, "flushall"), Err(Denied::Command));
    assert_eq!(check_with(words, "info"), Ok(()));
    assert_eq!(check_with(words, "auth x"), Ok(()), "getting in is never forbidden");
    assert_eq!(check_with(words, "get shared:1"), Ok(()));
    assert_eq!(check_with(words, "append shared:1 x"), Err(Denied::Key(1)));
    assert_eq!(check_with(words, "mget app:1 x"), Err(Denied::Key(2)));
}

#[test]
fn subcommands_and_first_arguments_are_allowed_alone() {
    assert_eq!(check_with("+config|get", "config get x"), Ok(()));
    assert_eq!(check_with("+config|get", "config set x y"), Err(Denied::Command));
    assert_eq!(check_with("+config -config|set", "config get x"), Ok(()));
    assert_eq!(check_with("+config -config|set", "config set x y"), Err(Denied::Command));
    assert_eq!(check_with("+select|0", "select 0"), Ok(()));
    assert_eq!(check_with("+select|0", "select 1"), Err(Denied::Command));
    assert_eq!(check_with("+select|0 -select", "select 0"), Err(Denied::Command));
}

#[test]
fn rules_may_name_commands_of_redis_that_are_not_served() {
    let hardened = user("~* &* +@all -eval -evalsha -@scripting -shutdown -script|flush -client|tracking -debug")
        .unwrap_or_else(|bad| panic!("{}", bad.0));
    assert_eq!(check(&hardened, "get x"), Ok(()));
    assert_eq!(check(&hardened, "debug sleep 0"), Err(Denied::Command));
    assert_eq!(rules_of("~* &* +@all -eval -shutdown"), "~* &* +@all -eval -shutdown");
    // They are kept, so that they take effect when the command is added.
    assert_eq!(rules_of("+@all -@scripting"), "resetchannels +@all -@scripting");
    assert_eq!(rules_of("+script|load +eval|first"), "resetchannels -@all +script|load +eval|first");
    assert_eq!(rules_of("-@all +client|tracking"), "resetchannels -@all +client|tracking");
    assert!(user("+nosuch").is_err() && user("-client|nosuch").is_err() && user("+script|nosuch").is_err());
    // A user to whom only unserved commands are forbidden is checked as fast as an administrator.
    assert!(user("~* +@all -failover").is_ok_and(|user| user.is_unrestricted()));
    assert!(!user("~* +@all -get").is_ok_and(|user| user.is_unrestricted()));
    let many: Vec<String> = (0..3000).map(|nth| format!("+get|{nth}")).collect();
    assert!(user(&many.join(" ")).is_err(), "the list is bounded");
}

#[test]
fn every_command_of_redis_is_in_one_list() {
    use crate::command::unserved::UNSERVED;
    for known in UNSERVED {
        assert!(table::find_full(known.name.as_bytes()).is_none(), "{} is served", known.name);
        assert!(known.categories != 0, "{}", known.name);
    }
}

#[test]
fn a_key_permission_asks_for_what_the_command_does() {
    assert_eq!(check_with("+@all %W~k", "set k v"), Ok(()));
    assert_eq!(check_with("+@all %W~k", "set k v get"), Err(Denied::Key(1)));
    assert_eq!(check_with("+@all %R~k", "set k v"), Err(Denied::Key(1)));
    assert_eq!(check_with("+@all %R~k", "bitfield k get u8 0"), Ok(()));
    assert_eq!(check_with("+@all %R~a %W~b", "copy a b"), Ok(()));
    assert_eq!(check_with("+@all %R~a %W~b", "copy b a"), Err(Denied::Key(1)));
    assert_eq!(check_with("+@all %R~k %W~k", "set k v get"), Ok(()), "both rights are one pattern's");
    assert_eq!(check_with("+@all %R~k* %W~k", "set k v get"), Err(Denied::Key(1)), "no pattern has both rights");
}

#[test]
fn selectors_are_alternatives() {
    let words = "+set ~w:* (+get ~r:*) ( +del %W~d:* )";
    assert_eq!(check_with(words, "set w:1 v"), Ok(()));
    assert_eq!(check_with(words, "get r:1"), Ok(()));
    assert_eq!(check_with(words, "get w:1"), Err(Denied::Key(1)), "not the command of one with the keys of another");
    assert_eq!(check_with(words, "del d:1"), Ok(()));
    assert_eq!(check_with(words, "append w:1 v"), Err(Denied::Command));
    assert_eq!(check_with(&format!("{words} clearselectors"), "get r:1"), Err(Denied::Command));
}

#[test]
fn rules_are_kept_as_words_that_mean_the_same() {
    assert_eq!(rules_of("on"), "resetchannels -@all");
    assert_eq!(rules_of("+@all -config +config|get"), "resetchannels +@all -config +config|get");
    assert_eq!(rules_of("+get +set -get"), "resetchannels -@all +set");
    assert_eq!(rules_of("+@string +get -@bitmap"), "resetchannels -@all +@string", "words that change nothing");
    assert_eq!(rules_of("%RW~* ~a"), "%RW~* ~a resetchannels -@all", "not what allkeys is");
    assert_eq!(rules_of("%R"), "%R~ resetchannels -@all", "the empty pattern");
    assert_eq!(rules_of("+config|get +config"), "resetchannels -@all +config");
    assert_eq!(rules_of("~a %R~b %W~b &ch allchannels"), "~a ~b &* -@all");
    assert_eq!(rules_of("(+get ~x)"), "resetchannels -@all (~x resetchannels -@all +get)");
    for words in [
        "+@all -config +config|get ~a %R~b",
        "%R~* %W~*",
        "+get (+set ~x) (%W~y &c +@string -append)",
        "allkeys +select|3",
    ] {
        let rules = rules_of(words);
        let again = rules::read(&rules).unwrap_or_else(|bad| panic!("{}", bad.0));
        let account = Account { rules: rules.clone(), ..Account::new("bob") };
        assert_eq!(Draft::of(&account, false).finish().expect("text").rules, rules, "{} selectors", again.len());
    }
}

#[test]
fn bad_words_are_refused_with_the_text_of_redis() {
    let bad = |words: &str| user(words).err().map(|bad| bad.0);
    assert_eq!(bad("+nothing"), Some("Unknown command or category name in ACL"));
    assert_eq!(bad("+@nothing"), Some("Unknown command or category name in ACL"));
    assert_eq!(bad("-get|a"), Some("Unknown command or category name in ACL"));
    assert_eq!(bad("+config|get|b"), Some("Allowing first-arg of a subcommand is not supported"));
    assert_eq!(bad("+get|"), Some("Syntax error"));
    assert_eq!(bad("%RR~a"), Some("Syntax error"));
    assert_eq!(bad("%~a"), Some("Syntax error"));
    assert_eq!(bad("%"), Some("Syntax error"));
    assert!(
        bad("~* ~a").is_some_and(|text| text.starts_with("Adding a pattern after the * pattern (or the 'allkeys'"))
    );
    assert!(
        bad("~* %X~a").is_some_and(|text| text.starts_with("Adding a pattern")),
        "before the letters are looked at"
    );
    assert!(bad("#00").is_some_and(|text| text.contains("exactly 64 characters")));
    assert_eq!(bad("<pw"), Some("The password you are trying to remove from the user does not exist"));
    assert_eq!(bad(">pw <pw"), None);
    assert_eq!(bad("+get  on"), None, "an empty word");
    assert_eq!(join_selectors(&[b"+get", b"(a", b"b"]), Err(&b"(a"[..]));
}

#[test]
fn passwords_come_and_go() {
    let account = |words: &str| user(words).unwrap_or_else(|bad| panic!("{}", bad.0)).account.clone();
    assert_eq!(account(">a >b >a").passwords, [engine::sha256(b"a"), engine::sha256(b"b")]);
    assert!(account(">a nopass").passwords.is_empty());
    assert!(account("nopass").nopass);
    assert!(!account("nopass >a").nopass);
    let digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(account(&format!("#{digest}")).passwords, [engine::sha256(b"hello")]);
    assert!(account(&format!(">hello !{digest}")).passwords.is_empty());
    let reset = account("on nopass +@all ~* reset");
    assert_eq!((reset.enabled, reset.nopass, reset.rules.as_str()), (false, false, "resetchannels -@all"));
}

#[test]
fn the_same_refusal_is_one_entry_of_the_log() {
    let log = AccessLog::default();
    let access = |object: &str, at_ms| Access {
        count: 1,
        reason: "key",
        context: "toplevel",
        object: object.into(),
        user: "bob".into(),
        at_ms,
        client: String::new(),
    };
    log.add(access("a", 0), 2);
    log.add(access("b", 10), 2);
    log.add(access("a", 20), 2);
    let seen = |log: &AccessLog| {
        log.newest(10).iter().map(|e| (String::from_utf8_lossy(&e.object).into_owned(), e.count)).collect::<Vec<_>>()
    };
    assert_eq!(seen(&log), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    log.add(access("a", 70_000), 2);
    assert_eq!(seen(&log), [("a".to_owned(), 1), ("a".to_owned(), 2)], "too late to be the same; the oldest leaves");
    log.clear();
    assert!(log.newest(10).is_empty());
}
