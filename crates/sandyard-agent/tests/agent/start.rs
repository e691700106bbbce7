//! The start program: run at every start, waited for at its ports, harmless when it is broken.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Agent, UPGRADE, free_port, is_alive, pid_in, wait_until, write_program};

/// A folder with a start program.
fn folder(program: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The program may be another user's.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let start = folder.path().join("start");
    write_program(&start, program, 0o755);
    folder
}

fn agent(folder: &tempfile::TempDir) -> Agent {
    Agent::start_with(&[
        "--start",
        folder.path().to_str().unwrap(),
        "--token",
        "secret",
    ])
}

fn process_entries(agent: &Agent) -> Vec<Value> {
    let list = agent.call("/process.Process/List", &json!({}));
    list["processes"].as_array().cloned().unwrap_or_default()
}

/// Waits for a line of the log.
fn log_line(folder: &Path, expected: &str) -> String {
    let mut found = None;
    wait_until(expected, || {
        let log = std::fs::read_to_string(folder.join("start.log")).unwrap_or_default();
        found = log
            .lines()
            .find(|line| line.contains(expected))
            .map(str::to_owned);
        found.is_some()
    });
    found.unwrap()
}

/// The session of a process, 0 if its leader is in an outer PID namespace: not by `getsid`, whose wrapper takes that for impossible.
fn session_of(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn a_start_program_runs_as_a_listed_process_of_its_own_session() {
    let folder =
        folder("#!/bin/sh\necho $$ > \"${0%/*}/pid\"\necho in $(pwd) of $HOME\nexec sleep 600\n");
    let agent = agent(&folder);
    let pid = pid_in(&folder.path().join("pid"));
    let home = if rustix::process::getuid().is_root() {
        "/root"
    } else {
        ""
    };
    assert!(log_line(folder.path(), "of /").starts_with(&format!("in {home}")));
    let mut processes = Vec::new();
    wait_until("it is listed", || {
        processes = process_entries(&agent);
        !processes.is_empty()
    });
    assert_eq!(processes[0]["pid"], json!(pid));
    assert_eq!(processes[0]["tag"], json!("start"));
    let entry = processes[0].to_string();
    assert!(
        !entry.contains("ENVS_TOKEN"),
        "its key is not shown: {entry}"
    );
    assert_ne!(session_of(&pid.to_string()), session_of("self"));
    drop(agent);
    wait_until("its end with its sandbox", || !is_alive(pid));
}

#[test]
fn output_goes_to_a_bounded_file_and_not_to_readers() {
    let folder = folder("#!/bin/sh\nhead -c 5000000 /dev/zero\necho done\nexec sleep 600\n");
    let agent = agent(&folder);
    log_line(folder.path(), "done");
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("start.log") <= 1 << 20 && size("start.log.1") <= 1 << 20);
    let mut stream = crate::common::Stream::open(
        agent.host(),
        "/process.Process/Connect",
        &json!({"process": {"tag": "start"}}),
        &[],
    );
    let pid = stream.pid();
    let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &signal);
    assert!(stream.finish().stdout.is_empty());
}

#[test]
fn its_key_opens_the_variables_and_nothing_else() {
    let folder = folder("#!/bin/sh\necho key=$SANDYARD_ENVS_TOKEN.\nexec sleep 600\n");
    let agent = agent(&folder);
    let line = log_line(folder.path(), "key=");
    let key = line.trim_start_matches("key=").trim_end_matches('.');
    assert_eq!(key.len(), 64);
    let adopted = json!({"envVars": {"A": "1"}, "accessToken": "other"}).to_string();
    let init = agent
        .host()
        .request("POST", "/init", &[], adopted.as_bytes());
    assert_eq!(init.status, 204);
    let headers = [
        ("x-access-token", key),
        ("content-type", "application/json"),
    ];
    let envs = agent.tcp().request("GET", "/envs", &headers, b"");
    assert_eq!(
        envs.json(),
        json!({"A": "1"}),
        "what came with the adoption"
    );
    for (method, path) in [
        ("GET", "/files?path=/etc/hostname"),
        ("POST", "/files?path=/tmp/x"),
        ("GET", "/metrics"),
        ("POST", "/process.Process/List"),
        ("POST", "/filesystem.Filesystem/ListDir"),
    ] {
        let reply = agent.tcp().request(method, path, &headers, b"{}");
        assert_eq!(reply.status, 401, "{method} {path}");
    }
    assert_eq!(agent.tcp().request("GET", "/envs", &[], b"").status, 401);
    let empty = [("x-access-token", "")];
    assert_eq!(agent.tcp().request("GET", "/envs", &empty, b"").status, 401);
}

#[test]
fn a_port_that_will_open_is_waited_for_and_others_are_not() {
    let (port, other) = (free_port(), free_port());
    let folder = folder("#!/bin/sh\nexec sleep 600\n");
    std::fs::write(
        folder.path().join("start.ports"),
        format!("# web\n{port}\n"),
    )
    .unwrap();
    let agent = agent(&folder);
    let mut waiting = agent.host();
    waiting.send("GET", &format!("/dial?port={port}"), &UPGRADE, b"");
    let refused = agent
        .host()
        .request("GET", &format!("/dial?port={other}"), &UPGRADE, b"");
    assert_eq!(refused.status, 502);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    listener.accept().unwrap();
    assert_eq!(waiting.read_head().status, 101);
}

#[test]
fn dials_do_not_wait_for_a_program_that_has_ended() {
    let port = free_port();
    let folder = folder("#!/bin/sh\nexec sleep 600\n");
    std::fs::write(folder.path().join("start.ports"), port.to_string()).unwrap();
    let agent = agent(&folder);
    let mut waiting = agent.host();
    waiting.send("GET", &format!("/dial?port={port}"), &UPGRADE, b"");
    wait_until("it runs", || !process_entries(&agent).is_empty());
    let kill = json!({"process": {"tag": "start"}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &kill);
    assert_eq!(waiting.read_head().status, 502);
}

#[test]
fn a_dial_ends_when_its_client_has_left() {
    let port = free_port();
    let folder = folder("#!/bin/sh\necho up\nexec sleep 600\n");
    std::fs::write(folder.path().join("start.ports"), port.to_string()).unwrap();
    let agent = agent(&folder);
    log_line(folder.path(), "up");
    wait_until("it runs", || !process_entries(&agent).is_empty());
    wait_until("nobody is there", || agent.connections() == 0);
    let before = agent.open_files();
    let mut waiting: Vec<_> = (0..20).map(|_| agent.host()).collect();
    for one in &mut waiting {
        one.send("GET", &format!("/dial?port={port}"), &UPGRADE, b"");
    }
    wait_until("all are there", || {
        agent.connections() == 20 && agent.open_files() >= before + 20
    });
    drop(waiting);
    wait_until("all are gone", || {
        agent.connections() == 0 && agent.open_files() <= before
    });
}

#[test]
fn a_broken_start_program_costs_nothing_but_itself() {
    let garbage = folder("no interpreter is named here");
    let running = agent(&garbage);
    let line = log_line(garbage.path(), "was not started");
    assert!(line.contains("cannot execute"), "{line}");
    assert!(running.is_healthy() && process_entries(&running).is_empty());

    let foreign = folder("#!/bin/sh\nexec sleep 600\n");
    std::fs::write(foreign.path().join("start.user"), "nobody-of-this-name").unwrap();
    let running = agent(&foreign);
    let line = log_line(foreign.path(), "was not started");
    assert!(line.contains("invalid username"), "{line}");
    assert!(running.is_healthy() && process_entries(&running).is_empty());

    let absent = tempfile::tempdir().unwrap();
    std::fs::create_dir(absent.path().join("start")).unwrap();
    let running = agent(&absent);
    assert!(running.is_healthy() && process_entries(&running).is_empty());
    let line = log_line(absent.path(), "was not started");
    assert!(line.contains("it is not a regular file"), "{line}");
}

#[test]
fn the_user_who_runs_it_can_be_named() {
    let folder = folder("#!/bin/sh\necho uid=$(id -u).\nexec sleep 600\n");
    std::fs::write(folder.path().join("start.user"), "nobody\n").unwrap();
    let _agent = agent(&folder);
    let own = rustix::process::getuid();
    // Who is not root can become nobody else, and runs it all the same.
    let uid = if own.is_root() { 65534 } else { own.as_raw() };
    assert_eq!(log_line(folder.path(), "uid="), format!("uid={uid}."));
    let log = std::fs::metadata(folder.path().join("start.log")).unwrap();
    assert_eq!(log.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&log), uid);
}
