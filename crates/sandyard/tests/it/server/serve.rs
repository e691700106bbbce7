//! `sandyard serve`: how it starts, ends, and starts again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{Server, clean, eventually};
use crate::yard::Yard;

/// Starts a server, reads what it prints until `last`, and ends it.
fn block(yard: &Yard, flags: &[&str], last: &str) -> Vec<String> {
    let mut child = clean(yard)
        .args(["serve", "--port", "0", "--data-dir"])
        .arg(yard.data())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut block = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_last = line.contains(last);
        block.push(line);
        if is_last {
            break;
        }
    }
    end(&mut child);
    block
}

fn end(child: &mut std::process::Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signal");
    assert!(child.wait().expect("wait").success());
}

#[test]
fn a_log_is_told_where_the_key_is_and_that_the_server_is_open() {
    let yard = Yard::new();
    let first = block(&yard, &[], "OPEN").join("\n");
    let key = std::fs::read_to_string(yard.data().join("admin.key")).expect("a key");
    assert!(
        first.contains("admin.key") && first.contains("/docs"),
        "{first}"
    );
    assert!(!first.contains(key.trim()), "{first}");
    let line = block(&yard, &["--json"], "url").remove(0);
    assert!(!line.contains(key.trim()), "{line}");
    let mode = std::fs::metadata(yard.data().join("admin.key"))
        .expect("a key")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let second = block(&yard, &[], "OPEN").join("\n");
    assert!(!second.contains(key.trim()), "{second}");
    assert!(second.contains("admin.key"), "{second}");
    // As with a store that another server made it for.
    std::fs::remove_file(yard.data().join("admin.key")).expect("remove");
    let third = block(&yard, &[], "OPEN").join("\n");
    assert!(
        !third.contains("admin.key") && third.contains("`sandyard key add` there"),
        "{third}"
    );
}

#[test]
fn a_terminal_is_shown_the_key_once() {
    let yard = Yard::new();
    let (mut terminal, other_side) = terminal();
    let mut child = clean(&yard)
        .args(["serve", "--port", "0", "--data-dir"])
        .arg(yard.data())
        .stdout(other_side)
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let mut shown = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("OPEN") {
        let count = terminal.read(&mut piece).expect("read");
        shown.extend_from_slice(&piece[..count]);
    }
    end(&mut child);
    let key = std::fs::read_to_string(yard.data().join("admin.key")).expect("a key");
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains(key.trim()), "{shown}");
}

/// A pseudo-terminal: what a person looks at, and what a program writes to.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).expect("grant");
    unlockpt(&person).expect("unlock");
    let name = ptsname(&person, Vec::new()).expect("its name");
    let path = name.to_str().expect("a path");
    let program = File::options().read(true).write(true).open(path);
    (person.into(), program.expect("its other side"))
}

#[test]
fn a_program_learns_the_address_from_one_line() {
    let yard = Yard::new();
    let line = block(&yard, &["--json"], "url").remove(0);
    let told: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let url = told["url"].as_str().expect("a URL");
    assert!(
        url.starts_with("http://127.0.0.1:") && !url.ends_with(":0"),
        "{url}"
    );
}

#[test]
fn the_way_for_programs_written_for_e2b_is_shown_as_it_can_be_typed() {
    let yard = Yard::new();
    let shown = block(&yard, &[], "try ").join("\n");
    assert!(
        shown.contains("\n  E2B        http://127.0.0.1:"),
        "{shown}"
    );
    let data = yard.data().display().to_string();
    assert!(
        shown.contains("eval \"$(sandyard e2b env --url http://127.0.0.1:")
            && shown.contains(&format!(" --data-dir {data})\"")),
        "{shown}"
    );
    let sealed = block(
        &yard,
        &["--tls-self-signed", "--domain", "sbx.test"],
        "try ",
    )
    .join("\n");
    assert!(
        sealed.contains("\n  E2B        https://api.sbx.test:")
            && sealed.contains(&format!("\n  trust      {data}/tls/ca.pem")),
        "{sealed}"
    );
}

#[test]
fn a_port_for_e2b_that_was_chosen_and_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let yard = Yard::new();
    let refused = clean(&yard)
        .args(["serve", "--port", "0", "--e2b-port", &port.to_string()])
        .arg("--data-dir")
        .arg(yard.data())
        .output()
        .expect("run");
    assert_eq!(refused.status.code(), Some(125));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        told.contains("another program listens there") && told.contains("--e2b-port"),
        "{told}"
    );
}

#[test]
fn sandboxes_and_what_runs_in_them_outlive_the_server() {
    let mut server = Server::start();
    let id = server.out(&["create"]);
    let pid = server.out(&["exec", "--detach", &id, "--", "sleep", "1000"]);
    server.restart();
    server.out(&["exec", &id, "--", "kill", "-0", &pid]);
    assert!(server.out(&["ls"]).contains(&id));
}

#[test]
fn what_a_killed_server_kept_ready_goes_with_all_the_rest() {
    let mut server = Server::start_with(&["--ready", "2"]);
    let spares = server.yard().data().join("spares");
    let count = || std::fs::read_dir(&spares).map_or(0, Iterator::count);
    eventually("all are ready", || count() == 2);
    server.child.kill().expect("kill");
    server.child.wait().expect("wait");
    let listed = server.yard().out(&["rm", "--local", "--all"]);
    assert_eq!(
        (listed.as_str(), count()),
        ("", 0),
        "they were nobody's, and go"
    );
}
