//! Requests and answers of the service, independent of the dialect.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_core::PartialLimits;
use sandyard_core::network::{BoundHost, FlowVerdict, NetworkPolicy, SecretText};
use sandyard_provider::TemplateInfo;
use sandyard_store::model::{Expiry, Sandbox, TimeoutAction};
use serde::{Deserialize, Serialize};

use crate::memory::MemoryHold;

/// A sandbox to create.
#[derive(Clone, Default, PartialEq)]
pub struct CreateRequest {
    /// The name of the owner. Ignored unless the caller is an admin.
    pub owner: Option<String>,
    /// The name of the provider; none lets the server choose (`verbs/create/choose.rs`).
    pub provider: Option<String>,
    /// The template. None and `base` mean the provider's default. Without `provider`, `docker/python:3.12` names the provider `docker`, if
    /// the server has it.
    pub template: Option<String>,
    /// Another name for the sandbox, unique among its owner's.
    pub alias: Option<String>,
    /// The name of its project.
    pub project: Option<String>,
    /// Time without activity after which the timeout action happens; none for the default of the settings.
    pub timeout: Option<Duration>,
    /// What happens after the timeout; none for pause.
    pub timeout_action: Option<TimeoutAction>,
    /// Whether the timeout counts from the last activity or from the create; none for the last activity.
    pub expiry: Option<Expiry>,
    /// Keys and values that the client chooses.
    pub metadata: BTreeMap<String, String>,
    /// Environment variables of every command.
    pub env: BTreeMap<String, String>,
    /// Resource limits; those that are not set are the provider's defaults.
    pub limits: PartialLimits,
    /// The network policy; none for the default of the settings.
    pub network: Option<NetworkPolicy>,
    /// The names of the secrets it may use without seeing them, by the variable that holds each placeholder.
    pub secrets: BTreeMap<String, String>,
    /// Ports that the client names.
    pub ports: BTreeMap<String, String>,
    /// Volumes to mount.
    pub mounts: Vec<MountRequest>,
    /// Whether a request wakes it when it is paused; none for yes.
    pub is_auto_resumed: Option<bool>,
    /// Makes it safe to repeat this request.
    pub idempotency_key: Option<String>,
}

sandyard_core::debug_fields!(CreateRequest: owner, provider, template, limits);

/// A volume to mount in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRequest {
    /// The name or id of one of the owner's volumes.
    pub volume: String,
    /// The absolute path inside the sandbox.
    pub path: String,
}

/// A copy of a sandbox to create. It gets the network policy and the secrets of the original.
#[derive(Clone, Default, PartialEq)]
pub struct ForkRequest {
    /// Environment variables of the copy; none for those of the original.
    pub env: Option<BTreeMap<String, String>>,
    /// Metadata of the copy; none for that of the original.
    pub metadata: Option<BTreeMap<String, String>>,
    /// The timeout of the copy; none for that of the original.
    pub timeout: Option<Duration>,
}

sandyard_core::debug_fields!(ForkRequest);

/// A sandbox to connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The time that the sandbox has at least from now on; none for its own timeout.
    pub timeout: Option<Duration>,
    /// Whether to discard its memory: its processes restart from its files.
    pub is_cold: bool,
}

/// A sandbox that runs after a connect.
#[derive(Clone, Debug)]
pub struct Connected {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// Whether the connect woke it.
    pub was_woken: bool,
}

/// A new timeout for a sandbox.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutRequest {
    /// The timeout, which starts now and after every activity.
    pub timeout: Duration,
    /// What happens after the timeout; none to leave it unchanged.
    pub action: Option<TimeoutAction>,
    /// What the timeout counts from; none to leave it unchanged.
    pub expiry: Option<Expiry>,
}

/// Changes of a sandbox; the default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxChange {
    /// The new alias; `Some(None)` removes it.
    pub alias: Option<Option<String>>,
    /// Labels to set, and to remove where there is no value.
    pub metadata: BTreeMap<String, Option<String>>,
}

/// A secret to store, or to change if it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRequest {
    /// Its name: letters, digits, `-` and `_`, at most 64.
    pub name: String,
    /// Its value.
    pub value: SecretText,
    /// The only hosts that it may be sent to.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes see instead of the value; none for `sandyard-secret-<name>`.
    pub placeholder: Option<String>,
    /// Whether every user may use it. Only admins may set this.
    pub is_shared: bool,
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// The name of its owner.
    pub owner: String,
    /// The only hosts that it may be sent to.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes see instead of the value.
    pub placeholder: String,
    /// Whether every user may use it.
    pub is_shared: bool,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last changed, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// Which flows to list, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Only flows after this number; none for the newest ones.
    pub after_seq: Option<i64>,
    /// Only flows with this verdict.
    pub verdict: Option<FlowVerdict>,
    /// Maximum number of flows.
    pub limit: usize,
}

/// The command line of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A script for `bash -l -c`.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// A command to run.
#[derive(Clone, PartialEq)]
pub struct RunRequest {
    /// The command line.
    pub command: Command,
    /// The working directory; none for the user's home.
    pub cwd: Option<String>,
    /// Environment variables in addition to the sandbox's.
    pub env: BTreeMap<String, String>,
    /// The user who runs it; none for the sandbox's default user.
    pub user: Option<String>,
    /// How long it may run; none for the settings' limit in the foreground, and for no limit in the background.
    pub timeout: Option<Duration>,
    /// Most bytes returned of its standard output and of its standard error, each; none for the settings' limit.
    pub max_output: Option<usize>,
    /// Columns and rows of the terminal to run in; none for no terminal.
    pub terminal: Option<(u16, u16)>,
    /// Whether its standard input can be written to.
    pub has_stdin: bool,
    /// Whether its output goes to the sandbox's log. The output of a terminal never does.
    pub is_logged: bool,
}

impl RunRequest {
    /// A command with default options.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: None,
            max_output: None,
            terminal: None,
            has_stdin: false,
            is_logged: true,
        }
    }
}

sandyard_core::debug_fields!(RunRequest: cwd);

/// The output and the end of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// Its standard output. Bytes that are not valid UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Whether output beyond the limit was left out.
    pub is_truncated: bool,
    /// Its exit code; 128 + n after signal n.
    pub exit_code: i32,
    /// Its process id inside the sandbox.
    pub pid: u32,
    /// The directory in which it ran; none if the sandbox's agent does not report it.
    pub cwd: Option<String>,
    /// How long it ran.
    pub duration: Duration,
    /// Accounts for the memory of `stdout` and `stderr`. Keep it as long as they exist.
    pub memory: MemoryHold,
}

/// The output of a command that was killed.
#[derive(Debug)]
pub struct PartialOutput {
    /// Its standard output. Bytes that are not valid UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Whether output beyond the limit was left out.
    pub is_truncated: bool,
    /// Its process id inside the sandbox.
    pub pid: u32,
    /// Accounts for the memory of `stdout` and `stderr`. Keep it as long as they exist.
    pub memory: MemoryHold,
}

/// The source of a line in a sandbox's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// An event of the sandbox.
    Event,
    /// A denied network flow.
    Gateway,
    /// The server, about the log itself: output is missing.
    Notice,
}

/// Lines of a sandbox's log, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLines {
    /// The lines.
    pub entries: Vec<LogEntry>,
    /// Number of the sandbox's first lines that are deleted.
    pub dropped: u64,
    /// Whether more lines follow these.
    pub has_more: bool,
}

/// A line of a sandbox's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The number of the line, counted from 1 without gaps; 0 for events.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: i64,
    /// Where it comes from.
    pub source: LogSource,
    /// The id of the process that wrote it; none if no command did.
    pub pid: Option<u32>,
    /// The text, without its line break.
    pub text: String,
}

/// A template and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The provider's name.
    pub provider: String,
    /// The template, with the provider's name of it.
    pub info: TemplateInfo,
    /// The owner of a snapshot; none for a template for everybody.
    pub owner: Option<String>,
    /// The owner's name for a snapshot, if it is not the provider's.
    pub label: Option<String>,
    /// Whether every user may start sandboxes from it.
    pub is_public: bool,
}

/// The templates of all providers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateList {
    /// The templates, by provider.
    pub templates: Vec<Template>,
    /// The names of providers that could not be listed, each with the reason.
    pub unavailable: Vec<(String, String)>,
}
