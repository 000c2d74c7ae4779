//! TLS on the door's port, channel binding, and passwords that are asked for through TLS alone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use door_postgres::{Options, Tls};
use engine::{Verifier, sha256};
use reactor::TlsConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, SSL_REQUEST, VERSION, message, query, socket, startup};
use crate::login::scram;
use crate::serve;

/// A certificate for `localhost`, for tests only.
const CERTIFICATE: &[u8] = include_bytes!("../../../reactor/tests/it/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../reactor/tests/it/tls/key.pem");

fn options() -> Options {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = TlsConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    let tls = Tls { config: Arc::new(config), certificate: certificate.to_vec() };
    Options { tls: Some(tls), ..Options::default() }
}

fn protocol() -> ClientConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

fn encrypted(mut stream: TcpStream) -> Client {
    stream.write_all(SSL_REQUEST).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"S");
    Client::over(Box::new(StreamOwned::new(protocol(), stream)))
}

#[test]
fn a_connection_is_encrypted_on_request() {
    let served = serve(0, Options { require_secure_transport: true, ..options() });
    let mut client = encrypted(socket(served.address));
    assert!(client.start("postgres").ends_with("Z(I)"));
    assert_eq!(client.ask(&query("select 1")), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(served.door.stats().tls.get(), 1);
    let answer = served.connect().start("postgres");
    assert_eq!(answer, "E(FATAL 28000 connections without TLS are refused) end");
    served.stop();
}

/// Bytes sent before the answer to the request would be taken for the beginning of the encrypted stream.
#[test]
fn plain_bytes_behind_the_request_are_refused() {
    let served = serve(0, options());
    let mut client = served.connect();
    client.send(&[SSL_REQUEST, &startup(VERSION, &[("user", "postgres")])].concat());
    let answer = client.until(b'Z');
    assert_eq!(answer, "E(FATAL 08P01 received unencrypted data after SSL request) end");
    // A second request, inside TLS, is no startup message.
    let mut client = encrypted(socket(served.address));
    let answer = client.ask(SSL_REQUEST);
    assert!(answer.starts_with("E(FATAL 0A000 unsupported frontend protocol 1234.5679"), "{answer}");
    served.stop();
}

#[test]
fn the_proof_is_bound_to_the_certificate() {
    let served = serve(0, options());
    served.put("ann", |account| account.set_password(b"secret"));
    let hash = sha256(&CertificateDer::from_pem_slice(CERTIFICATE).unwrap());
    let header = "p=tls-server-end-point,,";
    for (mechanism, header, channel, let_in) in [
        ("SCRAM-SHA-256-PLUS", header, &hash[..], true),
        ("SCRAM-SHA-256-PLUS", header, &[7; 32], false),
        ("SCRAM-SHA-256", "n,,", b"", true),
    ] {
        let mut client = encrypted(socket(served.address));
        client.send(&startup(VERSION, &[("user", "ann"), ("database", "postgres")]));
        let (_, body) = client.receive().unwrap();
        assert_eq!(body, b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
        let answer = scram(&mut client, mechanism, (header, channel), b"secret");
        match let_in {
            true => assert!(answer.ends_with("Z(I)"), "{answer}"),
            false => assert!(answer.contains("SCRAM channel binding check failed"), "{answer}"),
        }
    }
    served.stop();
}

#[test]
fn a_password_without_a_verifier_is_asked_for_through_tls() {
    let served = serve(0, options());
    served.put("digest", |account| account.add_digest(sha256(b"secret")));
    served.put("native", |account| account.verifier = Some(Verifier::native(b"secret")));
    served.put("slow", |account| account.verifier = Some(Verifier::caching_sha2(b"secret")));
    for role in ["digest", "native", "slow"] {
        for (password, answer) in [
            (&b"secret\0"[..], "Z(I)"),
            (b"wrong\0", "end"),
            (b"\0", "E(FATAL 28P01 empty password returned by client) end"),
            (b"secret\0x", "E(FATAL 08P01 invalid password packet size) end"),
        ] {
            let mut client = encrypted(socket(served.address));
            client.send(&startup(VERSION, &[("user", role), ("database", "postgres")]));
            assert_eq!(client.receive().unwrap(), (b'R', b"\0\0\0\x03".to_vec()));
            let told = client.ask(&message(b'p', password));
            assert!(told.ends_with(answer), "{role}: {told}");
        }
    }
    served.stop();
}
