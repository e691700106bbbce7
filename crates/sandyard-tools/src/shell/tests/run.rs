//! Commands that end without being stopped.

use serde_json::json;

use super::TestEnv;

#[tokio::test]
async fn a_command_answers_its_output_exit_code_and_folder() {
    let env = TestEnv::new();
    let reply = env.bash("echo hello; echo problem >&2; false").await;
    let ran = reply.structured().unwrap();
    assert_eq!(ran["output"], "hello\nproblem");
    assert_eq!(ran["exit_code"], 1);
    assert_eq!(ran["session_name"], "s");
    assert_eq!(ran["is_cut"], false);
    assert_eq!(ran["cwd"], env.root().to_str().unwrap());
    let text = reply.all_text();
    assert!(
        text.starts_with(
            "[session s was created for this command]\nhello\nproblem\n[exit code 1, "
        ),
        "{text}"
    );
    assert!(!reply.is_error());
    assert_eq!(env.run("true").await, (String::new(), 0));
}

#[tokio::test]
async fn folder_variables_functions_and_status_stay() {
    let env = TestEnv::new();
    std::fs::create_dir(env.root().join("in ner")).unwrap();
    env.run("cd 'in ner'; export A='b c'; f() { echo \"f:$1\"; }; alias hi='echo alias'; (exit 7)")
        .await;
    let reply = env.bash("echo \"$? $A $PWD\"; f x").await;
    let inner = env.root().join("in ner");
    assert_eq!(
        reply.structured().unwrap()["output"],
        format!("7 b c {}\nf:x", inner.display())
    );
    assert_eq!(reply.structured().unwrap()["cwd"], inner.to_str().unwrap());
    assert_eq!(env.run("sh -c 'echo $A'").await.0, "b c");
    assert_eq!(env.run("hi there").await.0, "alias there");
}

#[tokio::test]
async fn commands_of_every_shape_come_back() {
    let env = TestEnv::new();
    for (command, output, code) in [
        (
            "cat <<'END'\n$HOME 'x' \"y\" `z` \\\nEND\n",
            "$HOME 'x' \"y\" `z` \\",
            0,
        ),
        ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2", 0),
        ("if true; then\n\techo tab\nfi # comment", "tab", 0),
        ("echo a \\\n  b", "a b", 0),
        ("printf 'no end'", "no end", 0),
        ("echo '!!' !x \"!y\"", "!! !x !y", 0),
        (
            "printf '%s\\n' 'é' '你好' \"\u{1}\" $'\\x41'",
            "é\n你好\n\nA",
            0,
        ),
        ("", "", 0),
        ("   \n\n", "", 0),
        ("# only words", "", 0),
        ("echo one;\n\n\necho two\n\n", "one\ntwo", 0),
        ("echo a & wait; echo b", "", -2),
        ("set -x; echo x; { set +x; } 2>/dev/null", "++ echo x\nx", 0),
        ("set -u; echo ${nothing_there-none}; set +u", "none", 0),
        ("set -f; echo *; set +f", "*", 0),
        ("IFS=/; echo \"$(printf 'a b')\"; unset IFS", "a b", 0),
        (
            "PS1='$ ' PS2='> ' PROMPT_COMMAND='echo prompt'; echo set",
            "set",
            0,
        ),
        ("echo next", "next", 0),
        (
            "trap 'echo gone' USR1; kill -USR1 $$; echo done",
            "gone\ndone",
            0,
        ),
        ("yes | head -n 3 | wc -l", "3", 0),
        ("tty >/dev/null && echo terminal", "terminal", 0),
        ("(exit 200)", "", 200),
        (
            "kill -9 $BASHPID & wait $! 2>/dev/null; echo $? >&2",
            "137",
            -3,
        ),
    ] {
        let (printed, ended) = env.run(command).await;
        match code {
            -2 => assert!(
                printed.contains("a\n") && printed.ends_with('b'),
                "{command:?}: {printed:?}"
            ),
            -3 => assert!(printed.contains(output), "{command:?}: {printed:?}"),
            _ => assert_eq!((printed.as_str(), ended), (output, code), "{command:?}"),
        }
    }
}

#[tokio::test]
async fn what_the_shell_cannot_read_comes_back_as_its_error() {
    let env = TestEnv::new();
    for (command, part) in [
        ("echo 'open", "unexpected EOF"),
        ("echo \"open", "unexpected EOF"),
        ("if true; then", "syntax error"),
        ("echo )", "syntax error"),
        ("echo $(", "unexpected EOF"),
        ("no-such-program-at-all", "not found"),
        ("cat <<END\nopen", "open"),
        ("echo ${x!}", "bad substitution"),
        (": ${nothing_there?is missing}; echo unseen", "is missing"),
    ] {
        let (printed, code) = env.run(command).await;
        assert!(printed.contains(part), "{command:?}: {printed:?}");
        assert!(!printed.contains("unseen"), "{command:?}: {printed:?}");
        assert!(
            code != 0 || command.starts_with("cat"),
            "{command:?}: {code}"
        );
    }
    assert_eq!(env.run("echo still here").await, ("still here".into(), 0));
}

#[tokio::test]
async fn long_commands_are_taken_whole() {
    let env = TestEnv::new();
    let text = "it's a \\ long \"line\" with $signs and é!\n".repeat(3_000);
    let (printed, code) = env.run(&format!("wc -c <<'END'\n{text}END")).await;
    assert_eq!((printed, code), (text.len().to_string(), 0));
    let too_long = "x".repeat(300_000);
    let problem = env
        .call("Bash", json!({"session_name": "s", "command": too_long}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("write a script"), "{problem}");
    let problem = env
        .call("Bash", json!({"session_name": "s", "command": "a\0b"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("NUL"), "{problem}");
}

#[tokio::test]
async fn what_one_command_does_to_the_terminal_is_not_the_next_ones_problem() {
    let env = TestEnv::new();
    for change in [
        "stty raw -echo",
        "stty -icanon -isig -onlcr",
        "stty echo",
        "stty sane",
        "stty olcuc",
        "stty cols 20",
    ] {
        env.run(change).await;
        assert_eq!(
            env.run("echo 'Line One'; echo two").await,
            ("Line One\ntwo".into(), 0),
            "{change}"
        );
    }
    // Where the shell's own output goes does not matter either.
    env.run("exec 3>&1 4>&2 >hidden.txt 2>&1").await;
    assert_eq!(env.run("echo unseen; false").await, (String::new(), 1));
    assert_eq!(
        env.run("exec >&3 2>&4; cat hidden.txt").await,
        ("unseen".into(), 0)
    );
}

#[tokio::test]
async fn what_one_command_does_to_the_shell_does_not_hide_the_ends_of_others() {
    let env = TestEnv::new();
    for change in [
        "set -x",
        "set -v",
        "set -uCf -o posix",
        "set -o history -o histexpand",
        "trap 'printf \"[%s]\" debug' DEBUG; trap 'true' ERR",
        "trap '' INT TERM HUP",
        "unset PROMPT_COMMAND; readonly PS1 PS2 PROMPT_COMMAND=:",
        "PATH= IFS=0123456789",
        "alias printf=false read=false unset=false true=false",
        "printf() { false; }; eval() { builtin eval \"$@\"; }",
        "shopt -u promptvars; PROMPT_COMMAND=(a b c)",
        "umask 777; ulimit -f 0",
        "cd /; exec 3</dev/null 5>&1",
        "LC_ALL=C",
    ] {
        env.run(change).await;
        let (printed, code) = env.run("echo 'it is é'; (exit 6)").await;
        assert!(
            printed.ends_with("it is é") || printed.contains("it is é\n"),
            "{change}: {printed}"
        );
        assert_eq!(code, 6, "{change}");
        env.call(
            "BashStop",
            json!({"session_name": "s", "kill_session": true}),
        )
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn background_jobs_stay_and_are_heard() {
    let env = TestEnv::new();
    let (printed, code) = env
        .run("(until [ -e go ]; do sleep 0.05; done; echo from behind) &")
        .await;
    assert!(printed.starts_with("[1] "), "{printed}");
    assert_eq!(code, 0);
    let (printed, _) = env.run("jobs; touch go").await;
    assert!(printed.contains("Running"), "{printed}");
    env.see("from behind").await;
}

#[tokio::test]
async fn sessions_begin_in_their_folder() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.root().join("a/it's")).unwrap();
    std::fs::write(env.root().join("file"), "").unwrap();
    let made = env
        .call(
            "BashInit",
            json!({"session_name": "s", "start_directory": "a/it's"}),
        )
        .await
        .unwrap();
    assert!(made.all_text().contains("a/it's"), "{}", made.all_text());
    assert_eq!(
        env.run("pwd").await.0,
        env.root().join("a/it's").to_str().unwrap()
    );
    let second = env
        .call("BashInit", json!({"session_name": "s"}))
        .await
        .unwrap_err();
    assert!(second.to_string().contains("already"), "{second}");
    for (folder, part) in [
        ("/etc", "outside"),
        ("..", "outside"),
        ("file", "not a folder"),
        ("none", "not a folder"),
    ] {
        let arguments = json!({"session_name": "t", "start_directory": folder});
        let problem = env.call("BashInit", arguments).await.unwrap_err();
        assert!(problem.to_string().contains(part), "{problem}");
    }
    for name in ["", "a b", "a/b", "é", &"x".repeat(65)] {
        let problem = env
            .call("Bash", json!({"session_name": name, "command": "true"}))
            .await
            .unwrap_err();
        assert!(problem.to_string().contains("session_name"), "{problem}");
    }
}
