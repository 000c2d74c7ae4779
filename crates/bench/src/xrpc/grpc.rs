//! The gRPC peer: a unary call of tonic that answers like CapabilitiesGet. The code that tonic-build would generate is written by hand, so that no compiler of .proto files is needed.
//!
//! The server is that of tonic's documentation: `Server::builder().add_service(...).serve(...)` in the runtime that `#[tokio::main]` makes (multi-thread, a worker for each processor), with
//! TCP_NODELAY. It serves plain HTTP/2 without a login.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use beluga_xrpc::message::{Any, AnyKind, Capabilities, Capability, Scalar, ScalarKind};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;

#[derive(Clone)]
struct EchoService;

impl NamedService for EchoService {
    const NAME: &'static str = "beluga.bench.Echo";
}

impl Service<http::Request<Body>> for EchoService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(
            async move { Ok(Grpc::new(ProstCodec::<Capabilities, ()>::default()).unary(EchoMethod, request).await) },
        )
    }
}

struct EchoMethod;

impl UnaryService<()> for EchoMethod {
    type Response = Capabilities;
    type Future = Ready<Result<tonic::Response<Capabilities>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<()>) -> Self::Future {
        let scalar = Scalar { kind: ScalarKind::Uint as i32, v_unsigned_int: Some(1), ..Scalar::default() };
        let value = Any { kind: AnyKind::Scalar as i32, scalar: Some(scalar) };
        let capabilities = vec![Capability { name: "polarx_rpc".into(), value }];
        ready(Ok(tonic::Response::new(Capabilities { capabilities })))
    }
}

/// Serves until the process is killed. The only setting beside tonic's defaults lets a connection have all streams of a level.
pub fn serve(address: SocketAddr) -> io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = tonic::transport::Server::builder().tcp_nodelay(true).max_concurrent_streams(Some(1 << 20));
    let served = runtime.block_on(async { { server }.add_service(EchoService).serve(address).await });
    served.map(|()| true).map_err(io::Error::other)
}
