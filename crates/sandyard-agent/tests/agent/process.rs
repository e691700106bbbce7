//! Commands: output, input, signals, time-outs, reconnecting.

use std::time::Duration;

use crate::common::{Agent, Frame, is_alive, pid_in, wait_until};
use sandyard_wire::json::encode_base64;
use serde_json::json;

#[test]
fn a_command_streams_its_start_its_output_and_its_end() {
    let agent = Agent::start();
    let outcome = agent.shell("echo out; echo err >&2; exit 3").finish();
    assert!(outcome.pid > 0);
    assert_eq!(outcome.stdout, b"out\n");
    assert_eq!(outcome.stderr, b"err\n");
    let end = outcome.end.as_ref().unwrap();
    assert_eq!(outcome.exit_code(), 3);
    assert_eq!(end["exited"], true);
    assert_eq!(end["status"], "exit status 3");
    assert_eq!(outcome.error, None);
}

#[test]
fn a_command_gets_its_environment_and_directory() {
    let agent = Agent::start_with(&["--env", "SHARED=1", "--env", "OWN=no"]);
    let dir = agent.dir.path().to_str().unwrap();
    let request = json!({"process": {
        "cmd": "sh",
        "args": ["-c", "echo $SHARED $OWN $EXTRA; pwd; umask; echo ${PATH:+path} ${HOME:+home} ${USER:+user}"],
        "envs": {"OWN": "yes", "EXTRA": "x y"},
        "cwd": dir,
    }});
    let outcome = agent.start_process(&request, &[]).finish();
    let expected = format!("1 yes x y\n{dir}\n0022\npath home user\n");
    assert_eq!(outcome.stdout_text(), expected);
}

#[test]
fn a_command_runs_as_the_user_it_is_for_where_that_is_possible() {
    let user_header = format!("Basic {}", encode_base64(b"nobody:"));
    let request = json!({"process": {"cmd": "sh", "args": ["-c", "echo $USER; id -u; id -G"]}});
    let run = |agent: &Agent| {
        let outcome = agent
            .start_process(&request, &[("authorization", &user_header)])
            .finish();
        outcome.stdout_text()
    };
    let mapped_alone = run(&Agent::start_in_user_namespace());
    assert!(mapped_alone.starts_with("nobody\n0\n"), "{mapped_alone}");
    if rustix::process::geteuid().is_root() {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let line = passwd.lines().find(|line| line.starts_with("nobody:"));
        let fields: Vec<&str> = line.unwrap().split(':').collect();
        let expected = format!("nobody\n{}\n{}\n", fields[2], fields[3]);
        assert_eq!(run(&Agent::start()), expected);
    }
}

#[test]
fn commands_that_cannot_start_say_why() {
    let agent = Agent::start();
    for (request, code, reply_bytes) in [
        (
            json!({"cmd": "/no/such/program"}),
            "invalid_argument",
            "No such file",
        ),
        (
            json!({"cmd": "no-such-program"}),
            "invalid_argument",
            "No such file",
        ),
        (json!({"cmd": "/etc/passwd"}), "invalid_argument", "denied"),
        (json!({"cmd": ""}), "invalid_argument", "no command"),
        (json!({"cmd": "a\0b"}), "invalid_argument", "NUL"),
        (
            json!({"cmd": "true", "cwd": "/no/such"}),
            "invalid_argument",
            "does not exist",
        ),
        (
            json!({"cmd": "true", "envs": {"A=B": "c"}}),
            "invalid_argument",
            "variable",
        ),
    ] {
        let error = agent
            .start_process(&json!({"process": request}), &[])
            .error();
        assert_eq!(error["code"], code, "{request}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(reply_bytes), "{request}: {message}");
    }
    let as_unknown_user = format!("Basic {}", encode_base64(b"no-such-user:"));
    let request = json!({"process": {"cmd": "true"}});
    let error = agent
        .start_process(&request, &[("authorization", &as_unknown_user)])
        .error();
    assert_eq!(error["code"], "unauthenticated");
    assert_eq!(error["message"], "invalid username: 'no-such-user'");
}

#[test]
fn input_reaches_a_command_until_it_is_closed() {
    let agent = Agent::start();
    let mut stream = agent.shell("cat; echo over");
    let pid = stream.pid();
    for text in ["one\n", "two\n"] {
        let input =
            json!({"process": {"pid": pid}, "input": {"stdin": encode_base64(text.as_bytes())}});
        agent.call("/process.Process/SendInput", &input);
    }
    agent.call(
        "/process.Process/CloseStdin",
        &json!({"process": {"pid": pid}}),
    );
    let outcome = stream.finish();
    assert_eq!(outcome.stdout_text(), "one\ntwo\nover\n");
    let late = json!({"process": {"pid": pid}, "input": {"stdin": ""}});
    assert_eq!(
        agent.try_call("/process.Process/SendInput", &late).status,
        404
    );
}

#[test]
fn a_stream_of_input_reaches_a_command() {
    let agent = Agent::start();
    let mut output = agent.shell("head -c 8");
    let pid = output.pid();
    let mut body = crate::common::enveloped(&json!({"start": {"process": {"pid": pid}}}));
    for text in ["1234", "5678"] {
        let data = json!({"data": {"input": {"stdin": encode_base64(text.as_bytes())}}});
        body.extend(crate::common::enveloped(&data));
        body.extend(crate::common::enveloped(&json!({"keepalive": {}})));
    }
    let reply = agent.host().request(
        "POST",
        "/process.Process/StreamInput",
        &[("content-type", "application/connect+json")],
        &body,
    );
    assert_eq!(reply.status, 200);
    assert!(reply.body.ends_with(b"{}"), "{}", reply.text());
    assert_eq!(output.finish().stdout, b"12345678");
}

#[test]
fn a_command_without_input_reads_an_empty_file() {
    let agent = Agent::start();
    let request = json!({"process": {"cmd": "cat"}, "stdin": false});
    let outcome = agent.start_process(&request, &[]).finish();
    assert_eq!((outcome.exit_code(), outcome.stdout), (0, Vec::new()));
}

#[test]
fn processes_are_listed_by_pid_and_found_by_tag() {
    let agent = Agent::start();
    let request = json!({"process": {"cmd": "sleep", "args": ["600"]}, "tag": "mine"});
    let mut stream = agent.start_process(&request, &[]);
    let pid = stream.pid();
    let list = agent.call("/process.Process/List", &json!({}));
    assert_eq!(list["processes"][0]["pid"], pid);
    assert_eq!(list["processes"][0]["tag"], "mine");
    assert_eq!(list["processes"][0]["config"]["cmd"], "sleep");
    let signal = json!({"process": {"tag": "mine"}, "signal": "SIGNAL_SIGTERM"});
    agent.call("/process.Process/SendSignal", &signal);
    let outcome = stream.finish();
    let end = outcome.end.unwrap();
    assert_eq!(end["status"], "signal: terminated");
    assert_eq!(end["exitCode"], -1);
    assert_eq!(end.get("exited"), None);
    let list = agent.call("/process.Process/List", &json!({}));
    assert_eq!(list.get("processes"), None);
    let reply = agent.try_call("/process.Process/SendSignal", &signal);
    assert_eq!(reply.status, 404);
}

#[test]
fn a_command_that_starts_with_setsid_keeps_its_output_and_exit_code() {
    let agent = Agent::start();
    for _ in 0..20 {
        let request =
            json!({"process": {"cmd": "setsid", "args": ["sh", "-c", "echo hi; exit 3"]}});
        let outcome = agent.start_process(&request, &[]).finish();
        assert_eq!(
            (outcome.stdout_text(), outcome.exit_code()),
            ("hi\n".into(), 3)
        );
    }
}

#[test]
fn a_signal_reaches_what_a_command_started() {
    let agent = Agent::start();
    let file = agent.path("child.pid");
    let script = format!(
        "sh -c 'echo $$ > {0}.tmp; mv {0}.tmp {0}; exec sleep 600' & wait",
        file.display()
    );
    let mut stream = agent.shell(&script);
    let (pid, child) = (stream.pid(), pid_in(&file));
    let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGTERM"});
    agent.call("/process.Process/SendSignal", &signal);
    assert_eq!(stream.finish().end.unwrap()["status"], "signal: terminated");
    wait_until("the child's death", || !is_alive(child));
}

#[test]
fn a_kill_takes_daemons_with_it_after_the_command_has_signalled_its_own_group() {
    let agent = Agent::start();
    let file = agent.path("daemon.pid");
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.tmp; mv {0}.tmp {0}; exec sleep 600' &
         until [ -e {0} ]; do :; done; trap : TERM; kill 0; echo survived; exec sleep 600",
        file.display()
    );
    let mut stream = agent.shell(&script);
    let (pid, daemon) = (stream.pid(), pid_in(&file));
    assert_eq!(
        stream.event()["data"]["stdout"],
        encode_base64(b"survived\n")
    );
    let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &signal);
    assert_eq!(stream.finish().end.unwrap()["status"], "signal: killed");
    wait_until("the daemon's death", || !is_alive(daemon));
}

#[test]
fn a_command_that_kills_its_group_kills_nothing_else() {
    let agent = Agent::start();
    let killed = agent.shell("echo out; kill -KILL 0").finish();
    assert_eq!(killed.stdout, b"out\n");
    assert_eq!(killed.end.unwrap()["status"], "signal: killed");
    assert_eq!(agent.shell("echo well").finish().stdout, b"well\n");
}

/// A script that leaves a daemon behind: forked twice, in a session of its own, its number in a file.
fn daemon_script(file: &std::path::Path) -> String {
    format!(
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ > {0}.tmp; mv {0}.tmp {0}; exec sleep 600\" >/dev/null 2>&1 & ' ; sleep 600",
        file.display()
    )
}

#[test]
fn a_kill_takes_daemons_with_it() {
    let agent = Agent::start();
    let file = agent.path("daemon.pid");
    let mut stream = agent.shell(&daemon_script(&file));
    let pid = stream.pid();
    let daemon = pid_in(&file);
    assert!(is_alive(daemon));
    let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &signal);
    assert_eq!(stream.finish().end.unwrap()["status"], "signal: killed");
    wait_until("the daemon's death", || !is_alive(daemon));
}

#[test]
fn a_time_out_takes_daemons_with_it_and_ends_the_stream_with_its_own_error() {
    let agent = Agent::start();
    let file = agent.path("daemon.pid");
    let request = json!({"process": {"cmd": "sh", "args": ["-c", daemon_script(&file)]}});
    // On a busy machine it may be over before there is a daemon: then it is given longer.
    let found = ["2000", "10000", "60000"].iter().find_map(|time| {
        let mut stream = agent.start_process(&request, &[("connect-timeout-ms", time)]);
        let pid = stream.pid();
        let outcome = stream.finish();
        assert_eq!(outcome.error.unwrap()["code"], "deadline_exceeded");
        file.exists().then(|| (pid, pid_in(&file)))
    });
    let (pid, daemon) = found.expect("a daemon in a minute");
    wait_until("the daemon's death", || !is_alive(daemon) && !is_alive(pid));
}

#[test]
fn an_agent_that_stops_takes_everything_with_it() {
    let agent = Agent::start();
    let file = agent.path("daemon.pid");
    let pid = agent.shell(&daemon_script(&file)).pid();
    let daemon = pid_in(&file);
    drop(agent);
    wait_until("all to be dead", || !is_alive(daemon) && !is_alive(pid));
}

#[test]
fn a_time_out_holds_though_the_client_has_left() {
    let agent = Agent::start();
    let request = json!({"process": {"cmd": "sleep", "args": ["600"]}});
    let mut stream = agent.start_process(&request, &[("connect-timeout-ms", "500")]);
    let pid = stream.pid();
    drop(stream);
    wait_until("the command's death", || !is_alive(pid));
}

#[test]
fn background_children_outlive_their_command() {
    let agent = Agent::start();
    let file = agent.path("child.pid");
    let script = format!(
        "(echo $$ >/dev/null; sh -c 'echo $$ > {0}.tmp; mv {0}.tmp {0}; while :; do echo x; sleep 0.05; done') & echo started",
        file.display()
    );
    let outcome = agent.shell(&script).finish();
    assert_eq!(outcome.exit_code(), 0);
    let child = pid_in(&file);
    // It writes to a pipe whose reader has seen the end already and must not die of that.
    let deadline = std::time::Instant::now() + Duration::from_millis(500);
    while std::time::Instant::now() < deadline {
        assert!(is_alive(child));
        std::thread::sleep(Duration::from_millis(20));
    }
    let child = rustix::process::Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_reader_continues_where_the_last_one_stopped() {
    let agent = Agent::start();
    let mut first = agent.shell("echo one; read x; echo two; read x; echo three");
    let pid = first.pid();
    assert_eq!(first.event()["data"]["stdout"], encode_base64(b"one\n"));
    drop(first);
    wait_until("the first reader to be gone", || {
        let activity = agent.host().request("GET", "/activity", &[], b"").json();
        activity.get("streams").is_none()
    });
    let line = json!({"process": {"pid": pid}, "input": {"stdin": encode_base64(b"\n\n")}});
    agent.call("/process.Process/SendInput", &line);
    let outcome = agent.connect(pid, &[]).finish();
    assert_eq!(outcome.stdout_text(), "two\nthree\n");
    let late = agent.connect(pid, &[]).finish();
    assert_eq!((late.pid, late.exit_code(), late.stdout.len()), (pid, 0, 0));
}

#[test]
fn output_is_read_again_from_a_given_offset() {
    let agent = Agent::start();
    let whole = agent.shell("echo hello; echo oops >&2").finish();
    let at = [("sandyard-output-offset", "8")];
    let mut stream = agent.connect(whole.pid, &at);
    assert_eq!(stream.reply.header("sandyard-output-offset"), Some("8"));
    let part = stream.finish();
    let all = [whole.stdout, whole.stderr].concat();
    assert_eq!([part.stdout, part.stderr].concat(), all[8..]);
    let beyond = [("sandyard-output-offset", "12")];
    assert_eq!(
        agent.connect(whole.pid, &beyond).error()["code"],
        "out_of_range"
    );
    let malformed = [("sandyard-output-offset", "x")];
    assert_eq!(
        agent.connect(whole.pid, &malformed).error()["code"],
        "invalid_argument"
    );
}

#[test]
fn two_readers_both_get_the_output() {
    let agent = Agent::start();
    let mut first = agent.shell("read x; seq 1 100000");
    let pid = first.pid();
    let mut second = agent.connect(pid, &[]);
    assert_eq!(second.pid(), pid);
    let line = json!({"process": {"pid": pid}, "input": {"stdin": encode_base64(b"\n")}});
    agent.call("/process.Process/SendInput", &line);
    let reader = std::thread::spawn(move || second.finish().stdout);
    let stdout = first.finish().stdout;
    assert_eq!(stdout, reader.join().unwrap());
    assert!(stdout.ends_with(b"\n100000\n"));
}

#[test]
fn a_terminal_has_a_size_that_can_be_changed() {
    let agent = Agent::start();
    let request = json!({
        "process": {"cmd": "sh", "args": ["-c", "stty size; read x; stty size; tty; exit 5"]},
        "pty": {"size": {"cols": 91, "rows": 17}},
    });
    let mut stream = agent.start_process(&request, &[]);
    let pid = stream.pid();
    let mut first = Vec::new();
    // A terminal may hand out half a line.
    while !first.ends_with(b"\n") {
        let event = stream.event();
        let piece = event["data"]["pty"].as_str().unwrap();
        first.extend(sandyard_wire::json::decode_base64(piece).unwrap());
    }
    assert_eq!(first, b"17 91\r\n");
    let size = json!({"process": {"pid": pid}, "pty": {"size": {"cols": 120, "rows": 40}}});
    agent.call("/process.Process/Update", &size);
    let input = json!({"process": {"pid": pid}, "input": {"pty": encode_base64(b"go\n")}});
    agent.call("/process.Process/SendInput", &input);
    let outcome = stream.finish();
    let text = String::from_utf8_lossy(&outcome.pty).into_owned();
    assert!(
        text.contains("40 120\r\n") && text.contains("/dev/pts/"),
        "{text}"
    );
    assert_eq!(outcome.exit_code(), 5);
}

#[test]
fn input_of_the_wrong_kind_is_refused() {
    let agent = Agent::start();
    let pid = agent.shell("sleep 600").pid();
    let input = json!({"process": {"pid": pid}, "input": {"pty": ""}});
    assert_eq!(
        agent.try_call("/process.Process/SendInput", &input).status,
        400
    );
    let size = json!({"process": {"pid": pid}, "pty": {"size": {"cols": 1, "rows": 1}}});
    assert_eq!(agent.try_call("/process.Process/Update", &size).status, 400);
    let signal = json!({"process": {"pid": pid}, "signal": 99});
    assert_eq!(
        agent
            .try_call("/process.Process/SendSignal", &signal)
            .status,
        400
    );
}

#[test]
fn a_silent_stream_is_kept_alive() {
    let agent = Agent::start();
    let request = json!({"process": {"cmd": "sleep", "args": ["600"]}});
    let mut stream = agent.start_process(&request, &[("keepalive-ping-interval", "1")]);
    stream.pid();
    assert_eq!(
        stream.next(),
        Frame::Message(json!({"event": {"keepalive": {}}}))
    );
}

#[test]
fn the_agent_has_one_thread_and_leaves_no_zombies() {
    let agent = Agent::start();
    for _ in 0..50 {
        agent.shell("true").finish();
    }
    assert_eq!(agent.threads(), 1);
    wait_until("supervisors to be reaped", || agent.children() == 0);
}
