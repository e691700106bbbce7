//! Tells agents which commands they may forget.

use std::time::Duration;

use sandyard_agent_client::AgentClient;
use sandyard_core::{SandboxId, SandboxStatus};

use crate::service::Service;
use crate::state::recorders::{Release, Releases};

/// How long a release may take. The next adoption repeats one that fails.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

impl Service {
    /// Tells agents which commands they may forget, in the background. Wakes no sandbox.
    pub(crate) fn release_commands(&self, releases: Releases) {
        for (id, commands) in releases {
            let service = self.clone();
            tokio::spawn(async move { service.release_in(&id, commands).await });
        }
    }

    async fn release_in(&self, id: &SandboxId, commands: Vec<Release>) {
        let ids = commands.iter().map(|release| release.command.clone());
        let releasing = async {
            let cached = self.agents().get(id).map(|cached| cached.client.clone());
            let agent = match cached {
                Some(agent) => agent,
                None => self.running_agent(id).await?,
            };
            Some(agent.release_commands(ids.collect()).await)
        };
        let is_released = match tokio::time::timeout(RELEASE_WITHIN, releasing).await {
            Ok(Some(Ok(()))) => true,
            // Another implementation of the agent keeps nothing.
            Ok(Some(Err(error))) => error.is_not_found(),
            Ok(None) | Err(_) => false,
        };
        for Release { command, is_in_log } in commands {
            self.recorders().unfollow(id, &command);
            // A command that is not released stays open: the next adoption finds its end in the history.
            if is_released && is_in_log {
                self.command_logs().close_command(id, command);
            }
        }
    }

    /// The agent of a sandbox that runs, here or at another node.
    async fn running_agent(&self, id: &SandboxId) -> Option<AgentClient> {
        let row = self.store().sandbox(id).await.ok()??;
        if row.status != SandboxStatus::Running {
            return None;
        }
        self.agent(&row).await.ok()
    }
}
