//! A data directory of its own for one test, with a leak check at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sandyard_agent_client::{Output, RunOptions};
use sandyard_core::SandboxId;
use sandyard_engine::{Engine, EngineConfig, PoolSpec, ProcessKey, SandboxInfo, SandboxSpec};
use sandyard_wire::process::ProcessConfig;

/// The launcher this test run was built with.
pub(crate) const LAUNCHER: &str = env!("CARGO_BIN_EXE_sandyard-launcher");

/// One engine over an empty data directory.
pub(crate) struct TestEnv {
    pub(crate) engine: Engine,
    pub(crate) data: PathBuf,
    folder: Folder,
}

/// The data directory's parent. A test that fails never gets to delete its sandboxes: then this ends their processes.
struct Folder(tempfile::TempDir);

impl Drop for Folder {
    fn drop(&mut self) {
        let folders = fs::read_dir(self.0.path().join("data/sandboxes"))
            .into_iter()
            .flatten()
            .flatten();
        for record in folders.filter_map(|folder| fs::read(folder.path().join("state.json")).ok()) {
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
            let Ok(init) = serde_json::from_value::<ProcessKey>(record["init"].clone()) else {
                continue;
            };
            if init.is_alive() {
                kill(init.pid);
            }
        }
        for group in cgroups(&self.0.path().join("data")) {
            let _ = fs::remove_dir(group);
        }
        if let Ok(run) = fs::read_link(self.0.path().join("data/run")) {
            let _ = fs::remove_dir_all(run);
        }
    }
}

impl TestEnv {
    /// Starts with nothing. Faults are allowed.
    pub(crate) async fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "these tests need root: run `./test` as root"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let engine = connect(&data, vec![LAUNCHER.to_owned()]).await;
        Self {
            engine,
            data,
            folder: Folder(folder),
        }
    }

    /// As [`TestEnv::new`], with a launcher of other words.
    pub(crate) async fn with_launcher(folder: tempfile::TempDir, launcher: Vec<String>) -> Self {
        let data = folder.path().join("data");
        let engine = connect(&data, launcher).await;
        Self {
            engine,
            data,
            folder: Folder(folder),
        }
    }

    /// Closes the connection to the launcher while `meanwhile` runs.
    pub(crate) async fn reconnect_after(self, meanwhile: impl Future<Output = ()>) -> Self {
        let Self {
            engine,
            data,
            folder,
        } = self;
        drop(engine);
        meanwhile.await;
        let engine = connect(&data, vec![LAUNCHER.to_owned()]).await;
        Self {
            engine,
            data,
            folder,
        }
    }

    /// A sandbox with small limits.
    pub(crate) async fn create(&self) -> SandboxInfo {
        self.engine.create(&small()).await.expect("create")
    }

    /// Runs a shell line as `user`.
    pub(crate) async fn sh(&self, id: &SandboxId, line: &str) -> Output {
        self.sh_as(id, "user", line).await
    }

    /// Runs a shell line as somebody.
    pub(crate) async fn sh_as(&self, id: &SandboxId, user: &str, line: &str) -> Output {
        let process = ProcessConfig {
            cmd: "/bin/bash".to_owned(),
            args: vec!["-c".to_owned(), line.to_owned()],
            ..ProcessConfig::default()
        };
        let options = RunOptions {
            user: Some(user.to_owned()),
            timeout: Duration::from_secs(180),
            ..RunOptions::default()
        };
        self.engine
            .agent(id)
            .run(process, &options)
            .await
            .expect("run a shell line")
    }

    /// What a shell line prints, without the newline at the end.
    pub(crate) async fn out(&self, id: &SandboxId, line: &str) -> String {
        text(&self.sh(id, line).await.stdout)
    }

    /// Kills the launcher the hard way, and returns when it is gone.
    pub(crate) async fn kill_launcher(&self) {
        let pid = self.engine.hello().await.expect("hello").launcher_pid;
        kill(pid);
    }

    /// Returns when the launcher has taken all ready sandboxes away.
    pub(crate) async fn wait_until_none_is_ready(&self) {
        let give_up = tokio::time::Instant::now() + Duration::from_secs(120);
        while self.engine.ready_count().await.expect("count") > 0 {
            assert!(tokio::time::Instant::now() < give_up, "some are left");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Deletes everything, ends the launcher, and checks that the host is as before.
    pub(crate) async fn finish(self) {
        for info in self.engine.list().await.expect("list") {
            self.engine.delete(&info.id).await.expect("delete");
        }
        self.engine
            .set_pool(Vec::new())
            .await
            .expect("empty the pool");
        let spares = fs::read_dir(self.data.join("spares"))
            .expect("spares")
            .flatten();
        for spare in spares.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            self.engine.delete(&spare).await.expect("delete a spare");
        }
        let volumes = fs::read_dir(self.data.join("volumes")).expect("volumes");
        for volume in volumes.flatten() {
            let id = volume.file_name();
            let deleted = self.engine.delete_volume(&id.to_string_lossy()).await;
            deleted.expect("delete a volume");
        }
        self.engine.sweep().await.expect("sweep");
        let launcher = self.engine.hello().await.expect("hello").launcher_pid;
        kill(launcher);
        let Self {
            engine,
            data,
            folder,
        } = self;
        // Every open connection has a worker.
        drop(engine);
        let remaining = wait_for(Duration::from_secs(120), || {
            let remaining = leftovers(&data);
            remaining.is_empty().then_some(()).ok_or(remaining)
        });
        assert_eq!(remaining, Ok(()), "left on the host");
        drop(folder);
    }
}

async fn connect(data: &Path, launcher: Vec<String>) -> Engine {
    let config = EngineConfig {
        launcher: Some(launcher),
        allow_faults: true,
        // A test that fails does not reach `finish`; its launcher must not stay.
        idle_exit: Duration::from_secs(2),
        ..EngineConfig::new(data)
    };
    Engine::connect(config)
        .await
        .expect("connect to a launcher")
}

/// A specification with small limits.
pub(crate) fn small() -> SandboxSpec {
    let mut spec = SandboxSpec::default();
    spec.limits.memory_bytes = 256 << 20;
    spec.limits.disk_bytes = 64 << 20;
    spec.limits.pids = 128;
    spec
}

/// `count` small sandboxes of a template, to be kept ready.
pub(crate) fn ready(template: &str, count: usize) -> PoolSpec {
    PoolSpec {
        template: template.to_owned(),
        limits: small().limits,
        count,
    }
}

/// Copies the launcher, by a process of its own: whatever another test starts meanwhile would have a file that is open here for a
/// moment, and what somebody may still write to cannot be run.
pub(crate) fn copy_launcher(to: &Path) {
    let copied = Command::new("cp").arg(LAUNCHER).arg(to).status();
    assert!(copied.expect("cp runs").success(), "the launcher is copied");
}

/// Bytes as text without the newline at the end.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Ends a process of ours for sure.
pub(crate) fn kill(pid: i32) {
    assert!(pid > 1, "process {pid} is none of ours");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    wait_for_end(pid.as_raw_nonzero().get());
}

/// Waits until a process has ended.
pub(crate) fn wait_for_end(pid: i32) {
    let has_ended = wait_for(Duration::from_secs(60), || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z "))
            .then_some(())
            .ok_or(stat)
    });
    assert_eq!(has_ended, Ok(()));
}

/// Tries until it works or the time is over.
pub(crate) fn wait_for<T, E>(
    timeout: Duration,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let give_up = Instant::now() + timeout;
    loop {
        match attempt() {
            Err(_) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
}

/// Everything of this data directory that is still on the host: folders, claims, cgroups, processes, mounts, loop devices.
pub(crate) fn leftovers(data: &Path) -> Vec<String> {
    let mut remaining = Vec::new();
    for folder in ["sandboxes", "run/ids", "spares", "trash", "volumes"] {
        let entries =
            fs::read_dir(data.join(folder)).map(|entries| entries.flatten().collect::<Vec<_>>());
        remaining.extend(
            entries
                .unwrap_or_default()
                .iter()
                .map(|entry| format!("{folder}: {}", entry.path().display())),
        );
    }
    let run = fs::read_dir(data.join("run"))
        .into_iter()
        .flatten()
        .flatten();
    let names = run.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let expected = |name: &String| name == "ids" || name.ends_with(".lock");
    remaining.extend(
        names
            .filter(|name| !expected(name))
            .map(|name| format!("run: {name}")),
    );
    let name = data.display().to_string();
    let mounts = fs::read_to_string("/proc/mounts").expect("mounts");
    remaining.extend(
        mounts
            .lines()
            .filter(|line| line.contains(&name))
            .map(|line| format!("mount: {line}")),
    );
    for entry in fs::read_dir("/sys/block").expect("block devices").flatten() {
        let backing =
            fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        // The blank images' copies have been unlinked with their sandboxes; the kernel says so behind the name.
        if backing.contains(&name) {
            remaining.push(format!("loop: {}", backing.trim()));
        }
    }
    remaining.extend(processes(data).iter().map(|pid| format!("process: {pid}")));
    remaining.extend(
        cgroups(data)
            .into_iter()
            .map(|path| format!("cgroup: {}", path.display())),
    );
    remaining
}

/// Processes whose arguments name this data directory: its launcher and all its forks.
pub(crate) fn processes(data: &Path) -> Vec<i32> {
    let name = data.display().to_string();
    let is_one = |folder: &Path| {
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        // A process that has ended stays until its parent reaps it.
        String::from_utf8_lossy(&command).contains(&name)
            && fs::read_to_string(folder.join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    let all = fs::read_dir("/proc").expect("proc").flatten();
    all.filter(|entry| is_one(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The cgroup folders of this data directory's sandboxes.
pub(crate) fn cgroups(data: &Path) -> Vec<PathBuf> {
    let hash = data
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    let prefix = format!("sandyard-{hash:08x}");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        {
            match entry.file_name() == prefix.as_str() {
                true => found.extend(
                    fs::read_dir(entry.path())
                        .into_iter()
                        .flatten()
                        .flatten()
                        .map(|child| child.path())
                        .filter(|path| path.is_dir()),
                ),
                false => folders.push(entry.path()),
            }
        }
    }
    found
}
