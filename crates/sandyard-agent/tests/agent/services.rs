//! Services of a template: run when the host asks for their port, waited for, and run again when they have ended.

use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::{Agent, free_port, wait_until, write_program};

/// A service that says who and which it is to whoever connects, once.
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

struct Yard {
    agent: Agent,
    folder: tempfile::TempDir,
    port: u16,
}

impl Yard {
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
fn uid_of_nobody() -> u32 {
    let own = rustix::process::getuid();
    if own.is_root() { 65534 } else { own.as_raw() }
}

#[test]
fn a_service_is_run_for_the_first_dial_and_waited_for() {
    let yard = Yard::new();
    yard.write("", SERVER, 0o755);
    assert!(yard.agent.listed().is_empty());
    let all: Vec<_> = std::thread::scope(|scope| {
        let dials: Vec<_> = (0..10).map(|_| scope.spawn(|| yard.ask())).collect();
        dials.into_iter().map(|dial| dial.join().unwrap()).collect()
    });
    assert!(
        all.iter().all(|one| *one == all[0]),
        "one serves all: {all:?}"
    );
    assert_eq!(all[0].0, uid_of_nobody(), "the default user");
    let listed = yard.agent.listed();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["tag"], format!("service-{}", yard.port));
    assert_eq!(yard.log(), "up\n");
}

#[test]
fn one_that_has_ended_is_run_again() {
    let yard = Yard::new();
    yard.write("", SERVER, 0o755);
    yard.write(".once", "", 0o644);
    let first = yard.ask();
    wait_until("it has ended", || yard.agent.listed().is_empty());
    assert_ne!(yard.ask(), first);
}

#[test]
fn who_runs_it_can_be_named() {
    let yard = Yard::new();
    yard.write("", SERVER, 0o755);
    yard.write(".user", &crate::common::current_user(), 0o644);
    assert_eq!(yard.ask().0, rustix::process::getuid().as_raw());
}

#[test]
fn one_that_ends_without_listening_is_run_once_per_dial() {
    let yard = Yard::new();
    yard.write("", "#!/bin/sh\necho x >> \"$0.runs\"\n", 0o755);
    std::fs::set_permissions(
        yard.folder.path().join("services"),
        std::fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    yard.is_refused();
    yard.is_refused();
    let runs = yard
        .folder
        .path()
        .join(format!("services/{}.runs", yard.port));
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "x\nx\n");
}

#[test]
fn one_that_keeps_ending_is_left_alone_and_dials_say_why() {
    let yard = Yard::new();
    yard.write("", "#!/bin/sh\necho ran\n", 0o755);
    let mut runs = 0;
    // The end of one is noted a moment after its dial was refused.
    wait_until("dials say why", || {
        let (reply, _) = yard.agent.dial(yard.port);
        assert_eq!(reply.status, 502);
        runs += 1;
        let text = reply.text();
        text.contains("ended 3 times within 10 seconds, see /") && text.contains(".log")
    });
    assert!(runs > 3, "it was run {runs} times only");
    // Another one does not suffer from it.
    let other = Yard {
        port: free_port(),
        ..yard
    };
    other.write("", SERVER, 0o755);
    other.ask();
}

#[test]
fn what_cannot_be_run_is_refused_and_the_log_says_why() {
    let yard = Yard::new();
    yard.is_refused();
    assert_eq!(yard.log(), "", "nothing is there");
    yard.write("", SERVER, 0o644);
    yard.is_refused();
    assert!(
        yard.log().contains("was not started: it is not executable"),
        "{}",
        yard.log()
    );
    yard.write("", "no interpreter", 0o755);
    yard.is_refused();
    assert!(yard.log().contains("cannot execute"), "{}", yard.log());
    yard.write("", SERVER, 0o755);
    yard.write(".user", "nobody-of-this-name", 0o644);
    yard.is_refused();
    assert!(yard.log().contains("invalid username"), "{}", yard.log());
    let path = yard.folder.path().join(format!("services/{}", yard.port));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    yard.is_refused();
    assert!(
        yard.log().contains("it is not a regular file"),
        "{}",
        yard.log()
    );
    assert!(yard.agent.is_healthy() && yard.agent.listed().is_empty());
}

#[test]
fn the_door_inside_starts_nothing() {
    let yard = Yard::new();
    yard.write("", SERVER, 0o755);
    let path = format!("/dial?port={}", yard.port);
    let reply = yard
        .agent
        .tcp()
        .request("GET", &path, &crate::common::UPGRADE, b"");
    assert_eq!(reply.status, 404);
    assert!(yard.agent.listed().is_empty());
}
