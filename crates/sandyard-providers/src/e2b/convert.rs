//! The API's words and ours.

use std::collections::BTreeMap;

use sandyard_core::percent::encode;
use sandyard_core::{Limits, SandboxState};
use sandyard_provider::{
    Instance, InstanceSpec, ProviderError, ProviderErrorKind, Result, Usage, UsagePoint,
};

use super::model::{Metric, Sandbox, State};
use super::snapshot_names::is_marked;
use crate::date::parse_rfc3339_ms;
use crate::requested_limits;

/// Longest id of a sandbox there.
const MAX_ID: usize = 64;
/// Longest name of a template there.
const MAX_NAME: usize = 128;

/// How all that is written on every sandbox of ours begins.
pub(super) const OURS: &str = "sandyard.";
/// The sandbox it is for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// The installation it is of.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// The one call that made it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// What it was made from, as we call it.
pub(super) const TEMPLATE: &str = "sandyard.template";
/// The limits its maker asked for, see `asked`.
pub(super) const ASKED: &str = "sandyard.limits";
/// When it was made, in milliseconds since 1970: what the API tells may begin anew with every wake-up.
pub(super) const CREATED: &str = "sandyard.created";

/// Says whether a text can be a sandbox's id there. It becomes part of host names.
pub(super) fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Refuses what can be no snapshot's name, with this mark before it.
pub(super) fn check_name(name: &str, mark: &str) -> Result<()> {
    // E2B makes capital letters small, and then nobody knows whose it is.
    let is_usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_plain = |byte: u8| is_usual(byte) || b"-_.".contains(&byte);
    let starts_well = name.bytes().next().is_some_and(is_usual) && !is_marked(name);
    let is_short = mark.len() + name.len() <= MAX_NAME;
    if starts_well && is_short && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(invalid(
        "a snapshot's name is short, has small letters, digits and `-_.`, and begins with a letter or digit",
    ))
}

/// Refuses what E2B could not be asked for.
pub(super) fn check(spec: &InstanceSpec) -> Result<()> {
    let is_odd = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if spec.env.keys().any(is_odd) || spec.env.values().any(|value| value.contains('\0')) {
        return Err(invalid(
            "a variable's name is not empty and has no `=`, and neither name nor value has a NUL",
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

/// A mark on a sandbox.
pub(super) fn mark<'a>(sandbox: &'a Sandbox, name: &str) -> Option<&'a str> {
    let metadata: &BTreeMap<_, _> = sandbox.metadata.as_ref()?;
    metadata.get(name).map(String::as_str)
}

/// What a sandbox is. `pids` is not told there.
pub(super) fn instance(sandbox: &Sandbox, pids: u32) -> Instance {
    let started_ms = sandbox.started_at.as_deref().and_then(parse_rfc3339_ms);
    let created_ms = mark(sandbox, CREATED).and_then(|text| text.parse().ok());
    let limits = Limits {
        memory_bytes: sandbox.memory_mb.saturating_mul(1 << 20),
        cpu_millis: sandbox.cpu_count.saturating_mul(1000),
        pids,
        disk_bytes: sandbox.disk_size_mb.saturating_mul(1 << 20),
    };
    // A template decides about the limits of its sandboxes.
    let limitations =
        mark(sandbox, ASKED).map(|asked| requested_limits::limitations(asked, &limits, "template"));
    Instance {
        id: sandbox.sandbox_id.clone(),
        sandbox_id: mark(sandbox, SANDBOX).and_then(|id| id.parse().ok()),
        state: state(sandbox),
        template: mark(sandbox, TEMPLATE)
            .unwrap_or(&sandbox.template_id)
            .to_owned(),
        limits,
        created_ms: created_ms.or(started_ms).unwrap_or(0),
        started_ms,
        reason: None,
        limitations: limitations.unwrap_or_default(),
    }
}

/// What a sandbox is at this moment.
pub(super) fn state(sandbox: &Sandbox) -> SandboxState {
    match sandbox.state {
        Some(State::Paused) if sandbox.pause_mode.as_deref() == Some("filesystem") => {
            SandboxState::Stopped
        }
        Some(State::Paused) => SandboxState::Paused,
        Some(State::Running) | None => SandboxState::Running,
    }
}

/// What was used.
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

/// What is used now.
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

/// The name without a team before it and without the tag that says nothing.
pub(super) fn plain_name(text: &str) -> &str {
    let name = text.rsplit('/').next().unwrap_or(text);
    [":default", ":latest"]
        .iter()
        .find_map(|tag| name.strip_suffix(tag))
        .unwrap_or(name)
}

/// A word of metadata to look for: encoded twice, besides what every query is.
pub(super) fn wanted(name: &str, value: &str) -> String {
    format!("{name}={}", encode(&encode(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_small_letters_and_digits() {
        assert!(is_id("i5x8k0"));
        for odd in ["", "..", "A-b", "a/b", "a\0b", "ü", &"a".repeat(65)] {
            assert!(!is_id(odd), "{odd}");
        }
    }

    #[test]
    fn words_to_look_for_are_encoded_twice() {
        assert_eq!(wanted("a", "b c"), "a=b%2520c");
        assert_eq!(wanted("sandyard.attempt", "1-2"), "sandyard.attempt=1-2");
    }

    #[test]
    fn names_lose_their_team_and_tag() {
        for text in ["kept", "team/kept", "kept:default", "a/kept:latest"] {
            assert_eq!(plain_name(text), "kept");
        }
    }

    #[test]
    fn limits_that_a_template_has_otherwise_are_told() {
        let told = r#"{"sandboxID":"a","memoryMB":512,"cpuCount":2,"metadata":{"sandyard.limits":"1073741824/2000/"}}"#;
        let told: Sandbox = serde_json::from_str(told).unwrap();
        let limitations = instance(&told, 1).limitations;
        assert_eq!(limitations.len(), 1, "{limitations:?}");
        assert!(
            limitations[0].starts_with("memory is 512"),
            "{limitations:?}"
        );
    }

    #[test]
    fn snapshots_have_room_for_their_mark() {
        let long = |more: usize| "x".repeat(MAX_NAME - 10 + more);
        assert!(check_name(&long(0), "0123456789").is_ok());
        for odd in [long(1).as_str(), "sandyard-kept-x", "A", "-a", ""] {
            assert!(check_name(odd, "0123456789").is_err(), "{odd}");
        }
    }

    #[test]
    fn whatever_is_said_of_a_sandbox_makes_an_instance() {
        let odd = r#"{"sandboxID":"a","state":"dreaming","memoryMB":18446744073709551615,"cpuCount":4294967295}"#;
        let odd: Sandbox = serde_json::from_str(odd).unwrap();
        assert_eq!(instance(&odd, 1).state, SandboxState::Running);
    }
}
