//! Lines of shell, and processes.

use std::time::Duration;

use sandyard_agent_client::wire::process::{
    ProcessConfig, ProcessSelector, Pty, PtySize, Signal, StartRequest,
};
use sandyard_agent_client::wire::{Output, ProcessEvent};
use sandyard_agent_client::{InputTo, RunOptions, StartOptions};
use sandyard_provider::prelude::*;

use super::{agent, bash, fake, told};

#[tokio::test]
async fn common_lines_do_what_they_say() {
    let (_, agent) = agent(&fake()).await;
    for (line, out, code) in [
        ("echo hello world", "hello world\n", 0),
        ("echo -n \"a  b\" 'c $X'", "a  b c $X", 0),
        (
            "echo $COLOUR \"$COLOUR\" ${COLOUR} ${NONE:-none}",
            "blue sky blue sky blue sky none\n",
            0,
        ),
        ("pwd; cd /tmp && pwd", "/home/user\n/tmp\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("exit 7; echo never", "", 7),
        ("false; echo $?", "1\n", 0),
        ("echo one > f && echo two >> f && cat f", "one\ntwo\n", 0),
        ("cat < f | cat", "one\ntwo\n", 0),
        ("mkdir -p d/e && touch d/e/g && ls d && ls d/e", "e\ng\n", 0),
        ("ls -A /nothing 2>/dev/null; echo $?", "2\n", 0),
        (
            "cat /nothing 2>&1",
            "cat: /nothing: No such file or directory\n",
            1,
        ),
        ("A=1; export B=2; echo $A$B; printenv B", "12\n2\n", 0),
        ("sleep 3600; whoami; id -u", "user\n1000\n", 0),
        (
            "if [ -f f ]; then echo there; else echo gone; fi",
            "there\n",
            0,
        ),
        ("for x in a b; do echo $x; done", "a\nb\n", 0),
        (
            "i=a; while [ $i != aaa ]; do i=a$i; done; echo $i",
            "aaa\n",
            0,
        ),
        ("mv f g && cp g h && rm g && ls", "d\nh\n", 0),
        ("! false; echo $? # a comment", "0\n", 0),
        ("", "", 0),
    ] {
        let (stdout, stderr, exit_code) = told(&agent, line).await;
        assert_eq!(
            (stdout.as_str(), exit_code),
            (out, code),
            "{line}: {stderr}"
        );
    }
}

#[tokio::test]
async fn what_nobody_knows_is_refused_by_name() {
    let (_, agent) = agent(&fake()).await;
    for line in [
        "npm test",
        "echo $(date)",
        "ls *.c",
        "cat <<EOF",
        "tar x | true; frobnicate",
    ] {
        let (stdout, stderr, code) = told(&agent, line).await;
        assert_eq!((stdout.as_str(), code), ("", 127), "{line}");
        let words = "add one to a file that the setting `fake.rules` names\n";
        assert!(
            stderr.contains("sandyard fake: no rule for `") && stderr.ends_with(words),
            "{stderr}"
        );
    }
}

#[tokio::test]
async fn a_program_without_a_shell_is_found_too() {
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
        tag: Some("mine".to_owned()),
        ..StartRequest::default()
    }
}

#[tokio::test]
async fn input_is_read_and_a_signal_ends_it() {
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
    assert_eq!((listed.len(), listed[0].tag.as_deref()), (1, Some("mine")));
    let mut other = agent
        .connect_from(ProcessSelector::Tag("mine".to_owned()), 1)
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
        .expect_err("it is over");
    assert!(agent.list().await.expect("list").is_empty());
}

#[tokio::test]
async fn input_that_is_closed_ends_what_reads_it() {
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
async fn a_terminal_shows_what_is_typed() {
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
    let mut shown = Vec::new();
    while let Some(event) = stream.next().await {
        match event.expect("fine") {
            ProcessEvent::Data(output) => shown.extend_from_slice(output.bytes()),
            ProcessEvent::End(end) => assert_eq!(end.exit_code, 3),
            _ => {}
        }
    }
    assert_eq!(
        String::from_utf8_lossy(&shown),
        "$ echo hi\r\nhi\r\n$ exit 3\r\n"
    );
}

#[tokio::test]
async fn a_stop_ends_commands_and_time_that_is_over_does() {
    let fake = fake();
    let (id, agent) = agent(&fake).await;
    let forever = "while true; do sleep 1; done";
    let options = RunOptions {
        timeout: Duration::from_millis(50),
        ..RunOptions::default()
    };
    let error = agent
        .run(bash(forever), &options)
        .await
        .expect_err("takes too long");
    assert!(error.to_string().contains("time given"), "{error}");
    let mut stream = agent
        .start(&request(forever), &StartOptions::default())
        .await
        .expect("starts");
    fake.stop(&id).await.expect("stop");
    // Cut off, or told before: it is over in either case.
    let _ = stream.wait().await;
    agent.health().await.expect_err("nobody is there");
    fake.start(&id).await.expect("start");
    agent.health().await.expect("it is back");
    assert!(agent.list().await.expect("list").is_empty());
    agent.dial(8080).await.expect_err("nothing listens");
    fake.delete(&id).await.expect("delete");
    agent.health().await.expect_err("it is gone");
}
