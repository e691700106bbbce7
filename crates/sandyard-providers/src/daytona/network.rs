//! Translates a network policy for Daytona: everything, nothing, or some networks and names.

use sandyard_core::NetworkPolicy;
use sandyard_core::network::{Target, TargetHost};

use super::model::Network;

/// The request to Daytona, and the parts of the policy that Daytona cannot enforce.
pub(super) fn translate(policy: &NetworkPolicy, has_secrets: bool) -> (Network, Vec<String>) {
    let mut limitations = Vec::new();
    if has_secrets || !policy.rules.is_empty() {
        limitations.push(
            "connections do not pass this server's gateway: secrets and headers are not inserted"
                .to_owned(),
        );
    }
    let is_closed =
        !policy.allow_internet_access || policy.deny_out.iter().any(Target::is_everything);
    let is_open = !is_closed || policy.allow_out.iter().any(Target::is_everything);
    if is_open {
        if !policy.deny_out.is_empty() {
            limitations.push("Daytona can deny everything but not single targets".to_owned());
        }
        return (open(), limitations);
    }
    let (mut networks, mut names, mut has_ports) = (Vec::new(), Vec::new(), false);
    for target in &policy.allow_out {
        has_ports |= target.port.is_some();
        match &target.host {
            TargetHost::Name(pattern) => names.push(pattern.as_str().to_owned()),
            TargetHost::Network(address, bits) if address.is_ipv4() => {
                networks.push(format!("{address}/{bits}"));
            }
            TargetHost::Network(address, bits) => {
                limitations.push(format!(
                    "{address}/{bits} is not allowed: Daytona supports IPv4 networks only"
                ));
            }
        }
    }
    if has_ports {
        limitations.push(
            "ports cannot be restricted: allowed targets are allowed on all ports".to_owned(),
        );
    }
    let network = Network {
        network_block_all: networks.is_empty() && names.is_empty(),
        network_allow_list: Some(networks.join(",")),
        domain_allow_list: Some(names.join(",")),
    };
    (network, limitations)
}

fn open() -> Network {
    Network {
        network_block_all: false,
        network_allow_list: Some(String::new()),
        domain_allow_list: Some(String::new()),
    }
}

impl Network {
    /// The same for a new sandbox, which has no lists to clear.
    pub(super) fn without_empty_lists(self) -> Self {
        let non_empty = |list: Option<String>| list.filter(|text| !text.is_empty());
        Self {
            network_block_all: self.network_block_all,
            network_allow_list: non_empty(self.network_allow_list),
            domain_allow_list: non_empty(self.domain_allow_list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(is_open: bool, allow: &[&str], deny: &[&str]) -> NetworkPolicy {
        let read = |texts: &[&str]| texts.iter().map(|text| text.parse().expect(text)).collect();
        NetworkPolicy {
            allow_internet_access: is_open,
            allow_out: read(allow),
            deny_out: read(deny),
            ..NetworkPolicy::default()
        }
    }

    fn lists(policy: &NetworkPolicy) -> (bool, String, String, usize) {
        let (network, limitations) = translate(policy, false);
        let text = Option::unwrap_or_default;
        let (networks, names) = (network.network_allow_list, network.domain_allow_list);
        (
            network.network_block_all,
            text(networks),
            text(names),
            limitations.len(),
        )
    }

    #[test]
    fn everything_and_nothing_are_translated() {
        let expected_rest = (String::new(), String::new(), 0);
        let expected = |is_blocked| {
            (
                is_blocked,
                expected_rest.0.clone(),
                expected_rest.1.clone(),
                expected_rest.2,
            )
        };
        assert_eq!(lists(&policy(true, &[], &[])), expected(false));
        assert_eq!(lists(&policy(false, &[], &[])), expected(true));
        assert_eq!(lists(&policy(true, &[], &["0.0.0.0/0"])), expected(true));
    }

    #[test]
    fn networks_and_names_can_be_allowed() {
        let some = policy(false, &["10.0.0.0/8", "1.2.3.4", "*.example.org"], &[]);
        let expected = (
            false,
            "10.0.0.0/8,1.2.3.4/32".to_owned(),
            "*.example.org".to_owned(),
            0,
        );
        assert_eq!(lists(&some), expected);
    }

    #[test]
    fn unenforceable_parts_are_reported() {
        assert_eq!(lists(&policy(true, &[], &["10.0.0.0/8"])).3, 1);
        assert_eq!(lists(&policy(false, &["example.com:443"], &[])).3, 1);
        assert_eq!(translate(&policy(true, &[], &[]), true).1.len(), 1);
        // A network that cannot be allowed does not open everything else.
        let (network, limitations) = translate(&policy(false, &["2001:db8::/32"], &[]), false);
        assert!(network.network_block_all);
        assert_eq!(limitations.len(), 1);
    }

    #[test]
    fn a_new_sandbox_has_no_lists_to_clear() {
        let (network, _) = translate(&policy(true, &[], &[]), false);
        assert_eq!(network.without_empty_lists(), Network::default());
    }
}
