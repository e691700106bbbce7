//! Finds commands that a dead server started, and follows them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use sandyard_core::SandboxStatus;
use sandyard_provider::Provider;
use sandyard_store::model::{Sandbox, SandboxFilter};

use super::follow::FollowedCommand;
use crate::command_log::OpenCommand;
use crate::error::{Result, ServiceError};
use crate::service::Service;
use crate::state::provider_registry::location_of;

/// Most sandboxes asked at the same time.
const MAX_CONCURRENT: usize = 8;
/// How long one sandbox may take to say which commands it keeps.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Most commands of one sandbox that are adopted. An agent may claim any number.
const MAX_ADOPTED: usize = 512;
/// Longest id of a command, in bytes.
const MAX_COMMAND_ID: usize = 128;

impl Service {
    /// Adopts the commands of a provider's running sandboxes whose server is dead. Asks all sandboxes after a start and after the death of
    /// another server, and else only those that have not answered.
    pub(crate) async fn adopt_running(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        let Some(adoption) = self.recorders().pending_adoption(location) else {
            return self.ask_again(location).await;
        };
        let rows = self
            .all_rows(SandboxFilter {
                location: Some(location.to_string()),
                statuses: vec![SandboxStatus::Running],
                ..SandboxFilter::default()
            })
            .await;
        let Ok(rows) = rows else {
            return;
        };
        stream::iter(rows)
            .for_each_concurrent(MAX_CONCURRENT, async |row| self.try_adopt(&row).await)
            .await;
        self.recorders().finish_adoption(location, adoption);
    }

    async fn ask_again(&self, location: &str) {
        let due = self.recorders().due(location, Instant::now());
        stream::iter(due)
            .for_each_concurrent(MAX_CONCURRENT, async |id| {
                match self.store().sandbox(&id).await {
                    Ok(Some(row)) if row.status == SandboxStatus::Running => {
                        self.try_adopt(&row).await;
                    }
                    // The server that wakes it asks it.
                    Ok(_) => self.recorders().note_answered(&id),
                    Err(error) => {
                        tracing::debug!(%error, sandbox.id = %id, "Failed to adopt commands; trying again later");
                    }
                }
            })
            .await;
    }

    /// Adopts the commands of a sandbox that was woken, in the background.
    pub(crate) fn adopt_commands_soon(&self, sandbox: &Sandbox) {
        let (service, sandbox) = (self.clone(), sandbox.clone());
        tokio::spawn(async move { service.try_adopt(&sandbox).await });
    }

    async fn try_adopt(&self, row: &Sandbox) {
        let adopted = tokio::time::timeout(ASK_WITHIN, self.adopt_commands(row)).await;
        if matches!(adopted, Ok(Ok(()))) {
            self.recorders().note_answered(&row.id);
        } else {
            tracing::debug!(sandbox.id = %row.id, ?adopted, "Failed to adopt commands; trying again later");
            let now = Instant::now();
            self.recorders()
                .note_unanswered(&row.id, &row.location, now);
        }
    }

    async fn adopt_commands(&self, sandbox: &Sandbox) -> Result<()> {
        if self.registry().local_for(&sandbox.location).is_none() {
            return Ok(());
        }
        let failed = |error: std::io::Error| {
            ServiceError::internal("failed to read a command log").source(error)
        };
        let agent = self.agent(sandbox).await?;
        let retained = match agent.retained_commands().await {
            Ok(retained) => retained,
            // Another implementation of the agent. Commands of the log are then found by their process id.
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let mut open: HashMap<String, OpenCommand> = self
            .command_logs()
            .open_commands(&sandbox.id)
            .await
            .map_err(failed)?
            .into_iter()
            .map(|command| (command.id.clone(), command))
            .collect();
        if retained.is_empty() && open.is_empty() {
            return Ok(());
        }
        let nodes = self.store().nodes(0).await?;
        let is_abandoned = |command: &str| {
            let node = command.rsplit_once('/').map_or("", |(node, _)| node);
            let is_alive = nodes.iter().any(|other| other.id == node);
            (node == self.node_id() || !is_alive)
                && !self.recorders().is_followed(&sandbox.id, command)
        };
        let now_ms = self.clock().now_ms();
        let retained = retained
            .into_iter()
            .filter(|command_of_agent| is_command_id(&command_of_agent.id));
        for command_of_agent in retained.take(MAX_ADOPTED) {
            let command = open
                .remove(&command_of_agent.id)
                .unwrap_or_else(|| OpenCommand {
                    id: command_of_agent.id.clone(),
                    pid: command_of_agent.pid,
                    actor: sandbox.owner.clone(),
                    began_ms: now_ms.saturating_sub_unsigned(command_of_agent.age_ms),
                    is_logged: true,
                    ..OpenCommand::default()
                });
            if is_abandoned(&command_of_agent.id) {
                self.adopt_command(sandbox, command, command_of_agent.ran_ms);
            }
        }
        for command in open.into_values().take(MAX_ADOPTED) {
            if is_abandoned(&command.id) {
                self.adopt_command(sandbox, command, None);
            }
        }
        Ok(())
    }

    fn adopt_command(&self, sandbox: &Sandbox, command: OpenCommand, ran_ms: Option<u64>) {
        if !self.recorders().follow(&sandbox.id, &command.id) {
            return;
        }
        let followed = FollowedCommand {
            sandbox: sandbox.clone(),
            command,
            ran_ms,
            may_be_recorded: true,
        };
        self.spawn_recording(followed, None);
    }
}

/// Says whether a server may have made this id: `<node>/<number>`.
fn is_command_id(id: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    id.len() <= MAX_COMMAND_ID
        && id.split_once('/').is_some_and(|(node, number)| {
            !node.is_empty() && node.bytes().all(is_name) && number.parse::<u64>().is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_a_server_makes_are_taken_from_an_agent() {
        assert!(is_command_id("node-1.b/17"));
        let long = format!("{}/1", "n".repeat(MAX_COMMAND_ID));
        for id in [
            "", "/1", "node", "node/", "node/x", "node/1/2", "a b/1", &long,
        ] {
            assert!(!is_command_id(id), "{id}");
        }
    }
}
