//! TLS that starts in the middle of a connection. The certificate beside this file is for `localhost` and for these tests alone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reactor::{Connection, Door, Flow, Io, ListenOptions, Pool, Settings, TlsConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use stdx::watermark::Watermark;

const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

/// Echoes lines; `tls` starts TLS without a reply, `rude` writes a reply first.
struct Upgrading {
    config: Arc<TlsConfig>,
    seen: Mutex<Vec<String>>,
}

impl Door for Upgrading {
    type Session = ();

    fn open(&self, _: &Arc<Connection>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn serve(&self, (): &mut (), io: &mut Io<'_>) -> Flow {
        while let Some(end) = io.input().iter().position(|byte| *byte == b'\n') {
            let line = &io.input()[..end];
            io.consume(end + 1);
            self.seen.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
            if line == b"rude" {
                io.out().extend_from_slice(b"first this\n");
            }
            if line == b"tls" || line == b"rude" {
                io.start_tls(&self.config);
                assert!(io.input().is_empty(), "the rest of the input belongs to TLS");
                continue;
            }
            io.out().extend_from_slice(&[line, b"\n"].concat());
        }
        Flow::Continue
    }

    fn close(&self, (): ()) {}
}

fn start() -> (Pool, Arc<Upgrading>, SocketAddr) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = TlsConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let pool = Pool::start(&Settings::default(), Arc::new(Watermark::new(0)), &mut |_| None).unwrap();
    let door = Arc::new(Upgrading { config, seen: Mutex::default() });
    let listener = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), ListenOptions::default()).unwrap();
    (pool, door, listener.local_addr)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn client() -> ClientConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

fn echo(stream: &mut (impl Read + Write), line: &[u8]) {
    stream.write_all(line).unwrap();
    let mut answer = vec![0; line.len()];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer == line);
}

#[test]
fn tls_starts_where_the_session_requests_it() {
    let (pool, _, address) = start();
    for at_once in [true, false] {
        let mut stream = connect(address);
        echo(&mut stream, b"plain\n");
        let mut protocol = client();
        let mut request = b"tls\n".to_vec();
        if at_once {
            protocol.write_tls(&mut request).unwrap();
        }
        stream.write_all(&request).unwrap();
        let mut stream = StreamOwned::new(protocol, stream);
        echo(&mut stream, b"sealed\n");
        echo(&mut stream, &[&[b'x'; 3 << 20][..], b"\n"].concat());
        for _ in 0..50 {
            echo(&mut stream, b"again\n");
        }
    }
    pool.stop();
}

fn is_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.windows(5).any(|five| five == b"plain"), "a plain request was served: {rest:?}");
}

#[test]
fn plain_requests_behind_the_request_for_tls_are_never_served() {
    let (pool, door, address) = start();
    let mut stream = connect(address);
    stream.write_all(b"tls\nplain\n").unwrap();
    is_closed(&mut stream);
    assert_eq!(*door.seen.lock().unwrap(), ["tls"]);
    pool.stop();
}

#[test]
fn tls_cannot_start_behind_unsent_output() {
    let (pool, _, address) = start();
    let mut stream = connect(address);
    stream.write_all(b"rude\n").unwrap();
    is_closed(&mut stream);
    echo(&mut connect(address), b"others go on\n");
    pool.stop();
}
