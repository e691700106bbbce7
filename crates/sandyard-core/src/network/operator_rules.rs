//! What an operator opens and closes for every sandbox.

use std::net::IpAddr;

use super::target::Target;

/// The operator's rules, before any policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorRules {
    /// Closed addresses and own ones that may be reached all the same, if the sandbox's policy allows it. By address; or by
    /// name, for whatever that name resolves to.
    pub reachable: Vec<Target>,
    /// What no sandbox may reach, whatever its policy says.
    pub denied: Vec<Target>,
    /// Addresses of this very host, which its services listen on.
    pub own: Vec<IpAddr>,
}
