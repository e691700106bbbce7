//! Commands of the real agent.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_agent_client::wire::Code;
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{
    ProcessConfig, ProcessSelector, Pty, PtySize, Signal, StartRequest,
};
use sandyard_agent_client::{
    AgentClient, ClientError, InputTo, ProcessStream, RunOptions, StartOptions,
};

use crate::agent::Agent;

fn sh(script: &str) -> ProcessConfig {
    ProcessConfig {
        cmd: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        ..ProcessConfig::default()
    }
}

fn request(script: &str) -> StartRequest {
    StartRequest {
        process: sh(script),
        ..StartRequest::default()
    }
}

async fn start(client: &AgentClient, request: &StartRequest) -> ProcessStream {
    let options = StartOptions::default();
    client.start(request, &options).await.expect("a start")
}

/// Reads output until it holds this text.
async fn read_until(stream: &mut ProcessStream, text: &str) -> String {
    let mut all = Vec::new();
    loop {
        match stream.next().await.expect("not over").expect("no error") {
            ProcessEvent::Data(output) => all.extend_from_slice(output.bytes()),
            other => panic!(
                "{other:?} before {text:?} in {:?}",
                String::from_utf8_lossy(&all)
            ),
        }
        let seen = String::from_utf8_lossy(&all);
        if seen.contains(text) {
            return seen.into_owned();
        }
    }
}

#[tokio::test]
async fn a_run_gives_both_outputs_and_the_exit_code() {
    let agent = Agent::start().await;
    let process = ProcessConfig {
        envs: BTreeMap::from([("GREETING".into(), "hello".into())]),
        cwd: Some("/usr".into()),
        ..sh("echo $GREETING $PWD; echo oops >&2; exit 3")
    };
    let output = agent
        .client
        .run(process, &RunOptions::default())
        .await
        .expect("an end");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello /usr\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "oops\n");
    assert_eq!((output.exit.exit_code, output.exit.exited), (3, true));
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_a_code() {
    let agent = Agent::start().await;
    let options = RunOptions::default();
    let without_directory = ProcessConfig {
        cwd: Some("/nonexistent".into()),
        ..sh("true")
    };
    let error = agent
        .client
        .run(without_directory, &options)
        .await
        .expect_err("no such directory");
    assert_eq!(error.code(), Some(Code::InvalidArgument));
    let as_unknown_user = RunOptions {
        user: Some("no-such-user".into()),
        ..options
    };
    let error = agent
        .client
        .run(sh("true"), &as_unknown_user)
        .await
        .expect_err("no such user");
    assert_eq!(error.code(), Some(Code::Unauthenticated));
    let error = agent
        .client
        .connect(ProcessSelector::Pid(1 << 30))
        .await
        .expect_err("no such process");
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn input_reaches_a_command_until_it_is_closed() {
    let agent = Agent::start().await;
    let mut stream = start(&agent.client, &request("cat; echo done")).await;
    let pid = ProcessSelector::Pid(stream.pid());
    agent
        .client
        .send_input(pid.clone(), InputTo::Stdin, "one\n".into())
        .await
        .expect("sent");
    read_until(&mut stream, "one\n").await;
    agent.client.close_stdin(pid).await.expect("closed");
    read_until(&mut stream, "done\n").await;
    assert_eq!(stream.wait().await.expect("an end").exit_code, 0);
}

#[tokio::test]
async fn a_stream_of_input_waits_for_a_command_that_reads_late() {
    let agent = Agent::start().await;
    let mut stream = start(&agent.client, &request("read go; wc -c")).await;
    let pid = ProcessSelector::Pid(stream.pid());
    let mut input = agent
        .client
        .open_input(pid.clone(), InputTo::Stdin)
        .await
        .expect("open");
    input.send("go\n".into()).await.expect("sent");
    // More than the pipe and all buffers on the way hold.
    let piece = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..8 {
        input.send(piece.clone()).await.expect("sent");
    }
    input.finish().await.expect("all was taken");
    agent.client.close_stdin(pid).await.expect("closed");
    read_until(&mut stream, "8388608\n").await;
}

#[tokio::test]
async fn a_stream_of_input_fails_when_its_command_is_gone() {
    let agent = Agent::start().await;
    let no_process = ProcessSelector::Pid(1 << 30);
    // The refusal may come with the opening, a later send or at the end.
    let result = async {
        let mut input = agent.client.open_input(no_process, InputTo::Stdin).await?;
        input.send("x".into()).await?;
        input.finish().await
    };
    let error = result.await.expect_err("no such process");
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn a_terminal_has_a_size_and_takes_input() {
    let agent = Agent::start().await;
    let request = StartRequest {
        pty: Some(Pty {
            size: Some(PtySize { cols: 80, rows: 24 }),
        }),
        ..request("stty size; read line; stty size")
    };
    let mut stream = start(&agent.client, &request).await;
    let pid = ProcessSelector::Pid(stream.pid());
    read_until(&mut stream, "24 80").await;
    agent
        .client
        .resize(
            pid.clone(),
            PtySize {
                cols: 100,
                rows: 50,
            },
        )
        .await
        .expect("resized");
    agent
        .client
        .send_input(pid, InputTo::Pty, "go\n".into())
        .await
        .expect("sent");
    read_until(&mut stream, "50 100").await;
    stream.wait().await.expect("an end");
}

#[tokio::test]
async fn a_signal_ends_a_command_found_by_its_tag() {
    let agent = Agent::start().await;
    let request = StartRequest {
        tag: Some("sleeper".into()),
        ..request("exec sleep 1000")
    };
    let mut stream = start(&agent.client, &request).await;
    let entries = agent.client.list().await.expect("a list");
    assert!(
        entries
            .iter()
            .any(|process| process.tag.as_deref() == Some("sleeper")),
        "{entries:?}"
    );
    agent
        .client
        .signal(ProcessSelector::Tag("sleeper".into()), Signal::KILL)
        .await
        .expect("sent");
    let end = stream.wait().await.expect("an end");
    assert!(!end.exited || end.exit_code != 0, "{end:?}");
    agent.until_idle().await;
}

#[tokio::test]
async fn a_command_over_its_time_is_killed() {
    let agent = Agent::start().await;
    let options = RunOptions {
        timeout: Duration::from_millis(300),
        ..RunOptions::default()
    };
    let result = agent
        .client
        .run(sh("sleep 1000 & sleep 1000"), &options)
        .await;
    match result {
        Ok(output) => assert_ne!(output.exit.exit_code, 0, "{output:?}"),
        // On a busy machine we give up before the agent can say so.
        Err(ClientError::Timeout { .. }) => {}
        Err(error) => assert_eq!(error.code(), Some(Code::DeadlineExceeded), "{error}"),
    }
    agent.until_idle().await;
}

#[tokio::test]
async fn output_goes_on_after_a_lost_connection_without_gap_or_repeat() {
    let agent = Agent::start().await;
    let mut stream = start(
        &agent.client,
        &request("seq 1 1000; read line; seq 1001 2000"),
    )
    .await;
    let pid = ProcessSelector::Pid(stream.pid());
    let mut all = read_until(&mut stream, "\n500\n").await;
    let offset = stream.output_offset();
    assert_eq!(offset, all.len() as u64);
    drop(stream);
    agent
        .client
        .send_input(pid.clone(), InputTo::Stdin, "\n".into())
        .await
        .expect("sent");
    let mut stream = agent
        .client
        .connect_from(pid, offset)
        .await
        .expect("a stream");
    while let Some(event) = stream.next().await {
        if let ProcessEvent::Data(Output::Stdout(bytes)) = event.expect("no error") {
            all.push_str(std::str::from_utf8(&bytes).expect("digits"));
        }
    }
    let expected: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(all, expected);
}
