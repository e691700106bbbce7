//! Access to an instance's agent, and shell lines that run there.

use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, ClientError, Output, RunOptions};
use sandyard_provider::AgentAddress;
use sandyard_provider::prelude::*;

/// The address of the agent of an instance that was created with the token of `env::spec`.
pub(crate) fn address(id: &str) -> AgentAddress {
    AgentAddress {
        id: id.to_owned(),
        access_token: "token".to_owned(),
    }
}

pub(crate) async fn agent(provider: &dyn Provider, id: &str) -> AgentClient {
    provider.agent(&address(id)).await.expect("an agent")
}

/// Runs a shell line to its end.
pub(crate) async fn run(agent: &AgentClient, line: &str) -> Result<Output, ClientError> {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), line.to_owned()],
        ..ProcessConfig::default()
    };
    agent.run(process, &RunOptions::default()).await
}

/// The output of a shell line, without the last line feed.
pub(crate) async fn printed(agent: &AgentClient, line: &str) -> String {
    text(&run(agent, line).await.expect("a command").stdout)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
