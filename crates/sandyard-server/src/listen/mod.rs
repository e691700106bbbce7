//! Sockets, TLS, graceful end.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | sockets, all of them or none |
//! | `certificate`, `self_signed` | the operator's certificate, or one made here |
//! | `accept` | connections on their way in, so many at a time |
//! | `places` | how many of them one address may have |
//! | `connection` | one connection: HTTP/1.1 with upgrades |
//! | `body`, `stall` | clients that stop sending, or taking |
//! | `listener` | the socket that accepted a request |
//! | `shutdown` | how all parts learn that the server shuts down |

mod accept;
mod bind;
mod body;
mod certificate;
mod connection;
mod listener;
mod own_names;
mod places;
mod self_signed;
mod shutdown;
mod stall;

pub use accept::{ListenSettings, Listeners};
pub use bind::{BindError, Bound, bind, bind_e2b};
pub(crate) use body::is_late;
pub use certificate::{CertificateError, CertificateSource, TlsConfig};
pub use listener::Listener;
pub use self_signed::SelfSignedError;
pub use shutdown::{Hold, Shutdown};
