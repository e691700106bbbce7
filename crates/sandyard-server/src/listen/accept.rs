//! Connections on their way in, so many at a time, and their end.

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
use super::places::Places;
use super::shutdown::Shutdown;
use crate::listen::Listener;

/// How connections are treated.
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Connections at a time; more wait in the kernel's queue.
    pub max_connections: usize,
    /// Addresses many clients come from: they may have most of the connections, others a quarter.
    pub proxies: Vec<Network>,
    /// How long a client may take for a request's head, and for a TLS handshake.
    pub header_timeout: Duration,
    /// How long a client may send nothing of a request's body that is waited for.
    pub body_timeout: Duration,
    /// How long requests may go on after the server was asked to end.
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
    /// Ends connections that did not finish in time.
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
        let doors = Doors {
            places: Arc::new(Semaphore::new(settings.max_connections)),
            shares: Places::new(settings.max_connections),
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
            let accepting = accept_all(socket, shared, doors.clone(), abort.clone());
            shutdown.spawn(accepting);
        }
        Self {
            shutdown,
            grace: settings.grace,
            abort,
        }
    }

    /// Ends: no new connections, streams told to end, requests finished up to the grace time, the rest cut off. Also
    /// ends early when `now` does.
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

/// Who may come in, over all sockets.
#[derive(Clone, Debug)]
struct Doors {
    places: Arc<Semaphore>,
    shares: Places,
    proxies: Arc<[Network]>,
}

/// Accepts connections until the server ends.
async fn accept_all(bound: Bound, shared: Shared, doors: Doors, abort: CancellationToken) {
    let shutdown = shared.shutdown.clone();
    loop {
        let next = async {
            let place = Arc::clone(&doors.places).acquire_owned().await;
            (place, accept(&bound).await)
        };
        let (place, (socket, listener)) = tokio::select! {
            next = next => next,
            () = shutdown.wait() => return,
        };
        let peer = listener.peer.ip();
        let is_proxy = doors.proxies.iter().any(|network| network.contains(peer));
        let Some(share) = doors.shares.take(peer, is_proxy) else {
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
            drop((place, share));
        });
    }
}

/// Waits for one connection, whatever happens to others.
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
            Err(error) if is_of_one_connection(&error) => {}
            // Out of descriptors or memory: others must end first.
            Err(error) => {
                tracing::error!(%error, "Cannot accept connections at the moment");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Says whether an error is about the connection that was to be accepted (accept(2)) and not about us.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
