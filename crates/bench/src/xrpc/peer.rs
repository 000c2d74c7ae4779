//! The peers of the echo, each a process of its own (`bench peer`), so that their cost is counted apart from the client's.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use beluga_xrpc::frame::{self, HEAD_BYTES, answer};

use super::speech::ECHO_ANSWER_BYTES;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerKind {
    /// A thread for each connection, which reads a frame and writes one.
    Echo,
    /// tonic, if this program was built with the feature `grpc`.
    Grpc,
}

impl PeerKind {
    pub fn from_name(name: &str) -> Option<PeerKind> {
        [PeerKind::Echo, PeerKind::Grpc].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            PeerKind::Echo => "echo",
            PeerKind::Grpc => "grpc",
        }
    }

    pub fn is_built(self) -> bool {
        self == PeerKind::Echo || cfg!(feature = "grpc")
    }

    fn port(self) -> u16 {
        16460 + self as u16
    }

    pub fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()))
    }
}

/// A peer that runs; it ends with this value.
pub struct Peer(Child);

const START_PATIENCE: Duration = Duration::from_secs(10);

impl Peer {
    pub fn start(kind: PeerKind) -> io::Result<Peer> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe()?);
        command.args(["peer", kind.name(), "--port", &kind.port().to_string()]);
        let peer = Peer(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
        let start = Instant::now();
        while TcpStream::connect(kind.address()).is_err() {
            if start.elapsed() > START_PATIENCE {
                return Err(io::Error::other(format!("the peer {} does not serve", kind.name())));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(peer)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a peer's process.
pub fn serve(kind: PeerKind, port: u16) -> io::Result<bool> {
    crate::machine::allow_open_files(10_000)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match kind {
        PeerKind::Echo => echo(&TcpListener::bind(address)?),
        #[cfg(feature = "grpc")]
        PeerKind::Grpc => super::grpc::serve(address),
        #[cfg(not(feature = "grpc"))]
        PeerKind::Grpc => Err(io::Error::other("this program was built without the feature `grpc`")),
    }
}

fn echo(listener: &TcpListener) -> io::Result<bool> {
    for stream in listener.incoming() {
        let stream = stream?;
        thread::Builder::new().stack_size(64 << 10).spawn(move || answer_all(&stream))?;
    }
    Ok(true)
}

/// Answers frames until the connection ends. Frames that arrived together are answered together.
fn answer_all(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(16 << 10, stream);
    let mut out = Vec::new();
    let mut head = [0; HEAD_BYTES];
    loop {
        input.read_exact(&mut head)?;
        if let Some(frame) = frame::cut(&head).map_err(io::Error::other)? {
            frame::put(&mut out, frame.sid, answer::CAPABILITIES, |out| out.extend_from_slice(&[0; ECHO_ANSWER_BYTES]));
        }
        if input.buffer().len() < HEAD_BYTES {
            (&mut &*stream).write_all(&out)?;
            out.clear();
        }
    }
}
