use os::{RealClock, SimFolder};

use super::*;

fn engine() -> Arc<engine::Engine> {
    let mut sizes = engine::Options::default();
    sizes.pager.frame_bytes = 16 << 20;
    sizes.pager.ring_bytes = 1 << 20;
    sizes.pager.segment_bytes = 4 << 20;
    engine::Engine::open(sizes, SimFolder::new(1), Arc::new(RealClock::new())).expect("an empty folder opens")
}

#[test]
fn an_account_of_a_host_is_no_role() {
    let engine = engine();
    let accounts = engine.accounts();
    for name in ["ann@10.%", "bob"] {
        accounts.put(Account { enabled: true, ..Account::new(name) }).unwrap();
    }
    assert!(find(accounts, "ann").is_none() && find(accounts, "ann@10.%").is_none());
    assert_eq!(find(accounts, "bob").map(|account| account.name.clone()).as_deref(), Some("bob"));
    assert_eq!(find(accounts, "postgres").map(|account| account.name.clone()).as_deref(), Some("default"));
    assert!(find(accounts, "root").is_none());
}

/// An unknown role appears to have a verifier as often as known ones do, and always the same one.
#[test]
fn decoys_look_like_the_accounts() {
    let engine = engine();
    let accounts = engine.accounts();
    let decoys = Decoys::default();
    let seen = |accounts: &Accounts| (0..400).filter(|nth| decoys.has_verifier(accounts, &format!("r{nth}"))).count();
    assert_eq!(seen(accounts), 400, "without accounts with a password, each has one");
    let put = |name: &str, has_verifier: bool| {
        let mut account = Account { enabled: true, ..Account::new(name) };
        account.set_password(b"secret");
        account.scram = account.scram.filter(|_| has_verifier);
        accounts.put(account).unwrap();
    };
    put("ann", true);
    put("bob", false);
    assert!((120..280).contains(&seen(accounts)), "{}", seen(accounts));
    put("ann", false);
    assert_eq!(seen(accounts), 0);
    assert_eq!(decoys.verifier("x"), decoys.verifier("x"));
    assert_ne!(decoys.verifier("x").salt, decoys.verifier("y").salt);
}
