//! Commands that run in a sandbox: `ps`, `kill`, `wait`, `shell`, `logs`, and their ports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use super::terminal::Terminal;
use super::{Server, eventually, stderr_of};

#[test]
fn commands_are_listed_killed_and_waited_for() {
    let server = Server::start();
    server.out(&["create", "--name", "web"]);
    let start = |script: &str| server.out(&["exec", "--detach", "web", "--", "sh", "-c", script]);
    let sleeper = start("sleep 1000");
    let listed = server.out(&["ps", "web"]);
    assert!(
        listed.contains(&sleeper) && listed.contains("sleep 1000"),
        "{listed}"
    );
    assert!(
        server.out(&["ps"]).contains("running"),
        "without a sandbox it is `ls`"
    );
    assert_eq!(server.out(&["kill", "web", &sleeper]), sleeper);
    assert_eq!(
        server.sandyard(&["wait", "web", &sleeper]).status.code(),
        Some(137)
    );
    eventually("it is not listed", || {
        !server.out(&["ps", "web"]).contains("sleep 1000")
    });
    let missing = server.sandyard(&["kill", "web", &sleeper]);
    assert!(
        stderr_of(&missing).contains("no such process"),
        "{}",
        stderr_of(&missing)
    );
    let incomplete = server.sandyard(&["kill", "web"]);
    assert!(
        stderr_of(&incomplete).contains("<PID>"),
        "{}",
        stderr_of(&incomplete)
    );

    let ends = start("exit 3");
    assert_eq!(
        server.sandyard(&["wait", "web", &ends]).status.code(),
        Some(3)
    );
    let late = server.sandyard(&["wait", "web", "--timeout", "1"]);
    assert_eq!(late.status.code(), Some(124));
    server.out(&["pause", "web"]);
    assert_eq!(server.out(&["wait", "web"]), "paused");
    let mut waiting = server.command(&["wait", "web", "--for", "deleted"]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().expect("start");
    server.out(&["rm", "web"]);
    assert_eq!(
        waiting.wait_with_output().expect("wait").stdout,
        b"deleted\n"
    );
    assert_eq!(server.out(&["wait", "web", "--for", "deleted"]), "deleted");
}

#[test]
fn a_shell_shows_the_name_of_the_sandbox() {
    let server = Server::start();
    server.out(&["create", "--name", "web"]);
    let mut terminal = Terminal::open(100, 30);
    let mut child = terminal.start(&server.command(&["shell", "web"]), None);
    terminal.wait_for("user@web");
    terminal.write("exit 4\r");
    assert_eq!(child.wait().expect("wait").code(), Some(4));
    // From a pipe, the shell reads commands.
    let mut shell = server.command(&["ssh", "web"]);
    let mut child = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"echo $((6*7)); exit 5\n").expect("write");
    drop(stdin);
    let output = child.wait_with_output().expect("wait");
    assert_eq!(
        (output.stdout.as_slice(), output.status.code()),
        (&b"42\n"[..], Some(5))
    );
}

#[test]
fn logs_are_selected_by_time_and_process() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let say = |text: &str| server.out(&["exec", "--detach", &id, "--", "echo", text]);
    let (first, second) = (say("one"), say("two"));
    eventually("both are logged", || {
        server.out(&["logs", &id]).lines().count() == 2
    });
    assert_eq!(server.out(&["logs", &id, "--pid", &first]), "one");
    assert_eq!(
        server.out(&["logs", &id, "--pid", &second, "--since", "1h"]),
        "two"
    );
    assert_eq!(
        server.out(&["logs", &id, "--since", "2100-01-01T00:00:00Z"]),
        ""
    );
    let dated = server.out(&["logs", &id, "-t", "--pid", &first]);
    let (at, text) = dated.split_once(' ').expect("two words");
    assert!(
        at.starts_with("20") && at.ends_with('Z') && text == "one",
        "{dated}"
    );
    server.out(&["rm", &id]);
    assert_eq!(server.out(&["logs", &id, "--pid", &first]), "one");
}

#[test]
fn a_tcp_port_is_forwarded() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let echo = "import socketserver as s
class H(s.StreamRequestHandler):
    def handle(self):
        for line in self.rfile: self.wfile.write(b'echo ' + line)
s.ThreadingTCPServer(('127.0.0.1', 5432), H).serve_forever()";
    server.out(&["exec", "--detach", &id, "--", "python3", "-c", echo]);
    eventually("the port is open", || {
        server.out(&["ports", "ls", &id]).contains("5432")
    });
    let mut forward = server.command(&["port-forward", &id, "0:5432"]);
    let mut child = forward.stdout(Stdio::piped()).spawn().expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("text");
    let (address, _) = line.split_once(' ').expect("an address");
    // Two at a time, and bytes that are no text.
    let mut clients = [0, 1].map(|_| TcpStream::connect(address).expect("connect"));
    for (number, client) in clients.iter_mut().enumerate() {
        let sent = [b'0' + number as u8, 0xff, 0, b'\n'];
        client.write_all(&sent).expect("write");
        let mut received = [0; 9];
        client.read_exact(&mut received).expect("read");
        assert_eq!(received, [b"echo ", &sent[..]].concat()[..]);
    }
    drop(clients);
    eventually("the relays end", || {
        !server.out(&["ps", &id]).contains("/dev/tcp")
    });
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn open_prints_the_link_and_starts_the_browser() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let mut open = server.command(&["open", &id, "8000"]);
    let output = open.env("BROWSER", "true").output().expect("run");
    let link = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(link.contains("token="), "{link}");
}
