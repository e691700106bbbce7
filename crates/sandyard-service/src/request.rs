//! What can be asked of the service, whatever the dialect.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sandyard_core::network::{BoundHost, FlowVerdict, NetworkPolicy, SecretText};
use sandyard_provider::TemplateInfo;
use sandyard_store::model::{Expiry, Sandbox, TimeoutAction};
use serde::{Deserialize, Serialize};

use crate::memory::MemoryHold;

/// Limits asked for; what is not said comes from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsRequest {
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Processor time in thousandths of a core.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Bytes written.
    pub disk_bytes: Option<u64>,
}

/// A sandbox to be made.
#[derive(Clone, Default, PartialEq)]
pub struct CreateRequest {
    /// For whom; only an admin may name somebody else, an ordinary user's word is not looked at.
    pub owner: Option<String>,
    /// Which provider shall run it; none: see `verbs/create/choose.rs`.
    pub provider: Option<String>,
    /// What it starts from. `base` and none are the provider's default. Where no provider is named, `docker/python:3.12`
    /// names one too, if there is a provider `docker`.
    pub template: Option<String>,
    /// Another name for it.
    pub alias: Option<String>,
    /// What it is for.
    pub project: Option<String>,
    /// How long it lives without activity.
    pub timeout: Option<Duration>,
    /// What happens then; pause if not said.
    pub timeout_action: Option<TimeoutAction>,
    /// From when on that time is counted; idle if not said.
    pub expiry: Option<Expiry>,
    /// Its maker's own words.
    pub metadata: BTreeMap<String, String>,
    /// Variables every command gets.
    pub env: BTreeMap<String, String>,
    /// How much it may use.
    pub limits: LimitsRequest,
    /// What it may reach; none: the default of the settings.
    pub network: Option<NetworkPolicy>,
    /// Secrets it may use without seeing them: by the variable that holds each one's placeholder, the secret's name.
    pub secrets: BTreeMap<String, String>,
    /// Ports its maker names.
    pub ports: BTreeMap<String, String>,
    /// Volumes in it.
    pub mounts: Vec<MountRequest>,
    /// Whether a request may wake it when it is paused; yes if not said.
    pub is_auto_resumed: Option<bool>,
    /// Makes repeating this request safe.
    pub idempotency_key: Option<String>,
}

impl fmt::Debug for CreateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateRequest")
            .field("owner", &self.owner)
            .field("provider", &self.provider)
            .field("template", &self.template)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A volume that a sandbox is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRequest {
    /// Which of its owner's: name or id.
    pub volume: String,
    /// Where, as seen inside; absolute.
    pub path: String,
}

/// A copy to be made of a sandbox. It has the network and the secrets of its original.
#[derive(Clone, Default, PartialEq)]
pub struct ForkRequest {
    /// Variables of the copy; none: as the original.
    pub env: Option<BTreeMap<String, String>>,
    /// Words of its maker; none: as the original.
    pub metadata: Option<BTreeMap<String, String>>,
    /// How long it lives without activity; none: as the original.
    pub timeout: Option<Duration>,
}

impl fmt::Debug for ForkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkRequest").finish_non_exhaustive()
    }
}

/// A sandbox to be made to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectRequest {
    /// How long it shall live from now on at least; none: as before.
    pub timeout: Option<Duration>,
    /// Whether what it had in memory is given up: its processes start anew from its files.
    pub is_cold: bool,
}

/// A sandbox that was made to run.
#[derive(Clone, Debug)]
pub struct Connected {
    /// As it is now.
    pub sandbox: Sandbox,
    /// Whether it did not run before.
    pub was_woken: bool,
}

/// A sandbox's new time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutRequest {
    /// How long, from now on and after every activity.
    pub timeout: Duration,
    /// What happens then; none: as before.
    pub action: Option<TimeoutAction>,
    /// From when on it is counted; none: as before.
    pub expiry: Option<Expiry>,
}

/// A secret to be kept, or to be changed if there is one of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRequest {
    /// Its name: letters, digits, `-` and `_`, at most 64.
    pub name: String,
    /// What is kept.
    pub value: SecretText,
    /// Where it may go, and nowhere else.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes have in its place; none: `sandyard-secret-<name>`.
    pub placeholder: Option<String>,
    /// Whether everybody may use it; only an admin may say so.
    pub is_shared: bool,
}

/// What can be told of a secret: all but its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Where it may go, and nowhere else.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes have in its place.
    pub placeholder: String,
    /// Whether everybody may use it.
    pub is_shared: bool,
    /// When it was first kept.
    pub created_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
}

/// Which attempts to reach something to list, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Only those after this number; none: the newest.
    pub after_seq: Option<i64>,
    /// Only those that ended so.
    pub verdict: Option<FlowVerdict>,
    /// At most so many.
    pub limit: usize,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A text for `bash -lc`.
    Shell(String),
    /// A program and its arguments, as they are.
    Argv(Vec<String>),
}

/// A command to be run.
#[derive(Clone, PartialEq)]
pub struct RunRequest {
    /// What.
    pub command: Command,
    /// Where; none: the user's home.
    pub cwd: Option<String>,
    /// Variables on top of the sandbox's.
    pub env: BTreeMap<String, String>,
    /// As whom; none: the sandbox's user.
    pub user: Option<String>,
    /// How long it may take; none: the settings' time in the foreground, any time in the background.
    pub timeout: Option<Duration>,
    /// Bytes kept of its standard output and of its standard error, each; none: as the settings say.
    pub max_output: Option<usize>,
    /// Columns and rows of a terminal to run in.
    pub terminal: Option<(u16, u16)>,
    /// Whether its standard input can be written to.
    pub has_stdin: bool,
    /// Whether its output goes to the sandbox's log. That of a terminal never does.
    pub is_logged: bool,
}

impl RunRequest {
    /// A command with nothing special about it.
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

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// What a command wrote and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// From its standard output; bytes that are no text are replaced.
    pub stdout: String,
    /// From its standard error.
    pub stderr: String,
    /// Whether more was written than kept.
    pub is_truncated: bool,
    /// How it ended; 128 + n after signal n.
    pub exit_code: i32,
    /// Its process id inside.
    pub pid: u32,
    /// How long it took.
    pub duration: Duration,
    /// Accounts for the memory of `stdout` and `stderr`: keep it as long as these.
    pub memory: MemoryHold,
}

/// What a command wrote before it was killed.
#[derive(Debug)]
pub struct PartialOutput {
    /// From its standard output; bytes that are no text are replaced.
    pub stdout: String,
    /// From its standard error.
    pub stderr: String,
    /// Whether more was written than kept.
    pub is_truncated: bool,
    /// Its process id inside.
    pub pid: u32,
    /// Accounts for the memory of `stdout` and `stderr`: keep it as long as these.
    pub memory: MemoryHold,
}

/// Where a line of a sandbox's log comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// What happened to the sandbox.
    Event,
    /// What it tried to reach and may not.
    Gateway,
    /// What the server says about the log itself: that output is missing.
    Notice,
}

/// Lines of a sandbox's log, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLines {
    /// The lines.
    pub entries: Vec<LogEntry>,
    /// How many of the sandbox's first lines are no longer kept.
    pub dropped: u64,
    /// Whether more lines follow these.
    pub has_more: bool,
}

/// A line of a sandbox's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts the lines of the sandbox from 1, without a gap; 0 for events.
    pub seq: u64,
    /// When.
    pub at_ms: i64,
    /// From where.
    pub source: LogSource,
    /// Which process wrote it.
    pub pid: Option<u32>,
    /// What.
    pub text: String,
}

/// What sandboxes can start from, and with which provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The provider's name.
    pub provider: String,
    /// The template, by the provider's own name for it.
    pub info: TemplateInfo,
    /// Owner of the snapshot; none for templates that are for everybody.
    pub owner: Option<String>,
    /// Name that the owner gave the snapshot, if that is not the provider's name.
    pub label: Option<String>,
}

/// What sandboxes can start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateList {
    /// They, provider by provider.
    pub templates: Vec<Template>,
    /// Providers that could not tell, by name, and why.
    pub silent: Vec<(String, String)>,
}
