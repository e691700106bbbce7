//! What a sandbox may reach, as E2B can be told.
//!
//! There `allowOut` takes names, addresses and networks, and `denyOut` addresses and networks, of IPv4 alone and without ports;
//! names may only be allowed where everything else is denied. What a policy says beyond that is told in words.

use std::net::IpAddr;

use sandyard_core::NetworkPolicy;
use sandyard_core::network::{NetworkGrant, Target, TargetHost};

use super::model::Network;

/// All of the internet, there.
const EVERYTHING: &str = "0.0.0.0/0";

/// A policy in E2B's words, and what of it those cannot say.
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
        limitations.say("headers of `rules` are not set on requests");
    }
    let network = Network {
        allow_out,
        deny_out,
        allow_public_traffic: None,
    };
    (network, limitations.0)
}

/// What of a grant does not hold there, besides what the policy says.
pub(super) fn limitations_of_secrets(grant: &NetworkGrant, limitations: &mut Vec<String>) {
    if !grant.secrets.is_empty() {
        limitations.push("secrets are not put in place of their placeholders".to_owned());
    }
}

/// Said once each, in the order they were met.
#[derive(Default)]
struct Limitations(Vec<String>);

impl Limitations {
    fn say(&mut self, text: &str) {
        if !self.0.iter().any(|said| said == text) {
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
        limitations.say(
            "ports of `allow_out` are not looked at: what is allowed is allowed on every port",
        );
    }
    let text = match &target.host {
        // Allowed beside an open way out: said by saying nothing.
        TargetHost::Name(_) if !is_closed => return,
        TargetHost::Name(_) if target.is_everything() => EVERYTHING.to_owned(),
        TargetHost::Name(pattern) => pattern.to_string(),
        TargetHost::Network(IpAddr::V4(address), bits) => format!("{address}/{bits}"),
        TargetHost::Network(IpAddr::V6(_), _) => {
            limitations.say("IPv6 addresses cannot be allowed");
            return;
        }
    };
    if !allowed.contains(&text) {
        allowed.push(text);
    }
}

fn deny(target: &Target, denied: &mut Vec<String>, limitations: &mut Limitations) {
    match (&target.host, target.port) {
        (_, Some(_)) => limitations.say("entries of `deny_out` with a port are not enforced"),
        (TargetHost::Name(_), None) => limitations.say("names in `deny_out` are not enforced"),
        (TargetHost::Network(IpAddr::V6(_), _), None) => {
            limitations.say("IPv6 addresses in `deny_out` are not enforced");
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

    fn told(policy: serde_json::Value) -> (Vec<String>, Vec<String>, usize) {
        let policy = NetworkPolicy::from_value(policy).expect("a policy");
        let (network, limitations) = network(&policy);
        (network.allow_out, network.deny_out, limitations.len())
    }

    #[test]
    fn what_can_be_said_is_said_and_the_rest_told() {
        let none: Vec<String> = vec![];
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(told(json!({})), (none.clone(), none.clone(), 0));
        assert_eq!(
            told(
                json!({"allow_internet_access": false, "allow_out": ["a.org", "*.b.org:443", "10.0.0.0/8"]})
            ),
            (
                texts(&["a.org", "*.b.org", "10.0.0.0/8"]),
                texts(&[EVERYTHING]),
                1
            )
        );
        assert_eq!(
            told(json!({"deny_out": ["*", "10.0.0.0/8"], "allow_out": ["a.org"]})),
            (texts(&["a.org"]), texts(&[EVERYTHING]), 0)
        );
        assert_eq!(
            told(
                json!({"deny_out": ["10.0.0.0/8", "a.org", "*:25", "2001:db8::/32"], "allow_out": ["b.org"]})
            ),
            (none, texts(&["10.0.0.0/8"]), 3)
        );
    }
}
