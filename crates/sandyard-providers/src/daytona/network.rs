//! A policy in Daytona's words: everything, nothing, or some networks and names.

use sandyard_core::NetworkPolicy;
use sandyard_core::network::{Target, TargetHost};

use super::model::Network;

/// What is asked of Daytona, and what of the policy does not hold there, in words.
pub(super) fn translate(policy: &NetworkPolicy, has_secrets: bool) -> (Network, Vec<String>) {
    let mut limitations = Vec::new();
    if has_secrets || !policy.rules.is_empty() {
        limitations.push(
            "no gateway of ours is on the way out: secrets and headers are not put in".to_owned(),
        );
    }
    let is_closed =
        !policy.allow_internet_access || policy.deny_out.iter().any(Target::is_everything);
    let is_open = !is_closed || policy.allow_out.iter().any(Target::is_everything);
    if is_open {
        if !policy.deny_out.is_empty() {
            limitations.push("only everything can be denied there, not single places".to_owned());
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
                    "{address}/{bits} is not let through: only IPv4 networks are"
                ));
            }
        }
    }
    if has_ports {
        limitations
            .push("ports are not told apart: what is allowed is allowed on all of them".to_owned());
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
    /// The same for a new sandbox, which has no lists to be cleared.
    pub(super) fn of_new(self) -> Self {
        let kept = |list: Option<String>| list.filter(|text| !text.is_empty());
        Self {
            network_block_all: self.network_block_all,
            network_allow_list: kept(self.network_allow_list),
            domain_allow_list: kept(self.domain_allow_list),
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
    fn everything_and_nothing_can_be_said() {
        let nothing = (String::new(), String::new(), 0);
        let expected = |is_blocked| (is_blocked, nothing.0.clone(), nothing.1.clone(), nothing.2);
        assert_eq!(lists(&policy(true, &[], &[])), expected(false));
        assert_eq!(lists(&policy(false, &[], &[])), expected(true));
        assert_eq!(lists(&policy(true, &[], &["0.0.0.0/0"])), expected(true));
    }

    #[test]
    fn networks_and_names_can_be_let_through() {
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
    fn what_does_not_hold_is_told() {
        assert_eq!(lists(&policy(true, &[], &["10.0.0.0/8"])).3, 1);
        assert_eq!(lists(&policy(false, &["example.com:443"], &[])).3, 1);
        assert_eq!(translate(&policy(true, &[], &[]), true).1.len(), 1);
        // A network that cannot be let through does not open everything else.
        let (network, limitations) = translate(&policy(false, &["2001:db8::/32"], &[]), false);
        assert!(network.network_block_all);
        assert_eq!(limitations.len(), 1);
    }

    #[test]
    fn a_new_one_has_no_lists_to_clear() {
        let (network, _) = translate(&policy(true, &[], &[]), false);
        assert_eq!(network.of_new(), Network::default());
    }
}
