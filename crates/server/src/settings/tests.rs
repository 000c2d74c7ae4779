use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use door_redis::Refused;

use super::load::Arguments;
use super::*;
use crate::exit::{Exit, Failure};

const MACHINE: Machine = Machine { cores: 2, memory_bytes: 10 << 30 };

fn arguments(words: &[&str]) -> Result<Arguments, Failure> {
    Arguments::parse(words.iter().map(OsString::from))
}

fn load(words: &[&str], environment: &[(&str, &str)]) -> Result<Settings, Failure> {
    let environment = environment.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    Settings::load(&arguments(words)?, environment, MACHINE).map(|(settings, _)| settings)
}

/// A temporary settings file of one test, removed when dropped.
struct File(PathBuf);

impl File {
    fn with(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("beluga-settings-{}-{name}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn flags(&self) -> [&str; 2] {
        ["--config", self.0.to_str().unwrap()]
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let file =
        File::with("order", "memory = \"1gb\"\nlog_buffer = \"2mb\"\n[log]\nsegment = \"128mb\"\nlevel = \"info\"\n");
    let [config, path] = file.flags();
    let environment = [("BELUGA_MEMORY", "2gb"), ("BELUGA_LOG_BUFFER", "4mb"), ("HOME", "/")];
    let settings = load(&[config, path, "--memory", "3gb"], &environment).unwrap();
    assert_eq!(settings.number(Name::Memory), 3 << 30);
    assert_eq!(settings.number(Name::LogBuffer), 4 << 20);
    assert_eq!(settings.number(Name::LogSegment), 128 << 20);
    assert_eq!(settings.text(Name::LogLevel), "info");
    assert_eq!(settings.number(Name::CheckpointDistance), 1 << 30);
    assert_eq!(settings.read(Name::LogSegment as usize).1, Source::File);
    let settings = load(&[], &[("BELUGA_CONFIG", path)]).unwrap();
    assert_eq!(settings.number(Name::Memory), 1 << 30);
}

#[test]
fn defaults_come_from_the_machine() {
    assert_eq!(load(&[], &[]).unwrap().number(Name::Memory), 6 << 30);
}

#[test]
fn a_flag_may_be_written_in_four_ways() {
    for words in [&["--log-level=info"][..], &["--log-level", "info"], &["--log_level", "info"], &["--log_level=info"]]
    {
        assert_eq!(load(words, &[]).unwrap().text(Name::LogLevel), "info");
    }
}

#[test]
fn an_error_names_the_setting_and_the_way_out() {
    let file = |text| File::with("errors", text);
    let failed = |words: &[&str], environment: &[(&str, &str)]| load(words, environment).err().expect("refused");
    let check = |failure: Failure, exit, parts: &[&str]| {
        assert_eq!(failure.exit, exit, "{}", failure.message);
        assert!(!failure.message.contains('\n'));
        parts.iter().for_each(|p| assert!(failure.message.contains(p), "no '{p}' in: {}", failure.message));
    };
    check(failed(&["--memroy", "1gb"], &[]), Exit::Usage, &["--memroy", "did you mean memory?", "beluga settings"]);
    check(failed(&["--memory", "much"], &[]), Exit::Config, &["--memory", "a size like 512mb", "'much'"]);
    check(failed(&["--memory", "1kb"], &[]), Exit::Config, &["from 64mb to 16tb"]);
    check(failed(&["--memory"], &[]), Exit::Config, &["--memory: expected a size"]);
    check(
        failed(&[], &[("BELUGA_LOG_LEVEL", "loud")]),
        Exit::Config,
        &["BELUGA_LOG_LEVEL", "one of error, warn, info, debug", "'loud'"],
    );
    check(failed(&["-x"], &[]), Exit::Usage, &["-x", "beluga --help"]);
    for (text, parts) in [
        ("memroy = 1", &["memroy: unknown setting", "did you mean memory?"][..]),
        ("memory = 1.5", &["memory: expected a size"]),
        ("memory = [1]", &["memory: expected a size"]),
        ("log_level = 3", &["log_level: expected one of", "'3'"]),
        ("a = 1\nmemory =", &["line 2"]),
        ("[log]\nlouder = true", &["log_louder: unknown setting"]),
    ] {
        let file = file(text);
        let failure = failed(&file.flags(), &[]);
        assert!(failure.message.contains(file.0.to_str().unwrap()), "{}", failure.message);
        check(failure, Exit::Config, parts);
    }
    check(failed(&["--config", "/no/such/file"], &[]), Exit::Config, &["/no/such/file", "--config or BELUGA_CONFIG"]);
}

#[test]
fn an_unknown_variable_is_only_mentioned() {
    let environment = [("BELUGA_MEMROY".to_string(), "1".to_string()), ("OTHER".to_string(), "2".to_string())];
    let (_, warnings) = Settings::load(&Arguments::default(), environment, MACHINE).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("BELUGA_MEMROY: unknown setting; did you mean memory?"), "{}", warnings[0]);
}

#[test]
fn redis_sees_its_own_names_and_units() {
    let settings = load(&["--memory", "1gb"], &[]).unwrap();
    let all = settings.redis_all();
    let get = |name| all.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
    assert_eq!(get("maxmemory"), Some("1073741824"));
    assert_eq!(get("memory"), Some("1gb"));
    assert_eq!(get("loglevel"), Some("warn"));
    let set = |changes: &[(&str, &str)]| settings.redis_check(changes).map(|checked| settings.redis_apply(checked));
    assert_eq!(set(&[("loglevel", "debug")]), Ok(()));
    assert_eq!(settings.text(Name::LogLevel), "debug");
    assert_eq!(set(&[("no-such", "1")]), Err(Refused::Unknown("no-such".into())));
    let fixed = set(&[("maxmemory", "2gb")]);
    assert!(
        matches!(&fixed, Err(Refused::Bad(name, why)) if name == "maxmemory" && why.contains("next start")),
        "{fixed:?}"
    );
    let bad = set(&[("loglevel", "info"), ("LOGLEVEL", "loud")]);
    assert!(matches!(bad, Err(Refused::Bad(name, expected)) if name == "LOGLEVEL" && expected.contains("one of")));
    assert_eq!(settings.text(Name::LogLevel), "debug", "all or none");
    assert_eq!(get("slowlog-log-slower-than"), Some("10000"));
    assert_eq!(
        set(&[("slowlog-log-slower-than", "-1"), ("protected-mode", "no"), ("proto-max-bulk-len", "2mb")]),
        Ok(())
    );
    let all = settings.redis_all();
    let get = |name| all.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
    assert_eq!(get("slowlog-log-slower-than"), Some("-1"));
    assert_eq!((get("protected-mode"), get("proto-max-bulk-len")), (Some("no"), Some("2097152")));
    assert_eq!((get("appendonly"), get("save"), get("databases")), (Some("yes"), Some(""), Some("16")));
    assert_eq!(set(&[("save", ""), ("appendonly", "yes")]), Ok(()), "what it is already");
    let refusal = |name: &str, value: &str| match set(&[(name, value)]) {
        Err(Refused::Bad(of, why)) if of == name => why,
        other => panic!("{other:?}"),
    };
    assert!(refusal("appendonly", "no").contains("every write goes to the log"));
    assert!(refusal("save", "900 1").contains("on disk already"));
    assert!(refusal("maxmemory", "0").contains("the setting memory, which takes effect at the next start"));
    assert!(refusal("maxclients", "5").contains("max_connections"));
    let memory = settings.number(Name::Memory).to_string();
    assert_eq!(set(&[("maxmemory", &memory), ("maxclients", "10000")]), Ok(()), "what it is already");
}

#[test]
fn listeners_hear_of_changes() {
    let settings = load(&[], &[]).unwrap();
    let heard = Arc::new(AtomicU64::new(0));
    let count = heard.clone();
    settings.on_change(Box::new(move |name, settings| {
        assert_eq!((name, settings.text(name).as_str()), (Name::LogLevel, "info"));
        count.fetch_add(1, Ordering::Relaxed);
    }));
    settings.redis_apply(settings.redis_check(&[("loglevel", "info")]).unwrap());
    assert_eq!(heard.load(Ordering::Relaxed), 1);
}

#[test]
fn rewrite_keeps_what_a_person_wrote() {
    let file = File::with("rewrite", "# mine\nmemory = \"1gb\" # enough\n\n[log]\nlevel = \"warn\" # quiet\n");
    let settings = load(&file.flags(), &[]).unwrap();
    settings.redis_apply(settings.redis_check(&[("loglevel", "debug")]).unwrap());
    settings.rewrite().unwrap();
    let text = std::fs::read_to_string(&file.0).unwrap();
    assert_eq!(text, "# mine\nmemory = \"1gb\" # enough\n\n[log]\nlevel = \"debug\" # quiet\n");
    assert_eq!(load(&file.flags(), &[]).unwrap().text(Name::LogLevel), "debug");

    let bare = File::with("rewrite-bare", "[other]\n");
    std::fs::write(&bare.0, "").unwrap();
    let settings = load(&bare.flags(), &[]).unwrap();
    settings.redis_apply(settings.redis_check(&[("loglevel", "info")]).unwrap());
    settings.rewrite().unwrap();
    assert_eq!(std::fs::read_to_string(&bare.0).unwrap(), "log_level = \"info\"\n");
    assert!(load(&[], &[]).unwrap().rewrite().unwrap_err().contains("without a config file"));
}

#[test]
fn the_lists_for_people_hold_every_setting() {
    let settings = load(&["--log-level", "info"], &[]).unwrap();
    let (help, effective, markdown) = (print::help(), print::effective(&settings), print::markdown());
    for s in list::list() {
        assert!(
            help.contains(&s.flag()) && effective.contains(s.name) && markdown.contains(&format!("| `{}` |", s.name))
        );
    }
    assert!(effective.contains("log_level = \"info\"   (flag)"));
}

#[test]
fn a_loose_name_is_the_setting_and_a_loose_unknown_one_is_only_mentioned() {
    let text =
        "loose_innodb_lock_sys_rec_partition = 120\nloose-innodb-polar-blink-tree = true\nloose_no_such_thing = 1\n";
    let file = File::with("loose", text);
    let load = |words: &[&str]| Settings::load(&arguments(words).unwrap(), [], MACHINE).unwrap();
    let (settings, warnings) = load(&file.flags());
    assert_eq!(settings.number(Name::LockPartitions), 120);
    assert!(settings.is_on(Name::BlinkTree));
    assert!(matches!(&warnings[..], [only] if only.contains("no_such_thing")), "{warnings:?}");
    let (settings, _) = load(&["--loose-thread-pool-size", "4"]);
    assert_eq!(settings.number(Name::ThreadPoolSize), 4);
}

/// The two names of one setting.
const BOTH: [&str; 2] = ["worker_groups", "polarx_rpc_epoll_groups"];

#[test]
fn a_setting_is_accepted_under_its_name_and_its_alias() {
    for name in BOTH {
        let flag = format!("--{}", name.replace('_', "-"));
        let variable = format!("BELUGA_{}", name.to_ascii_uppercase());
        let file = File::with(name, &format!("{name} = 3\n"));
        assert_eq!(load(&[&flag, "3"], &[]).unwrap().number(Name::WorkerGroups), 3, "{flag}");
        assert_eq!(load(&[], &[(&variable, "3")]).unwrap().number(Name::WorkerGroups), 3, "{variable}");
        assert_eq!(load(&file.flags(), &[]).unwrap().number(Name::WorkerGroups), 3, "{name} in the file");
        let [config, path] = file.flags();
        let both = load(&[config, path, "--worker-groups", "4"], &[("BELUGA_POLARX_RPC_EPOLL_GROUPS", "5")]).unwrap();
        assert_eq!(both.number(Name::WorkerGroups), 4, "a later source may use the other name");
    }
    let settings = load(&["--worker-groups", "3"], &[]).unwrap();
    let plain = settings.numbers("polarx_rpc_");
    assert!(plain.contains(&("polarx_rpc_epoll_groups", 3)), "SQL shows the alias: {plain:?}");
    settings.set_number("polarx_rpc_tcp_keep_alive", 7);
    assert_eq!(settings.number(Name::TcpKeepalive), 7_000_000);
    let all = settings.redis_all();
    for name in BOTH {
        assert!(all.iter().any(|(known, value)| *known == name && value == "3"), "CONFIG GET {name}");
    }
}

#[test]
fn both_names_of_a_setting_in_one_source_are_an_error_that_names_both() {
    let file = File::with("both", "polarx_rpc_epoll_groups = 2\n[worker]\ngroups = 3\n");
    let environment = [("BELUGA_WORKER_GROUPS", "2"), ("BELUGA_POLARX_RPC_EPOLL_GROUPS", "2")];
    let flags = ["--worker-groups", "2", "--polarx-rpc-epoll-groups=2"];
    for (failed, names) in [
        (load(&file.flags(), &[]), BOTH),
        (load(&[], &environment), [environment[0].0, environment[1].0]),
        (load(&flags, &[]), ["--worker-groups", "--polarx-rpc-epoll-groups"]),
    ] {
        let failure = failed.err().expect("refused");
        assert_eq!(failure.exit, Exit::Config);
        assert!(names.iter().all(|name| failure.message.contains(name)), "{}", failure.message);
        assert!(failure.message.contains("two names of one setting"), "{}", failure.message);
    }
    assert_eq!(load(&["--worker-groups", "2", "--worker-groups", "4"], &[]).unwrap().number(Name::WorkerGroups), 4);
}

#[test]
fn the_lists_for_people_hold_every_alias() {
    let (effective, markdown) = (print::effective(&load(&[], &[]).unwrap()), print::markdown());
    for alias in list::list().iter().filter_map(|s| s.alias) {
        assert!(effective.contains(&format!("also named {alias}")), "{alias}");
        assert!(markdown.contains(&format!("| `{alias}` |")), "{alias}");
    }
}

#[test]
fn rewrite_keeps_the_alias_that_a_person_wrote() {
    let file = File::with("rewrite-alias", "polarx_rpc_tcp_keep_alive = \"10s\"\n");
    let settings = load(&file.flags(), &[]).unwrap();
    settings.redis_apply(settings.redis_check(&[("tcp-keepalive", "20")]).unwrap());
    settings.rewrite().unwrap();
    assert_eq!(std::fs::read_to_string(&file.0).unwrap(), "polarx_rpc_tcp_keep_alive = \"20s\"\n");
}
