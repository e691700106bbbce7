//! The same with a shell that is not bash, and with one whose start-up files do not end.

use serde_json::json;

use super::super::command_input::Kind;
use super::super::program::Program;
use super::TestEnv;

#[tokio::test]
async fn any_shell_does() {
    let env = TestEnv::with(|tool_state| {
        tool_state.sessions.program = Some(Program {
            path: "/bin/sh".into(),
            kind: Kind::Sh,
            is_login: true,
        });
    });
    for (command, output, code) in [
        ("echo hello; false", "hello", 1),
        ("echo $?; cd /; A='b\tc'; pwd", "1\n/", 0),
        (
            "echo \"$A\"\ncat <<'END'\nit's \\n %s é\nEND\n",
            "b\tc\nit's \\n %s é",
            0,
        ),
        ("printf 'no end'; (exit 9)", "no end", 9),
        (
            &format!("echo {}", "x".repeat(5_000)),
            &"x".repeat(5_000),
            0,
        ),
    ] {
        assert_eq!(
            env.run(command).await,
            (output.to_owned(), code),
            "{command}"
        );
    }
    let (printed, code) = env.run("echo 'open").await;
    assert!(code != 0, "{printed}");
    for command in [
        "echo begun; sleep 1000; echo unseen",
        "echo begun; while :; do sh -c 'trap \"\" INT TERM; sleep 1000'; done; echo unseen",
    ] {
        env.start(command).await;
        env.see("begun").await;
        let reply = env.stop().await;
        let reply = reply.unwrap_or_else(|problem| panic!("{command}: {problem}"));
        let text = reply.all_text();
        assert!(text.starts_with("[stopped]\nbegun"), "{command}: {text}");
        assert!(!text.contains("unseen"), "{command}: {text}");
        assert_eq!(env.run("echo here").await, ("here".into(), 0));
    }
    assert!(
        env.bash("exit 3")
            .await
            .all_text()
            .contains("ended with the command")
    );
}

#[tokio::test]
async fn a_shell_that_ends_at_once_is_a_problem_and_not_a_wait() {
    let env = TestEnv::with(|tool_state| {
        tool_state.sessions.program = Some(Program {
            path: "/bin/false".into(),
            kind: Kind::Sh,
            is_login: true,
        });
    });
    let problem = env
        .call("Bash", json!({"session_name": "s", "command": "true"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("run_command"), "{problem}");
    let list = env.call("BashList", json!({})).await.unwrap();
    assert!(
        list.all_text().contains("no sessions"),
        "{}",
        list.all_text()
    );
}

#[tokio::test]
async fn start_up_files_that_do_not_end_are_left_out() {
    let script = tempfile::tempdir().unwrap();
    let path = script.path().join("bash");
    let lines =
        "#!/bin/bash\ncase \"$*\" in *-l*) exec sleep 1000;; *) exec /bin/bash \"$@\";; esac\n";
    crate::files::test_env::write_program(&path, lines);
    let env = TestEnv::with(|tool_state| {
        tool_state.sessions.program = Some(Program {
            path,
            kind: Kind::Bash,
            is_login: true,
        });
        tool_state.sessions.max_start = Some(std::time::Duration::from_secs(1));
    });
    assert_eq!(env.run("echo plain").await, ("plain".into(), 0));
}
