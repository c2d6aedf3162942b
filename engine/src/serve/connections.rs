//! Connections, from those that are accepted to the last that ends.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
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
use super::tls::Tls;

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
    tls: Option<Arc<Tls>>,
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
        let stream = Stalling::new(prompt(stream), limits.stall_timeout);
        let service = service(router.clone(), peer);
        // What went wrong with a connection is its client's affair.
        match &tls {
            None => {
                let watched = open.watch(http.serve_connection(TokioIo::new(stream), service));
                tokio::spawn(async move { drop(watched.await) });
            }
            Some(tls) => {
                let (http, watcher) = (http.clone(), open.watcher());
                let agreed =
                    tokio::time::timeout(limits.head_timeout, tls.acceptor().accept(stream));
                tokio::spawn(async move {
                    match agreed.await {
                        Ok(Ok(stream)) => {
                            let connection = http.serve_connection(TokioIo::new(stream), service);
                            drop(watcher.watch(connection).await);
                        }
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection"),
                        Err(_) => tracing::debug!(%peer, "no TLS connection in time"),
                    }
                });
            }
        }
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
