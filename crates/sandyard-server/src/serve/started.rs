//! Addresses, keys and warnings of a started server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use sandyard_config::{Settings, is_open};

use super::ADMIN_KEY_FILE;
use crate::app::App;
use crate::listen::Bound;

/// One address that is listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The socket address.
    pub address: SocketAddr,
    /// Whether TLS is spoken.
    pub is_tls: bool,
    /// Whether this host's own programs need no credentials.
    pub is_open: bool,
}

impl Address {
    /// Its URL, as a program on this host reaches it.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let loopback: std::net::IpAddr = match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
        }
        format!("{scheme}://{address}")
    }
}

/// A server that runs.
#[derive(Clone)]
pub struct Started {
    /// Where it listens; the first one is the one to show people.
    pub addresses: Vec<Address>,
    /// Where E2B's API listens; none without a listener of its own.
    pub e2b_addresses: Vec<Address>,
    /// Where to look for E2B's API.
    pub e2b_url: String,
    /// Why there is no such listener although there should be one.
    pub e2b_warning: Option<String>,
    /// Certificate authority that clients must trust, if the certificate is self-signed.
    pub certificate: Option<PathBuf>,
    /// The first admin's key, the one time it was made.
    pub admin_key: Option<String>,
    /// Where that key is kept.
    pub admin_key_file: PathBuf,
    /// `sqlite` or `postgres`.
    pub store: &'static str,
    /// Which provider runs sandboxes.
    pub provider: String,
    /// What that provider cannot provide, one sentence each.
    pub limitations: Vec<String>,
    /// Where everything is kept.
    pub data_dir: PathBuf,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started")
            .field("addresses", &self.addresses)
            .field("is_first_start", &self.admin_key.is_some())
            .finish_non_exhaustive()
    }
}

impl Started {
    pub(super) fn new(
        settings: &Settings,
        app: &App,
        sockets: &[Bound],
        admin_key: Option<String>,
    ) -> Self {
        let address = |socket: &Bound| Address {
            address: socket.address,
            is_tls: socket.is_tls,
            // E2B's API always asks for a key.
            is_open: !socket.is_e2b && is_open(settings, socket.address.ip()),
        };
        let all = |is_e2b| {
            let is_meant = move |socket: &&Bound| socket.is_e2b == is_e2b;
            sockets.iter().filter(is_meant).map(address).collect()
        };
        let (addresses, e2b_addresses): (Vec<Address>, Vec<Address>) = (all(false), all(true));
        let provider = app.service().provider_info();
        Self {
            e2b_url: e2b_url(app, &addresses, &e2b_addresses),
            addresses,
            e2b_addresses,
            e2b_warning: None,
            certificate: None,
            admin_key,
            admin_key_file: settings.data_dir.join(ADMIN_KEY_FILE),
            store: app.store().kind(),
            provider: provider.name,
            limitations: provider.limitations,
            data_dir: settings.data_dir.clone(),
        }
    }

    /// A warning for the terminal; `None` if every address requires credentials.
    pub fn warning(&self) -> Option<String> {
        let open: Vec<String> = self
            .addresses
            .iter()
            .filter(|address| address.is_open)
            .map(Address::url)
            .collect();
        (!open.is_empty()).then(|| {
            format!(
                "OPEN: every program and user of this host can use {} without a key; \
                 set SANDYARD_AUTH_MODE=required to ask for one",
                open.join(", ")
            )
        })
    }

    pub(super) fn log(&self) {
        for address in &self.addresses {
            tracing::info!(address = %address.address, tls = address.is_tls, "Listening on {}", address.url());
        }
        for address in &self.e2b_addresses {
            let tls = address.is_tls;
            tracing::info!(address = %address.address, tls, "Listening for E2B's clients on {}", address.url());
        }
        if let Some(warning) = &self.e2b_warning {
            tracing::warn!("{warning}");
        }
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
        for limitation in &self.limitations {
            tracing::warn!("Sandboxes lack something: {limitation}");
        }
    }
}

/// Where a program on this host finds E2B's API.
fn e2b_url(app: &App, addresses: &[Address], e2b_addresses: &[Address]) -> String {
    let settings = app.settings();
    if settings.is_e2b_domain_enough {
        return format!("https://api.{}", settings.e2b_domain);
    }
    match (e2b_addresses.first(), addresses.first()) {
        (Some(address), _) => address.url(),
        (None, Some(first)) => format!("{}{}", first.url(), crate::e2b::PREFIX),
        (None, None) => crate::e2b::PREFIX.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_shown_as_one_that_works() {
        let address = |text: &str, is_tls| Address {
            address: text.parse().unwrap(),
            is_tls,
            is_open: false,
        };
        assert_eq!(
            address("0.0.0.0:8100", false).url(),
            "http://127.0.0.1:8100"
        );
        assert_eq!(address("[::]:443", true).url(), "https://[::1]:443");
        assert_eq!(address("192.0.2.1:80", false).url(), "http://192.0.2.1:80");
    }
}
