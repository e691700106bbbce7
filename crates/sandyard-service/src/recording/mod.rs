//! Records the output and the end of commands.
//!
//! Every command has an id, `<node>/<number>`. Its agent keeps its output and end under this id until they are recorded. A server that
//! starts, or wakes a sandbox, asks the agent which commands it keeps, and follows those that no running server follows: from where the
//! command log ends, to the end of the command, which is in the history exactly once.
//!
//! - here: commands that this server starts
//! - `follow`: reads the output of a command that no client reads, over as many connections as it takes
//! - `adopt`: finds the commands of dead servers
//! - `release`: tells agents which commands they may forget

mod adopt;
mod follow;
mod release;

use sandyard_agent_client::ProcessStream;
use sandyard_agent_client::wire::event::Output;
use sandyard_core::{Caller, SandboxId};
use sandyard_store::model::Sandbox;

use self::follow::FollowedCommand;
use crate::command_log::{OpenCommand, WhenFull};
use crate::service::Service;
use crate::state::recorders::Release;

/// A command whose agent is being asked to start it. Dropped without a start, it is no longer followed.
pub(crate) struct StartingCommand {
    service: Service,
    sandbox: SandboxId,
    pub(crate) id: String,
    has_started: bool,
}

impl Drop for StartingCommand {
    fn drop(&mut self) {
        if !self.has_started {
            self.service.recorders().unfollow(&self.sandbox, &self.id);
        }
    }
}

impl Service {
    /// Makes the id of a command that is about to start. From now on no other server adopts it.
    pub(crate) fn begin_start(&self, id: &SandboxId) -> StartingCommand {
        let command = format!("{}/{}", self.node_id(), self.next_number());
        self.recorders().follow(id, &command);
        StartingCommand {
            service: self.clone(),
            sandbox: id.clone(),
            id: command,
            has_started: false,
        }
    }

    /// Opens the log of a command that runs and whose output a client reads.
    pub(crate) fn begin_recording(
        &self,
        mut starting: StartingCommand,
        pid: u32,
        caller: &Caller,
        is_logged: bool,
    ) {
        starting.has_started = true;
        let command = OpenCommand {
            id: starting.id.clone(),
            pid,
            actor: caller.name.clone(),
            began_ms: self.clock().now_ms(),
            is_logged,
            ..OpenCommand::default()
        };
        self.command_logs().open_command(&starting.sandbox, command);
    }

    /// Completes the log of a command that has ended. Pass the result to [`Self::release_soon`].
    pub(crate) fn end_recording(&self, id: &SandboxId, pid: u32) -> Option<Release> {
        let now_ms = self.clock().now_ms();
        let (command, is_in_log) = self.command_logs().finish_command(id, pid, None, now_ms)?;
        Some(Release { command, is_in_log })
    }

    /// Lets the agent forget a command once all events that were added before this call are in the store.
    pub(crate) fn release_soon(&self, id: &SandboxId, release: Option<Release>) {
        if let Some(release) = release {
            self.recorders().add_release(id, release);
        }
    }

    /// Records the rest of a command whose client stopped reading before its end. Reconnects to it where the log ends.
    pub fn record_rest(&self, sandbox: &Sandbox, pid: u32) {
        self.record_unattended(sandbox, pid, None);
    }

    /// Records a command that no client waits for, from its stream.
    pub fn record_in_background(&self, sandbox: &Sandbox, stream: ProcessStream) {
        self.record_unattended(sandbox, stream.pid(), Some(stream));
    }

    fn record_unattended(&self, sandbox: &Sandbox, pid: u32, stream: Option<ProcessStream>) {
        let Some(command) = self.command_logs().running_command(&sandbox.id, pid) else {
            return;
        };
        let followed = FollowedCommand {
            sandbox: sandbox.clone(),
            command,
            ran_ms: None,
            may_be_recorded: stream.is_none(),
        };
        self.spawn_recording(followed, stream);
    }

    /// Adds output to the log, unless it is a terminal's. Returns false if the log refused it.
    pub(crate) async fn record_output(
        &self,
        id: &SandboxId,
        pid: u32,
        command: Option<&str>,
        output: &Output,
        when_full: WhenFull,
    ) -> bool {
        if matches!(output, Output::Pty(_)) {
            return true;
        }
        let now_ms = self.clock().now_ms();
        self.command_logs()
            .add_output(id, pid, command, output, now_ms, when_full)
            .await
    }
}
