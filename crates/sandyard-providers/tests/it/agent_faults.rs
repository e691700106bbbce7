//! The way into an instance of a cloud on a bad day: a command is run once or not at all, a file is read whole or not at all, and
//! whoever asked is told by kind what went wrong.

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

/// More than arrives in one piece when that is slow.
const TEXT: &str = "seq 300";
const FILE: &str = "/tmp/read";

/// What is told of a call that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nothing: it went well.
    Well,
    /// The connection ended.
    Closed,
    /// Nothing came in time.
    Late,
    /// A status, by its code.
    Refused(Code),
}

/// How often a command ran whose fault has struck.
#[derive(Clone, Copy, Debug)]
enum Ran {
    Never,
    Once,
}

fn told<T>(result: &Result<T, ClientError>) -> Told {
    match result {
        Ok(_) => Told::Well,
        // Nobody said within its time that the agent is there.
        Err(ClientError::Connect { source, .. }) if source.kind() == ErrorKind::TimedOut => {
            Told::Late
        }
        // Never connected, or cut off before the first word: to a caller it is the same.
        Err(ClientError::Closed { .. } | ClientError::Connect { .. }) => Told::Closed,
        Err(ClientError::Timeout { .. }) => Told::Late,
        Err(ClientError::Remote { code, .. }) => Told::Refused(*code),
        Err(other) => panic!("told as {other:?}"),
    }
}

/// Runs a command and reads a file while the way is spoilt.
async fn go(agent: &AgentClient, name: &str) -> (Told, Told) {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), format!("echo {name} >> ~/ran; {TEXT}")],
        ..ProcessConfig::default()
    };
    let options = RunOptions {
        // What hangs is not waited for that long; all else has time, however busy the machine is.
        timeout: Duration::from_secs(if name.contains("hang") { 2 } else { 120 }),
        ..RunOptions::default()
    };
    let ran = agent.run(process, &options).await;
    let read = agent.read_to_vec(FILE, 1 << 20).await;
    let whole = whole();
    if let Ok(output) = &ran {
        assert_eq!(output.stdout, whole, "{name}: a part of the output");
    }
    if let Ok(content) = &read {
        assert_eq!(*content, whole, "{name}: a part of the file");
    }
    (told(&ran), told(&read))
}

fn whole() -> Vec<u8> {
    let lines: String = (1..=300).map(|number| format!("{number}\n")).collect();
    lines.into_bytes()
}

/// Sees that the way is good again, and how often the command ran meanwhile.
async fn look(agent: &AgentClient, name: &str, ran: Ran) {
    let runs = agent_client::printed(agent, &format!("grep -cx {name} ~/ran; true")).await;
    let expected = match ran {
        Ran::Never => "0",
        Ran::Once => "1",
    };
    assert_eq!(runs, expected, "{name}");
    let content = agent.read_to_vec(FILE, 1 << 20).await;
    assert_eq!(content.expect("read"), whole(), "{name}");
}

/// Puts down what is read.
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
        ("refused", Fault::Refuse, Told::Closed, Ran::Never),
        (
            "many",
            status(429),
            Told::Refused(Code::ResourceExhausted),
            Ran::Never,
        ),
        (
            "broken",
            status(500),
            Told::Refused(Code::Internal),
            Ran::Never,
        ),
        (
            "nobody",
            status(502),
            Told::Refused(Code::Unavailable),
            Ran::Never,
        ),
        ("hang", Fault::Hang, Told::Late, Ran::Never),
        ("half", Fault::Half, Told::Closed, Ran::Once),
        ("lost", Fault::Lose, Told::Closed, Ran::Once),
        (
            "slow",
            Fault::Slow(Duration::from_millis(1)),
            Told::Well,
            Ran::Once,
        ),
    ] {
        faults.set(fault);
        assert_eq!(go(&agent, name).await, (expected, expected), "{name}");
        faults.set(Fault::None);
        look(&agent, name, ran).await;
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
        ("cut", json!({"kind": "reset"}), Told::Closed, Ran::Never),
        (
            "many",
            json!({"status": 429}),
            Told::Refused(Code::ResourceExhausted),
            Ran::Never,
        ),
        (
            "broken",
            json!({"status": 500}),
            Told::Refused(Code::Internal),
            Ran::Never,
        ),
        (
            "nobody",
            json!({"status": 502}),
            Told::Refused(Code::Unavailable),
            Ran::Never,
        ),
        ("hang", json!({"kind": "hang"}), Told::Late, Ran::Never),
        ("half", json!({"kind": "half"}), Told::Closed, Ran::Once),
        ("lost", json!({"kind": "lost"}), Told::Closed, Ran::Once),
        (
            "slow",
            json!({"kind": "slow", "pause": 0.001}),
            Told::Well,
            Ran::Once,
        ),
    ] {
        counterpart.fault("preview", 999, fault).await;
        assert_eq!(go(&agent, name).await, (expected, expected), "{name}");
        counterpart.no_faults().await;
        look(&agent, name, ran).await;
    }
    provider.delete(&id).await.expect("delete");
}
