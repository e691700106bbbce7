//! A session from create to rm, as a person and as a program has it.

use super::{Server, eventually, stderr_of};

#[test]
fn a_sandbox_lives_from_create_to_rm() {
    let server = Server::start();
    let id = server.out(&[
        "create",
        "--name",
        "box",
        "--metadata",
        "ticket=42",
        "--env",
        "GREETING=hello",
    ]);
    assert_eq!(id.len(), 20);
    let listed = server.out(&["ls"]);
    let mut lines = listed.lines();
    assert!(lines.next().expect("headings").starts_with("ID"));
    let row = lines.next().expect("a row");
    assert!(
        row.starts_with(&id) && row.contains("box") && row.contains("running"),
        "{row}"
    );
    let info = server.json(&["info", "box", "--json"]);
    assert_eq!(info["metadata"]["ticket"], "42");
    assert_eq!(
        server.out(&["exec", "box", "--", "sh", "-c", "echo $GREETING"]),
        "hello"
    );
    assert_eq!(server.out(&["pause", "box"]), id);
    assert_eq!(server.json(&["info", &id, "--json"])["status"], "paused");
    assert_eq!(server.out(&["exec", "box", "--", "echo", "awake"]), "awake");
    assert_eq!(server.json(&["info", &id, "--json"])["status"], "running");
    server.out(&["stop", "box"]);
    assert_eq!(server.out(&["resume", "box"]), id);
    assert!(server.out(&["timeout", "box", "30m"]).ends_with('Z'));
    assert_eq!(server.json(&["info", &id, "--json"])["timeout"], 1800);
    assert_eq!(server.out(&["rm", "box"]), "box");
    assert_eq!(server.out(&["ls", "--json"]), "[]");
    assert!(server.out(&["events", &id]).contains("deleted"));
}

#[test]
fn requested_limits_are_applied() {
    let server = Server::start();
    let made = server.json(&[
        "create", "--memory", "256m", "--cpu", "0.5", "--disk", "64m", "--pids", "100", "--json",
    ]);
    let id = made["sandbox_id"].as_str().expect("an id");
    let limits = &server.json(&["info", id, "--json"])["limits"];
    assert_eq!(limits["memory_bytes"], 256 << 20);
    assert_eq!(limits["cpu"], 0.5);
    assert_eq!(limits["disk_bytes"], 64 << 20);
    assert_eq!(limits["pids"], 100);
}

#[test]
fn a_failure_does_not_stop_the_other_deletions() {
    let server = Server::start();
    let (one, two) = (server.out(&["create"]), server.out(&["create"]));
    let output = server.sandyard(&["rm", &one, "nosuch", &two]);
    assert_eq!(output.status.code(), Some(125));
    let removed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(removed, format!("{one}\n{two}\n"));
    let stderr = stderr_of(&output);
    assert!(stderr.contains("error: no sandbox `nosuch`"), "{stderr}");
    assert!(
        stderr.contains("hint: `sandyard ls` lists your sandboxes"),
        "{stderr}"
    );
}

#[test]
fn snapshot_fork_and_diff_work() {
    let server = Server::start();
    let id = server.out(&["create"]);
    server.out(&["exec", &id, "--", "sh", "-c", "echo kept > note"]);
    assert!(server.out(&["diff", &id]).contains("A /home/user/note"));
    assert_eq!(server.out(&["snapshot", &id, "noted"]), "noted");
    assert!(server.out(&["template", "ls"]).contains("noted"));
    let second = server.out(&["create", "--template", "noted"]);
    assert_eq!(server.out(&["files", "cat", &second, "note"]), "kept");
    let fork = server.out(&["fork", &id]);
    assert_eq!(server.out(&["files", "cat", &fork, "note"]), "kept");
    server.out(&["rm", &second]);
    assert_eq!(server.out(&["template", "rm", "noted"]), "noted");
}

#[test]
fn single_files_are_read_and_changed() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let mut write = server.command(&["files", "write", &id, "a b/c"]);
    let input = server.env().path().join("input");
    std::fs::write(&input, "text").expect("write");
    let written = write
        .stdin(std::fs::File::open(&input).expect("open"))
        .status();
    assert!(written.expect("run the program").success());
    assert_eq!(
        server.json(&["files", "stat", &id, "a b/c", "--json"])["size"],
        4
    );
    server.out(&["files", "mv", &id, "a b/c", "d"]);
    server.out(&["files", "mkdir", &id, "e/f"]);
    let names: Vec<String> = server
        .json(&["files", "ls", &id, "--json"])
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["name"].as_str().expect("a name").to_owned())
        .collect();
    assert!(
        names.contains(&"d".to_owned()) && names.contains(&"e".to_owned()),
        "{names:?}"
    );
    assert_eq!(server.out(&["files", "cat", &id, "d"]), "text");
    server.out(&["files", "rm", &id, "d"]);
    let missing = server.sandyard(&["files", "cat", &id, "d"]);
    assert_eq!(missing.status.code(), Some(125));
}

#[test]
fn a_port_is_listed_and_its_link_opens() {
    let server = Server::start();
    let id = server.out(&["create"]);
    server.out(&[
        "exec",
        "--detach",
        &id,
        "--",
        "python3",
        "-m",
        "http.server",
        "8000",
    ]);
    eventually("the port is open", || {
        server.out(&["ports", "ls", &id]).contains("8000")
    });
    let ports = server.json(&["ports", "ls", &id, "--json"]);
    assert_eq!(ports[0]["port"], 8000);
    assert_eq!(ports[0]["public"], false);
    assert!(
        server
            .out(&["ports", "open", &id, "8000"])
            .contains("token=")
    );
    let shared = server.out(&["ports", "share", &id, "8000"]);
    assert!(!shared.contains("token="), "{shared}");
}

#[test]
fn every_list_can_be_printed_as_json() {
    let server = Server::start();
    server.out(&["create"]);
    for arguments in [
        &["ls"][..],
        &["template", "ls"],
        &["user", "ls"],
        &["key", "ls"],
        &["audit"],
        &["node", "ls"],
        &["timer", "ls"],
        &["secret", "list"],
    ] {
        let listed = server.json(&[arguments, &["--json"]].concat());
        assert!(listed.is_array(), "{arguments:?}: {listed}");
    }
    assert_eq!(server.json(&["health", "--json"])["status"], "healthy");
}
