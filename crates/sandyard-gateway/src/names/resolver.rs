//! How name servers are asked, and which ones `resolv.conf` names.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

/// As many as the C library asks.
const MAX_NAME_SERVERS: usize = 3;

/// Makes a resolver that asks these, by UDP, and by TCP what does not fit.
pub(super) fn build(servers: &[SocketAddr], patience: Duration) -> Result<TokioResolver, NetError> {
    let config =
        ResolverConfig::from_name_servers(servers.iter().map(|at| server(*at, servers)).collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    // Two rounds within the time there is: a lost packet, or a server that just went away, must not end a look-up.
    options.timeout = patience.mul_f32(0.4);
    options.attempts = 1;
    // What is kept is in `kept`, and bounded.
    options.cache_size = 0;
    // The aliases on the way are needed to tell which records belong to the name.
    options.preserve_intermediates = true;
    // The hosts file is looked at before, see `written`.
    options.use_hosts_file = ResolveHosts::Never;
    // All sandboxes share one connection where a server is asked by TCP.
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
    // Servers are asked at once. One that does not know an inner name must not win by being fast over one that does.
    let trusts_misses = all.len() == 1;
    NameServerConfig::new(at.ip(), trusts_misses, connections)
}

/// The name servers of a `resolv.conf`. Its search list is not for sandboxes, and its options are ours.
pub(super) fn servers_of(resolv_conf: &str) -> Vec<SocketAddr> {
    resolv_conf
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            if words.next() != Some("nameserver") {
                return None;
            }
            words.next()?.parse::<IpAddr>().ok()
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
