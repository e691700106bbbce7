//! Commands that change many sandboxes, and commands of users who are not admins.

use super::terminal::Terminal;
use super::{Server, stderr_of};

#[test]
fn a_bulk_deletion_asks_on_a_terminal() {
    let server = Server::start();
    server.out(&["create", "--name", "web"]);
    let mut terminal = Terminal::open(80, 24);
    let mut child = terminal.start(&server.command(&["rm", "--all"]), None);
    terminal.wait_for("Delete 1 sandbox (web)? [y/N] ");
    terminal.write("\r");
    assert_eq!(child.wait().expect("wait").code(), Some(1));
    assert!(server.out(&["ls"]).contains("web"));
    let mut child = terminal.start(&server.command(&["rm", "--all"]), None);
    terminal.wait_for("[y/N] ");
    terminal.write("y\r");
    assert!(child.wait().expect("wait").success());
    assert_eq!(server.out(&["ls", "--quiet"]), "");
    // Nothing to ask about.
    let mut child = terminal.start(&server.command(&["rm", "--all"]), None);
    assert!(child.wait().expect("wait").success());
}

#[test]
fn a_bulk_deletion_keeps_what_belongs_to_others() {
    let server = Server::start_with(&["--auth", "required"]);
    server.out(&["user", "add", "alice", "--no-password"]);
    let key = server.out(&["key", "add", "laptop", "--user", "alice"]);
    let as_alice = |arguments: &[&str]| {
        let output = server.as_remote(Some(&key), arguments);
        (
            String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            stderr_of(&output),
        )
    };
    let (hers, _) = as_alice(&["create"]);
    let own = server.out(&["create"]);
    let removed = server.sandyard(&["rm", "--all"]);
    assert_eq!(removed.stdout, format!("{own}\n").as_bytes());
    assert!(
        stderr_of(&removed).contains("1 of other users are kept"),
        "{}",
        stderr_of(&removed)
    );
    assert_eq!(server.out(&["ls", "--quiet"]), hers);
    assert_eq!(server.out(&["rm", "--all", "--everyone"]), hers);

    let (_, refused) = as_alice(&["create", "--user", "bob"]);
    assert!(
        refused.contains("only an admin") && refused.contains("`alice`"),
        "{refused}"
    );
    assert_eq!(as_alice(&["ls", "--quiet"]).0, "");
    let (_, refused) = as_alice(&["user", "ls"]);
    assert!(refused.contains("ask an admin"), "{refused}");
    let (hers, _) = as_alice(&["create", "--user", "alice"]);
    assert_eq!(as_alice(&["rm", "--all"]).0, hers);
}

#[test]
fn prune_deletes_what_is_stopped() {
    let server = Server::start();
    for name in ["runs", "paused", "stopped"] {
        server.out(&["create", "--name", name]);
    }
    server.out(&["pause", "paused"]);
    server.out(&["stop", "stopped"]);
    let names = || server.out(&["ls", "--sort", "name", "--format", "{name}"]);
    assert_eq!(server.out(&["prune", "--older", "1d"]), "");
    server.out(&["prune"]);
    assert_eq!(names(), "paused\nruns");
    server.out(&["prune", "--paused"]);
    assert_eq!(names(), "runs");
}
