//! Scripts: their atomicity, their bounds, and what is left of them.

use super::*;

const KILLED: &str = "-ERR Script killed by user with SCRIPT KILL...";
const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

fn eval(client: &mut Client, script: &str, keys: &[&str]) -> String {
    send_eval(client, script, keys);
    client.receive()
}

fn send_eval(client: &mut Client, script: &str, keys: &[&str]) {
    let count = keys.len().to_string();
    client.send(&[&["EVAL", script, &count], keys].concat());
}

/// DR-10, EN-79.
#[test]
fn a_script_that_meets_a_held_key_runs_again_unseen() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(other.call("SUBSCRIBE news"), "*3 $9 subscribe $4 news :1");
    let (engine, reruns) = (served.engine.clone(), || served.engine.metrics().key_txn_reruns.get());
    let script =
        "redis.call('incr','a') redis.call('publish','news',redis.call('get','a')) return redis.call('incr','b')";
    let held = engine.keyspace().write::<(), engine::Error>(engine::KeySet::Keys(&[(0, b"b")]), true, |txn| {
        send_eval(&mut client, script, &[]);
        while reruns() == 0 {
            std::thread::yield_now();
        }
        txn.put_string(0, b"b", b"41", engine::Expire::None)?;
        Ok(())
    });
    held.expect("it commits");
    assert_eq!(client.receive(), ":42");
    assert_eq!(client.call("GET a"), "$1 1");
    assert_eq!(other.receive(), "*3 $7 message $4 news $1 1");
    served.stop();
}

#[test]
fn an_error_of_lua_keeps_what_was_written_and_exec_goes_on() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    assert!(
        eval(&mut client, "redis.call('set','k','1') error('x')", &["k"]).starts_with("-ERR user_script:1: x script")
    );
    assert_eq!(client.call("GET k"), "$1 1");
    client.call("MULTI");
    send_eval(&mut client, "return redis.call('incr','undeclared')", &[]);
    assert_eq!(client.receive(), "+QUEUED");
    client.call("GET undeclared");
    assert_eq!(client.call("EXEC"), "*2 :1 $1 1");
    served.stop();
}

/// As in Redis, which knows what a client may cache a script's reply under.
#[test]
fn a_client_tracks_the_keys_that_a_reading_script_declares() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    client.call("HELLO 3");
    assert_eq!(client.call("CLIENT TRACKING ON"), "+OK");
    let reading = "return redis.call('exists', 'undeclared')";
    for (script, is_told) in [("redis.call('ping')", false), ("redis.call('set', 'c', '1')", false), (reading, true)] {
        eval(&mut client, script, &["a", "b"]);
        assert_eq!(other.call("MSET b 1 a 1"), "+OK");
        other.call("SET undeclared 1");
        let told = if is_told { vec!["b", "a", "undeclared"] } else { vec![] };
        for key in told {
            let parts = [client.receive(), client.receive(), client.receive()];
            let expected = [">2".to_owned(), "$10 invalidate".to_owned(), format!("*1 ${} {key}", key.len())];
            assert_eq!(parts, expected, "{script}");
        }
        assert_eq!(client.call("PING"), "+PONG", "{script}");
    }
    served.stop();
}

fn slow_log(client: &mut Client) -> Vec<String> {
    let entries = client.call("SLOWLOG GET");
    // The arguments stand between the time and the address.
    let shown =
        |entry: &str| entry.split(" $").skip(1).filter_map(|word| word.split(' ').nth(1)).collect::<Vec<_>>().join(" ");
    entries.split("*6").skip(1).map(|entry| shown(entry.trim_end())).collect()
}

#[test]
fn the_slow_log_has_the_commands_of_scripts_and_served_waits() {
    let served = Served::start();
    let (mut client, mut waiting) = (Client::connect(served.address), Client::connect(served.address));
    served.door.set_slow_log(0, 128);
    eval(&mut client, "redis.call('set','a','1') return redis.call('get','a')", &[]);
    let log = slow_log(&mut client);
    assert_eq!(log[1..3], ["get a ?:0", "set a 1 ?:0"], "{log:?}");
    waiting.send(&["BLPOP", "list", "0"]);
    while !client.call("CLIENT LIST").contains("flags=b") {}
    for request in ["MULTI", "RPUSH list x", "SLOWLOG RESET"] {
        client.call(request);
    }
    assert_eq!(client.call("EXEC"), "*2 :1 +OK");
    assert_eq!(waiting.receive(), "*2 $4 list $1 x");
    let log = slow_log(&mut client);
    assert!(log[0].starts_with("BLPOP list 0 127.0.0.1:"), "{log:?}");
    // A wait in vain is no entry.
    assert_eq!(client.call("SLOWLOG RESET"), "+OK");
    assert_eq!(waiting.call("BLPOP list 0.01"), "*-1");
    let log = slow_log(&mut client);
    assert!(!log.concat().contains("BLPOP"), "{log:?}");
    let stats = client.call("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=2,"), "{stats}");
    served.stop();
}

/// The replies are those of Redis with the mend of CVE-2025-46817. Without the check the first script ends the process.
#[test]
fn ranges_of_unpack_that_overflow_are_refused() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let refused = "-ERR user_script:1: too many results to unpack script: ";
    for range in ["-2, 2147483647", "0, 2147483647", "-2147483648, -2", "1, 1e300", "-1e300, 1", "0/0", "1, 7998"] {
        let script = format!("return select('#', unpack({{1,2,3}}, {range}))");
        let reply = eval(&mut client, &script, &[]);
        assert!(reply.starts_with(refused) && reply.ends_with(", on @user_script:1."), "{range}: {reply}");
    }
    for (range, expected) in [
        ("-1, 5", ":7"),
        ("-2147483648, -2147483646", ":3"),
        ("1, -1", ":0"),
        ("'2', 3.7", ":2"),
        ("1, 7997", ":7997"),
        ("2", ":2"),
    ] {
        let script = format!("return select('#', unpack({{1,2,3}}, {range}))");
        assert_eq!(eval(&mut client, &script, &[]), expected, "{range}");
    }
    for (arguments, expected) in [
        ("1", "-ERR user_script:1: bad argument #1 to \\'unpack\\' (table expected, got number) script: "),
        ("{}, 'x'", "-ERR user_script:1: bad argument #2 to \\'unpack\\' (number expected, got string) script: "),
        ("{}, 1, {}", "-ERR user_script:1: bad argument #3 to \\'unpack\\' (number expected, got table) script: "),
    ] {
        let reply = eval(&mut client, &format!("return {{unpack({arguments})}}"), &[]);
        assert!(reply.starts_with(expected), "{arguments}: {reply}");
    }
    served.stop();
}

#[test]
fn a_library_sees_the_version_while_it_is_loaded() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let code = "#!lua name=versions\nlocal text = redis.REDIS_VERSION .. ' ' .. redis.REDIS_VERSION_NUM\n\
        redis.register_function('version', function() return text end)";
    client.send(&["FUNCTION", "LOAD", code]);
    assert_eq!(client.receive(), "$8 versions");
    client.send(&["FCALL", "version", "0"]);
    assert_eq!(client.receive(), "$13 7.0.15 458767");
    served.stop();
}

/// DR-11, RL-2, RL-3, EN-80.
#[test]
fn scripts_that_do_not_end_are_killed_wherever_they_are() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(other.call("CONFIG SET busy-reply-threshold 20"), "+OK");
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local co = coroutine.wrap(function() while true do end end) co()",
        "return string.find(('a'):rep(30000), ('a*'):rep(8)..'b')",
        "while true do string.rep('', 1e15) end",
        "while true do redis.pcall('get', KEYS[1]) end",
    ] {
        send_eval(&mut client, script, &["k"]);
        while other.call("GET k") != BUSY {}
        assert_eq!(other.call("GET elsewhere"), "$-1", "{script}");
        assert_eq!(other.call("SCRIPT KILL"), "+OK", "{script}");
        let reply = client.receive();
        assert!(reply.starts_with(KILLED), "{script}: {reply}");
        assert_eq!(other.call("GET k"), "$-1");
    }
    assert_eq!(other.call("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.");
    served.stop();
}

#[test]
fn a_script_that_has_written_ends_with_its_client_and_leaves_nothing() {
    let served = Served::start();
    let (mut client, mut other) = (Client::connect(served.address), Client::connect(served.address));
    assert_eq!(other.call("CONFIG SET busy-reply-threshold 20"), "+OK");
    send_eval(&mut client, "redis.call('set', KEYS[1], '1') while true do end", &["k"]);
    while other.call("GET k") != BUSY {}
    assert!(other.call("SCRIPT KILL").starts_with("-UNKILLABLE "));
    assert!(other.call("FUNCTION KILL").starts_with("-BUSY "));
    drop(client);
    while other.call("GET k") == BUSY {}
    assert_eq!(other.call("GET k"), "$-1");
    served.stop();
}

/// RL-4.
#[test]
fn memory_and_recursion_of_a_script_are_bounded() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for script in [
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end",
        "return ('x'):rep(1e10)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} t[1] = t t[2] = t return t",
    ] {
        let reply = eval(&mut client, script, &[]);
        assert!(reply.starts_with("-ERR ") && reply.contains("not enough memory"), "{script}: {reply:.200}");
    }
    // Redis asks no metatable for the parts of a reply, so this one ends.
    assert_eq!(eval(&mut client, "return setmetatable({}, {__index = function() return 'x' end})", &[]), "*0");
    for script in [
        "local function f() return 1 + f() end return f()",
        "local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
        "return cjson.decode(('['):rep(1e6))",
        "return cmsgpack.unpack(('\\145'):rep(1e6))",
        "return loadstring('return ' .. ('('):rep(1e5))()",
        "return string.find(('a'):rep(1e5), ('a?'):rep(1e5))",
    ] {
        let reply = eval(&mut client, script, &[]);
        assert!(reply.starts_with("-ERR "), "{script}: {reply:.200}");
    }
    assert_eq!(eval(&mut client, "return 1", &[]), ":1");
    served.stop();
}

/// RL-1.
#[test]
fn nothing_of_a_script_is_left_to_the_next() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for script in [
        "table.insert(string, 'left') return 1",
        "table.insert(_G, 'left') return 1",
        "pcall(function() getmetatable('').__index.upper = nil end) return 1",
        "for _, real in pairs(redis) do end pcall(rawset, redis, 'call', nil) return 1",
        "local walk, redis_table = pairs(redis) pcall(function() redis_table.call = nil end) return 1",
        "cjson.encode_max_depth(1) collectgarbage('stop') return 1",
    ] {
        assert_eq!(eval(&mut client, script, &[]), ":1", "{script}");
    }
    let look =
        "return {string[1] or 'none', rawget(_G, 1) or 'none', ('x'):upper(), cjson.encode({{{}}}), type(redis.call)}";
    assert_eq!(eval(&mut client, look, &[]), "*5 $4 none $4 none $1 X $6 [[{}]] $8 function");
    served.stop();
}

#[test]
fn values_have_the_types_of_resp3() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    client.call("HELLO 3");
    client.call("HSET h f v");
    for (script, reply) in [
        ("return {true, false}", "*2 :1 _"),
        ("redis.setresp(3) return {true, false}", "*2 #t #f"),
        ("return {double = 3.5}", ",3.5"),
        ("return {map = {a = 1}}", "%1 $1 a :1"),
        ("return {set = {a = true}}", "~1 $1 a"),
        ("return {big_number = '12'}", "(12"),
        ("return {verbatim_string = {format = 'txt', string = 'abc'}}", "=7 txt:abc"),
        ("return redis.call('hgetall', 'h')", "*2 $1 f $1 v"),
        ("redis.setresp(3) return redis.call('hgetall', 'h')", "%1 $1 f $1 v"),
        ("return nil", "_"),
    ] {
        assert_eq!(eval(&mut client, script, &[]), reply, "{script}");
    }
    served.stop();
}

#[test]
fn libraries_of_functions_survive_the_server() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let filler = "-".repeat(5000);
    for (name, number) in [("one", 1), ("two", 2), ("one", 3)] {
        let code =
            format!("#!lua name={name}\n--{filler}\nredis.register_function('{name}', function() return {number} end)");
        client.send(&["FUNCTION", "LOAD", "REPLACE", &code]);
        assert_eq!(client.receive(), format!("$3 {name}"));
    }
    assert_eq!(client.call("FUNCTION DELETE two"), "+OK");
    // Another door over the same engine reads what the first has stored.
    let clock = Arc::new(os::RealClock::new());
    let door = Arc::new(RedisDoor::new(served.engine.clone(), clock, Arc::new(Bare), &Options::default()));
    door.attach(&served.pool);
    let address = "127.0.0.1:0".parse().expect("an address");
    let address = served.pool.listen(address, door, ListenOptions::default()).expect("a free port").local_addr;
    let mut again = Client::connect(address);
    assert_eq!(again.call("FCALL one 0"), ":3");
    assert_eq!(again.call("FCALL two 0"), "-ERR Function not found");
    served.stop();
}
