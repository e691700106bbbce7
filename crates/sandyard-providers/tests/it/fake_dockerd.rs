//! A Docker daemon of one test's own: its own socket, files, containerd and control group, and nothing of the host's network.
//! Needs root and the package `docker.io`.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sandyard_core::Limits;
use sandyard_providers::CallTimeouts;
use sandyard_providers::docker::{Docker, DockerConfig, DockerNetwork, Pull, Workspace};
use serde_json::Value;
use tempfile::TempDir;

/// A daemon on two busy cores may take its time; nothing is measured by this.
const TIMEOUT: Duration = Duration::from_secs(240);
/// What containers are made of.
pub(crate) const IMAGE: &str = "sandyard-test:latest";

/// A daemon and its containerd, as systemd would start the two.
pub(crate) struct Dockerd {
    /// On a disk, so that containers are on Docker's usual overlay.
    data: TempDir,
    /// A socket's path must be short.
    run: TempDir,
    is_restoring: bool,
    containerd: Child,
    daemon: Child,
}

impl Dockerd {
    /// Starts one with the image of the tests in it. `is_restoring`: containers outlive it.
    pub(crate) async fn start(is_restoring: bool) -> Self {
        let folder = |folder_path: &str| {
            let mut builder = tempfile::Builder::new();
            builder.prefix("sandyard-docker-").tempdir_in(folder_path)
        };
        let data = folder("/var/tmp").expect("a folder");
        let run = folder("/run").expect("a folder: these tests need root");
        let tar = image(&data.path().join("docker"));
        let socket = run.path().join("containerd.sock");
        let settings = format!(
            "version = 2\nroot = {root:?}\nstate = {state:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\n  address = {socket:?}\n",
            root = data.path().join("containerd"),
            state = run.path().join("containerd"),
        );
        let path = run.path().join("containerd.toml");
        fs::write(&path, settings).expect("a file");
        fs::write(run.path().join("daemon.json"), "{}\n").expect("a file");
        let mut command = Command::new("containerd");
        command.arg("--config").arg(path);
        let containerd = spawn(&mut command, data.path());
        wait_until("containerd listens", || socket.exists());
        let daemon = spawn(&mut options(&data, &run, is_restoring), data.path());
        let mut dockerd = Self {
            data,
            run,
            is_restoring,
            containerd,
            daemon,
        };
        dockerd.wait_until_up();
        if dockerd.get(&format!("/images/{IMAGE}/json")).is_none() {
            let imported = dockerd.docker(&["import", tar.to_str().expect("text"), IMAGE]);
            assert!(imported.starts_with("sha256:"), "{imported}");
        }
        dockerd
    }

    fn wait_until_up(&mut self) {
        let give_up = Instant::now() + TIMEOUT;
        while self.get("/version").is_none() {
            let ended = self.daemon.try_wait().expect("a child");
            assert!(
                ended.is_none(),
                "dockerd ended with {ended:?}:\n{}",
                self.log()
            );
            assert!(
                Instant::now() < give_up,
                "dockerd does not answer:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.data.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Kills the daemon as a crash would, and starts it again.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.revive();
    }

    /// Kills the daemon as a crash would.
    pub(crate) fn kill(&mut self) {
        self.daemon.kill().expect("kill");
        self.daemon.wait().expect("wait");
    }

    /// Starts it again.
    pub(crate) fn revive(&mut self) {
        // Its number may be another process's by now.
        let _ = fs::remove_file(self.run.path().join("docker.pid"));
        let mut command = options(&self.data, &self.run, self.is_restoring);
        self.daemon = spawn(&mut command, self.data.path());
        self.wait_until_up();
    }

    /// From now on it accepts connections and answers none; or answers again.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let pid = self.daemon.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// What its API answers to a question; nothing where nobody answers or it is refused. Docker's own program would do, too, but
    /// takes more work to start than most questions are.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(self.run.path().join("docker.sock")).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        // Of this version of HTTP an answer ends with its connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?;
        let body = (status == "200").then_some(body)?;
        serde_json::from_str(body).ok()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host").arg(self.host()).args(arguments);
        command
    }

    /// What a command of Docker's own prints.
    pub(crate) fn docker(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("docker runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// All that Docker knows of a container.
    pub(crate) fn inspect(&self, id: &str) -> Value {
        let text = self.docker(&["inspect", id]);
        let mut all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        all.remove(0)
    }

    /// The names of all containers and volumes, and the ids of all images without a name: `container`, `volume` and `image` before
    /// each.
    pub(crate) fn everything(&self) -> Vec<String> {
        let list = |path: &str| self.get(path).expect("a list");
        let all = |list: &Value, name: &dyn Fn(&Value) -> String| {
            let list = list.as_array().cloned().unwrap_or_default();
            list.iter().map(name).collect::<Vec<_>>()
        };
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let containers = list("/containers/json?all=true");
        let mut found = all(&containers, &|one| {
            // One that is being removed has lost its name already.
            let name = one["Names"][0].as_str().unwrap_or_default();
            format!("container {}", name.trim_start_matches('/'))
        });
        found.extend(all(&list("/volumes")["Volumes"], &|one| {
            format!("volume {}", text(&one["Name"]))
        }));
        let nameless = "%7B%22dangling%22%3A%5B%22true%22%5D%7D";
        let images = list(&format!("/images/json?filters={nameless}"));
        found.extend(all(&images, &|one| format!("image {}", text(&one["Id"]))));
        found.sort();
        found
    }

    /// What is there of sandboxes: everything but the agent's program.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut all = self.everything();
        all.retain(|one| !one.contains(" sandyard-agent-"));
        all
    }

    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.run.path().join("docker.sock").display())
    }

    /// The configuration of a provider of that installation.
    pub(crate) fn config(&self, installation: &str) -> DockerConfig {
        DockerConfig {
            tools_port: 6060,
            host: Some(self.host()),
            cert_path: None,
            installation: installation.to_owned(),
            sealing_key: [7; 32],
            program: program().to_owned(),
            image: IMAGE.to_owned(),
            pull: Pull::Never,
            runtime: None,
            network: DockerNetwork::Gateway,
            user: None,
            has_new_privileges: false,
            seccomp: None,
            workspace: Workspace::Volume,
            projects: None,
            limits: (Limits::default(), Limits::DEFAULT_MAX),
            timeouts: CallTimeouts::default(),
        }
    }

    /// The provider under test, as the installation of that name.
    pub(crate) async fn provider(&self, installation: &str) -> Docker {
        let connected = Docker::connect(self.config(installation)).await;
        connected.expect("connect")
    }
}

impl Drop for Dockerd {
    /// Ends both, the containers before, and takes away what they leave on the host.
    fn drop(&mut self) {
        self.freeze_quietly();
        let containers = self.command(&["ps", "-aq"]).output();
        let containers = containers.map(|output| output.stdout).unwrap_or_default();
        let containers = String::from_utf8_lossy(&containers).into_owned();
        let ids: Vec<&str> = containers.split_whitespace().collect();
        if !ids.is_empty() {
            let arguments = [&["rm", "-f", "-v"], ids.as_slice()].concat();
            let _ = self.command(&arguments).output();
        }
        for child in [&mut self.daemon, &mut self.containerd] {
            end(child);
        }
        self.end_shims();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount_points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let is_below = |folder_path: &&str| {
            let mut own = [self.data.path(), self.run.path()].into_iter();
            own.any(|folder| Path::new(folder_path).starts_with(folder))
        };
        let mut mount_points: Vec<&str> = mount_points.filter(is_below).collect();
        mount_points.reverse();
        for folder_path in mount_points {
            let _ = Command::new("umount")
                .args(["--lazy", folder_path])
                .status();
        }
        // One tree of groups, or one for each controller.
        let root = Path::new("/sys/fs/cgroup");
        let trees = fs::read_dir(root).into_iter().flatten().flatten();
        let trees = trees
            .map(|tree| tree.path())
            .filter(|tree| !tree.is_symlink());
        for tree in trees.chain([root.to_owned()]) {
            remove_group(&tree.join(group(&self.run)));
        }
    }
}

impl Dockerd {
    fn freeze_quietly(&self) {
        let pid = self.daemon.id().to_string();
        let _ = Command::new("kill").args(["-CONT", &pid]).output();
    }

    /// Ends the processes that look after containers of a containerd that is gone; they name its socket.
    fn end_shims(&self) {
        let socket = self.run.path().join("containerd.sock");
        let socket = socket.to_str().expect("text");
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.split('\0').any(|argument| argument == socket) {
                let pid = entry.file_name();
                let _ = Command::new("kill").arg("-KILL").arg(pid).output();
            }
        }
    }
}

fn options(data: &TempDir, run: &TempDir, is_restoring: bool) -> Command {
    let run_path = |name: &str| run.path().join(name);
    let mut command = Command::new("dockerd");
    command
        .arg("--host")
        .arg(format!("unix://{}", run_path("docker.sock").display()))
        .arg("--containerd")
        .arg(run_path("containerd.sock"))
        .arg("--data-root")
        .arg(data.path().join("docker"))
        .arg("--exec-root")
        .arg(run_path("exec"))
        .arg("--pidfile")
        .arg(run_path("docker.pid"))
        .arg("--config-file")
        .arg(run_path("daemon.json"))
        .arg("--cgroup-parent")
        .arg(format!("/{}", group(run)))
        .args(["--log-level", "warn", "--shutdown-timeout", "5"])
        // Nothing of the host's network is touched.
        .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
        .args(["--ip-forward=false", "--ip-masq=false"]);
    if is_restoring {
        command.arg("--live-restore");
    }
    command
}

/// The name of the control group that containers are below.
fn group(run: &TempDir) -> String {
    let name = run.path().file_name().expect("a name");
    name.to_str().expect("text").to_owned()
}

fn spawn(command: &mut Command, data: &Path) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(data.join("log"));
    let log = log.expect("a log");
    let other = log.try_clone().expect("the same log");
    command
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(other)
        .spawn()
        .expect("docker.io is installed: run `./test` as root")
}

/// Asks a daemon to end, and makes it.
fn end(child: &mut Child) {
    let pid = child.id().to_string();
    let _ = Command::new("kill").args(["-TERM", &pid]).output();
    let give_up = Instant::now() + TIMEOUT;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Removes an empty control group with those below it.
fn remove_group(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < give_up, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A small Debian as an archive, made when there is none yet. Other tests use the same. A daemon that is started on `data` has it,
/// unless it keeps images in another way than usual.
fn image(data: &Path) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = target().join("test-images");
    let made = Command::new(checkout.join("tests/docker/images"))
        .args([folder.as_path(), data])
        .status();
    assert!(made.expect("the script runs").success(), "no image");
    folder.join("debian.tar")
}

/// Where everything is built.
fn target() -> PathBuf {
    // The tests are in `<target>/<triple>/<profile>/deps`.
    let tests = std::env::current_exe().expect("a path");
    tests
        .ancestors()
        .nth(4)
        .expect("four directories up")
        .to_owned()
}

/// Builds the program for containers once, unless it is given; it is a program of another crate.
fn program() -> &'static Path {
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
        assert!(status.success(), "the program for containers builds");
        let tests = std::env::current_exe().expect("a path");
        let root = tests.ancestors().nth(3).expect("three directories up");
        root.join("debug/sandyard-contained")
    })
}
