//! An agent, and an opener that runs `link` as a child process.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandyard_agent_client::wire::host::InitRequest;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, BoxedStream, Endpoint, RunOptions};
use tokio::net::unix::pipe;

use crate::docker::link::{Links, OpenLink};

pub(super) const TOKEN: &str = "a-token-of-this-test";

/// The program that containers get, built once.
pub(super) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("SANDYARD_TEST_CONTAINED") {
            return given.into();
        }
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "sandyard-engine"])
            .args(["--bin", "sandyard-contained"])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the program builds");
        // The tests are in `<target>/<triple>/<profile>/deps`, and the program is always built in the profile `dev`.
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard-contained")
    })
}

/// One agent, and links to it.
pub(super) struct TestEnv {
    pub(super) links: Links,
    pub(super) opener: Arc<Opener>,
    pub(super) folder: tempfile::TempDir,
    /// Addresses of the agent's listeners, as it printed them.
    pub(super) addresses: BTreeMap<String, String>,
    agent: Child,
}

/// Runs `link` for every container, whatever its id.
pub(super) struct Opener {
    socket: PathBuf,
    pub(super) opened_count: AtomicUsize,
    children: Mutex<Vec<Child>>,
    refusal: Mutex<Option<String>>,
}

impl TestEnv {
    pub(super) fn new() -> Self {
        Self::with(&[])
    }

    /// With more options for the agent, each of which it answers with a line.
    pub(super) fn with(addresses: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("agent.sock");
        let mut agent = Command::new(program())
            .args(["agent", "--user", "root", "--unix"])
            .arg(&socket)
            .args(addresses)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an agent");
        let text = BufReader::new(agent.stdout.take().expect("its output"));
        let mut lines = text.lines();
        let addresses = addresses.iter().filter(|word| word.starts_with("--"));
        let addresses = addresses.map(|_| {
            let line = lines.next().expect("a line").expect("text");
            let (name, address) = line.split_once(" on ").expect("where");
            (name.to_owned(), address.to_owned())
        });
        let addresses = addresses.collect();
        // A link waits for a starting agent, but not long enough for a busy machine.
        let give_up = Instant::now() + Duration::from_secs(120);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < give_up, "the agent does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let opener = Arc::new(Opener {
            socket,
            opened_count: AtomicUsize::new(0),
            children: Mutex::default(),
            refusal: Mutex::default(),
        });
        Self {
            links: Links::new(opener.clone()),
            opener,
            folder,
            addresses,
            agent,
        }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::Custom(self.links.dialler("one"))
    }

    pub(super) fn client(&self) -> AgentClient {
        AgentClient::new(self.endpoint())
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        self.opener.kill_all();
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

impl Opener {
    /// Kills all `link` processes.
    pub(super) fn kill_all(&self) {
        for mut child in self.children.lock().expect("the list").drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Refuses to open links from now on.
    pub(super) fn refuse(&self, reason: &str) {
        *self.refusal.lock().expect("the reason") = Some(reason.to_owned());
    }

    /// Whether all `link` processes have exited.
    pub(super) fn have_all_ended(&self) -> bool {
        let mut children = self.children.lock().expect("the list");
        children
            .iter_mut()
            .all(|child| child.try_wait().expect("wait").is_some())
    }
}

#[async_trait]
impl OpenLink for Opener {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        if let Some(reason) = self.refusal.lock().expect("the reason").clone() {
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        self.opened_count.fetch_add(1, Ordering::Relaxed);
        let mut child = Command::new(program())
            .args(["link", "--agent"])
            .arg(&self.socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = OwnedFd::from(child.stdin.take().expect("its input"));
        let output = OwnedFd::from(child.stdout.take().expect("its output"));
        self.children.lock().expect("the list").push(child);
        let reader = pipe::Receiver::from_owned_fd(output)?;
        let writer = pipe::Sender::from_owned_fd(input)?;
        Ok(Box::new(tokio::io::join(reader, writer)))
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        Ok(InitRequest {
            access_token: Some(TOKEN.to_owned()),
            env_vars: Some(BTreeMap::from([("TOLD".to_owned(), "yes".to_owned())])),
            ..InitRequest::default()
        })
    }
}

/// Runs a shell line and returns its output.
pub(super) async fn sh(client: &AgentClient, line: &str) -> String {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), line.to_owned()],
        ..ProcessConfig::default()
    };
    let output = client.run(process, &RunOptions::default()).await;
    String::from_utf8(output.expect("it runs").stdout).expect("text")
}

/// Waits up to two minutes.
pub(super) async fn until(mut condition: impl FnMut() -> bool) {
    for _ in 0..12000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited for two minutes");
}
