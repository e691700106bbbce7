//! An engine's data directory of its own for one test, with a leak check at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sandyard_core::SandboxId;
use sandyard_engine::{Engine, EngineConfig, ProcessKey, SandboxSpec};
use sandyard_provider::InstanceSpec;
use sandyard_provider::conformance::Options;
use sandyard_provider::prelude::*;
use sandyard_providers::{Embedded, EmbeddedConfig};

/// One engine over an empty data directory.
pub(crate) struct TestEnv {
    pub(crate) engine: Engine,
    pub(crate) config: EngineConfig,
    folder: tempfile::TempDir,
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(
            is_root() || given_launcher().is_some(),
            "these tests need root: run `./test` as root"
        );
        let config = EngineConfig {
            launcher: Some(vec![launcher().display().to_string()]),
            allow_faults: true,
            // A failed test does not reach `finish`; its launcher must not stay.
            idle_exit: Duration::from_secs(2),
            ..EngineConfig::new(folder.path().join("data"))
        };
        let engine = Engine::connect(config.clone()).await.expect("connect");
        Self {
            engine,
            config,
            folder,
        }
    }

    /// The provider under test, as the installation of that name.
    pub(crate) async fn provider(&self, installation: &str) -> Embedded {
        let config = EmbeddedConfig {
            engine: self.config.clone(),
            installation: Some(installation.to_owned()),
            ..EmbeddedConfig::new("")
        };
        Embedded::connect(config).await.expect("connect")
    }

    /// Kills the launcher.
    pub(crate) async fn kill_launcher(&self) {
        kill(self.engine.hello().await.expect("hello").launcher_pid);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Deletes everything, ends the launcher, and checks that no sandbox remains on the host.
    pub(crate) async fn finish(self) {
        for info in self.engine.list().await.expect("list") {
            self.engine.delete(&info.id).await.expect("delete");
        }
        self.engine.set_pool(Vec::new()).await.expect("no pool");
        self.engine.sweep().await.expect("sweep");
        self.kill_launcher().await;
        let data = self.data();
        let is_empty = || {
            ["sandboxes", "run/ids", "spares", "trash", "volumes"]
                .iter()
                .all(|name| fs::read_dir(data.join(name)).is_ok_and(|mut all| all.next().is_none()))
                // A fork that fills the pool would continue to write into a folder that is being removed.
                && processes_with(&data).is_empty()
        };
        let give_up = Instant::now() + Duration::from_secs(120);
        while !is_empty() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_empty(), "something remains in the data directory");
    }
}

impl Drop for TestEnv {
    /// A failed test does not delete its sandboxes: this ends their processes.
    fn drop(&mut self) {
        let data = self.data();
        let folders = fs::read_dir(data.join("sandboxes"));
        for folder in folders.into_iter().flatten().flatten() {
            let record = fs::read(folder.path().join("state.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
            if let Ok(init) = serde_json::from_value::<ProcessKey>(record["init"].clone())
                && init.is_alive()
            {
                kill(init.pid);
            }
        }
        if let Ok(run) = fs::read_link(data.join("run")) {
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// Processes whose arguments name the folder: its launcher and all its forks.
pub(crate) fn processes_with(folder: &Path) -> Vec<i32> {
    let folder = folder.display().to_string();
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_it = String::from_utf8_lossy(&line).contains(&folder) && name != own;
        is_it.then(|| name.parse().ok()).flatten()
    })
    .collect()
}

/// The spec of an instance of that sandbox.
pub(crate) fn spec(provider: &dyn Provider, sandbox_id: &str) -> InstanceSpec {
    InstanceSpec {
        sandbox_id: sandbox_id.parse().expect("an id"),
        template: provider.info().default_template.clone(),
        limits: Options::default().limits,
        env: Default::default(),
        access_token: "token".to_owned(),
        hostname: None,
        network: sandyard_core::NetworkPolicy::default(),
        mounts: Vec::new(),
        project: None,
        metadata: Default::default(),
        is_restricted: false,
    }
}

/// Sandboxes of others in the same data directory: created by hand, with another kind of id, by another installation.
pub(crate) async fn create_foreign_instances(env: &TestEnv) -> Vec<String> {
    let limits = Options::default().limits;
    let plain = SandboxSpec {
        limits: limits.clone(),
        ..SandboxSpec::default()
    };
    let made: SandboxId = env.engine.create(&plain).await.expect("create").id;
    let other = env.provider("another").await;
    let others = other.create(&spec(&other, "theirs")).await;
    vec![made.to_string(), others.expect("create").id]
}

/// Kills a process of this test.
fn kill(pid: i32) {
    assert!(pid > 1, "process {pid} is not a process of this test");
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let give_up = Instant::now() + Duration::from_secs(60);
    while !stat().is_empty() && !stat().contains(") Z ") && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says whether these tests run as root.
pub(crate) fn is_root() -> bool {
    let own = fs::metadata("/proc/self").expect("our own process");
    std::os::unix::fs::MetadataExt::uid(&own) == 0
}

/// A launcher that was built before, for ordinary users who have no Cargo.
fn given_launcher() -> Option<PathBuf> {
    std::env::var_os("SANDYARD_TEST_LAUNCHER").map(PathBuf::from)
}

/// Builds the launcher once; it is a program of another crate.
fn launcher() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = given_launcher() {
            return given;
        }
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "sandyard-engine"])
            .args(["--bin", "sandyard-launcher"])
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the launcher builds");
        // The tests are in `<target>/<triple>/<profile>/deps`, and the launcher is always built in the profile `dev`.
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard-launcher")
    })
}
