//! Translates between the API's types and the provider's.

use std::collections::BTreeMap;

use sandyard_core::percent::encode;
use sandyard_core::{Limits, SandboxState};
use sandyard_provider::{
    Instance, InstanceSpec, ProviderError, ProviderErrorKind, Result, Usage, UsagePoint,
};

use super::model::{Metric, Sandbox, State};
use super::snapshot_names::has_prefix;
use crate::date::parse_rfc3339_ms;
use crate::requested_limits;

/// Maximum length of a sandbox's id at E2B.
const MAX_ID: usize = 64;
/// Maximum length of a template's name at E2B.
const MAX_NAME: usize = 128;

/// Prefix of this server's metadata of a sandbox.
pub(super) const PREFIX: &str = "sandyard.";
/// The sandbox that an instance was created for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// The installation it belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// The call that created it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// The requested template.
pub(super) const TEMPLATE: &str = "sandyard.template";
/// The requested limits, see [`requested_limits`].
pub(super) const REQUESTED_LIMITS: &str = "sandyard.limits";
/// When it was created, in milliseconds since 1970: the API's time may start again with every resume.
pub(super) const CREATED: &str = "sandyard.created";

/// Whether a text has the form of a sandbox's id. Ids become part of host names.
pub(super) fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Refuses invalid names of snapshots; `prefix` is prepended to the name.
pub(super) fn check_name(name: &str, prefix: &str) -> Result<()> {
    // E2B converts names to lower case, and then the owner would be lost.
    let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| is_letter_or_digit(byte) || b"-_.".contains(&byte);
    let starts_well = name.bytes().next().is_some_and(is_letter_or_digit) && !has_prefix(name);
    let is_short = prefix.len() + name.len() <= MAX_NAME;
    if starts_well && is_short && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(invalid(
        "a snapshot's name must start with a lower-case letter or digit and contain only those and `-_.`",
    ))
}

/// Refuses specs that E2B does not accept.
pub(super) fn check(spec: &InstanceSpec) -> Result<()> {
    let is_invalid = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if spec.env.keys().any(is_invalid) || spec.env.values().any(|value| value.contains('\0')) {
        return Err(invalid(
            "variable names must not be empty or contain `=`, and names and values must not contain NUL",
        ));
    }
    if !spec.mounts.is_empty() {
        return Err(super::error::unsupported("mount volumes of this server"));
    }
    Ok(())
}

fn invalid(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Invalid, message)
}

/// A label of a sandbox.
pub(super) fn label<'a>(sandbox: &'a Sandbox, name: &str) -> Option<&'a str> {
    let metadata: &BTreeMap<_, _> = sandbox.metadata.as_ref()?;
    metadata.get(name).map(String::as_str)
}

/// The instance of a sandbox. E2B does not report `pids`.
pub(super) fn instance(sandbox: &Sandbox, pids: u32) -> Instance {
    let started_ms = sandbox.started_at.as_deref().and_then(parse_rfc3339_ms);
    let created_ms = label(sandbox, CREATED).and_then(|text| text.parse().ok());
    let limits = Limits {
        memory_bytes: sandbox.memory_mb.saturating_mul(1 << 20),
        cpu_millis: sandbox.cpu_count.saturating_mul(1000),
        pids,
        disk_bytes: sandbox.disk_size_mb.saturating_mul(1 << 20),
    };
    // A template decides the limits of its sandboxes.
    let limitations = label(sandbox, REQUESTED_LIMITS)
        .map(|requested| requested_limits::limitations(requested, &limits, "template"));
    Instance {
        id: sandbox.sandbox_id.clone(),
        sandbox_id: label(sandbox, SANDBOX).and_then(|id| id.parse().ok()),
        state: state(sandbox),
        template: label(sandbox, TEMPLATE)
            .unwrap_or(&sandbox.template_id)
            .to_owned(),
        limits,
        created_ms: created_ms.or(started_ms).unwrap_or(0),
        started_ms,
        reason: None,
        limitations: limitations.unwrap_or_default(),
    }
}

/// The state of a sandbox.
pub(super) fn state(sandbox: &Sandbox) -> SandboxState {
    match sandbox.state {
        Some(State::Paused) if sandbox.pause_mode.as_deref() == Some("filesystem") => {
            SandboxState::Stopped
        }
        Some(State::Paused) => SandboxState::Paused,
        Some(State::Running) | None => SandboxState::Running,
    }
}

/// A point of the usage history.
pub(super) fn point(metric: &Metric) -> UsagePoint {
    let exact = metric.timestamp.as_deref().and_then(parse_rfc3339_ms);
    UsagePoint {
        at_ms: exact.unwrap_or_else(|| metric.timestamp_unix.saturating_mul(1000)),
        cpu_percent: metric.cpu_used_pct,
        memory_bytes: metric.mem_used,
        cache_bytes: metric.mem_cache.unwrap_or(0),
        disk_bytes: metric.disk_used,
    }
}

/// Current usage.
pub(super) fn usage(metric: &Metric) -> Usage {
    Usage {
        memory_bytes: Some(
            metric
                .mem_used
                .saturating_add(metric.mem_cache.unwrap_or(0)),
        ),
        memory_cache_bytes: metric.mem_cache,
        disk_bytes: Some(metric.disk_used),
        ..Usage::default()
    }
}

/// The name without its team and without a default tag.
pub(super) fn plain_name(text: &str) -> &str {
    let name = text.rsplit('/').next().unwrap_or(text);
    [":default", ":latest"]
        .iter()
        .find_map(|tag| name.strip_suffix(tag))
        .unwrap_or(name)
}

/// A metadata filter: values are encoded twice, in addition to the encoding of every query.
pub(super) fn query_value(name: &str, value: &str) -> String {
    format!("{name}={}", encode(&encode(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_lower_case_letters_and_digits() {
        assert!(is_id("i5x8k0"));
        for invalid in ["", "..", "A-b", "a/b", "a\0b", "ü", &"a".repeat(65)] {
            assert!(!is_id(invalid), "{invalid}");
        }
    }

    #[test]
    fn filter_values_are_encoded_twice() {
        assert_eq!(query_value("a", "b c"), "a=b%2520c");
        assert_eq!(
            query_value("sandyard.attempt", "1-2"),
            "sandyard.attempt=1-2"
        );
    }

    #[test]
    fn names_lose_their_team_and_tag() {
        for text in ["kept", "team/kept", "kept:default", "a/kept:latest"] {
            assert_eq!(plain_name(text), "kept");
        }
    }

    #[test]
    fn limits_that_the_template_changed_are_reported() {
        let text = r#"{"sandboxID":"a","memoryMB":512,"cpuCount":2,"metadata":{"sandyard.limits":"1073741824/2000/"}}"#;
        let text: Sandbox = serde_json::from_str(text).unwrap();
        let limitations = instance(&text, 1).limitations;
        assert_eq!(limitations.len(), 1, "{limitations:?}");
        assert!(
            limitations[0].starts_with("memory is 512"),
            "{limitations:?}"
        );
    }

    #[test]
    fn a_name_must_fit_with_its_prefix() {
        let long = |more: usize| "x".repeat(MAX_NAME - 10 + more);
        assert!(check_name(&long(0), "0123456789").is_ok());
        for invalid in [long(1).as_str(), "sandyard-kept-x", "A", "-a", ""] {
            assert!(check_name(invalid, "0123456789").is_err(), "{invalid}");
        }
    }

    #[test]
    fn invalid_fields_of_a_sandbox_are_accepted() {
        let invalid = r#"{"sandboxID":"a","state":"dreaming","memoryMB":18446744073709551615,"cpuCount":4294967295}"#;
        let invalid: Sandbox = serde_json::from_str(invalid).unwrap();
        assert_eq!(instance(&invalid, 1).state, SandboxState::Running);
    }
}
