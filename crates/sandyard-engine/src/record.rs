//! The engine's record of a sandbox, on disk.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::Template;
use serde::{Deserialize, Serialize};

use crate::disk::DiskRecord;
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::SandboxDir;
use crate::spec::{SandboxInfo, SandboxSpec};
use crate::sys::process::ProcessKey;
use crate::trust::{self, TrustRecord};

/// The content of `state.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its id, which is also the name of its folder.
    pub(crate) id: SandboxId,
    /// Its state when the record was written.
    pub(crate) state: SandboxState,
    /// What its creator asked for.
    pub(crate) spec: SandboxSpec,
    /// The template when the sandbox was made: later changes of it must not change this sandbox.
    pub(crate) template: Template,
    /// Where its changes to the template are stored.
    pub(crate) disk: DiskRecord,
    /// Its first process, while it is live.
    pub(crate) init: Option<ProcessKey>,
    /// Number of its range of user ids, while it is live.
    pub(crate) id_range: Option<u32>,
    /// First host user id of that range.
    pub(crate) first_uid: Option<u32>,
    /// The layer that makes its programs trust the gateway, while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trust: Option<TrustRecord>,
    /// The client of an ephemeral sandbox, which is deleted when that client ends.
    pub(crate) owner: Option<ProcessKey>,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created_ms: u64,
    /// When its first process last started, in milliseconds since 1970.
    pub(crate) started_ms: Option<u64>,
    /// Why it stopped or was paused without a request; while it runs, what was repaired when it started.
    pub(crate) reason: Option<String>,
    /// Why it is being stopped without a request. Written before its first process ends, so that the reason is known as soon as it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ending: Option<String>,
    /// What this host could not give it, as sentences for the user.
    #[serde(rename = "lacks")]
    pub(crate) limitations: Vec<String>,
}

impl Record {
    /// Reads the record; `None` when there is no such sandbox.
    pub(crate) fn read(dir: &SandboxDir) -> Result<Option<Self>> {
        let text = match fs::read(dir.record()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(EngineError::failed(
                    format!("reading `{}`", dir.record().display()),
                    &error,
                ));
            }
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            EngineError::failed(format!("parsing `{}`", dir.record().display()), &error)
        })
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn write(&self, dir: &SandboxDir) -> Result<()> {
        let write = || -> io::Result<()> {
            let temporary = dir.root().join("state.json.new");
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            fs::rename(&temporary, dir.record())
        };
        write().map_err(|error| {
            EngineError::failed(format!("writing `{}`", dir.record().display()), &error)
        })
    }

    /// Changes the state and writes the record, if the state machine allows it.
    pub(crate) fn become_state(&mut self, next: SandboxState, dir: &SandboxDir) -> Result<()> {
        if !self.state.can_become(next) {
            return Err(conflict(&self.id, self.state, next));
        }
        self.state = next;
        self.write(dir)
    }

    /// Clears what only a live sandbox has.
    pub(crate) fn forget_life(&mut self) {
        self.init = None;
        self.id_range = None;
        self.first_uid = None;
        self.trust = None;
    }

    /// Environment variables of its commands: those its creator set, and those that make programs trust the gateway.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let trust = trust::variables(self.trust.as_ref());
        let mut all: BTreeMap<_, _> = trust
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        all.extend(self.spec.env.clone());
        all
    }

    /// The state now: that of the record, unless its first process has died since.
    pub(crate) fn observed_state(&self) -> SandboxState {
        let alive = self.init.is_some_and(ProcessKey::is_alive);
        if self.state.is_live() && !alive {
            SandboxState::Stopped
        } else {
            self.state
        }
    }

    /// Why its first process has ended.
    pub(crate) fn reason_of_death(&self) -> String {
        self.ending.as_deref().unwrap_or(DIED).to_owned()
    }

    /// The description for callers.
    pub(crate) fn info(&self) -> SandboxInfo {
        let state = self.observed_state();
        let died = state != self.state;
        SandboxInfo {
            id: self.id.clone(),
            state,
            template: self.spec.template.clone(),
            labels: self.spec.labels.clone(),
            ephemeral: self.spec.ephemeral,
            limits: self.spec.limits.clone(),
            init: self.init.filter(|_| state.is_live()),
            first_uid: self.first_uid.filter(|_| state.is_live()),
            created_ms: self.created_ms,
            started_ms: self.started_ms,
            reason: if died {
                Some(self.reason_of_death())
            } else {
                self.reason.clone()
            },
            limitations: self.limitations.clone(),
        }
    }
}

/// Reason of a sandbox that stopped without a request.
const DIED: &str =
    "its first process ended: the host restarted, or it was killed or ran out of memory";

/// The error for a change that the state machine does not allow.
pub(crate) fn conflict(id: &SandboxId, state: SandboxState, target: SandboxState) -> EngineError {
    let name = |state: SandboxState| format!("{state:?}").to_lowercase();
    EngineError::new(
        ErrorKind::Conflict,
        format!(
            "sandbox `{id}` is {} and cannot become {}",
            name(state),
            name(target)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as the versions before labels wrote it.
    const WITHOUT_LABELS: &str = r#"{
        "id": "abc", "state": "stopped",
        "spec": {"template": "host", "limits": {"memory_bytes": 268435456, "cpu_millis": 2000, "pids": 128, "disk_bytes": 67108864},
                 "env": {"A": "b"}, "access_token": "t", "hostname": null, "ephemeral": false},
        "template": {"name": "host", "kind": {"type": "host"}, "created_unix_ms": 1, "parts": []},
        "disk": {"kind": "folder"},
        "init": null, "id_range": null, "first_uid": null, "owner": null,
        "created_ms": 1, "started_ms": null, "reason": null, "lacks": []
    }"#;

    #[test]
    fn a_record_from_before_labels_is_read() {
        let record: Record = serde_json::from_str(WITHOUT_LABELS).expect("read");
        assert_eq!(record.info().labels, std::collections::BTreeMap::new());
    }
}
