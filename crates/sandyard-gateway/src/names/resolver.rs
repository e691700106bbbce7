//! Queries to DNS servers, and the servers in `resolv.conf`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

/// The C library's maximum.
const MAX_NAME_SERVERS: usize = 3;

/// Creates a resolver of these servers, over UDP, and over TCP for long answers.
pub(super) fn build(servers: &[SocketAddr], timeout: Duration) -> Result<TokioResolver, NetError> {
    let config =
        ResolverConfig::from_name_servers(servers.iter().map(|at| server(*at, servers)).collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    // Two rounds within the time limit: a lost packet, or a server that just ended, must not fail a look-up.
    options.timeout = timeout.mul_f32(0.4);
    options.attempts = 1;
    // `cache` stores addresses, with a bound.
    options.cache_size = 0;
    // The aliases are needed to find the records that belong to the name.
    options.preserve_intermediates = true;
    // The hosts file is used before, see `hosts_file`.
    options.use_hosts_file = ResolveHosts::Never;
    // All sandboxes share one TCP connection to a server.
    options.max_active_requests = 1024;
    builder.build()
}

fn server(at: SocketAddr, all: &[SocketAddr]) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
        .map(|mut connection| {
            connection.port = at.port();
            connection
        })
        .into();
    // Servers are asked in parallel. A fast one that does not know an internal name must not win over one that does.
    let trusts_misses = all.len() == 1;
    NameServerConfig::new(at.ip(), trusts_misses, connections)
}

/// The DNS servers of a `resolv.conf`. Its search list and options are ignored.
pub(super) fn servers_of(resolv_conf: &str) -> Vec<SocketAddr> {
    resolv_conf
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            if fields.next() != Some("nameserver") {
                return None;
            }
            fields.next()?.parse::<IpAddr>().ok()
        })
        .map(|ip| SocketAddr::new(ip, 53))
        .take(MAX_NAME_SERVERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_name_servers_are_read_of_a_resolv_conf() {
        let text = "# by hand\nsearch -- corp.example\noptions ndots:5\n\
                    nameserver 192.0.2.1\n  nameserver\t2001:db8::53 # second\nnameserver fe80::1%eth0\n\
                    nameserver nonsense\nnameservers 192.0.2.9\n;nameserver 192.0.2.8\n\
                    nameserver 192.0.2.2\nnameserver 192.0.2.3\n";
        let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::53]:53", "192.0.2.2:53"]
            .map(|at| at.parse().unwrap())
            .into();
        assert_eq!(servers_of(text), expected);
        assert_eq!(servers_of(""), []);
    }
}
