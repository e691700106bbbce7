//! Which hosts the server asks on behalf of callers.

use std::net::IpAddr;

use sandyard_core::network::{NetworkPolicy, OperatorRules, Target};

use super::address::is_open;
use super::allow_list::AllowList;

/// What decides: the operator's lists, and the addresses of this host, which its services listen on.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Hosts the operator vouches for.
    pub(super) allowed: AllowList,
    /// What the operator closes for every sandbox is closed here, too.
    denied: Vec<Target>,
    /// Tells this host's addresses at this moment.
    host_addresses: fn() -> Vec<IpAddr>,
}

impl Reach {
    pub(super) fn new(
        allowed: &[String],
        denied: &[Target],
        host_addresses: fn() -> Vec<IpAddr>,
    ) -> Self {
        Self {
            allowed: AllowList::new(allowed),
            denied: denied.to_vec(),
            host_addresses,
        }
    }

    /// Says whether a name may be asked for, whatever its addresses are.
    pub(super) fn has_name(&self, name: &str, port: u16) -> bool {
        let judged =
            NetworkPolicy::default().judge_name(&self.operator_rules(Vec::new()), name, Some(port));
        judged.is_ok()
    }

    /// Says whether all of these addresses may be dialled, found by `name` if there is one.
    pub(super) fn has_addresses(
        &self,
        name: Option<&str>,
        addresses: impl IntoIterator<Item = IpAddr>,
        port: u16,
    ) -> bool {
        let (policy, rules) = (
            NetworkPolicy::default(),
            self.operator_rules((self.host_addresses)()),
        );
        addresses.into_iter().all(|address| {
            is_open(address) && policy.judge_address(&rules, name, address, port).is_ok()
        })
    }

    fn operator_rules(&self, host_addresses: Vec<IpAddr>) -> OperatorRules {
        OperatorRules {
            reachable: Vec::new(),
            denied: self.denied.clone(),
            host_addresses,
        }
    }
}
