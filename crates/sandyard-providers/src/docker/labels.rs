//! Labels of everything that the provider creates on a daemon, so that it finds all of it and changes nothing else.

use std::collections::HashMap;

use sandyard_core::{Clock, Limits, SandboxId};
use sandyard_provider::Mount;
use serde::Serialize;

/// Label: the installation that an object belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// Label: the sandbox that a container was created for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// Label: the attempt that created it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// Label: the requested template.
pub(super) const TEMPLATE: &str = "sandyard.template";
/// Label: its limits.
pub(super) const LIMITS: &str = "sandyard.limits";
/// Label: the users' volumes in it.
pub(super) const MOUNTS: &str = "sandyard.mounts";
/// Label: its project.
pub(super) const PROJECT: &str = "sandyard.project";
/// Label: when it was created, in milliseconds since 1970.
pub(super) const CREATED: &str = "sandyard.created";
/// Label: its limitations.
pub(super) const LIMITATIONS: &str = "sandyard.lacks";
/// Label: its encrypted variables and token.
pub(super) const PRIVATE: &str = "sandyard.private";
/// Label: the volume of its `/workspace`; on that volume, the container's name.
pub(super) const WORKSPACE: &str = "sandyard.workspace";
/// Label: on a marker volume, the workspace whose container was deleted.
pub(super) const MARKER: &str = "sandyard.gone";
/// Label: the volume that a helper serves.
pub(super) const VOLUME_HELPER: &str = "sandyard.keeper";
/// Label: a users' volume, by its id.
pub(super) const VOLUME: &str = "sandyard.volume";
/// Label: a container that only copies files, with the volume or image it is for.
pub(super) const COPIER: &str = "sandyard.helper";
/// Label: the digest of the program in a volume. Shared by all installations on a daemon.
pub(super) const AGENT: &str = "sandyard.agent";
/// Label: the installation that created an image.
pub(super) const IMAGE: &str = "sandyard.image";
/// Label: the template of the sandbox that an image was created from.
pub(super) const BASE: &str = "sandyard.base";

/// Labels of containers. Every container has all of them, possibly empty: otherwise it would inherit labels of its image, which may
/// be a snapshot. A label of an image cannot be removed, only emptied.
const CONTAINER_LABELS: [&str; 15] = [
    INSTALLATION,
    SANDBOX,
    ATTEMPT,
    TEMPLATE,
    LIMITS,
    MOUNTS,
    PROJECT,
    CREATED,
    LIMITATIONS,
    PRIVATE,
    WORKSPACE,
    VOLUME_HELPER,
    VOLUME,
    COPIER,
    AGENT,
];

/// All labels, with these values; the others are empty.
pub(super) fn all<K: Into<String>, V: Into<String>>(
    values: impl IntoIterator<Item = (K, V)>,
) -> HashMap<String, String> {
    let mut labels: HashMap<_, _> = CONTAINER_LABELS
        .map(|key| (key.to_owned(), String::new()))
        .into();
    labels.extend(
        values
            .into_iter()
            .map(|(key, value)| (key.into(), value.into())),
    );
    labels
}

/// The value of a label; `None` if it is missing or empty.
pub(super) fn label_value<'a>(
    labels: &'a HashMap<String, String>,
    key: &str,
) -> Option<&'a String> {
    labels.get(key).filter(|value| !value.is_empty())
}

/// Suffix of the name of a container whose stop was requested: labels cannot be changed, names can.
pub(super) const STOPPED: &str = "-stopped";

/// Prefix of the names of `/workspace` volumes.
pub(super) const WORKSPACES: &str = "sandyard-ws-";

/// The labels of a sandbox's container.
#[derive(Clone, Debug)]
pub(super) struct InstanceLabels {
    pub(super) sandbox_id: SandboxId,
    pub(super) installation: String,
    pub(super) attempt: String,
    /// The container's name.
    pub(super) name: String,
}

impl InstanceLabels {
    /// The labels of a new attempt.
    pub(super) fn new(sandbox_id: &SandboxId, installation: &str) -> Self {
        let attempt = random_text();
        Self {
            sandbox_id: sandbox_id.clone(),
            installation: installation.to_owned(),
            name: format!("sandyard-{sandbox_id}-{}", &attempt[..8]),
            attempt,
        }
    }

    /// Name of its `/workspace` volume.
    pub(super) fn workspace(&self) -> String {
        let name = self.name.trim_start_matches("sandyard-");
        format!("{WORKSPACES}{name}")
    }

    /// The labels of the container.
    pub(super) fn labels(&self, values: &LabelValues<'_>) -> HashMap<String, String> {
        let mut labels = HashMap::from([
            (SANDBOX.to_owned(), self.sandbox_id.to_string()),
            (INSTALLATION.to_owned(), self.installation.clone()),
            (ATTEMPT.to_owned(), self.attempt.clone()),
            (TEMPLATE.to_owned(), values.template.to_owned()),
            (LIMITS.to_owned(), json(values.limits)),
            (MOUNTS.to_owned(), json(values.mounts)),
            (LIMITATIONS.to_owned(), json(values.limitations)),
            (CREATED.to_owned(), Clock::System.now_ms().to_string()),
            (PRIVATE.to_owned(), values.private.to_owned()),
        ]);
        if let Some(project) = values.project {
            labels.insert(PROJECT.to_owned(), project.to_owned());
        }
        if let Some(volume) = values.workspace {
            labels.insert(WORKSPACE.to_owned(), volume.to_owned());
        }
        labels
    }
}

/// Values of the other labels.
#[derive(Debug)]
pub(super) struct LabelValues<'a> {
    pub(super) template: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) mounts: &'a [Mount],
    pub(super) project: Option<&'a str>,
    pub(super) workspace: Option<&'a str>,
    pub(super) limitations: &'a [String],
    pub(super) private: &'a str,
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A label filter of the daemon.
pub(super) fn labelled(key: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("{key}={value}"),
        None => key.to_owned(),
    }
}

/// 32 random characters.
pub(super) fn random_text() -> String {
    use chacha20poly1305::aead::OsRng;
    use chacha20poly1305::aead::rand_core::RngCore;
    let mut bytes = [0; 16];
    OsRng.fill_bytes(&mut bytes);
    crate::hex::encode(&bytes)
}
