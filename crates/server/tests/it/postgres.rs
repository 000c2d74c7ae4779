//! The PostgreSQL door as the server opens it.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Folder, Server, assert_fails, free_port, run};

fn connect(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address("postgres")).unwrap();
    stream.write_all(b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0").unwrap();
    let mut bytes = [0; 9];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"R\0\0\0\x08\0\0\0\0", "AuthenticationOk");
    stream
}

#[test]
fn the_door_is_open_where_the_settings_say() {
    let folder = Folder::new("postgres");
    let mut server = Server::start(&folder.join("data"), &["--redis-port", "0", "--postgres-port", &free_port()]);
    let mut stream = connect(&server);
    let page = server.page("/metrics");
    for line in ["beluga_postgres_logins_total{result=\"accepted\"} 1", "beluga_requests_total{door=\"postgres\"} 0"] {
        assert!(page.contains(line), "no {line} in {page}");
    }
    // A stop tells the client.
    assert_eq!(server.stop("TERM"), Some(0));
    let mut last = Vec::new();
    let _ = stream.read_to_end(&mut last);
    let text = String::from_utf8_lossy(&last);
    assert!(text.contains("C57P01\0Mterminating connection due to administrator command"), "{text:?}");
    let without = Server::start(&folder.join("other"), &["--redis-port", "0"]);
    assert!(!without.page("/metrics").contains("door=\"postgres\""), "a door that is not open counts nothing");
}

#[test]
fn what_keeps_it_shut_names_its_setting() {
    let folder = Folder::new("postgres-shut");
    let data = folder.join("data");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port().to_string();
    let base = ["--data", &data, "--redis-port", "0", "--memory", "96mb", "--log-segment", "4mb"];
    let words = |more: &[&str]| run(&[&base[..], more].concat());
    let parts = ["postgres_port: 127.0.0.1:", "in use", "choose another port"];
    assert_fails(&words(&["--postgres-port", &taken]), 69, &parts);
    let port = free_port();
    assert_fails(
        &words(&["--postgres-port", &port, "--postgres-bind", "0.0.0.0"]),
        78,
        &["postgres_bind: 0.0.0.0", "redis_password", "postgres_protected_mode"],
    );
    assert_fails(
        &words(&["--postgres-port", &port, "--postgres-ssl-key", "/no/such/file"]),
        78,
        &["postgres_ssl_cert", "postgres_ssl_key needs it"],
    );
    assert_fails(
        &words(&["--postgres-port", &port, "--postgres-require-secure-transport", "yes"]),
        78,
        &["postgres_ssl_cert", "postgres_require_secure_transport needs it"],
    );
}
