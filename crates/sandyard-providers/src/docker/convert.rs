//! Translates between the daemon's types and the provider's.

use std::collections::HashMap;

use bollard::models::{
    ContainerConfig, ContainerInspectResponse, ContainerState, ContainerStateStatusEnum,
    ContainerStatsResponse, ContainerSummary,
};
use sandyard_core::{Limits, SandboxState};
use sandyard_provider::{Instance, Mount, Usage};

use super::labels::{
    CREATED, INSTALLATION, LIMITATIONS, LIMITS, MOUNTS, PROJECT, SANDBOX, STOPPED, TEMPLATE,
    WORKSPACE,
};
use crate::date::parse_rfc3339_ms;
use crate::usage_history::Counters;

/// A sandbox's container.
#[derive(Clone, Debug)]
pub(super) struct Container {
    /// The instance for the service.
    pub(super) instance: Instance,
    /// Its name, without the suffix of stopped containers.
    pub(super) name: String,
    /// Whether its name has that suffix.
    pub(super) was_stop_requested: bool,
    /// Digest of its image.
    pub(super) image: String,
    /// The volume of its `/workspace`.
    pub(super) workspace: Option<String>,
    /// Its project.
    pub(super) project: Option<String>,
    /// The users' volumes in it.
    pub(super) mounts: Vec<Mount>,
}

/// Reads a container; `None` if it is not a sandbox of the installation.
pub(super) fn container(
    container_: ContainerInspectResponse,
    installation: &str,
) -> Option<Container> {
    let labels = container_.config?.labels?;
    if labels.get(INSTALLATION).map(String::as_str) != Some(installation) {
        return None;
    }
    let sandbox_id = labels.get(SANDBOX)?.parse().ok()?;
    let state = container_.state.unwrap_or_default();
    let full_name = container_.name.unwrap_or_default();
    let full_name = full_name.trim_start_matches('/');
    let name = full_name.strip_suffix(STOPPED).unwrap_or(full_name);
    let was_stop_requested = name != full_name;
    let recorded_ms = labels.get(CREATED).and_then(|text| text.parse().ok());
    let created_ms = recorded_ms.or_else(|| daemon_time_ms(container_.created.as_deref()?));
    let now = sandbox_state(&state);
    let reason = match now {
        SandboxState::Stopped if !was_stop_requested => Some(reason(&state)),
        _ => None,
    };
    let instance = Instance {
        id: container_.id?,
        sandbox_id: Some(sandbox_id),
        state: now,
        template: labels.get(TEMPLATE).cloned().unwrap_or_default(),
        limits: json::<Option<Limits>>(&labels, LIMITS).unwrap_or_default(),
        created_ms: created_ms.unwrap_or_default(),
        started_ms: state.started_at.as_deref().and_then(daemon_time_ms),
        reason,
        limitations: json(&labels, LIMITATIONS),
    };
    Some(Container {
        instance,
        name: name.to_owned(),
        was_stop_requested,
        image: container_.image.unwrap_or_default(),
        workspace: labels
            .get(WORKSPACE)
            .filter(|name| !name.is_empty())
            .cloned(),
        project: labels.get(PROJECT).filter(|name| !name.is_empty()).cloned(),
        mounts: json(&labels, MOUNTS),
    })
}

fn json<T: serde::de::DeserializeOwned + Default>(
    labels: &HashMap<String, String>,
    key: &str,
) -> T {
    let text = labels.get(key).map(String::as_str).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

fn sandbox_state(state: &ContainerState) -> SandboxState {
    if state.paused == Some(true) {
        return SandboxState::Paused;
    }
    if state.running == Some(true) {
        return SandboxState::Running;
    }
    match state.status {
        Some(ContainerStateStatusEnum::CREATED) => SandboxState::Creating,
        Some(ContainerStateStatusEnum::REMOVING | ContainerStateStatusEnum::DEAD) => {
            SandboxState::Deleting
        }
        _ => SandboxState::Stopped,
    }
}

/// Why it exited without a request.
fn reason(state: &ContainerState) -> String {
    if state.oom_killed == Some(true) {
        return "it exceeded its memory limit".to_owned();
    }
    if let Some(error) = state.error.as_deref().filter(|error| !error.is_empty()) {
        return super::error::shorten(error);
    }
    match state.exit_code {
        Some(137) => "its first process was killed".to_owned(),
        Some(code) => {
            format!("its first process exited with code {code}, perhaps together with Docker")
        }
        None => "its first process ended".to_owned(),
    }
}

/// Current usage.
pub(super) fn usage(stats: Option<&ContainerStatsResponse>, disk_bytes: Option<u64>) -> Usage {
    let Some(stats) = stats else {
        return Usage {
            disk_bytes,
            ..Usage::default()
        };
    };
    let memory = stats.memory_stats.as_ref();
    let pids = stats.pids_stats.as_ref();
    Usage {
        memory_bytes: memory.and_then(|memory| memory.usage),
        memory_cache_bytes: cache(stats),
        cpu_usage_us: cpu(stats),
        pids: pids.and_then(|pids| pids.current),
        disk_bytes,
        oom_kills: None,
    }
}

/// The same for the history; `None` if it does not run.
pub(super) fn counters(stats: &ContainerStatsResponse, disk_bytes: u64) -> Option<Counters> {
    let memory = stats.memory_stats.as_ref()?.usage?;
    let cache_bytes = cache(stats).unwrap_or(0);
    Some(Counters {
        cpu_usage_us: cpu(stats)?,
        memory_bytes: memory.saturating_sub(cache_bytes),
        cache_bytes,
        disk_bytes,
    })
}

fn cpu(stats: &ContainerStatsResponse) -> Option<u64> {
    let usage = stats.cpu_stats.as_ref()?.cpu_usage.as_ref()?;
    usage.total_usage.map(|nanoseconds| nanoseconds / 1000)
}

/// Page cache: the second version of control groups calls it `file`, the first `cache`.
fn cache(stats: &ContainerStatsResponse) -> Option<u64> {
    let parts = stats.memory_stats.as_ref()?.stats.as_ref()?;
    parts.get("file").or_else(|| parts.get("cache")).copied()
}

/// A list entry in the form of an inspected container.
pub(super) fn as_inspected(summary: ContainerSummary) -> ContainerInspectResponse {
    use bollard::models::ContainerSummaryStateEnum::{PAUSED, RESTARTING, RUNNING, STOPPING};
    let state = summary.state;
    let status = state.and_then(|state| state.to_string().parse().ok());
    ContainerInspectResponse {
        id: summary.id,
        name: summary.names.and_then(|names| names.into_iter().next()),
        image: summary.image_id,
        state: Some(ContainerState {
            running: Some(matches!(
                state,
                Some(RUNNING | PAUSED | RESTARTING | STOPPING)
            )),
            paused: Some(state == Some(PAUSED)),
            status,
            ..ContainerState::default()
        }),
        config: Some(ContainerConfig {
            labels: summary.labels,
            ..ContainerConfig::default()
        }),
        ..ContainerInspectResponse::default()
    }
}

/// A time of the daemon, in milliseconds since the Unix epoch. The daemon writes the year 1 for «never».
pub(super) fn daemon_time_ms(text: &str) -> Option<i64> {
    parse_rfc3339_ms(text).filter(|ms| *ms >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_entry_is_enough_to_identify_a_sandbox() {
        use bollard::models::ContainerSummaryStateEnum as State;
        let read = |state, name: &str| {
            let labels = [
                (INSTALLATION, "ours"),
                (SANDBOX, "one"),
                (TEMPLATE, "debian"),
            ];
            let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let summary = ContainerSummary {
                id: Some("0f".repeat(32)),
                names: Some(vec![name.to_owned()]),
                labels: Some(labels.into()),
                state: Some(state),
                ..ContainerSummary::default()
            };
            container(as_inspected(summary), "ours").expect("it is a sandbox")
        };
        let running = read(State::RUNNING, "/sandyard-one-1");
        assert_eq!(running.instance.state, SandboxState::Running);
        assert_eq!(running.instance.sandbox_id, "one".parse().ok());
        assert_eq!(running.instance.template, "debian");
        let paused = read(State::PAUSED, "/sandyard-one-1");
        assert_eq!(paused.instance.state, SandboxState::Paused);
        let stopped = read(State::EXITED, "/sandyard-one-1-stopped");
        assert_eq!(stopped.instance.state, SandboxState::Stopped);
        assert!(stopped.was_stop_requested);
        let created = read(State::CREATED, "/sandyard-one-1");
        assert_eq!(created.instance.state, SandboxState::Creating);
    }

    #[test]
    fn states_are_converted() {
        let state = |running, paused, status| {
            sandbox_state(&ContainerState {
                running: Some(running),
                paused: Some(paused),
                status: Some(status),
                ..ContainerState::default()
            })
        };
        use ContainerStateStatusEnum as Status;
        assert_eq!(state(true, true, Status::PAUSED), SandboxState::Paused);
        assert_eq!(state(true, false, Status::RUNNING), SandboxState::Running);
        assert_eq!(state(false, false, Status::CREATED), SandboxState::Creating);
        assert_eq!(state(false, false, Status::EXITED), SandboxState::Stopped);
        assert_eq!(state(false, false, Status::DEAD), SandboxState::Deleting);
    }

    #[test]
    fn the_daemons_never_is_none() {
        assert_eq!(daemon_time_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(daemon_time_ms("0001-01-01T00:00:00Z"), None);
    }
}
