//! Command lines and processes.

use std::time::Duration;

use sandyard_agent_client::wire::process::{
    ProcessConfig, ProcessSelector, Pty, PtySize, Signal, StartRequest,
};
use sandyard_agent_client::wire::{Output, ProcessEvent};
use sandyard_agent_client::{InputTo, RunOptions, StartOptions};
use sandyard_provider::prelude::*;

use super::{agent, bash, fake, run_line};

#[tokio::test]
async fn the_commands_of_the_fake_give_their_fixed_answers() {
    let (_, agent) = agent(&fake()).await;
    for (line, out, code) in [
        ("echo hello world", "hello world\n", 0),
        ("echo -n \"a  b\" 'c $X'", "a  b c $X", 0),
        (
            "echo $COLOUR \"$COLOUR\" ${COLOUR} $NONE.",
            "blue sky blue sky blue sky .\n",
            0,
        ),
        ("pwd; cd /tmp && pwd", "/home/user\n/tmp\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("exit 7; echo never", "", 7),
        ("echo one > f && echo two >> f && cat f", "one\ntwo\n", 0),
        ("mkdir -p d/e && touch d/e/g && ls d && ls d/e", "e\ng\n", 0),
        ("ls -A /nothing 2>/dev/null || echo failed", "failed\n", 0),
        (
            "cat /nothing 2>&1",
            "cat: /nothing: No such file or directory\n",
            1,
        ),
        (
            "cat /nothing > out 2>&1 || cat out",
            "cat: /nothing: No such file or directory\n",
            0,
        ),
        ("sleep 3600; whoami; id -u", "user\n1000\n", 0),
        ("rm -rf d && ls", "f\nout\n", 0),
        ("", "", 0),
    ] {
        let (stdout, stderr, exit_code) = run_line(&agent, line).await;
        assert_eq!(
            (stdout.as_str(), exit_code),
            (out, code),
            "{line}: {stderr}"
        );
    }
    let (stdout, stderr, _) = run_line(&agent, "echo problem >&2").await;
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", "problem\n"));
    let (_, stderr, code) = run_line(&agent, "echo x > missing/file").await;
    assert_eq!(
        (stderr.as_str(), code),
        ("sh: missing/file: No such file or directory\n", 1)
    );
}

#[tokio::test]
async fn a_command_that_waits_for_a_file_waits_while_the_instance_is_paused() {
    let fake = fake();
    let (id, agent) = agent(&fake).await;
    let wait = "touch /tmp/started; until [ -e /tmp/go ]; do sleep 1; done; echo went on";
    let mut stream = agent
        .start(&request(wait), &StartOptions::default())
        .await
        .expect("starts");
    run_line(
        &agent,
        "while [ ! -e /tmp/started ]; do sleep 0.05; done; touch /tmp/go",
    )
    .await;
    fake.pause(&id).await.expect("pause");
    fake.resume(&id).await.expect("resume");
    let first = stream.next().await.expect("an event").expect("fine");
    assert_eq!(
        first,
        ProcessEvent::Data(Output::Stdout("went on\n".into()))
    );
}

#[tokio::test]
async fn unknown_commands_and_syntax_are_refused_by_name() {
    let (_, agent) = agent(&fake()).await;
    for line in [
        "npm test",
        "echo $(date)",
        "ls *.c",
        "cat <<EOF",
        "echo x | cat",
        "if [ -f f ]; then echo x; fi",
        "A=1",
        "tar x || frobnicate",
    ] {
        let (stdout, stderr, code) = run_line(&agent, line).await;
        assert_eq!((stdout.as_str(), code), ("", 127), "{line}");
        let advice = "add one to a file that the setting `fake.rules` names\n";
        assert!(
            stderr.contains("sandyard fake: no rule for `") && stderr.ends_with(advice),
            "{stderr}"
        );
    }
}

#[tokio::test]
async fn a_program_runs_without_a_shell() {
    let (_, agent) = agent(&fake()).await;
    let echo = ProcessConfig {
        cmd: "/bin/echo".to_owned(),
        args: vec!["a  b; c".to_owned()],
        ..ProcessConfig::default()
    };
    let output = agent.run(echo, &RunOptions::default()).await.expect("runs");
    assert_eq!(output.stdout, b"a  b; c\n");
    let lost = ProcessConfig {
        cwd: Some("/nothing".to_owned()),
        ..bash("pwd")
    };
    let error = agent
        .run(lost, &RunOptions::default())
        .await
        .expect_err("no such folder");
    assert!(
        error.to_string().contains("cwd '/nothing' does not exist"),
        "{error}"
    );
    let error = agent
        .as_user("nobody")
        .run(bash("pwd"), &RunOptions::default())
        .await
        .expect_err("no such user");
    assert!(error.to_string().contains("invalid username"), "{error}");
    let output = agent
        .as_user("root")
        .run(bash("pwd; id -u"), &RunOptions::default())
        .await
        .expect("runs");
    assert_eq!(output.stdout, b"/root\n0\n");
}

fn request(line: &str) -> StartRequest {
    StartRequest {
        process: bash(line),
        tag: Some("tag".to_owned()),
        ..StartRequest::default()
    }
}

#[tokio::test]
async fn a_process_reads_input_until_a_signal_ends_it() {
    let (_, agent) = agent(&fake()).await;
    let mut stream = agent
        .start(&request("cat"), &StartOptions::default())
        .await
        .expect("starts");
    let process = ProcessSelector::Pid(stream.pid());
    agent
        .send_input(process.clone(), InputTo::Stdin, "hello".into())
        .await
        .expect("input");
    let first = stream.next().await.expect("an event").expect("fine");
    assert_eq!(first, ProcessEvent::Data(Output::Stdout("hello".into())));
    let listed = agent.list().await.expect("list");
    assert_eq!((listed.len(), listed[0].tag.as_deref()), (1, Some("tag")));
    let mut other = agent
        .connect_from(ProcessSelector::Tag("tag".to_owned()), 1)
        .await
        .expect("connects");
    let past = other.next().await.expect("an event").expect("fine");
    assert_eq!(past, ProcessEvent::Data(Output::Stdout("ello".into())));
    agent
        .signal(process.clone(), Signal::TERM)
        .await
        .expect("signal");
    for stream in [&mut stream, &mut other] {
        let end = stream.wait().await.expect("ends");
        assert_eq!((end.exited, end.shell_code()), (false, 143));
    }
    agent
        .signal(process, Signal::KILL)
        .await
        .expect_err("it has ended");
    assert!(agent.list().await.expect("list").is_empty());
}

#[tokio::test]
async fn closing_the_input_ends_the_command_that_reads_it() {
    let (_, agent) = agent(&fake()).await;
    let mut stream = agent
        .start(&request("cat > f; cat f"), &StartOptions::default())
        .await
        .expect("starts");
    let process = ProcessSelector::Pid(stream.pid());
    agent
        .send_input(process.clone(), InputTo::Stdin, "kept".into())
        .await
        .expect("input");
    agent.close_stdin(process).await.expect("close");
    let first = stream.next().await.expect("an event").expect("fine");
    assert_eq!(first, ProcessEvent::Data(Output::Stdout("kept".into())));
    assert_eq!(stream.wait().await.expect("ends").exit_code, 0);
}

#[tokio::test]
async fn a_terminal_echoes_its_input() {
    let (_, agent) = agent(&fake()).await;
    let request = StartRequest {
        process: ProcessConfig {
            cmd: "/bin/bash".to_owned(),
            args: vec!["-i".to_owned(), "-l".to_owned()],
            ..ProcessConfig::default()
        },
        pty: Some(Pty {
            size: Some(PtySize { cols: 80, rows: 24 }),
        }),
        ..StartRequest::default()
    };
    let mut stream = agent
        .start(&request, &StartOptions::default())
        .await
        .expect("starts");
    let process = ProcessSelector::Pid(stream.pid());
    agent
        .resize(
            process.clone(),
            PtySize {
                cols: 100,
                rows: 50,
            },
        )
        .await
        .expect("resize");
    agent
        .send_input(process.clone(), InputTo::Stdin, "x".into())
        .await
        .expect_err("it has a terminal");
    agent
        .send_input(process, InputTo::Pty, "echo hi\nexit 3\n".into())
        .await
        .expect("input");
    let mut output = Vec::new();
    while let Some(event) = stream.next().await {
        match event.expect("fine") {
            ProcessEvent::Data(data) => output.extend_from_slice(data.bytes()),
            ProcessEvent::End(end) => assert_eq!(end.exit_code, 3),
            _ => {}
        }
    }
    assert_eq!(
        String::from_utf8_lossy(&output),
        "$ echo hi\r\nhi\r\n$ exit 3\r\n"
    );
}

#[tokio::test]
async fn a_stop_and_a_timeout_end_commands() {
    let fake = fake();
    let (id, agent) = agent(&fake).await;
    let forever = "until [ -e /never ]; do sleep 1; done";
    let options = RunOptions {
        timeout: Duration::from_millis(50),
        ..RunOptions::default()
    };
    let error = agent
        .run(bash(forever), &options)
        .await
        .expect_err("takes too long");
    assert!(error.to_string().contains("timed out"), "{error}");
    let mut stream = agent
        .start(&request(forever), &StartOptions::default())
        .await
        .expect("starts");
    fake.stop(&id).await.expect("stop");
    // The stream ends with an event or is cut off.
    let _ = stream.wait().await;
    agent.health().await.expect_err("not running");
    fake.start(&id).await.expect("start");
    agent.health().await.expect("it is back");
    assert!(agent.list().await.expect("list").is_empty());
    agent.dial(8080).await.expect_err("nothing listens");
    fake.delete(&id).await.expect("delete");
    agent.health().await.expect_err("it is gone");
}
