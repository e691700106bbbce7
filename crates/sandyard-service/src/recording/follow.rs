//! Reads the output of a command that no client reads into the command log, to its end.

use std::collections::HashMap;
use std::time::Duration;

use sandyard_agent_client::wire::event::{EndEvent, ProcessEvent};
use sandyard_agent_client::{ClientError, ProcessStream};
use sandyard_core::{SandboxId, SandboxStatus};
use sandyard_store::model::{Event, EventFilter, NewEvent, Sandbox};
use serde_json::json;

use crate::command_log::{OpenCommand, WhenFull};
use crate::error::Result;
use crate::request::LogSource;
use crate::service::Service;
use crate::state::recorders::Release;

/// Pauses before a broken stream is opened again, and before a failed write is repeated.
const RETRY: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// A command that is followed to its end.
pub(super) struct FollowedCommand {
    pub(super) sandbox: Sandbox,
    pub(super) command: OpenCommand,
    /// How long the command ran, in milliseconds, if its agent knows.
    pub(super) ran_ms: Option<u64>,
    /// Whether another server, or an earlier stream, may have recorded its end.
    pub(super) may_be_recorded: bool,
}

/// Why following a command ended.
enum FollowEnd {
    /// The command ended.
    Ended(EndEvent),
    /// The agent does not know the command: the sandbox was restarted.
    Unknown,
    /// The sandbox does not run. The request that wakes it continues.
    Asleep,
}

impl Service {
    /// Follows a command on a task of its own. This is not activity: a command in the background does not keep its sandbox from being
    /// paused.
    pub(super) fn spawn_recording(
        &self,
        mut followed: FollowedCommand,
        stream: Option<ProcessStream>,
    ) {
        let service = self.clone();
        tokio::spawn(async move { service.record(&mut followed, stream).await });
    }

    async fn record(&self, followed: &mut FollowedCommand, mut stream: Option<ProcessStream>) {
        loop {
            match self.read_to_end(followed, stream.take()).await {
                FollowEnd::Ended(end) => return self.record_end(followed, Some(&end)).await,
                FollowEnd::Unknown => return self.record_end(followed, None).await,
                FollowEnd::Asleep => {}
            }
            self.refresh(followed);
            followed.may_be_recorded = true;
            let id = &followed.sandbox.id;
            self.recorders().unfollow(id, &followed.command.id);
            // A request may have woken the sandbox just before, while this server still followed the command.
            let row = self.store().sandbox(id).await.ok().flatten();
            let is_running = row.is_some_and(|row| row.status == SandboxStatus::Running);
            if !is_running || !self.recorders().follow(id, &followed.command.id) {
                return;
            }
        }
    }

    /// Updates how far the output of the command is in the log.
    fn refresh(&self, followed: &mut FollowedCommand) {
        let (id, pid) = (&followed.sandbox.id, followed.command.pid);
        if let Some(command) = self.command_logs().running_command(id, pid)
            && command.id == followed.command.id
        {
            followed.command = command;
        }
    }

    /// Reads a command's output into the log, over as many streams as it takes.
    async fn read_to_end(
        &self,
        followed: &mut FollowedCommand,
        mut stream: Option<ProcessStream>,
    ) -> FollowEnd {
        let id = followed.sandbox.id.clone();
        let pid = followed.command.pid;
        let mut failures = 0;
        loop {
            if let Some(mut stream) = stream.take() {
                let mut is_full = false;
                while let Some(Ok(event)) = stream.next().await {
                    match event {
                        ProcessEvent::Data(output) => {
                            failures = 0;
                            let command = Some(&*followed.command.id);
                            is_full = !self
                                .record_output(&id, pid, command, &output, WhenFull::Refuse)
                                .await;
                            if is_full {
                                break;
                            }
                        }
                        ProcessEvent::End(end) => return FollowEnd::Ended(end),
                        _ => {}
                    }
                }
                followed.may_be_recorded = true;
                if is_full {
                    // Without a reader the agent keeps the output, and the command goes on.
                    drop(stream);
                    self.command_logs().wait_for_room(&id).await;
                }
            }
            match self.reopen(followed).await {
                Ok(Ok(opened)) => stream = Some(opened),
                Ok(Err(end)) => return end,
                Err(error) => {
                    tracing::debug!(%error, sandbox.id = %id, pid, "Failed to follow a command; trying again");
                }
            }
            if stream.is_none() || failures > 0 {
                tokio::time::sleep(RETRY[failures.min(RETRY.len() - 1)]).await;
            }
            failures += 1;
        }
    }

    /// Connects to a command again, from where the log ends.
    async fn reopen(
        &self,
        followed: &mut FollowedCommand,
    ) -> Result<Result<ProcessStream, FollowEnd>> {
        let id = followed.sandbox.id.clone();
        let row = match self.store().sandbox(&id).await? {
            Some(row) if row.status == SandboxStatus::Running => row,
            _ => return Ok(Err(FollowEnd::Asleep)),
        };
        let agent = self.agent(&row).await?;
        self.refresh(followed);
        let command = &followed.command;
        let opened = agent
            .connect_retained(&command.id, command.pid, command.resume)
            .await;
        let stream = match opened {
            Ok(stream) => stream,
            Err(error) if error.is_not_found() => return Ok(Err(FollowEnd::Unknown)),
            // The agent has less output than it has sent, so this is another command.
            Err(ClientError::Remote {
                code: sandyard_agent_client::wire::Code::OutOfRange,
                ..
            }) => return Ok(Err(FollowEnd::Unknown)),
            Err(error) => return Err(error.into()),
        };
        followed.sandbox = row;
        let begins = match stream.begins_at() {
            Some(begins) => {
                if begins > command.resume {
                    let lost = begins - command.resume;
                    self.log_lost_output(&id, &format!("{lost} bytes"), command);
                }
                begins
            }
            // Another implementation of the agent continues with the current output.
            None => {
                self.log_lost_output(&id, "some", command);
                command.recorded[0]
                    .max(command.recorded[1])
                    .max(command.resume)
            }
        };
        let is_own = self
            .command_logs()
            .resume_command(&id, command.clone(), begins);
        if !is_own && stream.begins_at().is_none() {
            // It was found by its process id alone, which another command has now.
            return Ok(Err(FollowEnd::Unknown));
        }
        Ok(Ok(stream))
    }

    fn log_lost_output(&self, id: &SandboxId, amount: &str, command: &OpenCommand) {
        if command.is_logged {
            let now_ms = self.clock().now_ms();
            let text = format!(
                "{amount} of the output of process {} were lost",
                command.pid
            );
            self.command_logs()
                .add_line(id, now_ms, LogSource::Notice, &text);
        }
    }

    /// Records the end of a command, once, even if another server began to.
    async fn record_end(&self, followed: &FollowedCommand, end: Option<&EndEvent>) {
        let FollowedCommand {
            sandbox, command, ..
        } = followed;
        let now_ms = self.clock().now_ms();
        let mut data = json!({
            "pid": command.pid,
            "exit_code": end.map(EndEvent::shell_code),
            "duration_ms": followed.ran_ms.map_or_else(
                || now_ms.saturating_sub(command.began_ms).max(0),
                |ran_ms| i64::try_from(ran_ms).unwrap_or(i64::MAX),
            ),
            "command_id": command.id,
        });
        if end.is_none() {
            data["reason"] = "the sandbox was stopped while it ran".into();
        }
        let event = NewEvent {
            sandbox_id: sandbox.id.clone(),
            owner: sandbox.owner.clone(),
            at_ms: now_ms,
            kind: "command_ended".to_owned(),
            actor: command.actor.clone(),
            data,
        };
        // Output first: a client that sees the end may read all of it.
        let logs = self.command_logs();
        logs.finish_command(&sandbox.id, command.pid, Some(&command.id), now_ms);
        logs.flush(&sandbox.id).await;
        let mut failures = 0;
        while let Err(error) = self.add_end(followed, &event).await {
            tracing::warn!(%error, sandbox.id = %sandbox.id, "Failed to save the end of a command; trying again");
            tokio::time::sleep(RETRY[failures]).await;
            failures = (failures + 1).min(RETRY.len() - 1);
        }
        self.changes().notify_waiters();
        let release = Release {
            command: command.id.clone(),
            is_in_log: true,
        };
        self.release_commands(HashMap::from([(sandbox.id.clone(), vec![release])]));
    }

    /// Adds the event, unless the store has one of this command's end.
    async fn add_end(&self, followed: &FollowedCommand, event: &NewEvent) -> Result<()> {
        if followed.may_be_recorded {
            self.history().flush().await;
            let command_id = followed.command.id.clone();
            let filter = EventFilter {
                sandbox_id: Some(event.sandbox_id.clone()),
                kinds: vec!["command".to_owned(), "command_ended".to_owned()],
                data: [("command_id".to_owned(), command_id)].into(),
                ..EventFilter::default()
            };
            let earlier = self.store().events(&filter).await?;
            let is_end = |event: &Event| {
                event.kind == "command_ended" || event.data["exit_code"].is_number()
            };
            if earlier.iter().any(is_end) {
                return Ok(());
            }
        }
        self.store().add_events(std::slice::from_ref(event)).await?;
        Ok(())
    }
}
