//! The operator's network rules for every sandbox.

use std::net::IpAddr;

use super::target::Target;

/// The operator's rules, which apply before any policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorRules {
    /// Closed addresses, and addresses of this host, that sandboxes may reach if their policy allows it: by address, or by a name, which
    /// opens every address that it resolves to.
    pub reachable: Vec<Target>,
    /// Targets that no sandbox may reach, whatever its policy says.
    pub denied: Vec<Target>,
    /// Addresses of this host.
    pub host_addresses: Vec<IpAddr>,
}
