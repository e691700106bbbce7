//! Sockets, TLS, graceful end.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | sockets, all of them or none |
//! | `certificate`, `self_signed`, `authority` | the operator's certificate, or one made here |
//! | `accept` | connections on their way in, so many at a time |
//! | `places` | how many of them one address may have |
//! | `connection` | one connection: HTTP/1.1 with upgrades |
//! | `body`, `stall` | clients that stop sending, or taking |
//! | `ending` | how everything learns that the server ends |

mod accept;
mod authority;
mod bind;
mod body;
mod certificate;
mod connection;
mod ending;
mod own_names;
mod places;
mod self_signed;
mod stall;

pub use accept::{ListenSettings, Listeners};
pub use bind::{BindError, Bound, bind, bind_e2b};
pub(crate) use body::is_late;
pub(crate) use certificate::write_secret;
pub use certificate::{CertificateError, CertificateSource, TlsConfig};
pub use ending::{Ending, Hold};
pub use self_signed::SelfSignedError;
