//! Accepts connections, a limited number at a time, and ends them at shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sandyard_config::Network;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::bind::Bound;
use super::certificate::TlsConfig;
use super::connection::{self, Shared};
use super::connection_limit::ConnectionLimit;
use super::listener::Listener;
use super::shutdown::Shutdown;

/// How connections are treated.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Connections at the same time; more wait in the kernel's queue.
    pub max_connections: usize,
    /// Addresses of proxies: each may have three quarters of the connections, other addresses a quarter.
    pub proxies: Vec<Network>,
    /// Time limit for the head of a request, and for a TLS handshake.
    pub header_timeout: Duration,
    /// Longest wait for the next bytes of a request's body.
    pub body_timeout: Duration,
    /// Time for requests in progress after a shutdown has begun.
    pub grace: Duration,
}

impl Default for ListenSettings {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            proxies: Vec::new(),
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// Sockets in service.
#[derive(Debug)]
pub struct Listeners {
    shutdown: Shutdown,
    grace: Duration,
    /// Ends connections that have not finished in time.
    abort: CancellationToken,
}

impl Listeners {
    /// Starts to serve `router` on all sockets.
    pub fn start(
        sockets: Vec<Bound>,
        tls: Option<TlsConfig>,
        router: Router,
        settings: &ListenSettings,
    ) -> Self {
        let shutdown = Shutdown::default();
        let abort = CancellationToken::new();
        let limits = Limits {
            connections: Arc::new(Semaphore::new(settings.max_connections)),
            per_address: ConnectionLimit::new(settings.max_connections),
            proxies: settings.proxies.clone().into(),
        };
        for socket in sockets {
            let shared = Shared {
                router: router.clone(),
                tls: tls.as_ref().map(TlsConfig::server),
                shutdown: shutdown.clone(),
                header_timeout: settings.header_timeout,
                body_timeout: settings.body_timeout,
            };
            let accepting = accept_all(socket, shared, limits.clone(), abort.clone());
            shutdown.spawn(accepting);
        }
        Self {
            shutdown,
            grace: settings.grace,
            abort,
        }
    }

    /// Shuts down: accepts no new connections, ends streams, waits up to the grace time for requests, and cuts off the rest. `now`
    /// ends the wait early.
    pub async fn end(self, now: impl Future<Output = ()>) {
        self.shutdown.begin();
        tokio::select! {
            () = self.shutdown.finished() => return,
            () = tokio::time::sleep(self.grace) => {
                tracing::warn!(
                    connections = self.shutdown.len(),
                    "Some requests did not finish in time and are cut off"
                );
            }
            () = now => {}
        }
        self.abort.cancel();
    }
}

/// Limits on the connections of all sockets.
#[derive(Clone, Debug)]
struct Limits {
    connections: Arc<Semaphore>,
    per_address: ConnectionLimit,
    proxies: Arc<[Network]>,
}

/// Accepts connections until the server ends.
async fn accept_all(bound: Bound, shared: Shared, limits: Limits, abort: CancellationToken) {
    let shutdown = shared.shutdown.clone();
    loop {
        let next = async {
            let slot = Arc::clone(&limits.connections).acquire_owned().await;
            (slot, accept(&bound).await)
        };
        let (slot, (socket, listener)) = tokio::select! {
            next = next => next,
            () = shutdown.wait() => return,
        };
        let peer = listener.peer.ip();
        let is_proxy = limits.proxies.iter().any(|network| network.contains(peer));
        let Some(share) = limits.per_address.take(peer, is_proxy) else {
            tracing::debug!(%peer, "Too many connections from one address");
            continue;
        };
        let shared = shared.clone();
        let abort = abort.clone();
        shutdown.spawn(async move {
            tokio::select! {
                () = connection::serve(shared, socket, listener) => {}
                () = abort.cancelled() => {}
            }
            drop((slot, share));
        });
    }
}

/// Waits for a connection; failures of single connections are ignored.
async fn accept(bound: &Bound) -> (TcpStream, Listener) {
    loop {
        match bound.socket.accept().await {
            Ok((socket, peer)) => {
                let listener = Listener {
                    address: bound.address,
                    is_tls: bound.is_tls,
                    is_e2b: bound.is_e2b,
                    peer,
                };
                return (socket, listener);
            }
            Err(error) if is_connection_error(&error) => {}
            // Out of descriptors or memory: other connections must end first.
            Err(error) => {
                tracing::error!(%error, "Cannot accept connections at the moment");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Says whether an error concerns only the connection to be accepted (accept(2)).
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
