//! What the engine's client and a worker say to each other.
//!
//! A frame is a length of four bytes, least significant first, and that many bytes. A request is one frame of JSON; its
//! answer is one frame of JSON. After [`Request::ImportTemplate`] the client sends the archive as frames, ended by an empty
//! one, before the answer comes.

use sandyard_core::{Limits, SandboxId};
use sandyard_template::{Diff, Template};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::mode::Mode;
use crate::spec::{ForkSpec, SandboxInfo, SandboxSpec, SandboxStats};
use crate::steps::Fault;

/// Largest frame of a request or of archive data.
pub(crate) const MAX_REQUEST: usize = 4 << 20;
/// Largest frame of an answer: a long list of changes.
pub(crate) const MAX_REPLY: usize = 64 << 20;
/// Counts up when either side could no longer understand the other.
pub(crate) const GENERATION: u32 = 3;

/// What the client can ask.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Who are you?
    Hello,
    /// Make a sandbox.
    Create {
        spec: Box<SandboxSpec>,
        fault: Option<Fault>,
    },
    /// What do you know of it?
    Inspect { id: SandboxId },
    /// What do you know of all of them?
    List,
    /// Freeze it.
    Pause { id: SandboxId },
    /// Thaw it.
    Resume { id: SandboxId },
    /// End its processes, keep its files.
    Stop { id: SandboxId },
    /// Start it again from its files.
    Start { id: SandboxId, fault: Option<Fault> },
    /// Remove it.
    Delete { id: SandboxId },
    /// Keep its files as a template.
    Snapshot { id: SandboxId, name: String },
    /// Make another one from its files.
    Fork { id: SandboxId, spec: Box<ForkSpec> },
    /// Which files did it change?
    Diff { id: SandboxId },
    /// What does it use?
    Stats { id: SandboxId },
    /// Which templates are there?
    ListTemplates,
    /// Make a template from an archive.
    ImportTemplate { name: String },
    /// Remove a template.
    RemoveTemplate { name: String },
    /// Keep ready sandboxes of these kinds.
    SetPool { pool: Vec<PoolSpec> },
    /// Count ready sandboxes.
    PoolStatus,
    /// Make an empty volume.
    CreateVolume { id: String, size_bytes: u64 },
    /// Delete a volume with all its files.
    DeleteVolume { id: String },
    /// Copy a sandbox for a backup.
    BackupSandbox { id: SandboxId },
    /// Copy a volume for a backup.
    BackupVolume { id: String },
    /// Remove what crashes have left.
    Sweep,
}

impl Request {
    /// Says whether the request can be sent twice without doing something twice.
    pub(crate) fn can_be_repeated(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::Fork { .. }
            | Self::Snapshot { .. }
            | Self::ImportTemplate { .. } => false,
            Self::Start { fault, .. } => fault.is_none(),
            Self::RemoveTemplate { .. } => false,
            _ => true,
        }
    }
}

/// How many ready sandboxes of one kind to keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Name of their template.
    pub template: String,
    /// Their limits. A create can adopt one if template and disk size are the same; the other limits are changed then.
    #[serde(default)]
    pub limits: Limits,
    /// How many to keep ready.
    pub count: usize,
}

/// What the worker answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Hello(Hello),
    Sandbox(Box<SandboxInfo>),
    Sandboxes(Vec<SandboxInfo>),
    Diff(Diff),
    Stats(SandboxStats),
    Template(Box<Template>),
    Templates(Vec<Template>),
    Count(usize),
    Done,
}

/// Describes the running launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program.
    pub version: String,
    /// Generation of this protocol.
    pub generation: u32,
    /// Identifies its program file among others of the same version. Empty: unknown.
    #[serde(default)]
    pub program: String,
    /// Port of its sandboxes' tool server; `None`: they have none.
    pub tools_port: Option<u16>,
    /// Process id of the launcher.
    pub launcher_pid: i32,
    /// The id of the data directory, which never changes. Empty: it could not be written.
    #[serde(default)]
    pub installation_id: String,
    /// Its privileges.
    pub mode: Mode,
    /// Whether this host can limit memory and processor time.
    #[serde(default)]
    pub can_limit: bool,
    /// What this host cannot give any sandbox, as sentences for the user.
    #[serde(rename = "lacks")]
    pub limitations: Vec<String>,
    /// Limits of a sandbox whose creator asks for none.
    pub default_limits: Limits,
    /// The highest limits that users may ask for: the operator's setting, else derived from the host.
    pub max_limits: Limits,
    /// Limits that nobody may exceed.
    pub hard_limits: Option<Limits>,
    /// Memory to keep free for the host, in bytes; `None`: a share of the host's memory.
    pub memory_reserve: Option<u64>,
}

/// A reply, or why there is none.
pub(crate) type Answer = Result<Reply, EngineError>;
