//! The MySQL door as the server opens it.

use std::io::Read;
use std::net::TcpStream;

use crate::support::{Folder, Server, assert_fails, free_port, run};

fn greeting(server: &Server) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address("mysql")).unwrap();
    let mut bytes = vec![0; 5];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_door_is_open_where_the_settings_say() {
    let folder = Folder::new("mysql");
    let server = Server::start(&folder.join("data"), &["--redis-port", "0", "--mysql-port", &free_port()]);
    assert_eq!(greeting(&server)[3..], [0, 10], "packet 0, handshake 10");
    let page = server.page("/metrics");
    for line in ["beluga_mysql_logins_total{result=\"denied\"} 0", "beluga_requests_total{door=\"mysql\"} 0"] {
        assert!(page.contains(line), "no {line} in {page}");
    }
    let without = Server::start(&folder.join("other"), &["--redis-port", "0"]);
    assert!(!without.page("/metrics").contains("door=\"mysql\""), "a door that is not open counts nothing");
}

#[test]
fn what_keeps_it_shut_names_its_setting() {
    let folder = Folder::new("mysql-shut");
    let data = folder.join("data");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port().to_string();
    let base = ["--data", &data, "--redis-port", "0", "--memory", "96mb", "--log-segment", "4mb"];
    let words = |more: &[&str]| run(&[&base[..], more].concat());
    assert_fails(&words(&["--mysql-port", &taken]), 69, &["mysql_port: 127.0.0.1:", "in use", "choose another port"]);
    let port = free_port();
    assert_fails(
        &words(&["--mysql-port", &port, "--mysql-bind", "0.0.0.0"]),
        78,
        &["mysql_bind: 0.0.0.0", "redis_password", "mysql_protected_mode"],
    );
    assert_fails(&words(&["--mysql-port", &port, "--mysql-bind", " "]), 78, &["mysql_bind", "mysql_port = 0"]);
    assert_fails(
        &words(&["--mysql-port", &port, "--mysql-ssl-cert", "/no/such/file"]),
        78,
        &["mysql_ssl_key", "mysql_ssl_cert needs it"],
    );
    assert_fails(
        &words(&["--mysql-port", &port, "--mysql-require-secure-transport", "yes"]),
        78,
        &["mysql_ssl_cert", "mysql_require_secure_transport needs it"],
    );
}
