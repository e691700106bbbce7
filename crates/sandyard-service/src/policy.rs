//! Policies as rows have them: every value of a header sealed, as it may be a secret.

use std::collections::BTreeSet;

use sandyard_core::network::{BoundHost, NetworkPolicy};
use sandyard_core::{ErrorKind, SandboxId};
use serde_json::{Value, json};

use crate::error::{ServiceError, ServiceResult};
use crate::seal::Sealer;

/// What is shown in the place of a header's value. Sent back, it means the value that is there.
pub(crate) const HIDDEN: &str = "***";

/// Reads a row's policy, its values still sealed.
pub(crate) fn read(network: Option<&Value>) -> ServiceResult<Option<NetworkPolicy>> {
    network
        .map(|policy| serde_json::from_value(policy.clone()))
        .transpose()
        .map_err(|error| {
            ServiceError::new(ErrorKind::Internal, "a network policy cannot be read").source(error)
        })
}

/// Writes a policy whose values are sealed into a row.
pub(crate) fn write(policy: &NetworkPolicy) -> ServiceResult<Value> {
    serde_json::to_value(policy).map_err(|error| {
        ServiceError::new(ErrorKind::Internal, "a network policy cannot be written").source(error)
    })
}

/// Checks a policy that somebody sent.
pub(crate) fn check(policy: &NetworkPolicy) -> ServiceResult<()> {
    policy
        .check()
        .map_err(|error| ServiceError::invalid("network", error.to_string()))
}

/// Checks a policy whose values are sealed, and were checked before that.
pub(crate) fn check_sealed(policy: &NetworkPolicy) -> ServiceResult<()> {
    let mut shown = policy.clone();
    hide(&mut shown);
    check(&shown)
}

/// Changes every value of a header.
pub(crate) fn map_values(
    policy: &mut NetworkPolicy,
    mut change: impl FnMut(&BoundHost, &str, &str) -> ServiceResult<String>,
) -> ServiceResult<()> {
    for (host, rules) in &mut policy.rules {
        for rule in rules {
            for (header, value) in &mut rule.transform.headers {
                *value = change(host, header, value)?;
            }
        }
    }
    Ok(())
}

/// Hides every value.
pub(crate) fn hide(policy: &mut NetworkPolicy) {
    for rule in policy.rules.values_mut().flatten() {
        for value in rule.transform.headers.values_mut() {
            HIDDEN.clone_into(value);
        }
    }
}

/// Seals every value for a sandbox.
pub(crate) fn seal(
    sealer: &Sealer,
    id: &SandboxId,
    policy: &mut NetworkPolicy,
) -> ServiceResult<()> {
    map_values(policy, |host, header, value| {
        if value == HIDDEN {
            return Err(ServiceError::invalid(
                "network",
                format!(
                    "`{HIDDEN}` stands for a hidden value, and `{header}` for `{host}` has none yet"
                ),
            ));
        }
        sealer.seal(&purpose(id, host, header), value)
    })
}

/// Opens every value of a sandbox's policy.
pub(crate) fn unseal(
    sealer: &Sealer,
    id: &SandboxId,
    policy: &mut NetworkPolicy,
) -> ServiceResult<()> {
    map_values(policy, |host, header, value| {
        let opened = sealer.unseal(&purpose(id, host, header), value)?;
        Ok(opened.expose().to_owned())
    })
}

/// Puts what `before` has in the place of values that were sent back hidden.
pub(crate) fn restore(policy: &mut NetworkPolicy, before: &NetworkPolicy) -> ServiceResult<()> {
    map_values(policy, |host, header, value| {
        let known = before.rules.get(host).into_iter().flatten();
        let known = known
            .filter_map(|rule| rule.transform.headers.get(header))
            .next();
        Ok(match known {
            Some(known) if value == HIDDEN => known.clone(),
            _ => value.to_owned(),
        })
    })
}

/// What an event says of a policy: all but the values.
pub(crate) fn about(policy: &NetworkPolicy) -> Value {
    let hosts: BTreeSet<String> = policy.rules.keys().map(BoundHost::to_string).collect();
    json!({
        "allow_internet_access": policy.allow_internet_access,
        "allow_out": policy.allow_out,
        "deny_out": policy.deny_out,
        "rules_for": hosts,
    })
}

/// What stays of a row's policy when its secrets go; none: nothing changes.
pub(crate) fn bare(network: Option<&Value>) -> Option<Option<Value>> {
    let has_rules = network?.get("rules")?.as_object()?;
    if has_rules.is_empty() {
        return None;
    }
    let mut bare = network?.clone();
    bare["rules"] = json!({});
    Some(Some(bare))
}

/// What the value of a header is sealed for.
fn purpose(id: &SandboxId, host: &BoundHost, header: &str) -> String {
    format!("rule:{id}/{host}/{header}")
}
