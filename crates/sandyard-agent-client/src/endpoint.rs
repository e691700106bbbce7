//! Where an agent listens, and dialling that.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::closer::Closer;
use crate::unix::{Accepts, AgentStream};

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any stream of bytes to an agent.
pub type BoxedStream = Box<dyn Duplex>;

/// What [`Dial::dial`] returns.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = io::Result<BoxedStream>> + Send + 'a>>;

/// What [`Dial::dial_port`] returns.
pub type PortDialling<'a> = Pin<Box<dyn Future<Output = io::Result<PortStream>> + Send + 'a>>;

/// What [`Dial::open_egress`] returns.
pub type EgressDialling<'a> = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send + 'a>>;

/// A connection to a port inside.
pub struct PortStream {
    /// The bytes.
    pub stream: BoxedStream,
    /// Headers that replace those of the same name on every HTTP request over the connection: see [`Dial::headers`]. Where there are
    /// some, a proxy leads to the port: a successful dial does not mean that anybody listens there.
    pub headers: HeaderMap,
}

impl fmt::Debug for PortStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be tokens.
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("PortStream")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// A connection to an agent that is neither a socket of this host nor a port: a tunnel through another node, or a proxy.
pub trait Dial: Send + Sync {
    /// The destination, for people. Two values with the same name are equal.
    fn name(&self) -> &str;

    /// Opens a connection; the caller bounds the time.
    fn dial(&self) -> Dialling<'_>;

    /// Headers that replace those of the same name on every request to the agent: a proxy routes by them, for example by `Host`.
    /// `None` where connections lead directly to the agent.
    fn headers(&self) -> Option<&HeaderMap> {
        None
    }

    /// Opens a connection to a port inside the sandbox without the agent; `None`: the agent opens it. An error that holds a
    /// [`ClientError`](crate::ClientError) is returned as that one.
    fn dial_port(&self, port: u16) -> Option<PortDialling<'_>> {
        let _ = port;
        None
    }

    /// The time limit of [`Self::dial_port`] where it is longer than that of a call: a program may have to be installed first.
    fn port_timeout(&self) -> Option<Duration> {
        None
    }

    /// Opens an egress channel; `None`: not supported. See [`Endpoint::open_egress`].
    fn open_egress(&self) -> Option<EgressDialling<'_>> {
        None
    }

    /// Whether the agent treats these connections as the host's own, with the host-only routes. If not, it asks for the access
    /// token, or it is not Sandyard's agent.
    fn is_host_connection(&self) -> bool {
        true
    }
}

/// Where an agent listens.
#[derive(Clone)]
pub enum Endpoint {
    /// A Unix socket of the host, by a path of any length.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
    /// Any other connection.
    Custom(Arc<dyn Dial>),
}

impl Endpoint {
    /// The three kinds as plain values, to compare and to show.
    fn key(&self) -> Key<'_> {
        match self {
            Self::Unix(path) => Key::Unix(path),
            Self::Tcp(address) => Key::Tcp(*address),
            Self::Custom(dial) => Key::Custom(dial.name()),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Unix(&'a Path),
    Tcp(SocketAddr),
    Custom(&'a str),
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Endpoint {}

impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "`{}`", path.display()),
            Self::Tcp(address) => write!(f, "`{address}`"),
            Self::Custom(dial) => write!(f, "`{}`", dial.name()),
        }
    }
}

impl Endpoint {
    /// Headers that replace those of the same name on every request to the agent: see [`Dial::headers`].
    pub fn headers(&self) -> Option<&HeaderMap> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => None,
            Self::Custom(dial) => dial.headers(),
        }
    }

    /// Whether the agent treats connections as the host's own, with the host-only routes: see [`Dial::is_host_connection`].
    pub fn is_host_connection(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Tcp(_) => true,
            Self::Custom(dial) => dial.is_host_connection(),
        }
    }

    /// Opens a connection to a port inside the sandbox without the agent; `None`: the agent opens it.
    pub(crate) fn dial_port(&self, port: u16) -> Option<PortDialling<'_>> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => None,
            Self::Custom(dial) => dial.dial_port(port),
        }
    }

    /// The time limit of [`Self::dial_port`], where it is longer than that of a call.
    pub(crate) fn port_timeout(&self) -> Option<Duration> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => None,
            Self::Custom(dial) => dial.port_timeout(),
        }
    }

    /// Opens a connection; the caller bounds the time.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn dial(&self) -> io::Result<BoxedStream> {
        match self {
            Self::Unix(path) => {
                let stream = AgentStream::connect(path, Accepts::Bytes, Closer::shared());
                Ok(Box::new(stream.await?))
            }
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Custom(dial) => dial.dial().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Unreachable(&'static str);

    impl Dial for Unreachable {
        fn name(&self) -> &str {
            self.0
        }

        fn dial(&self) -> Dialling<'_> {
            Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
        }
    }

    #[test]
    fn endpoints_of_the_same_name_are_equal_and_show_it() {
        let endpoint = |name| Endpoint::Custom(Arc::new(Unreachable(name)));
        assert_eq!(endpoint("a"), endpoint("a"));
        assert_ne!(endpoint("a"), endpoint("b"));
        assert_ne!(endpoint("a"), Endpoint::Unix("a".into()));
        assert_eq!(endpoint("a").to_string(), "`a`");
        assert_eq!(format!("{:?}", endpoint("a")), "Custom(\"a\")");
    }
}
