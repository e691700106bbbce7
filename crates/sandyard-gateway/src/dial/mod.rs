//! Outgoing connections, direct or through an operator's proxy.
//!
//! | file | holds |
//! |---|---|
//! | `direct` | connecting to the fastest of several addresses |
//! | `routes` | the choice of a proxy, from settings or the environment |
//! | `no_proxy` | `NO_PROXY` |
//! | `proxy` | a proxy's URL |
//! | `connect`, `socks` | the handshakes with proxies |
//! | `reason` | texts for failures |

mod connect;
mod direct;
mod no_proxy;
mod proxy;
mod reason;
mod routes;
mod socks;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sandyard_core::network::pattern::canonical_name;
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::proxy::{Proxy, ProxyHost, ProxyKind};
use self::routes::Routes;
use crate::names::Names;
use crate::settings::GatewayError;

/// How long a proxy may take to connect and confirm it.
const PROXY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of addresses that are tried through a proxy; each needs a connection.
const MAX_PROXIED_ADDRESSES: usize = 4;

/// Dials for all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    routes: Arc<Routes>,
    names: Names,
    proxy_timeout: Duration,
}

/// The destination of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// The name, where the program gave one.
    pub(crate) name: Option<String>,
    /// Its allowed addresses, in the order to try them. Empty only with a name that only the proxy can resolve.
    pub(crate) addresses: Vec<IpAddr>,
    /// The port.
    pub(crate) port: u16,
}

/// An established connection.
#[derive(Debug)]
pub(crate) struct Dialled {
    /// The connection, after the handshake with a proxy.
    pub(crate) stream: TcpStream,
    /// The address that answered; `None` where only the proxy knows it.
    pub(crate) address: Option<IpAddr>,
    /// Set if the proxy expects requests with whole URLs instead of `CONNECT`.
    pub(crate) whole_urls: Option<WholeUrls>,
}

/// Settings of a proxy that forwards plain HTTP.
#[derive(Clone)]
pub(crate) struct WholeUrls {
    /// The value of `Proxy-Authorization`, if the proxy needs one.
    pub(crate) authorization: Option<String>,
}

impl std::fmt::Debug for WholeUrls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WholeUrls")
    }
}

/// Why the destination could not be reached, in one line.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DialError(pub(crate) String);

/// The target in a request to a proxy.
#[derive(Debug)]
enum ProxyTarget<'a> {
    Name(&'a str),
    Address(IpAddr),
}

impl Dialer {
    /// Reads the proxies of the operator or the environment; `names` resolves their names.
    pub(crate) fn new(
        proxy: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
        names: Names,
    ) -> Result<Self, GatewayError> {
        let routes = match proxy {
            Some(url) => Routes::all_by(url)?,
            None => Routes::of_environment(environment)?,
        };
        Ok(Self {
            routes: Arc::new(routes),
            names,
            proxy_timeout: PROXY_TIMEOUT,
        })
    }

    /// Whether a proxy that resolves names itself would be used.
    pub(crate) fn uses_resolving_proxy(&self, name: &str, port: u16) -> bool {
        // The choice of the proxy may depend on the protocol, which the port only suggests.
        let guesses: &[bool] = match port {
            80 => &[true],
            443 => &[false],
            _ => &[false, true],
        };
        guesses.iter().any(|is_plain_http| {
            self.routes
                .proxy_for(name, port, *is_plain_http)
                .is_some_and(Proxy::resolves_names)
        })
    }

    /// Connects. `is_plain_http`: the program uses HTTP without TLS, for which an HTTP proxy expects whole URLs.
    pub(crate) async fn dial(
        &self,
        to: &Destination,
        is_plain_http: bool,
    ) -> Result<Dialled, DialError> {
        let host = match (&to.name, to.addresses.first()) {
            // Checked again, because it is written into requests to proxies: a line break must not get there.
            (Some(name), _) => canonical_name(name)
                .ok_or_else(|| DialError("the name is not a valid host name".into()))?,
            (None, Some(address)) => address.to_string(),
            (None, None) => return Err(DialError("there is no address to connect to".into())),
        };
        match self.routes.proxy_for(&host, to.port, is_plain_http) {
            None => self.dial_direct(to, &host).await,
            Some(proxy) => timeout(
                self.proxy_timeout,
                self.dial_by(proxy, to, &host, is_plain_http),
            )
            .await
            .unwrap_or_else(|_| {
                let seconds = self.proxy_timeout.as_secs();
                Err(DialError(format!(
                    "{proxy}: not connected after {seconds} s"
                )))
            }),
        }
    }

    async fn dial_direct(&self, to: &Destination, host: &str) -> Result<Dialled, DialError> {
        if to.addresses.is_empty() {
            return Err(no_address(host));
        }
        let targets = to.addresses.iter().map(|ip| SocketAddr::new(*ip, to.port));
        let (stream, at) = direct::connect(targets.collect()).await?;
        Ok(Dialled {
            stream,
            address: Some(at.ip()),
            whole_urls: None,
        })
    }

    async fn dial_by(
        &self,
        proxy: &Proxy,
        to: &Destination,
        host: &str,
        is_plain_http: bool,
    ) -> Result<Dialled, DialError> {
        if is_plain_http && proxy.kind == ProxyKind::Http {
            return Ok(Dialled {
                stream: self.connect_to_proxy(proxy).await?,
                address: match to.name {
                    Some(_) => None,
                    None => to.addresses.first().copied(),
                },
                whole_urls: Some(WholeUrls {
                    authorization: proxy.authorization(),
                }),
            });
        }
        let mut failure = no_address(host);
        for target in proxy_targets(proxy, to) {
            let mut stream = self.connect_to_proxy(proxy).await?;
            let connected = match proxy.kind {
                ProxyKind::Http => connect::handshake(&mut stream, proxy, &target, to.port).await,
                ProxyKind::Socks { .. } => {
                    socks::handshake(&mut stream, proxy, &target, to.port).await
                }
            };
            match connected {
                Ok(()) => {
                    return Ok(Dialled {
                        stream,
                        address: target.address(),
                        whole_urls: None,
                    });
                }
                Err(reason) => failure = DialError(format!("{proxy}: {reason}")),
            }
        }
        Err(failure)
    }

    /// Connects to the proxy itself.
    async fn connect_to_proxy(&self, proxy: &Proxy) -> Result<TcpStream, DialError> {
        let addresses = match &proxy.host {
            ProxyHost::Address(address) => vec![*address],
            ProxyHost::Name(name) => self
                .names
                .addresses(name)
                .await
                .map_err(|err| DialError(format!("{proxy}: {err}")))?,
        };
        let targets = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip, proxy.port));
        match direct::connect(targets.collect()).await {
            Ok((stream, _)) => Ok(stream),
            Err(DialError(reason)) => Err(DialError(format!("{proxy}: {reason}"))),
        }
    }
}

/// The targets for the proxy, in the order to try them.
///
/// A proxy that resolves names gets the name, because its own rules are about names. It may find other addresses than those that
/// were judged here. The operator chose the proxy, so the proxy decides what it reaches.
fn proxy_targets<'a>(proxy: &Proxy, to: &'a Destination) -> Vec<ProxyTarget<'a>> {
    match &to.name {
        Some(name) if proxy.resolves_names() => vec![ProxyTarget::Name(name)],
        _ => to
            .addresses
            .iter()
            .take(MAX_PROXIED_ADDRESSES)
            .map(|address| ProxyTarget::Address(*address))
            .collect(),
    }
}

impl ProxyTarget<'_> {
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Address(address) => Some(*address),
        }
    }
}

fn no_address(host: &str) -> DialError {
    DialError(format!(
        "`{host}` has no address that this sandbox may reach"
    ))
}
