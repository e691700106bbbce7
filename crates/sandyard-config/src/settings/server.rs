//! `[server]`, typed.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::kind::network::Network;
use crate::values::Values;

/// `[server]`: where the server listens and what it bears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Addresses to listen on.
    pub hosts: Vec<IpAddr>,
    /// Ports to listen on, at each address.
    pub ports: Vec<u16>,
    /// How clients reach the server, without a slash at the end; `None` if by its own address.
    pub public_url: Option<String>,
    /// The domain below which previews are; lower-case.
    pub domain: String,
    /// Whether and how TLS is spoken.
    pub tls: Tls,
    /// The largest body held in memory.
    pub body_limit_bytes: u64,
    /// The largest streamed upload; `None` for no bound but the sandbox's disk.
    pub upload_limit_bytes: Option<u64>,
    /// Requests served at once.
    pub max_requests: usize,
    /// Memory for request bodies and answers of all callers; `None`: as much as fits the host.
    pub buffer_memory_bytes: Option<u64>,
    /// Bytes kept of each output stream of a command, unless a request says otherwise.
    pub command_output_bytes: u64,
    /// Requests a second by one caller; `None` for no bound.
    pub rate_limit: Option<u64>,
    /// Whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<Network>,
    /// Hosts that callers may name in URLs although their addresses are not public.
    pub url_hosts: Vec<String>,
    /// How long requests may take to finish when the server stops.
    pub shutdown_grace: Duration,
}

/// Whether and how TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not at all.
    Off,
    /// With a given certificate.
    Files {
        /// Certificate chain in PEM.
        cert: PathBuf,
        /// Its private key in PEM.
        key: PathBuf,
    },
    /// With a certificate made at the start.
    SelfSigned,
}

impl ServerSettings {
    pub(super) fn build(values: &Values) -> Self {
        let path = |key| values.path(key);
        let tls = match (path("server.tls_cert"), path("server.tls_key")) {
            (Some(cert), Some(key)) => Tls::Files { cert, key },
            _ if values.switch("server.tls_self_signed") => Tls::SelfSigned,
            _ => Tls::Off,
        };
        Self {
            hosts: values.addresses("server.host").to_vec(),
            ports: values.ports("server.port").to_vec(),
            public_url: values.text("server.public_url").map(str::to_owned),
            domain: values
                .text("server.domain")
                .unwrap_or("localhost")
                .to_owned(),
            tls,
            body_limit_bytes: values.number("server.body_limit"),
            upload_limit_bytes: values.count("server.upload_limit"),
            max_requests: values.small("server.max_requests"),
            buffer_memory_bytes: values.count("server.buffer_memory"),
            command_output_bytes: values.number("server.command_output"),
            rate_limit: values.count("server.rate_limit"),
            trusted_proxies: values.networks("server.trusted_proxies").to_vec(),
            url_hosts: values
                .text("server.url_hosts")
                .into_iter()
                .flat_map(|hosts| hosts.split(','))
                .map(|host| host.trim().to_owned())
                .filter(|host| !host.is_empty())
                .collect(),
            shutdown_grace: values.duration("server.shutdown_grace"),
        }
    }

    /// Every address and port to listen on. The first one is the one to show people.
    pub fn listeners(&self) -> Vec<SocketAddr> {
        let at = |port: &u16| {
            self.hosts
                .iter()
                .map(|host| SocketAddr::new(*host, *port))
                .collect::<Vec<_>>()
        };
        self.ports.iter().flat_map(at).collect()
    }
}
