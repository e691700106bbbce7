//! A substitute for Daytona that the official SDK accepts, in its own process (`tests/daytona`).

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sandyard_core::Limits;
use sandyard_providers::{CallTimeouts, Daytona, DaytonaConfig};
use serde_json::Value;

/// The key that it accepts.
pub(crate) const KEY: &str = "dtn_key_of_the_tests";

/// A running substitute; its sandboxes are deleted when it is dropped.
pub(crate) struct FakeApi {
    process: Child,
    url: String,
    state: tempfile::TempDir,
    log: tempfile::NamedTempFile,
}

impl FakeApi {
    pub(crate) async fn start() -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let log = tempfile::NamedTempFile::new().expect("a file");
        let (process, url) = start_process(state.path(), log.path());
        Self {
            process,
            url,
            state,
            log,
        }
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }

    /// Starts it again with its state, at the same address.
    pub(crate) fn restart(&mut self) {
        let (process, url) = start_process(self.state.path(), self.log.path());
        assert_eq!(url, self.url, "the same address");
        self.process = process;
    }

    /// The configuration of a provider of that installation.
    pub(crate) fn config(&self, installation: &str) -> DaytonaConfig {
        DaytonaConfig {
            api_key: KEY.to_owned(),
            server_url: self.url.clone(),
            target: None,
            snapshot: None,
            trusted_ca: None,
            installation: installation.to_owned(),
            program: agent().to_owned(),
            tools_port: 6060,
            auto_stop: Duration::from_secs(3600),
            auto_archive: Duration::from_secs(7 * 24 * 3600),
            limits: (Limits::default(), Limits::DEFAULT_MAX),
            timeouts: CallTimeouts::default(),
        }
    }

    pub(crate) async fn provider(&self, installation: &str) -> Daytona {
        let connected = Daytona::connect(self.config(installation)).await;
        connected.expect("connect")
    }

    /// Sends a request that no provider would send.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        self.ask_at(&format!("{}{path}", self.url), method, body)
            .await
    }

    /// Injects a fault into the next `count` requests of an operation.
    pub(crate) async fn fault(&self, operation: &str, count: usize, mut fault: Value) {
        fault["match"] = operation.into();
        fault["count"] = count.into();
        self.ask_at(&self.control("fault"), "POST", fault).await;
    }

    /// Removes the remaining faults.
    pub(crate) async fn no_faults(&self) {
        let url = self.control("fault");
        self.ask_at(&url, "DELETE", Value::Null).await;
    }

    /// Puts a sandbox into the state `error`.
    pub(crate) async fn break_one(&self, id: &str, is_recoverable: bool) {
        let call = serde_json::json!({"sandboxId": id, "recoverable": is_recoverable});
        self.ask_at(&self.control("error"), "POST", call).await;
    }

    /// Gives its organization a maximum lifespan of sandboxes.
    pub(crate) async fn bound_life(&self, minutes: u64) {
        let call = serde_json::json!({"minutes": minutes});
        self.ask_at(&self.control("lifespan"), "POST", call).await;
    }

    fn control(&self, name: &str) -> String {
        let base = self.url.strip_suffix("/api").expect("an API");
        format!("{base}/__counterpart/{name}")
    }

    async fn ask_at(&self, url: &str, method: &str, body: Value) -> Value {
        let method = method.parse().expect("a method");
        let mut call = client().request(method, url).bearer_auth(KEY);
        if !body.is_null() {
            call = call.json(&body);
        }
        let answer = call.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{url}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }
}

impl Drop for FakeApi {
    #[expect(
        clippy::print_stdout,
        reason = "what it said last explains a test that failed"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.log.path()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            println!("the counterpart's last words:\n{}", last.join("\n"));
        }
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        // It ends its server, the remaining processes and the launcher in order; if it were killed, all of them would remain.
        let give_up = Instant::now() + Duration::from_secs(600);
        while Instant::now() < give_up {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client")
}

fn start_process(state: &Path, log: &Path) -> (Child, String) {
    let root = root();
    let log = File::options().append(true).open(log).expect("a file");
    let mut process = Command::new(python())
        .arg(root.join("tests/daytona/counterpart.py"))
        .args(["--key", KEY, "--moment", "0.02", "--state"])
        .arg(state)
        .env("SANDYARD", program())
        // The official clients are so large that importing them is most of the work of a start.
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .env("PYTHONPYCACHEPREFIX", target().join("pycache"))
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("Python runs");
    let output = process.stdout.take().expect("a pipe");
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.expect("its address");
    let url = line.trim_end().to_owned();
    assert!(url.starts_with("http://"), "the counterpart does not start");
    (process, url)
}

fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("a workspace").to_owned()
}

/// Where everything is built; tests are in `<target>/<triple>/<profile>/deps`.
fn target() -> PathBuf {
    let tests = env::current_exe().expect("a path");
    let target = tests.ancestors().nth(4);
    target.expect("four directories up").to_owned()
}

/// A Python interpreter with the substitute's requirements: `$DAYTONA_PYTHON`, or a virtual environment that is reused in later
/// runs.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        if let Some(python) = from_env("DAYTONA_PYTHON") {
            return python;
        }
        let venv = target().join("venvs/daytona");
        let python = venv.join("bin/python");
        if !python.exists() {
            let venv = venv.to_str().expect("a path of text");
            run("python3", &["-m", "venv", venv]);
        }
        let text = python.to_str().expect("a path of text");
        let requested = root().join("tests/daytona/requirements.txt");
        let requested = requested.to_str().expect("a path of text");
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--requirement",
            requested,
        ];
        run(text, &pip);
        python
    })
}

/// The program that runs the substitute's sandboxes: `$SANDYARD`, or this workspace's program.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| from_env("SANDYARD").unwrap_or_else(|| build("sandyard")))
}

/// The agent that is installed in sandboxes: `$SANDYARD_AGENT`, or this workspace's program.
fn agent() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| from_env("SANDYARD_AGENT").unwrap_or_else(|| build("sandyard-agent")))
}

fn from_env(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from)
}

/// Builds a program of another crate, always in the profile `dev`; tests are in `<target>/<triple>/<profile>/deps`.
fn build(package: &str) -> PathBuf {
    let arguments = ["build", "--quiet", "--package", package, "--bin", package];
    run(env!("CARGO"), &arguments);
    let tests = env::current_exe().expect("a path");
    let root = tests.ancestors().nth(3).expect("three directories up");
    root.join("debug").join(package)
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    let status = status.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {arguments:?}");
}
