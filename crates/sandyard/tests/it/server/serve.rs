//! `sandyard serve`: start, stop and restart.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{Server, clean, eventually};
use crate::test_env::TestEnv;

/// Starts a server, reads what it prints until `last`, and ends it.
fn startup_lines(env: &TestEnv, flags: &[&str], last: &str) -> Vec<String> {
    let mut child = clean(env)
        .args(["serve", "--port", "0", "--data-dir"])
        .arg(env.data())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut printed = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_last = line.contains(last);
        printed.push(line);
        if is_last {
            break;
        }
    }
    end(&mut child);
    printed
}

fn end(child: &mut std::process::Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signal");
    assert!(child.wait().expect("wait").success());
}

#[test]
fn a_log_names_the_key_file_and_warns_about_an_open_server() {
    let env = TestEnv::new();
    let first = startup_lines(&env, &[], "OPEN").join("\n");
    let key = std::fs::read_to_string(env.data().join("admin.key")).expect("a key");
    assert!(
        first.contains("admin.key") && first.contains("/docs"),
        "{first}"
    );
    assert!(!first.contains(key.trim()), "{first}");
    let line = startup_lines(&env, &["--json"], "url").remove(0);
    assert!(!line.contains(key.trim()), "{line}");
    let mode = std::fs::metadata(env.data().join("admin.key"))
        .expect("a key")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let second = startup_lines(&env, &[], "OPEN").join("\n");
    assert!(!second.contains(key.trim()), "{second}");
    assert!(second.contains("admin.key"), "{second}");
    // As with a store whose key another server created.
    std::fs::remove_file(env.data().join("admin.key")).expect("remove");
    let third = startup_lines(&env, &[], "OPEN").join("\n");
    assert!(
        !third.contains("admin.key") && third.contains("`sandyard key add` there"),
        "{third}"
    );
}

#[test]
fn the_key_is_printed_on_a_terminal() {
    let env = TestEnv::new();
    let (mut terminal, other_side) = terminal();
    let mut child = clean(&env)
        .args(["serve", "--port", "0", "--data-dir"])
        .arg(env.data())
        .stdout(other_side)
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let mut output = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&output).contains("OPEN") {
        let count = terminal.read(&mut piece).expect("read");
        output.extend_from_slice(&piece[..count]);
    }
    end(&mut child);
    let key = std::fs::read_to_string(env.data().join("admin.key")).expect("a key");
    let output = String::from_utf8_lossy(&output).into_owned();
    assert!(output.contains(key.trim()), "{output}");
}

/// A pseudo-terminal: the user.s side and the program.s side.
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
fn json_output_has_the_url_in_one_line() {
    let env = TestEnv::new();
    let line = startup_lines(&env, &["--json"], "url").remove(0);
    let announced: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let url = announced["url"].as_str().expect("a URL");
    assert!(
        url.starts_with("http://127.0.0.1:") && !url.ends_with(":0"),
        "{url}"
    );
}

#[test]
fn the_command_for_e2b_programs_is_printed() {
    let env = TestEnv::new();
    let output = startup_lines(&env, &[], "try ").join("\n");
    assert!(
        output.contains("\n  E2B        http://127.0.0.1:"),
        "{output}"
    );
    let data = env.data().display().to_string();
    assert!(
        output.contains("eval \"$(sandyard e2b env --url http://127.0.0.1:")
            && output.contains(&format!(" --data-dir {data})\"")),
        "{output}"
    );
    let sealed =
        startup_lines(&env, &["--tls-self-signed", "--domain", "sbx.test"], "try ").join("\n");
    assert!(
        sealed.contains("\n  E2B        https://api.sbx.test:")
            && sealed.contains(&format!("\n  trust      {data}/tls/ca.pem")),
        "{sealed}"
    );
}

#[test]
fn a_chosen_e2b_port_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let env = TestEnv::new();
    let refused = clean(&env)
        .args(["serve", "--port", "0", "--e2b-port", &port.to_string()])
        .arg("--data-dir")
        .arg(env.data())
        .output()
        .expect("run");
    assert_eq!(refused.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        stderr.contains("another program listens there") && stderr.contains("--e2b-port"),
        "{stderr}"
    );
}

#[test]
fn sandboxes_and_their_processes_outlive_the_server() {
    let mut server = Server::start();
    let id = server.out(&["create"]);
    let pid = server.out(&["exec", "--detach", &id, "--", "sleep", "1000"]);
    server.restart();
    server.out(&["exec", &id, "--", "kill", "-0", &pid]);
    assert!(server.out(&["ls"]).contains(&id));
}

#[test]
fn rm_local_all_deletes_the_pool_of_a_killed_server() {
    let mut server = Server::start_with(&["--ready", "2"]);
    let spares = server.env().data().join("spares");
    let count = || std::fs::read_dir(&spares).map_or(0, Iterator::count);
    eventually("all are ready", || count() == 2);
    server.child.kill().expect("kill");
    server.child.wait().expect("wait");
    let listed = server.env().out(&["rm", "--local", "--all"]);
    assert_eq!(
        (listed.as_str(), count()),
        ("", 0),
        "pre-created sandboxes are deleted and not listed"
    );
}
