//! `[gateway]`, typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use sandyard_core::network::{NetworkPolicy, Target};

use crate::secret::Secret;
use crate::values::Values;

/// `[gateway]`: what sandboxes reach.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// Whether sandboxes have egress at all.
    pub is_enabled: bool,
    /// Closed targets that may be reached all the same.
    pub reachable: Vec<Target>,
    /// What no sandbox may reach.
    pub denied: Vec<Target>,
    /// What a sandbox may reach whose maker says nothing.
    pub default_policy: NetworkPolicy,
    /// Whom to ask for names; the host's own when empty.
    pub nameservers: Vec<SocketAddr>,
    /// A proxy to go out by; `None` for what the environment says. May hold a password.
    pub proxy: Option<Secret>,
    /// More authorities to trust, in PEM.
    pub trusted_ca: Option<PathBuf>,
    /// Connections of one sandbox at once.
    pub max_connections: usize,
    /// Connections of all sandboxes at once.
    pub max_connections_total: usize,
    /// New connections of one sandbox in a second.
    pub connections_per_second: u32,
    /// Look-ups of one sandbox in a second.
    pub queries_per_second: u32,
    /// Bytes of one sandbox in a second; `None` for no bound.
    pub bytes_per_second: Option<u64>,
}

impl GatewaySettings {
    pub(super) fn build(values: &Values) -> Self {
        let max_connections_total = values.small("gateway.max_connections_total");
        Self {
            is_enabled: values.switch("gateway.enabled"),
            reachable: values.targets("gateway.reachable").to_vec(),
            denied: values.targets("gateway.denied").to_vec(),
            default_policy: NetworkPolicy {
                allow_internet_access: values.switch("gateway.allow_internet_access"),
                allow_out: values.targets("gateway.allow_out").to_vec(),
                deny_out: values.targets("gateway.deny_out").to_vec(),
                ..NetworkPolicy::default()
            },
            nameservers: values.name_servers("gateway.nameservers").to_vec(),
            proxy: values
                .text("gateway.proxy")
                .map(|text| Secret::new(text.to_owned())),
            trusted_ca: values.path("gateway.trusted_ca"),
            max_connections: values
                .small::<usize>("gateway.max_connections")
                .min(max_connections_total),
            max_connections_total,
            connections_per_second: values.small("gateway.connections_per_second"),
            queries_per_second: values.small("gateway.queries_per_second"),
            bytes_per_second: values.count("gateway.bytes_per_second"),
        }
    }
}
