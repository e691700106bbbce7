//! The fake for users' own tests: the answers of its agent.

mod commands;
mod files;
mod rules;

use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, Output, RunOptions};
use sandyard_provider::AgentAddress;
use sandyard_provider::prelude::*;
use sandyard_provider_fake::{FakeConfig, FakeProvider};

use crate::common::spec;

/// A fake without rules.
fn fake() -> FakeProvider {
    FakeProvider::for_users(&FakeConfig::default()).expect("no rules to read")
}

/// The agent of a new instance.
async fn agent(fake: &FakeProvider) -> (String, AgentClient) {
    let mut spec = spec("one");
    spec.env.insert("COLOUR".to_owned(), "blue sky".to_owned());
    let id = fake.create(&spec).await.expect("create").id;
    let agent = agent_of(fake, &id).await;
    (id, agent)
}

async fn agent_of(fake: &FakeProvider, id: &str) -> AgentClient {
    let address = AgentAddress {
        id: id.to_owned(),
        access_token: "token".to_owned(),
    };
    fake.agent(&address).await.expect("an agent")
}

/// A line as E2B clients send it.
fn bash(line: &str) -> ProcessConfig {
    ProcessConfig {
        cmd: "/bin/bash".to_owned(),
        args: ["-l", "-c", line].map(str::to_owned).to_vec(),
        ..ProcessConfig::default()
    }
}

async fn run(agent: &AgentClient, line: &str) -> Output {
    let ran = agent.run(bash(line), &RunOptions::default()).await;
    ran.expect("a command")
}

/// Runs a line; returns its standard output, standard error and exit code.
async fn run_line(agent: &AgentClient, line: &str) -> (String, String, i32) {
    let output = run(agent, line).await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        text(output.stdout),
        text(output.stderr),
        output.exit.exit_code,
    )
}
