//! Translates a network policy for E2B.
//!
//! `allowOut` accepts names, addresses and networks, and `denyOut` addresses and networks; IPv4 only and without ports. Names may
//! only be allowed when everything else is denied. Other parts of a policy are reported as limitations.

use std::net::IpAddr;

use sandyard_core::NetworkPolicy;
use sandyard_core::network::{NetworkGrant, Target, TargetHost};

use super::model::Network;

/// The entire internet.
const EVERYTHING: &str = "0.0.0.0/0";

/// The request to E2B, and the parts of the policy that E2B cannot enforce.
pub(super) fn network(policy: &NetworkPolicy) -> (Network, Vec<String>) {
    let mut limitations = Limitations::default();
    let is_closed = !policy.allow_internet_access
        || policy.deny_out.iter().any(|target| target.is_everything());
    let mut allow_out = Vec::new();
    for target in &policy.allow_out {
        allow(target, is_closed, &mut allow_out, &mut limitations);
    }
    let mut deny_out = Vec::new();
    if is_closed {
        deny_out.push(EVERYTHING.to_owned());
    } else {
        for target in &policy.deny_out {
            deny(target, &mut deny_out, &mut limitations);
        }
    }
    if !policy.rules.is_empty() {
        limitations.add("headers of `rules` are not set on requests");
    }
    let network = Network {
        allow_out,
        deny_out,
        allow_public_traffic: None,
    };
    (network, limitations.0)
}

/// The limitations of a grant, in addition to those of its policy.
pub(super) fn limitations_of_secrets(grant: &NetworkGrant, limitations: &mut Vec<String>) {
    if !grant.secrets.is_empty() {
        limitations.push("placeholders are not replaced by secrets".to_owned());
    }
}

/// Limitations without duplicates, in order.
#[derive(Default)]
struct Limitations(Vec<String>);

impl Limitations {
    fn add(&mut self, text: &str) {
        if !self.0.iter().any(|existing| existing == text) {
            self.0.push(text.to_owned());
        }
    }
}

fn allow(
    target: &Target,
    is_closed: bool,
    allowed: &mut Vec<String>,
    limitations: &mut Limitations,
) {
    if target.port.is_some() {
        limitations
            .add("ports of `allow_out` are ignored: allowed targets are allowed on all ports");
    }
    let text = match &target.host {
        // Everything is allowed, so the name need not be listed.
        TargetHost::Name(_) if !is_closed => return,
        TargetHost::Name(_) if target.is_everything() => EVERYTHING.to_owned(),
        TargetHost::Name(pattern) => pattern.to_string(),
        TargetHost::Network(IpAddr::V4(address), bits) => format!("{address}/{bits}"),
        TargetHost::Network(IpAddr::V6(_), _) => {
            limitations.add("IPv6 addresses cannot be allowed");
            return;
        }
    };
    if !allowed.contains(&text) {
        allowed.push(text);
    }
}

fn deny(target: &Target, denied: &mut Vec<String>, limitations: &mut Limitations) {
    match (&target.host, target.port) {
        (_, Some(_)) => limitations.add("entries of `deny_out` with a port are not enforced"),
        (TargetHost::Name(_), None) => limitations.add("names in `deny_out` are not enforced"),
        (TargetHost::Network(IpAddr::V6(_), _), None) => {
            limitations.add("IPv6 addresses in `deny_out` are not enforced");
        }
        (TargetHost::Network(IpAddr::V4(address), bits), None) => {
            let text = format!("{address}/{bits}");
            if !denied.contains(&text) {
                denied.push(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn translated(policy: serde_json::Value) -> (Vec<String>, Vec<String>, usize) {
        let policy = NetworkPolicy::from_value(policy).expect("a policy");
        let (network, limitations) = network(&policy);
        (network.allow_out, network.deny_out, limitations.len())
    }

    #[test]
    fn policies_are_translated_and_the_rest_is_reported() {
        let empty: Vec<String> = vec![];
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(translated(json!({})), (empty.clone(), empty.clone(), 0));
        assert_eq!(
            translated(
                json!({"allow_internet_access": false, "allow_out": ["a.org", "*.b.org:443", "10.0.0.0/8"]})
            ),
            (
                texts(&["a.org", "*.b.org", "10.0.0.0/8"]),
                texts(&[EVERYTHING]),
                1
            )
        );
        assert_eq!(
            translated(json!({"deny_out": ["*", "10.0.0.0/8"], "allow_out": ["a.org"]})),
            (texts(&["a.org"]), texts(&[EVERYTHING]), 0)
        );
        assert_eq!(
            translated(
                json!({"deny_out": ["10.0.0.0/8", "a.org", "*:25", "2001:db8::/32"], "allow_out": ["b.org"]})
            ),
            (empty, texts(&["10.0.0.0/8"]), 3)
        );
    }
}
