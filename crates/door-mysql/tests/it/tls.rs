//! TLS on the door's port: the request for it and the first TLS bytes may arrive together.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use door_mysql::Options;
use reactor::TlsConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, OK, PLAIN};
use crate::serve;

/// A certificate for `localhost`, for tests only.
const CERTIFICATE: &[u8] = include_bytes!("../../../reactor/tests/it/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../reactor/tests/it/tls/key.pem");
const SSL: u32 = 0x800;

fn server_config() -> Arc<TlsConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = TlsConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
}

fn client_protocol() -> ClientConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

fn request() -> Vec<u8> {
    let mut request = vec![32, 0, 0, 1];
    request.extend_from_slice(&(PLAIN | SSL).to_le_bytes());
    request.extend_from_slice(&[0, 0, 0, 1, 45]);
    request.resize(36, 0);
    request
}

/// Logs in over TLS and pings.
fn go_on(stream: TcpStream, protocol: ClientConnection) {
    let mut stream = StreamOwned::new(protocol, stream);
    let mut answer = (PLAIN | SSL).to_le_bytes().to_vec();
    answer.extend_from_slice(&[0, 0, 0, 1, 45]);
    answer.resize(32, 0);
    answer.extend_from_slice(b"root\0\0caching_sha2_password\0");
    stream.write_all(&[&[answer.len() as u8, 0, 0, 2], &answer[..]].concat()).unwrap();
    let mut ok = [0; 11];
    stream.read_exact(&mut ok).unwrap();
    assert_eq!((ok[3], ok[4]), (3, OK));
    stream.write_all(b"\x01\0\0\0\x0e").unwrap();
    stream.read_exact(&mut ok).unwrap();
    assert_eq!((ok[3], ok[4]), (1, OK));
}

#[test]
fn tls_may_begin_in_the_packet_that_asks_for_it() {
    let options = Options { tls: Some(server_config()), require_secure_transport: true, ..Options::default() };
    let served = serve(0, options);
    for at_once in [true, false] {
        let client = Client::connect(served.address);
        assert!(client.offers(SSL));
        let mut protocol = client_protocol();
        let mut stream = client.stream;
        let mut first = request();
        if at_once {
            protocol.write_tls(&mut first).unwrap();
        }
        stream.write_all(&first).unwrap();
        go_on(stream, protocol);
    }
    served.stop();
}

/// A command that an attacker appends to the request is not executed (DM-6).
#[test]
fn plain_commands_behind_the_request_are_not_run() {
    let served = serve(0, Options { tls: Some(server_config()), ..Options::default() });
    let mut client = Client::connect(served.address);
    client.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.stream.write_all(&[&request()[..], b"\x01\0\0\x02\x0e\x01\0\0\x02\x0e"].concat()).unwrap();
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(rest.first().is_none_or(|byte| *byte == 21), "an alert of TLS or nothing: {rest:?}");
    served.stop();
}
