//! Where a request goes, and on which terms.

use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::address::{PreviewAddress, PreviewForm};

/// Where a request goes, and on which terms.
pub struct Target {
    /// The port inside the sandbox.
    pub port: u16,
    /// The public path of the port's `/`, without the final slash; `None` in the host form.
    pub prefix: Option<String>,
    /// The host the client asked for, with its port: what [`crate::address::host_of`] said.
    pub host: String,
    /// How the client reached us.
    pub scheme: Scheme,
    /// The client's address, for `X-Forwarded-For`.
    pub client: Option<IpAddr>,
    /// Which `Host` the sandbox sees.
    pub host_header: HostHeader,
    /// Whether the sandbox sees `Authorization`.
    pub authorization: AuthorizationHeader,
    /// How pages in the path form are kept from each other.
    pub isolation: Isolation,
    /// Sizes and times.
    pub limits: ForwardLimits,
    /// Kept for as long as the response's body or the upgraded stream lives, to count it as activity.
    pub guard: Option<Box<dyn Any + Send>>,
}

impl Target {
    /// Makes a target with the usual terms.
    pub fn new(address: &PreviewAddress, host: impl Into<String>, scheme: Scheme) -> Self {
        Self {
            port: address.port,
            prefix: match address.form {
                PreviewForm::Host => None,
                PreviewForm::Path => Some(address.prefix()),
            },
            host: host.into(),
            scheme,
            client: None,
            host_header: HostHeader::Keep,
            authorization: AuthorizationHeader::Forward,
            isolation: Isolation::Opaque,
            limits: ForwardLimits::default(),
            guard: None,
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("port", &self.port)
            .field("prefix", &self.prefix)
            .field("host", &self.host)
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

/// How the client reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// Gives the scheme of a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Which `Host` the sandbox sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The public one, so that absolute links come out right.
    #[default]
    Keep,
    /// `localhost:{port}`, for programs that serve no other.
    Localhost,
    /// This one, with its port, whatever the client asked for.
    Fixed(String),
}

/// Whether the sandbox sees `Authorization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationHeader {
    /// It was meant for the sandbox.
    #[default]
    Forward,
    /// It was meant for us.
    Withhold,
}

/// How pages in the path form are kept from each other and from the API. The crate's documentation says why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each page has an opaque origin.
    #[default]
    Opaque,
    /// Pages share the server's origin: only where every sandbox is trusted with everything.
    Shared,
}

/// Sizes and times of an exchange. A response's body and an upgraded stream may be quiet for as long as they like.
#[derive(Clone, Debug)]
pub struct ForwardLimits {
    /// Until the port is connected.
    pub connect: Duration,
    /// Until the response's headers are there, counted from the last bytes of the request that were passed on.
    pub headers: Duration,
    /// How long the body waits for a `100 Continue` that may never come. RFC 9110 10.1.1 wants it bounded.
    pub expect: Duration,
    /// How long the open half of an upgraded stream may be quiet once the other half has ended.
    pub half_closed: Duration,
    /// Bytes of the response's headers.
    pub max_header_len: usize,
    /// Number of the response's headers.
    pub max_headers: usize,
}

impl Default for ForwardLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            headers: Duration::from_secs(300),
            expect: Duration::from_secs(1),
            half_closed: Duration::from_secs(300),
            max_header_len: 64 << 10,
            max_headers: 128,
        }
    }
}
