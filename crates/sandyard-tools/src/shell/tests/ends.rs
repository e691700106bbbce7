//! Commands and shells that are ended, or end in unusual ways.

use serde_json::{Value, json};

use super::{Bench, is_gone};

#[tokio::test]
async fn a_shell_that_ends_says_so_and_can_be_started_again() {
    let bench = Bench::new();
    std::fs::create_dir(bench.root().join("inner")).unwrap();
    bench.run("cd inner; A=1").await;
    for (command, code) in [
        ("echo bye; exit 3", 3),
        ("set -e; false; echo unseen", 1),
        ("exec sh -c 'exit 5'", 5),
        ("kill -9 $$", 137),
    ] {
        let reply = bench.bash(command).await;
        let ran = reply.structured().unwrap();
        assert_eq!(ran["exit_code"], code, "{command}");
        assert!(!ran["output"].as_str().unwrap().contains("unseen"));
        assert!(
            reply
                .all_text()
                .contains("the shell of session s ended with it"),
            "{}",
            reply.all_text()
        );
        let list = bench.call("BashList", json!({})).await.unwrap();
        assert!(
            list.all_text().contains("ended with exit code"),
            "{}",
            list.all_text()
        );
        let reply = bench.bash("echo \"new $A\"").await;
        assert_eq!(reply.structured().unwrap()["output"], "new ");
        assert_eq!(
            reply.structured().unwrap()["cwd"],
            bench.root().join("inner").to_str().unwrap()
        );
        assert!(
            reply.all_text().contains("this is a new one"),
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
    let (bench, reply) = loop {
        let bench = Bench::new();
        bench.run("true").await;
        let timeout = timeouts.next().expect("it never says anything");
        let arguments = json!({
            "session_name": "s", "command": command, "timeout": timeout, "description": "asks",
        });
        let reply = bench.call("Bash", arguments).await.unwrap();
        if reply.structured().unwrap()["output"] != "" {
            break (bench, reply);
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
    let problem = bench
        .call("Bash", json!({"session_name": "s", "command": "true"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("busy"), "{problem}");
    let seen = bench.see("first").await;
    assert!(
        seen.all_text().contains("busy for") && seen.all_text().contains("(asks)"),
        "{}",
        seen.all_text()
    );
    assert_eq!(seen.structured().unwrap()["sessions"][0]["state"], "busy");
    let reply = bench
        .call(
            "BashWriteToProcess",
            json!({"session_name": "s", "input": "it"}),
        )
        .await
        .unwrap();
    bench.says(&reply, "first\ngot it").await;
    bench.ends(&reply, 1).await;
    let seen = bench.see("got it").await;
    assert_eq!(
        seen.structured().unwrap()["sessions"][0]["last_exit_code"],
        1
    );
    let problem = bench
        .call(
            "BashWriteToProcess",
            json!({"session_name": "s", "input": "x"}),
        )
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("nothing runs"), "{problem}");
}

#[tokio::test]
async fn keys_reach_programs() {
    let bench = Bench::new();
    bench.start("echo ready; cat; echo after").await;
    bench.see("ready").await;
    let write = |input: &str, enter: bool| json!({"session_name": "s", "input": input, "press_enter": enter});
    let reply = bench
        .call("BashWriteToProcess", write("part", false))
        .await
        .unwrap();
    assert_eq!(reply.structured().unwrap()["output"], "ready");
    let reply = bench
        .call("BashWriteToProcess", write("ial", true))
        .await
        .unwrap();
    bench.says(&reply, "ready\npartial").await;
    let reply = bench
        .call("BashWriteToProcess", write("\u{4}", false))
        .await
        .unwrap();
    bench.says(&reply, "ready\npartial\nafter").await;
    bench.ends(&reply, 0).await;
    bench.start("bash -c 'echo again; exec sleep 1000'").await;
    bench.see("again").await;
    let reply = bench
        .call("BashWriteToProcess", write("\u{3}", false))
        .await
        .unwrap();
    bench.ends(&reply, 130).await;
}

#[tokio::test]
async fn programs_that_take_the_whole_terminal_can_be_seen_and_used() {
    let bench = Bench::new();
    let write = |input: &str, enter: bool| json!({"session_name": "s", "input": input, "press_enter": enter});
    // A shell in the shell, with a prompt and a line editor of its own.
    bench
        .start("PS1='ready> ' bash --norc --noprofile -i")
        .await;
    bench.see("ready>").await;
    bench
        .call("BashWriteToProcess", write("echo in$((1+1))ner", true))
        .await
        .unwrap();
    bench.see("in2ner").await;
    let reply = bench
        .call("BashWriteToProcess", write("exit 4", true))
        .await
        .unwrap();
    bench.ends(&reply, 4).await;
    // A menu on a screen of its own, which is gone afterwards.
    let menu = [
        r"printf 'under\n\033[?1049h\033[2J\033[5;3Hchoose: '",
        "stty raw; k=$(head -c 1); stty sane",
        r"printf '\033[?1049l'; echo $k",
    ];
    let menu = &menu.join("; ");
    bench.start(menu).await;
    bench.see("choose:").await;
    let reply = bench
        .call("BashWriteToProcess", write("y", false))
        .await
        .unwrap();
    bench.says(&reply, "under\ny").await;
}

#[tokio::test]
async fn input_nobody_read_is_not_run() {
    let bench = Bench::new();
    bench
        .start("echo ready; read x; until [ -e go ]; do sleep 0.05; done")
        .await;
    bench.see("ready").await;
    let arguments = json!({"session_name": "s", "input": "one\ntouch wrong\ntouch wrong2"});
    bench.call("BashWriteToProcess", arguments).await.unwrap();
    std::fs::write(bench.root().join("go"), "").unwrap();
    bench.see_state("last exit code 0").await;
    assert_eq!(bench.run("ls").await, ("go".into(), 0));
}

#[tokio::test]
async fn commands_are_stopped_whatever_they_are() {
    let bench = Bench::new();
    bench.run("kept=1").await;
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
        bench.start(command).await;
        let reply = bench.stop().await;
        let reply = reply.unwrap_or_else(|problem| panic!("{command}: {problem}"));
        assert!(
            reply.all_text().starts_with("[stopped]"),
            "{command}: {}",
            reply.all_text()
        );
        let (said, _) = bench.run("echo $kept").await;
        assert_eq!(said, "1", "{command}");
        assert!(!reply.all_text().contains("unseen"), "{command}");
    }
    let reply = bench.stop().await.unwrap();
    assert!(
        reply.all_text().contains("nothing runs"),
        "{}",
        reply.all_text()
    );
}

#[tokio::test]
async fn a_session_ends_with_everything_in_it() {
    let bench = Bench::new();
    let command = "trap '' HUP TERM; sleep 1000 & a=$!; nohup sleep 1001 >/dev/null 2>&1 & b=$!; \
                   setsid sleep 1002 & (sleep 1003 & echo $! >deep); echo $a $b $! $(cat deep) $$ >pids; \
                   echo ready; sleep 1004";
    bench.start(command).await;
    bench.see("ready").await;
    let pids = std::fs::read_to_string(bench.root().join("pids")).unwrap();
    assert_eq!(pids.split_whitespace().count(), 5);
    let reply = bench
        .call(
            "BashStop",
            json!({"session_name": "s", "kill_session": true}),
        )
        .await
        .unwrap();
    assert!(
        reply.all_text().contains("was ended"),
        "{}",
        reply.all_text()
    );
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid).await, "{pid} of {pids}");
    }
    let list = bench.call("BashList", json!({})).await.unwrap();
    assert!(
        list.all_text().contains("no sessions"),
        "{}",
        list.all_text()
    );
    assert!(
        bench
            .stop()
            .await
            .unwrap_err()
            .to_string()
            .contains("no session s")
    );
}

#[tokio::test]
async fn only_the_command_that_is_meant_is_interrupted() {
    let bench = Bench::new();
    bench.run("true").await;
    let session = bench.workshop.sessions.find("s").unwrap();
    let ended = session.state().number;
    bench.start("echo ready; read x; echo got $x").await;
    bench.see("ready").await;
    assert!(super::super::stop::interrupt(&session, ended).await);
    let arguments = json!({"session_name": "s", "input": "it"});
    let reply = bench.call("BashWriteToProcess", arguments).await.unwrap();
    bench.says(&reply, "ready\ngot it").await;
}
