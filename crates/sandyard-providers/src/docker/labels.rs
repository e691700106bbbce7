//! What is written on whatever is made on a daemon, so that all of it is found again, and nothing of anybody else's is touched.

use std::collections::HashMap;

use sandyard_core::{Clock, Limits, SandboxId};
use sandyard_provider::Mount;
use serde::Serialize;

/// Label: the installation something belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// Label: the sandbox a container was made for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// Label: which attempt to make it made it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// Label: the template it was made from.
pub(super) const TEMPLATE: &str = "sandyard.template";
/// Label: how much it may use.
pub(super) const LIMITS: &str = "sandyard.limits";
/// Label: the volumes of users in it.
pub(super) const MOUNTS: &str = "sandyard.mounts";
/// Label: the project it is for.
pub(super) const PROJECT: &str = "sandyard.project";
/// Label: when it was made, in milliseconds since 1970.
pub(super) const CREATED: &str = "sandyard.created";
/// Label: what this place could not give it.
pub(super) const LACKS: &str = "sandyard.lacks";
/// Label: what it is to remember and nobody is to read.
pub(super) const PRIVATE: &str = "sandyard.private";
/// Label: the volume that is its `/workspace`; on that volume, the container's name.
pub(super) const WORKSPACE: &str = "sandyard.workspace";
/// Label: on a volume that says how the container of another went, that other one.
pub(super) const GONE: &str = "sandyard.gone";
/// Label: the volume a keeper is for.
pub(super) const KEEPER: &str = "sandyard.keeper";
/// Label: a volume of users, by its id.
pub(super) const VOLUME: &str = "sandyard.volume";
/// Label: a container that only copies files, and the volume or image it is for.
pub(super) const HELPER: &str = "sandyard.helper";
/// Label: the program in a volume, by its digest. Shared by all installations on a daemon.
pub(super) const AGENT: &str = "sandyard.agent";
/// Label: an image of ours, and whose.
pub(super) const IMAGE: &str = "sandyard.image";
/// Label: what an image of ours was made from.
pub(super) const BASE: &str = "sandyard.base";

/// What is read off containers. Each is written on every one of ours, empty where it says nothing: an image can carry labels too,
/// which its containers would have otherwise, and so would a snapshot of one. A label cannot be removed, only emptied.
const ALL: [&str; 15] = [
    INSTALLATION,
    SANDBOX,
    ATTEMPT,
    TEMPLATE,
    LIMITS,
    MOUNTS,
    PROJECT,
    CREATED,
    LACKS,
    PRIVATE,
    WORKSPACE,
    KEEPER,
    VOLUME,
    HELPER,
    AGENT,
];

/// All labels of ours: these, and the others empty.
pub(super) fn all<K: Into<String>, V: Into<String>>(
    said: impl IntoIterator<Item = (K, V)>,
) -> HashMap<String, String> {
    let mut labels: HashMap<_, _> = ALL.map(|key| (key.to_owned(), String::new())).into();
    labels.extend(
        said.into_iter()
            .map(|(key, value)| (key.into(), value.into())),
    );
    labels
}

/// What a label says; none: it is not there, or empty.
pub(super) fn said<'a>(labels: &'a HashMap<String, String>, key: &str) -> Option<&'a String> {
    labels.get(key).filter(|value| !value.is_empty())
}

/// What a name ends in while its container was asked to stop: a label cannot be changed, a name can.
pub(super) const STOPPED: &str = "-stopped";

/// What the name of a volume of `/workspace` begins with.
pub(super) const WORKSPACES: &str = "sandyard-ws-";

/// What is written on one sandbox's container.
#[derive(Clone, Debug)]
pub(super) struct InstanceLabels {
    pub(super) sandbox_id: SandboxId,
    pub(super) installation: String,
    pub(super) attempt: String,
    /// The container's name.
    pub(super) name: String,
}

impl InstanceLabels {
    /// Those of a new attempt.
    pub(super) fn new(sandbox_id: &SandboxId, installation: &str) -> Self {
        let attempt = random_text();
        Self {
            sandbox_id: sandbox_id.clone(),
            installation: installation.to_owned(),
            name: format!("sandyard-{sandbox_id}-{}", &attempt[..8]),
            attempt,
        }
    }

    /// The volume of its `/workspace`.
    pub(super) fn workspace(&self) -> String {
        let name = self.name.trim_start_matches("sandyard-");
        format!("{WORKSPACES}{name}")
    }

    /// The labels of its container, those apart that only the maker knows.
    pub(super) fn labels(&self, known: &LabelValues<'_>) -> HashMap<String, String> {
        let mut labels = HashMap::from([
            (SANDBOX.to_owned(), self.sandbox_id.to_string()),
            (INSTALLATION.to_owned(), self.installation.clone()),
            (ATTEMPT.to_owned(), self.attempt.clone()),
            (TEMPLATE.to_owned(), known.template.to_owned()),
            (LIMITS.to_owned(), json(known.limits)),
            (MOUNTS.to_owned(), json(known.mounts)),
            (LACKS.to_owned(), json(known.limitations)),
            (CREATED.to_owned(), Clock::System.now_ms().to_string()),
            (PRIVATE.to_owned(), known.private.to_owned()),
        ]);
        if let Some(project) = known.project {
            labels.insert(PROJECT.to_owned(), project.to_owned());
        }
        if let Some(volume) = known.workspace {
            labels.insert(WORKSPACE.to_owned(), volume.to_owned());
        }
        labels
    }
}

/// What else is written on a container.
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

/// What a filter of the daemon's asks for: things with that label.
pub(super) fn labelled(key: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("{key}={value}"),
        None => key.to_owned(),
    }
}

/// 32 characters that nobody else has.
pub(super) fn random_text() -> String {
    use chacha20poly1305::aead::OsRng;
    use chacha20poly1305::aead::rand_core::RngCore;
    let mut bytes = [0; 16];
    OsRng.fill_bytes(&mut bytes);
    hex(&bytes)
}

/// Bytes as lower-case digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
