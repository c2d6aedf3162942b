//! Connections, from those that are accepted to the last that ends.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use super::options::ConnectionLimits;
use super::stalling::Stalling;

/// How long to wait before another connection is accepted when the system has no room for it.
const NO_ROOM: Duration = Duration::from_millis(250);

/// Serves every connection until `close`, then lets the requests under way end and the connections
/// with them. A connection whose client sends its next head, or takes what it is sent, too slowly is
/// cut.
///
/// # Errors
/// When the listener fails.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    close: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    let open = GracefulShutdown::new();
    let mut close = pin!(close);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut close => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_the_client(&error) => continue,
            Err(error) if error.raw_os_error().is_some() => {
                // Too many files are open, or the like: that passes as connections end.
                tokio::time::sleep(NO_ROOM).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let io = TokioIo::new(Stalling::new(prompt(stream), limits.stall_timeout));
        let connection = http.serve_connection(io, service(router.clone(), peer));
        let watched = open.watch(connection);
        // What went wrong with a connection is its client's affair.
        tokio::spawn(async move { drop(watched.await) });
    }
    drop(listener);
    open.shutdown().await;
    Ok(())
}

/// The routes for one connection, whose requests say who sent them.
fn service(
    router: Router,
    peer: SocketAddr,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send,
> {
    let router = TowerToHyperService::new(router);
    service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.call(request)
    })
}

/// Tokens are sent as they come, not when enough of them have come.
fn prompt(stream: TcpStream) -> TcpStream {
    // A stream that cannot is slower, and no less right.
    let _ = stream.set_nodelay(true);
    stream
}

/// Whether a connection broke off before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
