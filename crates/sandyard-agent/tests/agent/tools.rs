//! The tool server: started by the first request for its port, handed connections, replaced when it has exited. What serves in these
//! tests is [`sandyard_agent::probe`].

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::common::http::Connection;
use crate::common::{Agent, free_port, is_alive, wait_until};

/// An agent with a tool server, and a folder of its own for everything that it writes.
struct TestEnv {
    agent: Agent,
    port: u16,
    folder: tempfile::TempDir,
}

impl TestEnv {
    fn new(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let workspace = folder.path().join("workspace");
        let port = free_port();
        let number = port.to_string();
        let mut arguments = vec!["--tools", &number, "--token", "secret", "--start"];
        arguments.push(folder.path().to_str().unwrap());
        arguments.extend(["--workspace", workspace.to_str().unwrap()]);
        arguments.extend(more);
        Self {
            agent: Agent::start_with(&arguments),
            port,
            folder,
        }
    }

    fn dial(&self) -> Line {
        let (reply, connection) = self.agent.dial(self.port);
        assert_eq!(reply.status, 101, "{}", reply.text());
        Line(connection)
    }

    fn server_info(&self) -> Value {
        serde_json::from_str(&self.dial().ask("who")).unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("tools.log")).unwrap_or_default()
    }

    /// Lets it end, and waits until the agent has noticed.
    fn end(&self, code: &str) {
        let pid = self.server_info()["pid"].as_u64().unwrap();
        let mut line = self.dial();
        line.say(&format!("exit {code}"));
        wait_until("it has ended", || !exists(pid));
        wait_until("that is noticed", || {
            self.log().contains("tool server ended")
        });
    }
}

/// A conversation.
struct Line(Connection);

impl Line {
    fn say(&mut self, line: &str) {
        self.0
            .writer
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.0.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.receive()
    }
}

/// Whether the process exists, including a zombie that nobody has reaped.
fn exists(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn status_of<'a>(about: &'a Value, name: &str) -> &'a str {
    line_of(&about["status"], name)
}

fn line_of<'a>(status: &'a Value, name: &str) -> &'a str {
    let mut lines = status.as_str().unwrap().lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap().trim()
}

#[test]
fn it_is_started_by_the_first_dial_and_serves_all() {
    let env = TestEnv::new(&[]);
    assert_eq!(env.agent.children(), 0, "unused it is not there");
    let mut first = env.dial();
    assert_eq!(first.ask("hello"), "hello");
    let pid = env.server_info()["pid"].clone();
    assert_eq!(env.server_info()["pid"], pid);
    assert_eq!(first.ask("still there"), "still there");
    assert_eq!(env.agent.children(), 1);
    assert_eq!(
        env.agent.process_entries(),
        Vec::<Value>::new(),
        "it is no command"
    );
    assert_eq!(env.agent.threads(), 1, "the agent itself stays one thread");
}

#[test]
fn many_first_dials_start_one() {
    let env = TestEnv::new(&[]);
    let dials: Vec<_> = std::thread::scope(|scope| {
        let dial = || env.server_info()["pid"].as_u64().unwrap();
        let all: Vec<_> = (0..20).map(|_| scope.spawn(dial)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(dials.iter().all(|pid| *pid == dials[0]), "{dials:?}");
    assert_eq!(env.agent.children(), 1);
}

#[test]
fn programs_inside_reach_it_by_tcp_and_it_knows_the_token_by_its_hash() {
    use sha2::Digest as _;
    let env = TestEnv::new(&[]);
    assert!(
        TcpStream::connect(("127.0.0.1", env.port)).is_err(),
        "nothing starts it"
    );
    let about = env.server_info();
    let hash: [u8; 32] = sha2::Sha256::digest(b"secret").into();
    assert_eq!(about["token_hash"], json!(hash));
    assert!(!about["debug"].as_str().unwrap().contains("token"));
    let mut stream = TcpStream::connect(("127.0.0.1", env.port)).unwrap();
    stream.write_all(b"inside\n").unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert_eq!(line, "inside\n");
}

#[test]
fn it_is_the_user_in_the_workspace_with_a_commands_variables() {
    let env = TestEnv::new(&["--user", "nobody", "--env", "A=1"]);
    let about = env.server_info();
    let own = rustix::process::getuid();
    let uid = if own.is_root() { 65534 } else { own.as_raw() };
    assert_eq!(
        status_of(&about, "Uid"),
        format!("{uid}\t{uid}\t{uid}\t{uid}")
    );
    assert_eq!(status_of(&about, "Umask"), "0022");
    let blocked = line_of(&about["thread_status"], "SigBlk");
    assert_eq!(blocked, "0000000000000000");
    assert_eq!(status_of(&about, "Name"), "sandyard-tools");
    assert_eq!(status_of(&about, "NoNewPrivs"), "0");
    let command = env
        .agent
        .shell("env -0 | tr '\\0' '\\n'; ulimit -n")
        .finish()
        .stdout_text();
    let (variables, limit) = command.trim_end().rsplit_once('\n').unwrap();
    let added = ["PWD", "SHLVL", "_", "OLDPWD"];
    let variables: serde_json::Map<String, Value> = variables
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| !added.contains(name))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    assert_eq!(about["env"], Value::Object(variables));
    assert_eq!(about["process_env"], about["env"]);
    assert_eq!(about["env"]["A"], "1");
    assert_eq!(env.dial().ask("run ulimit -n").trim(), limit);
    let workspace = env.folder.path().join("workspace");
    if own.is_root() {
        assert_eq!(about["cwd"], json!(workspace));
        let made = std::fs::metadata(&workspace).unwrap();
        assert_eq!((made.uid(), made.mode() & 0o777), (65534, 0o775));
    }
    assert_eq!(about["cwd"], about["workspace"]);
    assert_eq!(
        (&about["user"], &about["port"]),
        (&json!("nobody"), &json!(env.port))
    );
}

#[test]
fn a_workspace_that_is_there_is_left_alone_and_one_that_cannot_be_made_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o701)).unwrap();
    let path = folder.path().to_str().unwrap();
    let env = TestEnv::new(&["--user", "nobody", "--workspace", path]);
    assert_eq!(env.server_info()["cwd"], json!(path));
    let own = rustix::process::getuid().as_raw();
    let metadata = std::fs::metadata(folder.path()).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (own, 0o701));
    let env = TestEnv::new(&["--workspace", "/proc/no/such", "--workdir", "/tmp"]);
    assert_eq!(env.server_info()["cwd"], json!("/tmp"));
}

#[test]
fn it_has_no_descriptor_of_the_agents() {
    let env = TestEnv::new(&[]);
    let mut sleeper = env.agent.shell("exec sleep 600");
    let _ = sleeper.pid();
    let about = env.server_info();
    let fds: Vec<&str> = about["fds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fd| fd.as_str().unwrap())
        .collect();
    let kind = |fd: &&str| {
        let target = fd.split_once(' ').unwrap().1;
        target.split(':').next().unwrap().to_owned()
    };
    let count_of = |expected_kind: &str| fds.iter().filter(|fd| kind(fd) == expected_kind).count();
    // Its output; the channel twice, the listener, the three of the pair that wakes its event loop.
    assert_eq!((count_of("pipe"), count_of("/dev/null")), (2, 1), "{fds:?}");
    assert_eq!(count_of("socket"), 3 + 4, "{fds:?}");
    let shared = |pid: u64| -> Vec<String> {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .flatten();
        let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        links
            .map(|link| link.display().to_string())
            .filter(|link| link.starts_with("socket:"))
            .collect()
    };
    if rustix::process::getuid().is_root() {
        let agents = shared(u64::from(env.agent.pid()));
        let own = shared(about["pid"].as_u64().unwrap());
        assert!(
            own.iter().all(|socket| !agents.contains(socket)),
            "{own:?} {agents:?}"
        );
    }
    assert_eq!(
        env.dial().ask("run ls /proc/self/fd | wc -l").trim(),
        "4",
        "nothing leaks on"
    );
}

#[test]
fn programs_inside_cannot_read_its_memory_or_open_its_program() {
    let env = TestEnv::new(&["--user", "nobody"]);
    let pid = env.server_info()["pid"].as_u64().unwrap();
    let mut shell = env.agent.shell(&format!(
        "id -u; for f in environ mem maps auxv; do head -c 1 /proc/{pid}/$f >/dev/null 2>&1 && echo read $f; done; \
         for f in exe cwd root; do readlink /proc/{pid}/$f && echo saw $f; done; ls /proc/{pid}/fd 2>/dev/null; \
         kill -0 {pid} && echo same user"
    ));
    let own = rustix::process::getuid();
    let uid = if own.is_root() { 65534 } else { own.as_raw() };
    assert_eq!(shell.finish().stdout_text(), format!("{uid}\nsame user\n"));
    assert_eq!(env.dial().ask("alive"), "alive");
}

#[test]
fn it_hears_of_its_own_children_and_the_agent_of_its_own() {
    let env = TestEnv::new(&[]);
    let mut line = env.dial();
    for number in 0..20 {
        assert_eq!(
            line.ask(&format!("run echo {number}")).trim(),
            number.to_string()
        );
        assert_eq!(env.agent.shell("exit 3").finish().exit_code(), 3);
    }
    wait_until("supervisors are reaped", || env.agent.children() == 1);
}

#[test]
fn a_panic_of_a_tool_is_not_its_end_and_goes_to_the_log() {
    let env = TestEnv::new(&[]);
    let mut line = env.dial();
    assert_eq!(line.ask("panic"), "alive");
    assert_eq!(line.ask("on"), "on");
    wait_until("the log has it", || env.log().contains("as asked"));
}

#[test]
fn after_its_death_the_next_dial_starts_another_and_nothing_is_left() {
    let env = TestEnv::new(&[]);
    let mut line = env.dial();
    let first = env.server_info()["pid"].as_u64().unwrap();
    env.end("3");
    assert!(
        env.log()
            .contains("sandyard: the tool server ended: exit status 3"),
        "{}",
        env.log()
    );
    let mut rest = String::new();
    line.0.reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "connections end with it");
    wait_until("it is buried", || env.agent.children() == 0);
    let second = env.server_info()["pid"].as_u64().unwrap();
    assert_ne!(first, second);
    let pid = rustix::process::Pid::from_raw(i32::try_from(second).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The agent may not have noticed yet: the dial works all the same.
    wait_until("it is dead", || !is_alive(second));
    assert_eq!(env.dial().ask("third"), "third");
}

#[test]
fn one_that_keeps_dying_is_left_alone_for_a_while() {
    let env = TestEnv::new(&[]);
    let (mut ends, mut refused) = (0, None);
    // On a busy machine more than three may be needed: those of the last ten seconds count.
    wait_until("it is left alone", || {
        let (reply, connection) = env.agent.dial(env.port);
        if reply.status != 101 {
            refused = Some(reply);
            return true;
        }
        let mut line = Line(connection);
        line.say("exit 1");
        // Each has a log of its own.
        wait_until("its end is noticed", || {
            env.log().contains("tool server ended")
        });
        ends += 1;
        false
    });
    assert!(ends >= 3, "it ended {ends} times only");
    let refused = refused.unwrap();
    assert_eq!(refused.status, 502);
    let text = refused.text();
    assert!(
        text.contains("ended 3 times within 10 seconds, see /"),
        "{text}"
    );
    assert!(env.agent.is_healthy());
    wait_until("it may try again", || {
        env.agent.dial(env.port).0.status == 101
    });
}

#[test]
fn a_program_that_has_the_port_does_not_pose_as_the_tool_server() {
    let env = TestEnv::new(&[]);
    let listener = TcpListener::bind(("127.0.0.1", env.port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(
        env.server_info()["listener"],
        false,
        "the port is the program's, the host's dials go to the tool server"
    );
    assert!(listener.accept().is_err(), "nobody was sent to it");
}

#[test]
fn another_token_ends_it_and_the_same_one_does_not() {
    let env = TestEnv::new(&[]);
    let init = |settings: Value| {
        let text = settings.to_string();
        let reply = env
            .agent
            .host()
            .request("POST", "/init", &[], text.as_bytes());
        assert_eq!(reply.status, 204);
    };
    let first = env.server_info();
    let mut line = env.dial();
    let child: u64 = line
        .ask("run setsid sleep 600 >/dev/null 2>&1 & echo $!")
        .trim()
        .parse()
        .unwrap();
    assert!(is_alive(child));
    init(json!({"accessToken": "secret", "envVars": {"B": "2"}}));
    assert_eq!(env.server_info()["pid"], first["pid"]);
    init(json!({"accessToken": "other"}));
    let pid = first["pid"].as_u64().unwrap();
    wait_until("it is dead, and so is what it has started", || {
        !is_alive(pid) && !is_alive(child)
    });
    let second = env.server_info();
    assert_ne!(second["token_hash"], first["token_hash"]);
    assert_eq!(second["env"]["B"], "2");
    init(json!({"accessToken": ""}));
    assert_eq!(env.server_info()["token_hash"], Value::Null);
}

#[test]
fn it_ends_with_the_agent_and_so_does_what_it_has_started() {
    let env = TestEnv::new(&[]);
    let pid = env.server_info()["pid"].as_u64().unwrap();
    let child = env
        .dial()
        .ask("run setsid sleep 600 >/dev/null 2>&1 & echo $!");
    let child: u64 = child.trim().parse().unwrap();
    assert!(is_alive(pid) && is_alive(child));
    drop(env);
    wait_until("both are dead", || !is_alive(pid) && !is_alive(child));
}

#[test]
fn the_listener_inside_starts_nothing() {
    let env = TestEnv::new(&[]);
    let headers = [
        ("x-access-token", "secret"),
        ("connection", "upgrade"),
        ("upgrade", "sandyard-dial"),
    ];
    let path = format!("/dial?port={}", env.port);
    assert_eq!(
        env.agent.tcp().request("GET", &path, &headers, b"").status,
        404
    );
    assert_eq!(env.agent.children(), 0);
}

#[test]
fn its_descriptors_do_not_pile_up_in_the_agent() {
    let env = TestEnv::new(&[]);
    env.server_info();
    let before = env.agent.open_files();
    for _ in 0..100 {
        assert_eq!(env.dial().ask("x"), "x");
    }
    wait_until("all are closed", || env.agent.open_files() <= before);
}
