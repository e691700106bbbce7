//! Another Sandyard in its own process, whose E2B dialect is the substitute for E2B.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::{Client, Method};
use sandyard_core::Limits;
use sandyard_providers::{CallTimeouts, E2b, E2bConfig};
use serde_json::{Value, json};

use crate::env::processes_with;

/// A debug build on a busy machine is slow; not a measurement.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The line in its log when it is ready.
const LISTENING: &str = "Listening for E2B's clients";

/// The substitute for E2B.
pub(crate) struct FakeApi {
    folder: tempfile::TempDir,
    flags: Vec<String>,
    pub(crate) port: u16,
    pub(crate) e2b: SocketAddr,
    server: Option<Child>,
    launches: usize,
    http: Client,
}

impl FakeApi {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        // Short, because a socket's path may have 107 bytes; on a disk, because the files of sandboxes are on one.
        let folder = tempfile::Builder::new()
            .prefix("sandyard-test-")
            .tempdir_in("/var/tmp");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut counterpart = Self {
            folder: folder.expect("a folder"),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            port: free_port(),
            e2b: (Ipv4Addr::LOCALHOST, free_port()).into(),
            server: None,
            launches: 0,
            http: Client::builder().no_proxy().build().expect("a client"),
        };
        counterpart.launch().await;
        counterpart
    }

    /// Starts the server, again if it was killed, and waits until it listens.
    pub(crate) async fn launch(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("server.log"))
            .expect("a log");
        let server = Command::new(program())
            .arg("--data-dir")
            .arg(self.folder.path())
            .args(["serve", "--port", &self.port.to_string()])
            .args(["--e2b-port", &self.e2b.port().to_string()])
            // Pooled sandboxes would have to be deleted, too.
            .args(["--ready", "0"])
            .args(&self.flags)
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a log"))
            .stdout(log)
            .spawn()
            .expect("the server starts");
        self.server = Some(server);
        self.launches += 1;
        let give_up = Instant::now() + TIMEOUT;
        // It logs when everything is ready, which is later than when it accepts connections.
        while self.log().matches(LISTENING).count() < self.launches {
            assert!(Instant::now() < give_up, "no server:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the server as a power failure would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("kill");
            server.wait().expect("wait");
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("server.log"));
        log.unwrap_or_default()
    }

    pub(crate) fn key(&self) -> String {
        let key = fs::read_to_string(self.folder.path().join("admin.key"));
        key.expect("a key").trim().to_owned()
    }

    /// Configuration to reach it over plain HTTP.
    pub(crate) fn config(&self, installation: &str) -> E2bConfig {
        let url = format!("http://{}", self.e2b);
        E2bConfig {
            api_key: self.key(),
            domain: "e2b.test".to_owned(),
            api_url: Some(url.clone()),
            sandbox_url: Some(url),
            trusted_ca: None,
            resolve_to: None,
            template: "base".to_owned(),
            program: None,
            tools_port: 6060,
            installation: installation.to_owned(),
            timeout: Duration::from_secs(600),
            limits: (Limits::default(), Limits::DEFAULT_MAX),
            timeouts: CallTimeouts::default(),
        }
    }

    /// Configuration to reach it by the names of its domain, over TLS.
    pub(crate) fn domain_config(&self, domain: &str) -> E2bConfig {
        let authority = fs::read_to_string(self.folder.path().join("tls/ca.pem"));
        E2bConfig {
            domain: format!("{domain}:{}", self.port),
            api_url: None,
            sandbox_url: None,
            trusted_ca: Some(authority.expect("an authority")),
            resolve_to: Some((Ipv4Addr::LOCALHOST, self.port).into()),
            ..self.config("ours")
        }
    }

    pub(crate) async fn provider(&self, installation: &str) -> E2b {
        let connected = E2b::connect(self.config(installation)).await;
        connected.expect("connect")
    }

    /// Sends a request to its API without the provider.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let mut request = self
            .http
            .request(method, format!("http://{}{path}", self.e2b))
            .header("x-api-key", self.key());
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let text = answer.text().await.expect("a text");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// All sandboxes of the server.
    pub(crate) async fn sandboxes(&self) -> Vec<Value> {
        let all = self.ask(Method::GET, "/v2/sandboxes", None).await;
        all.as_array().expect("a list").clone()
    }

    /// Creates a foreign sandbox with this metadata.
    pub(crate) async fn create_foreign(&self, metadata: Value) -> String {
        let requested = json!({"templateID": "base", "timeout": 600, "metadata": metadata});
        let made = self.ask(Method::POST, "/sandboxes", Some(requested)).await;
        made["sandboxID"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn remove(&self, id: &str) {
        let path = format!("/sandboxes/{id}");
        self.ask(Method::DELETE, &path, None).await;
    }

    /// Whether it has a sandbox, or is creating one, according to its native dialect.
    pub(crate) async fn has_any(&self) -> bool {
        let url = format!("http://127.0.0.1:{}/sandboxes", self.port);
        let answer = self.http.get(url).send().await.expect("an answer");
        let text = answer.text().await.expect("a text");
        let all: Value = serde_json::from_str(&text).expect("a list");
        all["sandboxes"] != json!([])
    }

    /// Checks that neither sandboxes nor snapshots remain.
    pub(crate) async fn finish(self) {
        assert_eq!(self.sandboxes().await, Vec::<Value>::new(), "left there");
        let give_up = Instant::now() + TIMEOUT;
        loop {
            // Temporary snapshots are removed in the background.
            let snapshots = self.ask(Method::GET, "/snapshots", None).await;
            if snapshots == json!([]) {
                break;
            }
            assert!(Instant::now() < give_up, "snapshots are left: {snapshots}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for FakeApi {
    /// Removes everything, also after a failed test.
    fn drop(&mut self) {
        self.kill();
        let data = self.folder.path();
        // Creates of a killed server may continue for a moment, so sandboxes may appear or disappear.
        let is_empty =
            || fs::read_dir(data.join("sandboxes")).map_or(true, |mut all| all.next().is_none());
        let give_up = Instant::now() + TIMEOUT;
        loop {
            let _ = Command::new(program())
                .arg("--data-dir")
                .arg(data)
                .args(["rm", "--local", "--all"])
                .stderr(Stdio::null())
                .output();
            if is_empty() || Instant::now() >= give_up {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // It removes its control groups when it is asked to end.
        let launchers = processes_with(data);
        for pid in &launchers {
            end(*pid, "-TERM");
        }
        let give_up = Instant::now() + TIMEOUT;
        while !processes_with(data).is_empty() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(20));
        }
        for pid in processes_with(data) {
            end(pid, "-KILL");
        }
        if let Ok(run) = fs::read_link(data.join("run")) {
            let _ = fs::remove_dir_all(run);
        }
    }
}

fn end(pid: i32, signal: &str) {
    assert!(pid > 1, "process {pid} is none of ours");
    let _ = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
}

/// A port for a server that may be killed and restarted: below the range of outgoing connections, and reserved by a lock of this
/// process.
fn free_port() -> u16 {
    static MARKS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let begin = std::process::id() % 1000;
    for port in (0..8000).map(|offset| 12_000 + (begin + offset) % 8000) {
        let name = format!("sandyard-test-port-{port}");
        let name = UnixAddress::from_abstract_name(name).expect("a name");
        let Ok(mark) = UnixListener::bind_addr(&name) else {
            continue;
        };
        MARKS.lock().push(mark);
        let port = u16::try_from(port).expect("a port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

/// The program of another crate, built once. `SANDYARD` names an existing one.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(from_env) = std::env::var_os("SANDYARD") {
            return from_env.into();
        }
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "sandyard"])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the program builds");
        // The tests are in `<target>/<triple>/<profile>/deps`, and the program is always built in the profile `dev`.
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard")
    })
}
