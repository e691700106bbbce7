//! Commands and shells that are ended, or end in unusual ways.

use serde_json::{Value, json};

use super::{TestEnv, is_gone};

#[tokio::test]
async fn a_shell_that_ends_says_so_and_can_be_started_again() {
    let env = TestEnv::new();
    std::fs::create_dir(env.root().join("inner")).unwrap();
    env.run("cd inner; A=1").await;
    for (command, code) in [
        ("echo bye; exit 3", 3),
        ("set -e; false; echo unseen", 1),
        ("exec sh -c 'exit 5'", 5),
        ("kill -9 $$", 137),
    ] {
        let reply = env.bash(command).await;
        let ran = reply.structured().unwrap();
        assert_eq!(ran["exit_code"], code, "{command}");
        assert!(!ran["output"].as_str().unwrap().contains("unseen"));
        assert!(
            reply
                .all_text()
                .contains("the shell of session s ended with the command"),
            "{}",
            reply.all_text()
        );
        let list = env.call("BashList", json!({})).await.unwrap();
        assert!(
            list.all_text().contains("ended with exit code"),
            "{}",
            list.all_text()
        );
        let reply = env.bash("echo \"new $A\"").await;
        assert_eq!(reply.structured().unwrap()["output"], "new ");
        assert_eq!(
            reply.structured().unwrap()["cwd"],
            env.root().join("inner").to_str().unwrap()
        );
        assert!(
            reply.all_text().contains("this is a new shell"),
            "{}",
            reply.all_text()
        );
    }
}

#[tokio::test]
async fn a_slow_command_goes_on_and_the_session_is_busy() {
    let command = "echo first; read x; echo got $x; false";
    // A busy machine may not even have begun with it in the shorter times.
    let mut timeouts = [3, 20, 90].into_iter();
    let (env, reply) = loop {
        let env = TestEnv::new();
        env.run("true").await;
        let timeout = timeouts.next().expect("it never says anything");
        let arguments = json!({
            "session_name": "s", "command": command, "timeout": timeout, "description": "asks",
        });
        let reply = env.call("Bash", arguments).await.unwrap();
        if reply.structured().unwrap()["output"] != "" {
            break (env, reply);
        }
    };
    let ran = reply.structured().unwrap();
    assert_eq!(
        (&ran["is_running"], &ran["exit_code"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(ran["output"], "first");
    assert!(
        reply.all_text().contains("BashStop") && reply.all_text().contains("BashView"),
        "{}",
        reply.all_text()
    );
    let problem = env
        .call("Bash", json!({"session_name": "s", "command": "true"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("busy"), "{problem}");
    let seen = env.see("first").await;
    assert!(
        seen.all_text().contains("busy for") && seen.all_text().contains("(asks)"),
        "{}",
        seen.all_text()
    );
    assert_eq!(seen.structured().unwrap()["sessions"][0]["state"], "busy");
    let reply = env
        .call(
            "BashWriteToProcess",
            json!({"session_name": "s", "input": "it"}),
        )
        .await
        .unwrap();
    env.expect_output(&reply, "first\ngot it").await;
    env.ends(&reply, 1).await;
    let seen = env.see("got it").await;
    assert_eq!(
        seen.structured().unwrap()["sessions"][0]["last_exit_code"],
        1
    );
    let problem = env
        .call(
            "BashWriteToProcess",
            json!({"session_name": "s", "input": "x"}),
        )
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("no command runs"), "{problem}");
}

#[tokio::test]
async fn keys_reach_programs() {
    let env = TestEnv::new();
    env.start("echo ready; cat; echo after").await;
    env.see("ready").await;
    let write = |input: &str, enter: bool| json!({"session_name": "s", "input": input, "press_enter": enter});
    let reply = env
        .call("BashWriteToProcess", write("part", false))
        .await
        .unwrap();
    assert_eq!(reply.structured().unwrap()["output"], "ready");
    let reply = env
        .call("BashWriteToProcess", write("ial", true))
        .await
        .unwrap();
    env.expect_output(&reply, "ready\npartial").await;
    let reply = env
        .call("BashWriteToProcess", write("\u{4}", false))
        .await
        .unwrap();
    env.expect_output(&reply, "ready\npartial\nafter").await;
    env.ends(&reply, 0).await;
    env.start("bash -c 'echo again; exec sleep 1000'").await;
    env.see("again").await;
    let reply = env
        .call("BashWriteToProcess", write("\u{3}", false))
        .await
        .unwrap();
    env.ends(&reply, 130).await;
}

#[tokio::test]
async fn programs_that_take_the_whole_terminal_can_be_seen_and_used() {
    let env = TestEnv::new();
    let write = |input: &str, enter: bool| json!({"session_name": "s", "input": input, "press_enter": enter});
    // A shell in the shell, with a prompt and a line editor of its own.
    env.start("PS1='ready> ' bash --norc --noprofile -i").await;
    env.see("ready>").await;
    env.call("BashWriteToProcess", write("echo in$((1+1))ner", true))
        .await
        .unwrap();
    env.see("in2ner").await;
    let reply = env
        .call("BashWriteToProcess", write("exit 4", true))
        .await
        .unwrap();
    env.ends(&reply, 4).await;
    // A menu on a screen of its own, which is gone afterwards.
    let menu = [
        r"printf 'under\n\033[?1049h\033[2J\033[5;3Hchoose: '",
        "stty raw; k=$(head -c 1); stty sane",
        r"printf '\033[?1049l'; echo $k",
    ];
    let menu = &menu.join("; ");
    env.start(menu).await;
    env.see("choose:").await;
    let reply = env
        .call("BashWriteToProcess", write("y", false))
        .await
        .unwrap();
    env.expect_output(&reply, "under\ny").await;
}

#[tokio::test]
async fn unread_input_is_not_run() {
    let env = TestEnv::new();
    env.start("echo ready; read x; until [ -e go ]; do sleep 0.05; done")
        .await;
    env.see("ready").await;
    let arguments = json!({"session_name": "s", "input": "one\ntouch wrong\ntouch wrong2"});
    env.call("BashWriteToProcess", arguments).await.unwrap();
    std::fs::write(env.root().join("go"), "").unwrap();
    env.see_state("last exit code 0").await;
    assert_eq!(env.run("ls").await, ("go".into(), 0));
}

#[tokio::test]
async fn commands_are_stopped_whatever_they_are() {
    let env = TestEnv::new();
    env.run("kept=1").await;
    for command in [
        "sleep 1000; echo unseen",
        "while :; do sleep 0.1; done; echo unseen",
        "while :; do :; done",
        "cat",
        "read x",
        "sleep 1000 | cat | cat",
        "bash -c 'trap \"\" INT; echo deaf; while :; do sleep 0.1; done'",
        "while :; do bash -c 'trap \"\" INT TERM; sleep 1000'; done; echo unseen",
        "stty raw -isig; sleep 1000",
    ] {
        env.start(command).await;
        let reply = env.stop().await;
        let reply = reply.unwrap_or_else(|problem| panic!("{command}: {problem}"));
        assert!(
            reply.all_text().starts_with("[stopped]"),
            "{command}: {}",
            reply.all_text()
        );
        let (printed, _) = env.run("echo $kept").await;
        assert_eq!(printed, "1", "{command}");
        assert!(!reply.all_text().contains("unseen"), "{command}");
    }
    let reply = env.stop().await.unwrap();
    assert!(
        reply.all_text().contains("no command runs"),
        "{}",
        reply.all_text()
    );
}

#[tokio::test]
async fn a_session_ends_with_everything_in_it() {
    let env = TestEnv::new();
    let command = "trap '' HUP TERM; sleep 1000 & a=$!; nohup sleep 1001 >/dev/null 2>&1 & b=$!; \
                   setsid sleep 1002 & (sleep 1003 & echo $! >deep); echo $a $b $! $(cat deep) $$ >pids; \
                   echo ready; sleep 1004";
    env.start(command).await;
    env.see("ready").await;
    let pids = std::fs::read_to_string(env.root().join("pids")).unwrap();
    assert_eq!(pids.split_whitespace().count(), 5);
    let reply = env
        .call(
            "BashStop",
            json!({"session_name": "s", "kill_session": true}),
        )
        .await
        .unwrap();
    assert!(
        reply.all_text().contains("ended with all its processes"),
        "{}",
        reply.all_text()
    );
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid).await, "{pid} of {pids}");
    }
    let list = env.call("BashList", json!({})).await.unwrap();
    assert!(
        list.all_text().contains("no sessions"),
        "{}",
        list.all_text()
    );
    assert!(
        env.stop()
            .await
            .unwrap_err()
            .to_string()
            .contains("session s does not exist")
    );
}

#[tokio::test]
async fn only_the_command_that_is_meant_is_interrupted() {
    let env = TestEnv::new();
    env.run("true").await;
    let session = env.tool_state.sessions.find("s").unwrap();
    let ended = session.state().number;
    env.start("echo ready; read x; echo got $x").await;
    env.see("ready").await;
    assert!(super::super::stop::interrupt(&session, ended).await);
    let arguments = json!({"session_name": "s", "input": "it"});
    let reply = env.call("BashWriteToProcess", arguments).await.unwrap();
    env.expect_output(&reply, "ready\ngot it").await;
}
