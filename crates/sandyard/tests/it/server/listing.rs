//! What people see of sandboxes: `ls`, `info`, `metrics`, `stats`, `events` and `health`.

use super::terminal::screen;
use super::{Server, stderr_of};

#[test]
fn the_list_fits_the_terminal_and_says_what_happens_next() {
    let server = Server::start();
    let empty = screen(80, &server.command(&["ls"]));
    assert_eq!(empty.trim(), "No sandboxes. `sandyard create` creates one.");
    for name in [
        "runs",
        "is-paused",
        "is-stopped-and-has-quite-a-long-name-for-a-sandbox",
    ] {
        server.out(&["create", "--name", name]);
    }
    server.out(&["pause", "is-paused"]);
    server.out(&["stop", "is-stopped-and-has-quite-a-long-name-for-a-sandbox"]);
    let narrow = screen(80, &server.command(&["ls"]));
    for line in narrow.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for (name, parts) in [
        ("runs", ["running", "runs", "pauses in "]),
        ("is-paused", ["paused", "is-paused", "deleted in "]),
        ("is-stopped", ["stopped", "…", "deleted in "]),
    ] {
        let row = narrow
            .lines()
            .find(|line| line.contains(name))
            .expect("a row");
        for part in parts {
            assert!(row.contains(part), "{part}: {narrow}");
        }
    }
    assert!(!narrow.contains("PROVIDER"), "{narrow}");
    let wide = screen(200, &server.command(&["ls"]));
    assert!(wide.contains("PROVIDER") && !wide.contains('…'), "{wide}");
    for (status, name) in [("stopped", "is-stopped"), ("paused", "is-paused")] {
        let listed = server.out(&["ls", "--status", status]);
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(listed.contains(name), "{listed}");
    }
}

#[test]
fn a_list_is_filtered_sorted_and_formatted() {
    let server = Server::start();
    for (name, ticket) in [("b-1", "7"), ("a-1", "8"), ("b-2", "8")] {
        let ticket = format!("ticket={ticket}");
        server.out(&["create", "--name", name, "--metadata", &ticket]);
    }
    let list = |arguments: &[&str]| {
        let format = [
            "ls",
            "--sort",
            "name",
            "--format",
            "{name}:{metadata.ticket}",
        ];
        server.out(&[&format[..], arguments].concat())
    };
    assert_eq!(list(&[]), "a-1:8\nb-1:7\nb-2:8");
    assert_eq!(list(&["--filter", "name=b-*"]), "b-1:7\nb-2:8");
    assert_eq!(
        list(&["-f", "name=*-1", "-f", "metadata.ticket=8"]),
        "a-1:8"
    );
    assert_eq!(list(&["-f", "status=deleted"]), "");
    let id = server.out(&[
        "update",
        "a-1",
        "--metadata",
        "ticket=9",
        "--metadata",
        "x=y",
    ]);
    server.out(&[
        "update",
        "b-1",
        "--remove-metadata",
        "ticket",
        "--timeout",
        "2h",
    ]);
    assert_eq!(list(&[]), "a-1:9\nb-1:\nb-2:8");
    assert_eq!(server.out(&["ls", "-q", "-f", "metadata.x=y"]), id);
    assert_eq!(server.json(&["info", "b-1", "--json"])["timeout"], 7200);
    assert_eq!(server.sandyard(&["update", "b-1"]).status.code(), Some(2));
}

#[test]
fn a_sandbox_is_renamed() {
    let server = Server::start();
    let id = server.out(&["create", "--name", "old"]);
    let other = server.out(&["create", "--name", "taken"]);
    assert_eq!(server.out(&["update", "old", "--name", "new"]), id);
    assert_eq!(server.out(&["exec", "new", "--", "echo", "here"]), "here");
    let refused = server.sandyard(&["update", "new", "--name", "taken"]);
    assert!(stderr_of(&refused).contains("another sandbox of yours"));
    assert_eq!(server.out(&["update", "new", "--name", ""]), id);
    assert!(!server.sandyard(&["info", "new"]).status.success());
    // Of all sandboxes, with the sandbox of each.
    let events = server.out(&["events"]);
    let of = |id: &str, kind: &str| {
        let lines = events.lines();
        lines
            .filter(|line| line.contains(id) && line.contains(kind))
            .count()
    };
    assert_eq!((of(&id, "renamed"), of(&id, "created")), (2, 1), "{events}");
    assert_eq!(
        (of(&other, "renamed"), of(&other, "created")),
        (0, 1),
        "{events}"
    );
    for line in server.out(&["events", "--json"]).lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!([&id, &other].contains(&&event["sandbox_id"].as_str().expect("text").to_owned()));
    }
}

#[test]
fn deleting_what_does_not_exist_fails_only_without_force() {
    let server = Server::start();
    let id = server.out(&["create"]);
    server.out(&["snapshot", &id, "saved"]);
    let user = server.out(&["create", "--template", "saved"]);
    let templates = server.out(&["template", "ls"]);
    let saved = templates.lines().find(|line| line.starts_with("saved"));
    assert!(saved.expect("a row").contains(" bytes "), "{templates}");
    for command in [&["rm"][..], &["template", "rm"], &["volume", "rm"]] {
        let without = [command, &["gone"]].concat();
        assert!(!server.sandyard(&without).status.success(), "{command:?}");
        let with = [command, &["gone", "--force"]].concat();
        assert_eq!(server.out(&with), "gone");
    }
    // In use, and deleted all the same; what was made of it goes on.
    assert_eq!(
        server.out(&["template", "rm", "saved", "gone", "-f"]),
        "saved\ngone"
    );
    server.out(&["stop", &user]);
    assert_eq!(server.out(&["exec", &user, "--", "echo", "here"]), "here");
}

#[test]
fn files_are_copied_from_and_to_a_volume() {
    let server = Server::start();
    server.out(&["volume", "create", "data"]);
    let source = server.env().path().join("notes");
    std::fs::create_dir(&source).expect("make");
    std::fs::write(source.join("a"), "text").expect("write");
    let source = source.to_str().expect("UTF-8");
    let copied = server.json(&["volume", "cp", "--json", source, "data:"]);
    assert_eq!(copied["path"], "data:notes");
    assert_eq!(server.out(&["volume", "cp", "data:notes/a", "-"]), "text");
    assert_eq!(
        server.out(&["ls", "-q"]),
        "",
        "the temporary sandbox is deleted"
    );
    // A sandbox that uses the volume sees the files, and they are its user's.
    let id = server.out(&["create", "--volume", "data:/data"]);
    let run = |script: &str| server.out(&["exec", &id, "--", "sh", "-c", script]);
    assert_eq!(
        run("cat /data/notes/a && echo more >> /data/notes/a && cat /data/notes/a"),
        "texttextmore"
    );
    let missing = server.sandyard(&["volume", "cp", "nosuch:a", "-"]);
    assert!(stderr_of(&missing).contains("nosuch"), "{missing:?}");
    let neither = server.sandyard(&["volume", "cp", "a", "b"]);
    assert!(stderr_of(&neither).contains("VOLUME:PATH"), "{neither:?}");
}

#[test]
fn details_and_usage_are_written_for_people() {
    let server = Server::start();
    let id = server.out(&["create", "--name", "web", "--memory", "256m", "--cpu", "1"]);
    let info = server.out(&["info", "web"]);
    for part in [
        "status:",
        "pauses in ",
        "1 core, 256 MiB of memory",
        "created:",
        "network:",
    ] {
        assert!(info.contains(part), "{part}: {info}");
    }
    for part in ["capabilities", "vscode", "started", "=true"] {
        assert!(!info.contains(part), "{part}: {info}");
    }
    let metrics = server.out(&["metrics", &id]);
    assert!(
        metrics.contains(" / 256 MiB") && metrics.contains(" %"),
        "{metrics}"
    );
    let stats = server.out(&["stats"]);
    assert!(
        stats.starts_with("SANDBOX") && stats.contains("web"),
        "{stats}"
    );
    let health = server.out(&["health"]);
    assert!(
        health.contains("1 running") && health.contains("PROVIDER"),
        "{health}"
    );
    server.out(&["exec", "--detach", "web", "--", "true"]);
    let events = server.out(&["events", "web"]);
    for part in ["command_id", "exit_code= ", "reason= "] {
        assert!(!events.contains(part), "{part}: {events}");
    }
    server.out(&["exec", "web", "--", "touch", "note"]);
    assert!(
        server
            .out(&["files", "stat", "web", "note"])
            .contains("0644")
    );
}
