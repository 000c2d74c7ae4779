use super::*;
use crate::table::{COMMANDS, find, find_full, of_request};

#[test]
fn names_are_unique_and_found_in_any_case() {
    for (at, row) in COMMANDS.iter().enumerate() {
        let found = find_full(row.name.to_uppercase().as_bytes()).expect("in the index");
        assert!(std::ptr::eq(found, row), "{}", row.name);
        assert_eq!(found.index(), at);
    }
    assert!(find(b"nothing").is_none());
    assert!(find(&[b'x'; 100]).is_none());
    assert!(find_full(b"config|nothing").is_none());
    assert!(find(b"config|get").is_none(), "not the name of a request");
}

#[test]
fn subcommands_stand_behind_their_container() {
    for row in COMMANDS.iter().filter(|row| row.is_subcommand()) {
        let container = find(row.name.split('|').next().expect("a name").as_bytes()).expect("it has its own row");
        assert!(container.subcommands().iter().any(|other| other.name == row.name), "{}", row.name);
    }
}

#[test]
fn a_request_finds_its_row_or_the_text_of_redis() {
    let row = |text: &'static str| {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        of_request(&args).map(|row| row.name)
    };
    assert_eq!(row("CONFIG Get x"), Ok("config|get"));
    assert_eq!(row("command"), Ok("command"));
    assert_eq!(row("debug sleep 1"), Ok("debug"));
    assert_eq!(row("acl"), Ok("acl"), "arity refuses it");
    assert_eq!(row("client nope"), Err("ERR unknown subcommand 'nope'. Try CLIENT HELP.".to_owned()));
    assert_eq!(row("nope a"), Err("ERR unknown command 'nope', with args beginning with: 'a' ".to_owned()));
}

#[test]
fn the_document_lists_exactly_what_is_served() {
    let document = include_str!("../../../../docs/protocols/redis.md");
    let served = document.split("## Served").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let (groups, subcommands) = served.split_once("Subcommands:").expect("a list of subcommands");
    let rows = groups.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut listed: Vec<String> = rows
        .filter(|(group, _)| *group != "Group")
        .flat_map(|(_, names)| names.trim_end_matches(" |").split(' ').map(str::to_lowercase).collect::<Vec<_>>())
        .collect();
    for container in subcommands.split('·') {
        let names: Vec<String> = container.split_whitespace().map(str::to_lowercase).collect();
        // DEBUG has subcommands but is not a container.
        listed.extend(names[1..].iter().filter(|_| names[0] != "debug").map(|sub| format!("{}|{sub}", names[0])));
    }
    let mut table: Vec<String> = COMMANDS.iter().map(|row| row.name.to_owned()).collect();
    listed.sort();
    table.sort();
    assert_eq!(listed, table);
}

#[test]
fn passwords_are_not_shown() {
    let shown = |text: &'static str| {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let words = args.iter().enumerate().map(|(at, arg)| String::from_utf8_lossy(super::shown(&args, at, arg)));
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("AUTH pw"), "AUTH (redacted)");
    assert_eq!(shown("hello 3 AUTH bob pw SETNAME x"), "hello 3 AUTH (redacted) (redacted) SETNAME x");
    assert_eq!(shown("ACL SETUSER bob on >pw"), "ACL SETUSER bob (redacted) (redacted)");
    assert_eq!(shown("config set hz 10 requirepass pw"), "config set hz 10 requirepass (redacted)");
    assert_eq!(shown("migrate h 1 k 0 9 AUTH2 bob pw COPY"), "migrate h 1 k 0 9 AUTH2 (redacted) (redacted) COPY");
    assert_eq!(shown("set auth x"), "set auth x");
}

#[test]
fn keys_are_where_the_table_says() {
    let keys = |text: &'static str| {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let keys = of_request(&args).expect("served").keys_of(3, &args);
        let show = |(db, key): &(u8, &[u8])| format!("{db}:{}", String::from_utf8_lossy(key));
        keys.map(|keys| keys.iter().map(show).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(keys("get a").unwrap(), "3:a");
    assert_eq!(keys("mset a 1 b 2").unwrap(), "3:a 3:b");
    assert_eq!(keys("bitop and d a b").unwrap(), "3:d 3:a 3:b");
    assert_eq!(keys("move a 5").unwrap(), "3:a 5:a");
    assert_eq!(keys("copy a b DB 7 REPLACE").unwrap(), "3:a 7:b");
    assert_eq!(keys("object encoding a").unwrap(), "3:a");
    assert_eq!(keys("migrate host 1 a 0 9 AUTH keys").unwrap(), "3:a");
    assert_eq!(keys("migrate host 1  0 9 COPY AUTH2 keys keys KEYS a b").unwrap(), "3:a 3:b");
    assert_eq!(keys("migrate host 1 a 0 9 KEYS b").unwrap(), "");
    assert_eq!(keys("dbsize").unwrap(), "");
    assert!(keys("keys *").is_none());
}

#[test]
fn options_decide_what_is_done_to_a_key() {
    let flags = |text: &'static str| {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let row = find(args[0]).expect("served");
        row.keys[0].flags_in(row.name, &args)
    };
    assert_eq!(flags("set get get"), "OW update", "a key and a value");
    assert_eq!(flags("set a b EX 1 GET"), "RW access update");
    assert_eq!(flags("bitfield a GET u8 0 overflow SAT"), "RO access");
    assert_eq!(flags("bitfield a GET u8 0 SET u8 0 1"), "RW access update");
    assert_eq!(flags("bitfield a nonsense"), "RW access update", "what is unknown may do anything");
    assert_eq!(keys::needs("RM delete"), (false, true));
    assert_eq!(keys::needs("RO"), (false, false));
}
