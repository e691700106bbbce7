//! Requests and responses.
//!
//! Responses keep fields that this version does not know in `other`, so that a program that passes them on loses
//! nothing.

mod account;
mod command;
mod file;
mod history;
mod network;
mod operation;
mod sandbox;
mod volume;

pub use account::{ApiKey, KeyRequest, NewKey, User, UserChange, UserRequest};
pub use command::{Command, CommandResult, Process, RunCommand, StartedCommand};
pub use file::{Change, FileEntry};
pub use history::{AuditEntry, AuditFilter, Event, EventFilter, LogEntry, LogPage};
pub use network::{
    Flow, FlowFilter, Network, NetworkPolicy, NetworkRule, NetworkTransform, Secret, SecretRequest,
};
pub use operation::{
    DeadTimer, E2bInfo, Health, Node, Provider, ServerInfo, Template, UnknownInstance,
};
pub use sandbox::{
    CreateSandbox, ForkSandbox, ListFilter, Metrics, MetricsPoint, Page, Port, Sandbox,
    SandboxInfo, SetTimeout, UpdateSandbox,
};
pub use volume::Volume;

/// Fields of a response that its type does not have.
pub type Other = serde_json::Map<String, serde_json::Value>;
