//! An agent of its own for each test, and a small blocking client that can misbehave.

pub(crate) mod gateway;
pub(crate) mod http;

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use serde_json::{Value, json};

use self::http::{Connection, Reply};

/// How long anything may take before a test gives up.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// What asks for a connection to a port inside.
pub(crate) const UPGRADE: [(&str, &str); 2] =
    [("connection", "upgrade"), ("upgrade", "sandyard-dial")];

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Egress listeners, each with the argument that requested it.
    listeners: Vec<(String, SocketAddr)>,
    pub(crate) dir: tempfile::TempDir,
}

impl Agent {
    /// Starts an agent with both listeners and no token.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts an agent with further arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::launch(
            Command::new(env!("CARGO_BIN_EXE_sandyard-agent")),
            arguments,
        )
    }

    /// Starts an agent that can be nobody but itself, and in whose directory `small` is a file system of 1 MiB.
    pub(crate) fn start_in_user_namespace() -> Self {
        let mut command = Command::new("unshare");
        let script = r#"mount -t tmpfs -o size=1m none "$1/small" && shift && exec "$@""#;
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ]);
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("small")).unwrap();
        command.arg(dir.path());
        command.arg(env!("CARGO_BIN_EXE_sandyard-agent"));
        Self::launch_in(dir, command, &[])
    }

    /// Starts an agent with a network of its own, where every address is at its loopback link and `setup` was run; none
    /// when this host cannot do that.
    pub(crate) fn start_in_network_namespace(setup: &str, arguments: &[&str]) -> Option<Self> {
        let routes = "ip link set lo up && ip route add local default dev lo && ip -6 route add local default dev lo";
        let script = format!("{routes} && {setup}");
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
            command
        };
        let tried = unshare().arg(&script).output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            let why = "not run: no such network can be made here; see `unshare`, `ip` and `nft`";
            let _ = writeln!(std::io::stderr(), "{why}");
            return None;
        }
        let mut command = unshare();
        command.arg(format!(r#"{script} && exec "$@""#)).arg("sh");
        command.arg(env!("CARGO_BIN_EXE_sandyard-agent"));
        Some(Self::launch(command, arguments))
    }

    fn launch(command: Command, arguments: &[&str]) -> Self {
        Self::launch_in(tempfile::tempdir().unwrap(), command, arguments)
    }

    fn launch_in(dir: tempfile::TempDir, mut command: Command, arguments: &[&str]) -> Self {
        let mut child = command
            .args([
                "--listen",
                "127.0.0.1:0",
                "--user",
                &current_user(),
                "--unix",
            ])
            .arg(dir.path().join("agent.sock"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next_listener = || {
            let line = lines.next().unwrap().unwrap();
            let (name, address) = line.split_once(" on ").unwrap();
            (name.to_owned(), address.parse().unwrap())
        };
        let (_, address) = next_listener();
        let is_listener = |argument: &&&str| {
            ["--redirected", "--names", "--names-tcp", "--proxy"].contains(argument)
        };
        let listeners = arguments
            .iter()
            .filter(is_listener)
            .map(|_| next_listener())
            .collect();
        Self {
            address,
            listeners,
            child,
            dir,
        }
    }

    /// A path in the agent's own directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new connection at the host's door.
    pub(crate) fn host(&self) -> Connection {
        Connection::new(UnixStream::connect(self.path("agent.sock")).unwrap())
    }

    /// A new connection at the TCP door.
    pub(crate) fn tcp(&self) -> Connection {
        Connection::new(TcpStream::connect(self.address).unwrap())
    }

    /// The address of an egress listener.
    pub(crate) fn listener_address(&self, name: &str) -> SocketAddr {
        let found = self
            .listeners
            .iter()
            .find(|(listener_address, _)| listener_address == name);
        found.unwrap().1
    }

    /// How many connections it has open at the host's door, those included whose other end is gone already.
    pub(crate) fn connections(&self) -> usize {
        let path = self.path("agent.sock").display().to_string();
        let table = std::fs::read_to_string("/proc/net/unix").unwrap();
        let sockets = table.lines().filter(|line| line.ends_with(&path)).count();
        sockets - 1
    }

    /// How many files it has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }

    /// Makes a unary call and expects it to succeed.
    pub(crate) fn call(&self, path: &str, message: &Value) -> Value {
        let reply = self.try_call(path, message);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Makes a unary call.
    pub(crate) fn try_call(&self, path: &str, message: &Value) -> Reply {
        let body = message.to_string();
        self.host().request(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    }

    /// Starts a shell command.
    pub(crate) fn shell(&self, script: &str) -> Stream {
        self.start_process(
            &json!({"process": {"cmd": "/bin/sh", "args": ["-c", script]}}),
            &[],
        )
    }

    /// Starts a command.
    pub(crate) fn start_process(&self, request: &Value, headers: &[(&str, &str)]) -> Stream {
        Stream::open(self.host(), "/process.Process/Start", request, headers)
    }

    /// Follows a process.
    pub(crate) fn connect(&self, pid: u64, headers: &[(&str, &str)]) -> Stream {
        let request = json!({"process": {"pid": pid}});
        Stream::open(self.host(), "/process.Process/Connect", &request, headers)
    }

    /// What the kernel says of the agent's memory, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .unwrap()
            .count()
    }

    /// How many children it has, zombies counted.
    pub(crate) fn children(&self) -> usize {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.unwrap().split_whitespace().count()
    }

    /// Dials a port inside; the connection is the port's when the answer is 101.
    pub(crate) fn dial(&self, port: u16) -> (Reply, Connection) {
        let mut connection = self.host();
        let path = format!("/dial?port={port}");
        connection.send("GET", &path, &UPGRADE, b"");
        let reply = connection.read_reply("GET");
        (reply, connection)
    }

    /// The processes it lists.
    pub(crate) fn process_entries(&self) -> Vec<Value> {
        let list = self.call("/process.Process/List", &json!({}));
        list["processes"].as_array().cloned().unwrap_or_default()
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still answers.
    pub(crate) fn is_healthy(&self) -> bool {
        self.host().request("GET", "/health", &[], b"").status == 204
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Asked first, so that it takes all its commands along.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of messages from the agent.
pub(crate) struct Stream {
    connection: Connection,
    pub(crate) reply: Reply,
}

/// One frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Message(Value),
    End(Value),
}

impl Stream {
    pub(crate) fn open(
        mut connection: Connection,
        path: &str,
        request: &Value,
        headers: &[(&str, &str)],
    ) -> Self {
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/connect+json"));
        connection.send("POST", path, &headers, &enveloped(request));
        let reply = connection.read_head();
        assert_eq!(reply.status, 200);
        connection.begin_body(&reply);
        Self { connection, reply }
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> Frame {
        let head = self.connection.read_chunked(5);
        let length = u32::from_be_bytes(head[1..5].try_into().unwrap()) as usize;
        let payload = self.connection.read_chunked(length);
        let value = serde_json::from_slice(&payload).unwrap();
        match head[0] {
            0 => Frame::Message(value),
            2 => Frame::End(value),
            other => panic!("flags {other}"),
        }
    }

    /// The next event; keep-alives are passed over.
    pub(crate) fn event(&mut self) -> Value {
        loop {
            match self.next() {
                Frame::Message(message) if message["event"].get("keepalive").is_none() => {
                    return message["event"].clone();
                }
                Frame::Message(_) => {}
                Frame::End(end) => panic!("the stream ended: {end}"),
            }
        }
    }

    /// The number of the process that every stream begins with.
    pub(crate) fn pid(&mut self) -> u64 {
        self.event()["start"]["pid"].as_u64().unwrap()
    }

    /// Everything up to the end.
    pub(crate) fn finish(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        loop {
            match self.next() {
                Frame::Message(message) => outcome.take(&message["event"]),
                Frame::End(end) => {
                    outcome.error = end.get("error").cloned();
                    return outcome;
                }
            }
        }
    }

    /// Error of a stream that failed.
    pub(crate) fn error(&mut self) -> Value {
        match self.next() {
            Frame::End(end) => end["error"].clone(),
            Frame::Message(message) => {
                panic!("expected an error, got {message} and {:?}", self.finish())
            }
        }
    }
}

/// What a process did.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) pid: u64,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) pty: Vec<u8>,
    pub(crate) end: Option<Value>,
    pub(crate) error: Option<Value>,
}

impl Outcome {
    fn take(&mut self, event: &Value) {
        if let Some(pid) = event["start"]["pid"].as_u64() {
            self.pid = pid;
        }
        for (name, sink) in [
            ("stdout", &mut self.stdout),
            ("stderr", &mut self.stderr),
            ("pty", &mut self.pty),
        ] {
            if let Some(text) = event["data"][name].as_str() {
                sink.extend(sandyard_wire::json::decode_base64(text).unwrap());
            }
        }
        if let Some(end) = event.get("end") {
            self.end = Some(end.clone());
        }
    }

    pub(crate) fn stdout_text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn exit_code(&self) -> i64 {
        let end = self.end.as_ref().expect("an end event");
        end.get("exitCode").map_or(0, |code| code.as_i64().unwrap())
    }
}

/// A message in its envelope.
pub(crate) fn enveloped(message: &Value) -> Vec<u8> {
    sandyard_wire::frame::encode(0, message.to_string().as_bytes()).to_vec()
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is alive, zombies not counted. One of whose threads any goes on is: it still has all its files.
pub(crate) fn is_alive(pid: u64) -> bool {
    let is_over = |stat: &str| stat.rsplit(')').next().unwrap().trim().starts_with('Z');
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads.into_iter().flatten().flatten().any(|thread| {
        std::fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| !is_over(&stat))
    })
}

/// Waits for a file that a command writes a process number to.
pub(crate) fn pid_in(path: &Path) -> u64 {
    let mut pid = None;
    wait_until("a pid file", || {
        pid = std::fs::read_to_string(path)
            .ok()
            .filter(|text| text.ends_with('\n'))
            .and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    pid.unwrap()
}

/// Writes a program, by a process of its own: whatever another test starts meanwhile would have a file that is open here for a
/// moment, and what somebody may still write to cannot be run.
pub(crate) fn write_program(path: &Path, text: &str, mode: u32) {
    let line = r#"printf %s "$1" > "$0" && chmod "$2" "$0""#;
    let written = Command::new("sh")
        .args(["-c", line])
        .arg(path)
        .args([text, &format!("{mode:o}")])
        .status();
    assert!(written.unwrap().success());
}

/// Lets this program have many files open.
pub(crate) fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, raised).unwrap();
}

/// A port where nobody listens. None of those that the kernel hands out: it would give it to another test.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let begin = std::process::id();
    let mut ports = std::iter::repeat_with(|| {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        8_000 + u16::try_from(number % 4_000).unwrap()
    });
    ports.find(is_free).unwrap()
}

pub(crate) fn current_user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid));
    line.and_then(|line| line.split(':').next())
        .unwrap_or("root")
        .to_owned()
}
