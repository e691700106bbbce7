//! Network policies as rows store them: header values are sealed, because they may be secrets.

use std::collections::BTreeSet;

use sandyard_core::SandboxId;
use sandyard_core::network::{BoundHost, NetworkPolicy};
use serde_json::{Value, json};

use crate::error::{Result, ServiceError};
use crate::seal::Sealer;

/// Replaces header values in answers. In a request it stands for the stored value.
pub(crate) const HIDDEN: &str = "***";

/// Reads a row's policy; its values stay sealed.
pub(crate) fn read(network: Option<&Value>) -> Result<Option<NetworkPolicy>> {
    network
        .map(|policy| serde_json::from_value(policy.clone()))
        .transpose()
        .map_err(|error| {
            ServiceError::internal("failed to read a stored network policy").source(error)
        })
}

/// Converts a policy with sealed values to the form in the row.
pub(crate) fn write(policy: &NetworkPolicy) -> Result<Value> {
    serde_json::to_value(policy)
        .map_err(|error| ServiceError::internal("failed to write a network policy").source(error))
}

/// Checks a policy from a request.
pub(crate) fn check(policy: &NetworkPolicy) -> Result<()> {
    policy
        .check()
        .map_err(|error| ServiceError::invalid("network", error.to_string()))
}

/// Checks a policy whose values are sealed. The values were checked before sealing.
pub(crate) fn check_sealed(policy: &NetworkPolicy) -> Result<()> {
    let mut redacted = policy.clone();
    hide(&mut redacted);
    check(&redacted)
}

/// Replaces every header value.
pub(crate) fn map_values(
    policy: &mut NetworkPolicy,
    mut change: impl FnMut(&BoundHost, &str, &str) -> Result<String>,
) -> Result<()> {
    for (host, rules) in &mut policy.rules {
        for rule in rules {
            for (header, value) in &mut rule.transform.headers {
                *value = change(host, header, value)?;
            }
        }
    }
    Ok(())
}

/// Hides every header value.
pub(crate) fn hide(policy: &mut NetworkPolicy) {
    for rule in policy.rules.values_mut().flatten() {
        for value in rule.transform.headers.values_mut() {
            HIDDEN.clone_into(value);
        }
    }
}

/// Seals every header value for a sandbox.
pub(crate) fn seal(sealer: &Sealer, id: &SandboxId, policy: &mut NetworkPolicy) -> Result<()> {
    map_values(policy, |host, header, value| {
        if value == HIDDEN {
            return Err(ServiceError::invalid(
                "network",
                format!(
                    "`{HIDDEN}` stands for a stored value, and `{header}` for `{host}` has none yet"
                ),
            ));
        }
        sealer.seal(&purpose(id, host, header), value)
    })
}

/// Unseals every header value of a sandbox's policy.
pub(crate) fn unseal(sealer: &Sealer, id: &SandboxId, policy: &mut NetworkPolicy) -> Result<()> {
    map_values(policy, |host, header, value| {
        let opened = sealer.unseal(&purpose(id, host, header), value)?;
        Ok(opened.expose().to_owned())
    })
}

/// Replaces hidden values of a request by those of the policy `before`.
pub(crate) fn restore(policy: &mut NetworkPolicy, before: &NetworkPolicy) -> Result<()> {
    map_values(policy, |host, header, value| {
        let previous = before.rules.get(host).into_iter().flatten();
        let previous = previous
            .filter_map(|rule| rule.transform.headers.get(header))
            .next();
        Ok(match previous {
            Some(previous) if value == HIDDEN => previous.clone(),
            _ => value.to_owned(),
        })
    })
}

/// A policy for an event: everything but the header values.
pub(crate) fn event_data(policy: &NetworkPolicy) -> Value {
    let hosts: BTreeSet<String> = policy.rules.keys().map(BoundHost::to_string).collect();
    json!({
        "allow_internet_access": policy.allow_internet_access,
        "allow_out": policy.allow_out,
        "deny_out": policy.deny_out,
        "rules_for": hosts,
    })
}

/// The row's policy without its rules, which may hold secrets; none if nothing changes.
pub(crate) fn without_rules(network: Option<&Value>) -> Option<Option<Value>> {
    let rules = network?.get("rules")?.as_object()?;
    if rules.is_empty() {
        return None;
    }
    let mut policy = network?.clone();
    policy["rules"] = json!({});
    Some(Some(policy))
}

/// The purpose under which a header value is sealed.
fn purpose(id: &SandboxId, host: &BoundHost, header: &str) -> String {
    format!("rule:{id}/{host}/{header}")
}
