//! Sockets, TLS, graceful end.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | sockets, all of them or none |
//! | `certificate`, `self_signed` | the operator's certificate, or one made here |
//! | `accept` | connections on their way in, so many at a time |
//! | `connection` | one connection: HTTP/1.1 with upgrades |
//! | `ending` | how everything learns that the server ends |

mod accept;
mod bind;
mod certificate;
mod connection;
mod ending;
mod self_signed;

pub use accept::{ListenSettings, Listeners};
pub use bind::{BindError, Bound, bind};
pub(crate) use certificate::write_secret;
pub use certificate::{CertificateError, CertificateSource, TlsConfig};
pub use ending::{Ending, Hold};
pub use self_signed::SelfSignedError;
