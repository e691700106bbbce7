//! A whole server on real sockets over the real engine, in a data directory of its own. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use sandyard_config::settings::E2bPort;
use sandyard_config::{Settings, Sources, load};
use sandyard_engine::{Engine, EngineConfig};
use sandyard_provider::prelude::*;
use sandyard_providers::{Embedded, EmbeddedConfig};
use sandyard_server::serve::{ServeError, Signals, Started, serve_with};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long anything may take before a test gives up.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// A running server.
pub(crate) struct Server {
    pub(crate) started: Started,
    pub(crate) client: Client,
    engine: EngineConfig,
    folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with_flags(&[], change).await
    }

    /// Starts a server with flags and changed settings.
    pub(crate) async fn with_flags(
        flags: &[(&str, String)],
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let is_root = fs::metadata(folder.path())
            .map(|folder| std::os::unix::fs::MetadataExt::uid(&folder) == 0)
            .expect("a folder");
        assert!(is_root, "these tests need root: run `./test` as root");
        let data = folder.path().join("data");
        let mut settings = settings(&data, flags);
        // Enough to be taken and made anew, and soon taken away.
        settings.sandbox.ready = 2;
        change(&mut settings);
        let engine = EngineConfig {
            launcher: Some(vec![launcher().display().to_string()]),
            // A test that fails does not reach `finish`; its launcher must not stay.
            idle_exit: Duration::from_secs(2),
            ..EngineConfig::new(&data)
        };
        let config = EmbeddedConfig {
            engine: engine.clone(),
            ..EmbeddedConfig::new(&data)
        };
        let provider = |_installation| async move {
            let provider = Embedded::connect(config).await;
            let provider: Arc<dyn Provider> =
                Arc::new(provider.map_err(|source| ServeError::Provider {
                    name: "embedded".to_owned(),
                    source,
                })?);
            Ok(vec![provider])
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let signals = Signals::until(async move {
            let _ = stopped.await;
        });
        let task = tokio::spawn(serve_with(
            settings,
            provider,
            |started| {
                let _ = ready.send(started.clone());
            },
            signals,
        ));
        let started = match is_ready.await {
            Ok(started) => started,
            Err(_) => panic!("the server did not start: {:?}", task.await),
        };
        // A test before this one may have chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            started,
            client: Client::builder()
                .no_proxy()
                .timeout(TIMEOUT)
                .tls_danger_accept_invalid_certs(true)
                .build()
                .expect("a client"),
            engine,
            folder,
            stop: Some(stop),
            task,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// `host:port` of the first listener.
    pub(crate) fn authority(&self) -> String {
        self.started.addresses[0].address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.started.addresses[0].url())
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.url(path))
    }

    /// Makes a sandbox and returns its id.
    pub(crate) async fn create(&self) -> String {
        let reply = self
            .post("/sandboxes/create")
            .json(&json!({"user_id": "alice", "memory_limit": "256m"}))
            .send()
            .await
            .expect("create");
        let reply = ok(reply).await;
        reply["sandbox_id"].as_str().expect("an id").to_owned()
    }

    /// Runs a command and returns its output.
    pub(crate) async fn run(&self, id: &str, command: &str) -> String {
        let reply = self
            .post("/sandboxes/run-command")
            .json(&json!({"sandbox_id": id, "command": command}))
            .send()
            .await
            .expect("run");
        let reply = ok(reply).await;
        reply["output"].as_str().expect("output").to_owned()
    }

    /// Runs a command until its output is what is wanted.
    pub(crate) async fn until(&self, id: &str, command: &str, expected: &str) {
        let give_up = Instant::now() + TIMEOUT;
        loop {
            let output = self.run(id, command).await;
            if output.trim() == expected {
                return;
            }
            assert!(
                Instant::now() < give_up,
                "`{command}` says `{output}`, not `{expected}`"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks the server to end and waits until it has.
    pub(crate) async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let ended = tokio::time::timeout(TIMEOUT, &mut self.task).await;
        ended
            .expect("in time")
            .expect("no panic")
            .expect("no failure");
    }

    /// Ends the server, deletes everything and checks that nothing is left.
    pub(crate) async fn finish(mut self) {
        if !self.task.is_finished() {
            self.stop().await;
        }
        let engine = Engine::connect(self.engine.clone()).await.expect("connect");
        for info in engine.list().await.expect("list") {
            engine.delete(&info.id).await.expect("delete");
        }
        engine.set_pool(Vec::new()).await.expect("no pool");
        engine.sweep().await.expect("sweep");
        let data = self.data();
        let is_empty = || {
            let leftovers = ["sandboxes", "run/ids", "spares"]
                .iter()
                .map(|name| fs::read_dir(data.join(name)));
            leftovers
                .flatten()
                .all(|mut entries| entries.next().is_none())
        };
        let give_up = Instant::now() + TIMEOUT;
        while !is_empty() && Instant::now() < give_up {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(is_empty(), "something is left in the data directory");
    }
}

impl Drop for Server {
    /// Ends the launcher, and the sandboxes of a test that failed, before their folder goes.
    fn drop(&mut self) {
        self.task.abort();
        let data = self.data();
        let run = fs::read_link(data.join("run")).unwrap_or_default();
        let give_up = Instant::now() + TIMEOUT;
        loop {
            let processes = processes_of(&data, &run);
            if processes.is_empty() || Instant::now() > give_up {
                break;
            }
            let _ = Command::new("kill")
                .arg("-KILL")
                .args(&processes)
                .stderr(Stdio::null())
                .status();
            std::thread::sleep(Duration::from_millis(5));
        }
        // In memory, wherever this host has that; not a folder that `run` itself is.
        if run
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("sandyard-"))
        {
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// The launcher of a data directory and the processes of its sandboxes: the former names the directory, the latter are in
/// a group named after its folder in memory.
fn processes_of(data: &Path, run: &Path) -> Vec<String> {
    let group = run
        .file_name()
        .map(|name| format!("/{}/", name.to_string_lossy()));
    let data = data.to_string_lossy();
    let is_ours = |pid: &String| {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let is_dead = read("stat").contains(") Z ");
        !is_dead
            && (read("cmdline").split('\0').any(|word| word == data)
                || group
                    .as_ref()
                    .is_some_and(|group| read("cgroup").contains(group)))
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(is_ours)
        .collect()
}

/// The JSON of an answer that must be good.
pub(crate) async fn ok(response: Response) -> Value {
    let status = response.status();
    let text = response.text().await.expect("a body");
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// The code of an answer that must be a failure.
pub(crate) async fn code(response: Response, status: u16) -> String {
    let found = response.status().as_u16();
    let text = response.text().await.expect("a body");
    assert_eq!(found, status, "{text}");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    body["code"].as_str().expect("a code").to_owned()
}

/// Settings with nothing configured, on any free port of loopback.
pub(crate) fn settings(data: &Path, flags: &[(&str, String)]) -> Settings {
    let flags = flags.iter();
    let sources = Sources {
        flags: flags
            .map(|(key, text)| ((*key).to_owned(), text.clone()))
            .collect(),
        working_dir: data.to_owned(),
        default_data_dir: data.to_owned(),
        system_config_file: data.join("none.toml"),
        table: sandyard_providers::Registry::BUILTIN.table(),
        ..Sources::default()
    };
    let mut settings = load(&sources).expect("settings").settings;
    settings.server.ports = vec![0];
    settings.e2b.port = E2bPort::Derived(0);
    settings
}

/// Builds the launcher, once, unless it is given. Cargo does not build it for these tests: it is a program of another crate.
fn launcher() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("SANDYARD_TEST_LAUNCHER") {
            return given.into();
        }
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "sandyard-engine"])
            .args(["--bin", "sandyard-launcher"])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the launcher builds");
        // The tests are in `<target>/<profile>/deps`, and the launcher is always built in the profile `dev`.
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard-launcher")
    })
}
