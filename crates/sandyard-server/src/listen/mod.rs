//! Sockets, TLS, graceful shutdown.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | binds sockets, all of them or none |
//! | `certificate`, `self_signed` | the operator's certificate, or a self-signed one |
//! | `host_names` | names and addresses of this host |
//! | `accept` | accepts connections, a limited number at a time |
//! | `connection_limit` | limits the connections of one address |
//! | `connection` | one connection: HTTP/1.1 with upgrades, or HTTP/2 |
//! | `http2` | bounds of HTTP/2 |
//! | `requests` | requests in progress of a connection |
//! | `reset` | closes a connection with a reset |
//! | `body_timeout`, `write_timeout` | clients that stop sending, or reading |
//! | `listener` | the socket that accepted a request |
//! | `shutdown` | how all parts learn that the server shuts down |

mod accept;
mod bind;
mod body_timeout;
mod certificate;
mod connection;
mod connection_limit;
mod host_names;
mod http2;
mod listener;
mod requests;
mod reset;
mod self_signed;
mod shutdown;
mod write_timeout;

pub use accept::{ListenSettings, Listeners};
pub use bind::{BindError, Bound, bind};
pub(crate) use body_timeout::is_body_timeout;
pub use certificate::{CertificateError, CertificateSource, TlsConfig};
pub use listener::Listener;
pub use self_signed::SelfSignedError;
pub use shutdown::{Shutdown, ShutdownHold};
