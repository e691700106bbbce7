//! Services of a template: run when the host asks for their port, waited for, and run again when they have ended.

use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::{Agent, free_port, wait_until, write_program};

/// A service that sends its user id and process id once to every client that connects.
const SERVER: &str = "#!/usr/bin/env python3
import os, socket, sys
port = int(os.path.basename(sys.argv[0]))
print('up', flush=True)
listener = socket.create_server(('127.0.0.1', port))
while True:
    peer, _ = listener.accept()
    peer.sendall(f'{os.getuid()} {os.getpid()}\\n'.encode())
    peer.close()
    if os.path.exists(sys.argv[0] + '.once'):
        sys.exit(0)
";

struct TestEnv {
    agent: Agent,
    folder: tempfile::TempDir,
    port: u16,
}

impl TestEnv {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::create_dir(folder.path().join("services")).unwrap();
        Self {
            agent: Agent::start_with(&[
                "--start",
                folder.path().to_str().unwrap(),
                "--user",
                "nobody",
            ]),
            folder,
            port: free_port(),
        }
    }

    fn write(&self, ending: &str, text: &str, mode: u32) {
        let path = self
            .folder
            .path()
            .join(format!("services/{}{ending}", self.port));
        write_program(&path, text, mode);
    }

    /// User and process that answer.
    fn ask(&self) -> (u32, u64) {
        let (reply, mut connection) = self.agent.dial(self.port);
        assert_eq!(reply.status, 101, "{}\n{}", reply.text(), self.log());
        let mut line = String::new();
        connection.reader.read_line(&mut line).unwrap();
        let (uid, pid) = line.trim().split_once(' ').unwrap();
        (uid.parse().unwrap(), pid.parse().unwrap())
    }

    fn log(&self) -> String {
        let name = format!("service-{}.log", self.port);
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn is_refused(&self) {
        assert_eq!(self.agent.dial(self.port).0.status, 502);
    }
}

/// Whom a name stands for: who is not root can become nobody else.
fn uid_of_unprivileged() -> u32 {
    let own = rustix::process::getuid();
    if own.is_root() { 65534 } else { own.as_raw() }
}

#[test]
fn a_service_is_run_for_the_first_dial_and_waited_for() {
    let env = TestEnv::new();
    env.write("", SERVER, 0o755);
    assert!(env.agent.process_entries().is_empty());
    let all: Vec<_> = std::thread::scope(|scope| {
        let dials: Vec<_> = (0..10).map(|_| scope.spawn(|| env.ask())).collect();
        dials.into_iter().map(|dial| dial.join().unwrap()).collect()
    });
    assert!(
        all.iter().all(|one| *one == all[0]),
        "one serves all: {all:?}"
    );
    assert_eq!(all[0].0, uid_of_unprivileged(), "the default user");
    let process_entries = env.agent.process_entries();
    assert_eq!(process_entries.len(), 1);
    assert_eq!(process_entries[0]["tag"], format!("service-{}", env.port));
    assert_eq!(env.log(), "up\n");
}

#[test]
fn one_that_has_ended_is_run_again() {
    let env = TestEnv::new();
    env.write("", SERVER, 0o755);
    env.write(".once", "", 0o644);
    let first = env.ask();
    wait_until("it has ended", || env.agent.process_entries().is_empty());
    assert_ne!(env.ask(), first);
}

#[test]
fn who_runs_it_can_be_named() {
    let env = TestEnv::new();
    env.write("", SERVER, 0o755);
    env.write(".user", &crate::common::current_user(), 0o644);
    assert_eq!(env.ask().0, rustix::process::getuid().as_raw());
}

#[test]
fn one_that_ends_without_listening_is_run_once_per_dial() {
    let env = TestEnv::new();
    env.write("", "#!/bin/sh\necho x >> \"$0.runs\"\n", 0o755);
    std::fs::set_permissions(
        env.folder.path().join("services"),
        std::fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    env.is_refused();
    env.is_refused();
    let runs = env
        .folder
        .path()
        .join(format!("services/{}.runs", env.port));
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "x\nx\n");
}

#[test]
fn one_that_keeps_ending_is_left_alone_and_dials_say_why() {
    let env = TestEnv::new();
    env.write("", "#!/bin/sh\necho ran\n", 0o755);
    let mut runs = 0;
    // The end of one is noted a moment after its dial was refused.
    wait_until("dials say why", || {
        let (reply, _) = env.agent.dial(env.port);
        assert_eq!(reply.status, 502);
        runs += 1;
        let text = reply.text();
        text.contains("ended 3 times within 10 seconds, see /") && text.contains(".log")
    });
    assert!(runs > 3, "it was run {runs} times only");
    // Another one does not suffer from it.
    let other = TestEnv {
        port: free_port(),
        ..env
    };
    other.write("", SERVER, 0o755);
    other.ask();
}

#[test]
fn what_cannot_be_run_is_refused_and_the_log_says_why() {
    let env = TestEnv::new();
    env.is_refused();
    assert_eq!(env.log(), "", "nothing is there");
    env.write("", SERVER, 0o644);
    env.is_refused();
    assert!(
        env.log().contains("was not started: it is not executable"),
        "{}",
        env.log()
    );
    env.write("", "no interpreter", 0o755);
    env.is_refused();
    assert!(env.log().contains("cannot execute"), "{}", env.log());
    env.write("", SERVER, 0o755);
    env.write(".user", "nobody-of-this-name", 0o644);
    env.is_refused();
    assert!(env.log().contains("invalid username"), "{}", env.log());
    let path = env.folder.path().join(format!("services/{}", env.port));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    env.is_refused();
    assert!(
        env.log().contains("it is not a regular file"),
        "{}",
        env.log()
    );
    assert!(env.agent.is_healthy() && env.agent.process_entries().is_empty());
}

#[test]
fn the_listener_inside_starts_nothing() {
    let env = TestEnv::new();
    env.write("", SERVER, 0o755);
    let path = format!("/dial?port={}", env.port);
    let reply = env
        .agent
        .tcp()
        .request("GET", &path, &crate::common::UPGRADE, b"");
    assert_eq!(reply.status, 404);
    assert!(env.agent.process_entries().is_empty());
}
