//! `sandyard login`: the program remembers a server and a key.

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Output, Stdio};

use super::{Server, clean, stderr_of};

/// Runs the program with nothing but a home directory.
fn run(server: &Server, arguments: &[&str]) -> Output {
    command(server, arguments)
        .output()
        .expect("run the program")
}

fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = clean(server.env());
    command.args(arguments);
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr_of(output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_login_is_used_until_logout() {
    let server = Server::start_with(&["--auth", "required"]);
    server.out(&["user", "add", "alice", "--no-password"]);
    let key = server.out(&["key", "add", "laptop", "--user", "alice"]);
    let path = server.env().path().join("key");
    std::fs::write(&path, format!("{key}\n")).expect("write");
    let key_file = path.to_str().expect("UTF-8");
    let login = [
        "login",
        server.url(),
        "--name",
        "yard",
        "--key-file",
        key_file,
    ];
    let printed = text(&run(&server, &login));
    assert!(printed.contains("as `alice`, context `yard`"), "{printed}");
    let stored = server.env().path().join(".config/sandyard/contexts.json");
    assert_eq!(
        std::fs::metadata(&stored).expect("stored").mode() & 0o777,
        0o600
    );

    let id = text(&run(&server, &["create", "--quiet"]));
    assert!(text(&run(&server, &["ls", "--quiet"])).contains(&id));
    assert!(text(&run(&server, &["context", "ls"])).contains("alice"));
    let version = text(&run(&server, &["version", "--json"]));
    let version: serde_json::Value = serde_json::from_str(&version).expect("JSON");
    assert_eq!(
        (&version["url"], &version["server"]),
        (&server.url().into(), &version["version"])
    );

    let wrong = run(&server, &["--context", "other", "ls"]);
    assert!(
        stderr_of(&wrong).contains("`sandyard context ls`"),
        "{}",
        stderr_of(&wrong)
    );
    // A variable names another server: the key is not sent there.
    let other = Server::start_with(&["--auth", "required"]);
    let refused = command(&server, &["ls"])
        .env("SANDYARD_URL", other.url())
        .output()
        .expect("run");
    assert!(
        stderr_of(&refused).contains("credentials are missing"),
        "{}",
        stderr_of(&refused)
    );
    let named = command(&server, &["--context", "yard", "ls", "--quiet"])
        .env("SANDYARD_URL", other.url())
        .output()
        .expect("run");
    assert_eq!(text(&named), id);

    text(&run(&server, &["logout"]));
    assert!(
        !std::fs::read_to_string(&stored)
            .expect("read")
            .contains(&key)
    );
    assert!(!run(&server, &["--context", "yard", "ls"]).status.success());
}

#[test]
fn a_wrong_key_is_not_stored() {
    let server = Server::start_with(&["--auth", "required"]);
    let mut login = command(&server, &["login", server.url()]);
    let mut child = login
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(
        &mut stdin,
        b"e2b_0000000000000000000000000000000000000000\n",
    )
    .expect("write");
    drop(stdin);
    assert!(!child.wait_with_output().expect("wait").status.success());
    assert!(!server.env().path().join(".config/sandyard").exists());
}
