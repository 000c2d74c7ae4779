//! SHUTDOWN, as far as it is the door's. The suite `redis_shutdown` plays it with a whole server.

use super::*;

/// DR-26.
#[test]
fn a_stop_that_waits_for_followers_holds_up_writes_and_can_be_aborted() {
    let served = Served::start();
    let (mut client, mut writer) = (Client::connect(served.address), Client::connect(served.address));
    // It never acknowledges anything.
    let mut follower = Client::connect(served.address);
    follower.send(&["PSYNC", "?", "-1"]);
    while field(&client.call("INFO replication"), "connected_slaves").as_deref() != Some("1") {}
    assert_eq!(client.call("SET k 1"), "+OK");
    let mut asking = Client::connect(served.address);
    asking.send(&["SHUTDOWN"]);
    let door = served.door.clone();
    let preparing = std::thread::spawn(move || door.prepare_stop(None));
    while field(&client.call("INFO server"), "shutdown_in_milliseconds").is_none() {}
    writer.send(&["INCR", "k"]);
    // A pause that CLIENT PAUSE has set, and its end, change nothing of that.
    assert_eq!(client.call("CLIENT PAUSE 1 WRITE"), "+OK");
    assert_eq!(client.call("CLIENT UNPAUSE"), "+OK");
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(client.call("GET k"), "$1 1");
    assert_eq!(client.call("SHUTDOWN ABORT"), "+OK");
    assert!(!preparing.join().expect("it returns"));
    assert_eq!(asking.receive(), "-ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(writer.receive(), ":2");
    assert_eq!(client.call("SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
    // NOW does not wait.
    asking.send(&["SHUTDOWN", "NOW"]);
    while !client.call("CLIENT LIST").contains("cmd=shutdown") {}
    assert!(served.door.prepare_stop(None));
    assert_eq!(client.call("SHUTDOWN ABORT"), "-ERR The shutdown can no longer be aborted.");
    drop(follower);
    served.stop();
}
