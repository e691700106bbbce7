//! Access to a cloud instance with faults: a command runs once or not at all, a file is read completely or not at all, and the
//! caller gets the kind of the error.

use std::io::ErrorKind;
use std::time::Duration;

use sandyard_agent_client::wire::Code;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, ClientError, RunOptions};
use sandyard_provider::prelude::*;
use sandyard_providers::{E2b, E2bConfig};
use serde_json::json;

use crate::agent_client;
use crate::daytona_fake_api::FakeApi as OfDaytona;
use crate::e2b_fake_api::FakeApi as OfE2b;
use crate::faults::{Fault, Faults};

/// More than fits into one piece of a slow answer.
const TEXT: &str = "seq 300";
const FILE: &str = "/tmp/read";

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallResult {
    /// Success.
    Well,
    /// The connection ended.
    Closed,
    /// A timeout.
    Late,
    /// An HTTP status, by its code.
    Refused(Code),
}

/// How often a command ran that met a fault.
#[derive(Clone, Copy, Debug)]
enum Ran {
    Never,
    Once,
}

fn answer<T>(result: &Result<T, ClientError>) -> CallResult {
    match result {
        Ok(_) => CallResult::Well,
        // The health check timed out.
        Err(ClientError::Connect { source, .. }) if source.kind() == ErrorKind::TimedOut => {
            CallResult::Late
        }
        // Never connected, or disconnected before the first byte: the same for the caller.
        Err(ClientError::Closed { .. } | ClientError::Connect { .. }) => CallResult::Closed,
        Err(ClientError::Timeout { .. }) => CallResult::Late,
        Err(ClientError::Remote { code, .. }) => CallResult::Refused(*code),
        Err(other) => panic!("told as {other:?}"),
    }
}

/// Runs a command and reads a file while faults are injected.
async fn go(agent: &AgentClient, name: &str) -> (CallResult, CallResult) {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), format!("echo {name} >> ~/ran; {TEXT}")],
        ..ProcessConfig::default()
    };
    let options = RunOptions {
        // A hanging call has a short timeout; everything else has a long one, however busy the machine is.
        timeout: Duration::from_secs(if name.contains("hang") { 2 } else { 120 }),
        ..RunOptions::default()
    };
    let ran = agent.run(process, &options).await;
    let read = agent.read_to_vec(FILE, 1 << 20).await;
    let complete = complete();
    if let Ok(output) = &ran {
        assert_eq!(output.stdout, complete, "{name}: a part of the output");
    }
    if let Ok(content) = &read {
        assert_eq!(*content, complete, "{name}: a part of the file");
    }
    (answer(&ran), answer(&read))
}

fn complete() -> Vec<u8> {
    let lines: String = (1..=300).map(|number| format!("{number}\n")).collect();
    lines.into_bytes()
}

/// Checks that calls succeed again, and how often the command ran meanwhile.
async fn inspection(agent: &AgentClient, name: &str, ran: Ran) {
    let runs = agent_client::printed(agent, &format!("grep -cx {name} ~/ran; true")).await;
    let expected = match ran {
        Ran::Never => "0",
        Ran::Once => "1",
    };
    assert_eq!(runs, expected, "{name}");
    let content = agent.read_to_vec(FILE, 1 << 20).await;
    assert_eq!(content.expect("read"), complete(), "{name}");
}

/// Writes the file.
async fn prepare(agent: &AgentClient) {
    agent_client::printed(agent, &format!("touch ~/ran; {TEXT} > {FILE}")).await;
}

#[tokio::test]
async fn to_an_instance_of_e2b() {
    let counterpart = OfE2b::start(&[]).await;
    let faults = Faults::before(counterpart.e2b).await;
    let config = E2bConfig {
        sandbox_url: Some(format!("http://{}", faults.address)),
        ..counterpart.config("ours")
    };
    let provider = E2b::connect(config).await.expect("connect");
    let spec = crate::e2b::spec(&provider, "one");
    let id = provider.create(&spec).await.expect("create").id;
    let agent = agent_client::agent(&provider, &id).await;
    prepare(&agent).await;
    let status = |status| Fault::status(status, ("", ""), "as the test wanted");
    for (name, fault, expected, ran) in [
        ("refused", Fault::Refuse, CallResult::Closed, Ran::Never),
        (
            "many",
            status(429),
            CallResult::Refused(Code::ResourceExhausted),
            Ran::Never,
        ),
        (
            "broken",
            status(500),
            CallResult::Refused(Code::Internal),
            Ran::Never,
        ),
        (
            "nobody",
            status(502),
            CallResult::Refused(Code::Unavailable),
            Ran::Never,
        ),
        ("hang", Fault::Hang, CallResult::Late, Ran::Never),
        ("half", Fault::Half, CallResult::Closed, Ran::Once),
        ("lost", Fault::Lose, CallResult::Closed, Ran::Once),
        (
            "slow",
            Fault::Slow(Duration::from_millis(1)),
            CallResult::Well,
            Ran::Once,
        ),
    ] {
        faults.set(fault);
        assert_eq!(go(&agent, name).await, (expected, expected), "{name}");
        faults.set(Fault::None);
        inspection(&agent, name, ran).await;
    }
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_an_instance_of_daytona() {
    let counterpart = OfDaytona::start().await;
    let provider = counterpart.provider("mine").await;
    let spec = crate::daytona::spec(&provider, "one");
    let id = provider.create(&spec).await.expect("create").id;
    let agent = agent_client::agent(&provider, &id).await;
    prepare(&agent).await;
    for (name, fault, expected, ran) in [
        (
            "cut",
            json!({"kind": "reset"}),
            CallResult::Closed,
            Ran::Never,
        ),
        (
            "many",
            json!({"status": 429}),
            CallResult::Refused(Code::ResourceExhausted),
            Ran::Never,
        ),
        (
            "broken",
            json!({"status": 500}),
            CallResult::Refused(Code::Internal),
            Ran::Never,
        ),
        (
            "nobody",
            json!({"status": 502}),
            CallResult::Refused(Code::Unavailable),
            Ran::Never,
        ),
        (
            "hang",
            json!({"kind": "hang"}),
            CallResult::Late,
            Ran::Never,
        ),
        (
            "half",
            json!({"kind": "half"}),
            CallResult::Closed,
            Ran::Once,
        ),
        (
            "lost",
            json!({"kind": "lost"}),
            CallResult::Closed,
            Ran::Once,
        ),
        (
            "slow",
            json!({"kind": "slow", "pause": 0.001}),
            CallResult::Well,
            Ran::Once,
        ),
    ] {
        counterpart.fault("preview", 999, fault).await;
        assert_eq!(go(&agent, name).await, (expected, expected), "{name}");
        counterpart.no_faults().await;
        inspection(&agent, name, ran).await;
    }
    provider.delete(&id).await.expect("delete");
}
