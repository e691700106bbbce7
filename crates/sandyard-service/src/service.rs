//! The service and all its verbs.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandyard_agent_client::{AgentClient, ProcessStream};
use sandyard_core::{Caller, Clock, SandboxId};
use sandyard_provider::{ArchiveReader, Change, Provider, ProviderInfo, TemplateInfo, Usage};
use sandyard_store::model::{Event, EventFilter, Node, Page, Sandbox, SandboxFilter, Timer};
use sandyard_store::{Store, Timers};

use crate::error::ServiceResult;
use crate::request::*;
use crate::settings::ServiceSettings;

/// A sandbox that runs, its agent, and the mark that it is in use: while this lives, the sandbox is not idle.
#[derive(Debug)]
pub struct Live {
    /// The row.
    pub sandbox: Sandbox,
    /// Its agent.
    pub agent: AgentClient,
}

/// The lifecycle of all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {}

#[expect(clippy::unused_async, unused_variables, reason = "filled in next")]
impl Service {
    /// Puts the service together. Nothing runs in the background before [`Service::run`].
    pub async fn open(
        store: Store,
        timers: Timers,
        providers: Vec<Arc<dyn Provider>>,
        settings: ServiceSettings,
        clock: Clock,
    ) -> ServiceResult<Self> {
        unimplemented!()
    }
    /// Settings in force.
    pub fn settings(&self) -> &ServiceSettings {
        unimplemented!()
    }
    /// The default provider of this server.
    pub fn provider_info(&self) -> ProviderInfo {
        unimplemented!()
    }
    /// The time.
    pub fn clock(&self) -> &Clock {
        unimplemented!()
    }
    /// When a sandbox's time is over, as things stand; none: never, or it does not run.
    pub fn expires_ms(&self, sandbox: &Sandbox) -> Option<i64> {
        unimplemented!()
    }
    /// When it was last used, also what is not written down yet.
    pub fn last_activity_ms(&self, sandbox: &Sandbox) -> i64 {
        unimplemented!()
    }

    /// Makes a sandbox.
    pub async fn create(&self, caller: &Caller, request: CreateRequest) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Finds a sandbox of the caller's by id, provider's id or alias; deleted ones too.
    pub async fn inspect(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Lists the caller's sandboxes; an admin sees everybody's unless the filter says whose.
    pub async fn list(
        &self,
        caller: &Caller,
        filter: SandboxFilter,
    ) -> ServiceResult<Page<Sandbox>> {
        unimplemented!()
    }
    /// Makes a sandbox run if it does not, and restarts its time.
    pub async fn connect(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Freezes a sandbox; freezing a frozen or stopped one succeeds.
    pub async fn pause(
        &self,
        caller: &Caller,
        name: &str,
        reason: Option<String>,
    ) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Thaws or starts a sandbox; one that runs stays as it is.
    pub async fn resume(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Ends a sandbox's processes and keeps its files.
    pub async fn stop(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Removes a sandbox; one that is removed already counts as done.
    pub async fn delete(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Gives a sandbox a new time.
    pub async fn set_timeout(
        &self,
        caller: &Caller,
        name: &str,
        request: TimeoutRequest,
    ) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Lets anybody, or only the owner, open a port's preview.
    pub async fn set_port_public(
        &self,
        caller: &Caller,
        name: &str,
        port: u16,
        is_public: bool,
    ) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Keeps a sandbox's files as a template.
    pub async fn snapshot(
        &self,
        caller: &Caller,
        name: &str,
        template: &str,
    ) -> ServiceResult<TemplateInfo> {
        unimplemented!()
    }
    /// Makes another sandbox from the files of this one.
    pub async fn fork(
        &self,
        caller: &Caller,
        name: &str,
        request: ForkRequest,
    ) -> ServiceResult<Sandbox> {
        unimplemented!()
    }
    /// Lists what changed since the template.
    pub async fn diff(&self, caller: &Caller, name: &str) -> ServiceResult<Vec<Change>> {
        unimplemented!()
    }
    /// What a sandbox uses now; does not wake it and is no activity.
    pub async fn usage(&self, caller: &Caller, name: &str) -> ServiceResult<Usage> {
        unimplemented!()
    }
    /// What happened to a sandbox, also after its deletion.
    pub async fn events(&self, caller: &Caller, filter: EventFilter) -> ServiceResult<Vec<Event>> {
        unimplemented!()
    }
    /// Waits until there may be newer events, a second at most.
    pub async fn wait_for_events(&self) {
        unimplemented!()
    }
    /// Deletes stopped and paused sandboxes of the caller's that have been so for longer than `hours`.
    pub async fn clean_up(&self, caller: &Caller, hours: f64) -> ServiceResult<Vec<SandboxId>> {
        unimplemented!()
    }

    /// A sandbox to talk to: wakes it if need be, once for all who ask, and counts as activity while it is held.
    pub async fn live(&self, caller: &Caller, name: &str) -> ServiceResult<Live> {
        unimplemented!()
    }
    /// The same without an owner's check, for previews whose access was checked otherwise.
    pub async fn live_for_preview(&self, sandbox: &Sandbox) -> ServiceResult<Live> {
        unimplemented!()
    }
    /// Finds a sandbox for a preview, whoever asks.
    pub async fn find_for_preview(&self, name: &str) -> ServiceResult<Sandbox> {
        unimplemented!()
    }

    /// Runs a command to its end. A time-out kills it with all its children.
    pub async fn run_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<CommandOutput> {
        unimplemented!()
    }
    /// Starts a command and leaves it running; its output goes to the log.
    pub async fn start_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<u32> {
        unimplemented!()
    }
    /// Starts a command and hands its output over as it comes.
    pub async fn stream_command(
        &self,
        caller: &Caller,
        live: &Live,
        request: RunRequest,
    ) -> ServiceResult<ProcessStream> {
        unimplemented!()
    }
    /// The newest lines of a sandbox's log, at most `limit`.
    pub async fn logs(
        &self,
        caller: &Caller,
        name: &str,
        limit: usize,
    ) -> ServiceResult<Vec<LogEntry>> {
        unimplemented!()
    }
    /// The lines of a sandbox's log from now on.
    pub async fn follow_logs(
        &self,
        caller: &Caller,
        name: &str,
    ) -> ServiceResult<tokio::sync::broadcast::Receiver<LogEntry>> {
        unimplemented!()
    }

    /// Lists templates.
    pub async fn templates(&self, caller: &Caller) -> ServiceResult<Vec<TemplateInfo>> {
        unimplemented!()
    }
    /// Makes a template from a tar archive; for admins.
    pub async fn import_template(
        &self,
        caller: &Caller,
        name: &str,
        archive: ArchiveReader,
    ) -> ServiceResult<TemplateInfo> {
        unimplemented!()
    }
    /// Removes a template; for admins.
    pub async fn remove_template(&self, caller: &Caller, name: &str) -> ServiceResult<()> {
        unimplemented!()
    }

    /// How many sandboxes stand where, for health and metrics.
    pub async fn counts(&self) -> ServiceResult<BTreeMap<&'static str, i64>> {
        unimplemented!()
    }
    /// The servers that share this store, this one among them.
    pub async fn nodes(&self) -> ServiceResult<Vec<Node>> {
        unimplemented!()
    }
    /// Timers that were given up.
    pub async fn dead_timers(&self) -> ServiceResult<Vec<Timer>> {
        unimplemented!()
    }
    /// Gives a dead timer another chance.
    pub async fn revive_timer(&self, subject: &str) -> ServiceResult<bool> {
        unimplemented!()
    }

    /// Runs timers and reconcilers until `stop` ends. The first round of both is before anything waits.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        unimplemented!()
    }
    /// Finds the provider of this node that other nodes may ask for this place.
    pub fn local_provider(&self, location: &str) -> Option<Arc<dyn Provider>> {
        unimplemented!()
    }
    /// This node's name.
    pub fn node_id(&self) -> &str {
        unimplemented!()
    }
}
