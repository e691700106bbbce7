//! What a sandbox's maker asks for.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::grant::BoundHost;
use super::read;
use super::target::Target;

/// What a sandbox may reach. [`Default`]: the public internet.
///
/// Reads E2B's spelling (`allowOut`) as well as its own (`allow_out`), and `null` for whatever has its default. What is in
/// `allow_out` is allowed, whatever the rest says; then what is in `deny_out` is denied; then the rest is allowed if
/// `allow_internet_access` is. OperatorRules rules of the operator ([`OperatorRules`](super::OperatorRules)) come before all of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct NetworkPolicy {
    /// Whether what no entry names may be reached.
    pub allow_internet_access: bool,
    /// What may be reached in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_out: Vec<Target>,
    /// What may not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_out: Vec<Target>,
    /// What the gateway does to requests for a host: over TLS alone unless it is written `http://name`, and on every port
    /// unless it has one. Naming one here does not allow it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<BoundHost, Vec<HostRule>>,
    /// Whether anybody may open the previews of its ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_public_traffic: Option<bool>,
    /// The `Host` that servers inside see on previews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_request_host: Option<String>,
}

/// What to do to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostRule {
    /// How to change it.
    pub transform: Transform,
}

/// How to change a request.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transform {
    /// Headers to set, whatever the program sent. The values may be secrets: never logged.
    pub headers: BTreeMap<String, String>,
}

/// Says what is wrong with a policy, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {problem}")]
pub struct PolicyError {
    /// Path of the member, as `allow_out[2]`.
    pub field: String,
    /// Description of the problem, a predicate: `must be true or false`.
    pub problem: String,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self {
            allow_internet_access: true,
            allow_out: Vec::new(),
            deny_out: Vec::new(),
            rules: BTreeMap::new(),
            allow_public_traffic: None,
            mask_request_host: None,
        }
    }
}

impl NetworkPolicy {
    /// Reads what a client sent, and [checks](Self::check) it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_value(value: Value) -> Result<Self, PolicyError> {
        let policy = read::policy(value)?;
        policy.check()?;
        Ok(policy)
    }

    /// Adds to what may be reached, and takes equal entries out of what may not.
    pub fn allow(&mut self, targets: impl IntoIterator<Item = Target>) {
        for target in targets {
            move_to(target, &mut self.allow_out, &mut self.deny_out);
        }
    }

    /// Adds to what may not be reached, and takes equal entries out of what may. An entry of `allow_out` that stands for more
    /// or less than a target stays, and wins.
    pub fn deny(&mut self, targets: impl IntoIterator<Item = Target>) {
        for target in targets {
            move_to(target, &mut self.deny_out, &mut self.allow_out);
        }
    }

    /// What to do to requests for a name and port, with or without TLS. The rule that fits closest comes last, so that its
    /// headers are the ones that stay.
    pub fn rules_for(
        &self,
        name: &str,
        port: u16,
        is_tls: bool,
    ) -> impl Iterator<Item = &Transform> {
        let mut fitting: Vec<_> = self
            .rules
            .iter()
            .filter(|(host, _)| host.matches(name, port, is_tls))
            .collect();
        fitting.sort_by_key(|(host, _)| host.closeness());
        fitting
            .into_iter()
            .flat_map(|(_, rules)| rules)
            .map(|rule| &rule.transform)
    }
}

impl TryFrom<Value> for NetworkPolicy {
    type Error = PolicyError;

    /// Reads without the checks: what was stored under other bounds stays readable.
    fn try_from(value: Value) -> Result<Self, Self::Error> {
        read::policy(value)
    }
}

impl PolicyError {
    pub(super) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

// values of headers are left out by `Transform`.
crate::debug_fields!(NetworkPolicy: allow_internet_access, allow_out, deny_out, rules);

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.headers.keys()).finish()
    }
}

fn move_to(target: Target, to: &mut Vec<Target>, from: &mut Vec<Target>) {
    // Everything has three spellings.
    let is_same =
        |entry: &Target| *entry == target || (entry.is_everything() && target.is_everything());
    from.retain(|entry| !is_same(entry));
    if !to.iter().any(is_same) {
        to.push(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn targets(texts: &[&str]) -> Vec<Target> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn policy(value: Value) -> NetworkPolicy {
        NetworkPolicy::from_value(value).expect("a policy")
    }

    /// What the rules for a connection set `x-a` to, in their order.
    fn values<'a>(rules: &'a NetworkPolicy, name: &str, port: u16, is_tls: bool) -> Vec<&'a str> {
        rules
            .rules_for(name, port, is_tls)
            .map(|transform| transform.headers["x-a"].as_str())
            .collect()
    }

    #[test]
    fn an_allowed_target_is_there_once_and_no_longer_denied() {
        let mut changed =
            policy(json!({"allow_out": ["a.org"], "deny_out": ["b.org", "b.org:80", "*"]}));
        changed.allow(targets(&["a.org", "b.org", "c.org", "c.org"]));
        assert_eq!(changed.allow_out, targets(&["a.org", "b.org", "c.org"]));
        assert_eq!(changed.deny_out, targets(&["b.org:80", "*"]));
        changed.deny(targets(&["A.org", "b.org:80", "0.0.0.0/0"]));
        assert_eq!(changed.allow_out, targets(&["b.org", "c.org"]));
        assert_eq!(changed.deny_out, targets(&["b.org:80", "*", "a.org"]));
    }

    #[test]
    fn denying_everything_takes_back_allowing_everything() {
        let mut changed = NetworkPolicy::default();
        changed.allow(targets(&["*"]));
        changed.deny([Target::everything()]);
        assert_eq!(changed.allow_out, []);
        assert!(changed.is_closed());
    }

    #[test]
    fn the_rule_that_fits_closest_comes_last() {
        let with = |value: &str| json!([{"transform": {"headers": {"x-a": value}}}]);
        let rules = policy(json!({"rules": {
            "*.com": with("1"), "*.a.example.com": with("3"), "*.example.com": with("2"), "w.a.example.com": with("4"),
            "w.a.example.com:8443": with("5"), "other.org": with("0"),
        }}));
        assert_eq!(
            values(&rules, "w.a.example.com", 443, true),
            ["1", "2", "3", "4"]
        );
        assert_eq!(
            values(&rules, "w.a.example.com", 8443, true),
            ["1", "2", "3", "4", "5"]
        );
        assert_eq!(values(&rules, "example.com", 443, true), ["1"]);
        assert_eq!(values(&rules, "other.org", 443, true), ["0"]);
        let rules = policy(json!({"rules": {
            "a.b.org": with("3"), "*.b.org": with("1"), "*.b.org:443": with("2"), "http://a.b.org:443": with("4"),
            "a.b.org:443": with("5"),
        }}));
        assert_eq!(
            values(&rules, "a.b.org", 443, true),
            ["1", "2", "3", "4", "5"]
        );
    }

    #[test]
    fn a_rule_is_for_tls_alone_unless_said_otherwise_and_for_its_port_alone() {
        let with = |value: &str| json!([{"transform": {"headers": {"x-a": value}}}]);
        let rules = policy(json!({"rules": {
            "a.org": with("tls"), "http://a.org": with("both"), "a.org:8443": with("port"), "http://b.org:8080": with("b"),
            "*.org": with("wide"),
        }}));
        assert_eq!(values(&rules, "a.org", 443, true), ["wide", "both", "tls"]);
        assert_eq!(values(&rules, "a.org", 80, false), ["both"]);
        assert_eq!(values(&rules, "a.org", 8443, false), ["both"]);
        assert_eq!(
            values(&rules, "a.org", 8443, true),
            ["wide", "both", "tls", "port"]
        );
        assert_eq!(values(&rules, "b.org", 8080, false), ["b"]);
        assert_eq!(values(&rules, "b.org", 80, false), [""; 0]);
    }

    #[test]
    fn it_is_written_in_its_own_spelling_and_without_defaults() {
        let written = |value: Value| serde_json::to_value(policy(value)).expect("written");
        assert_eq!(written(json!({})), json!({"allow_internet_access": true}));
        let whole = json!({
            "allow_internet_access": false,
            "allow_out": ["a.org:443"],
            "deny_out": ["0.0.0.0/0"],
            "rules": {
                "a.org": [{"transform": {"headers": {"x-a": "b"}}}], "api.example.com:8443": [], "http://registry.internal": [],
            },
            "allow_public_traffic": true,
            "mask_request_host": "localhost:${PORT}",
        });
        assert_eq!(written(whole.clone()), whole);
        let read: NetworkPolicy = serde_json::from_value(whole.clone()).expect("read");
        assert_eq!(read, policy(whole));
    }

    #[test]
    fn what_is_stored_is_read_without_the_checks() {
        let long =
            json!({"rules": {"a.org": [{"transform": {"headers": {"x-a": "b".repeat(9000)}}}]}});
        assert!(NetworkPolicy::from_value(long.clone()).is_err());
        assert!(serde_json::from_value::<NetworkPolicy>(long).is_ok());
    }

    #[test]
    fn header_values_are_not_shown() {
        let secret =
            policy(json!({"rules": {"a.org": [{"transform": {"headers": {"x-a": "hush"}}}]}}));
        let debug = format!("{secret:?}");
        assert!(debug.contains("x-a") && !debug.contains("hush"), "{debug}");
    }
}
