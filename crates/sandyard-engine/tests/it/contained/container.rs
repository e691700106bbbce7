//! A container: a root with the host's `/usr` in it, and namespaces made by util-linux.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sandyard_agent_client::{AgentClient, Endpoint, RunOptions};
use sandyard_wire::process::ProcessConfig;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sandyard-contained");
const TIMEOUT: Duration = Duration::from_secs(120);

/// Mounts what every container has, in a namespace of its own, and becomes the first process.
const START: &str = r#"
set -e
mount --make-rprivate /
mount --rbind /usr "$0/usr"
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
ip link set lo up
exec "$@"
"#;

/// The tree that a container is made of.
pub(super) struct Image(TempDir);

impl Image {
    /// An image with `/etc`, as Debian's, but for what is asked about.
    pub(super) fn new() -> Self {
        let image = Self::scratch();
        image.write(
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/bash\nother:x:1000:1000::/:/bin/sh",
        );
        image.write("etc/group", "root:x:0:\nother:x:1000:\n");
        image.write("etc/shadow", "root:*:19000:0:99999:7:::\n");
        image.write("etc/resolv.conf", "nameserver 192.0.2.1\n");
        image.write("etc/skel/.profile", "# from skel\n");
        image
    }

    /// An image with nothing but programs.
    pub(super) fn scratch() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        // What a temporary folder has by default lets nobody in but root.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(root, open).expect("open it");
        for name in ["usr", "proc", "dev", ".sandyard"] {
            fs::create_dir(root.join(name)).expect("make");
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(Path::new("usr").join(name), root.join(name)).expect("a link");
        }
        // By a process of its own: whatever another test starts meanwhile would have a file that is open here for a moment, and
        // what somebody may still write to cannot be run.
        let copied = Command::new("cp")
            .args([PROGRAM, &root.join(".sandyard/agent").display().to_string()])
            .status();
        assert!(copied.expect("cp runs").success(), "the program is copied");
        Self(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("make");
        fs::write(path, text).expect("write");
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("read")
    }

    /// Starts a container with these options.
    pub(super) fn start(&self, options: &[&str]) -> Container<'_> {
        self.start_by(&[], options)
    }

    /// The same, through a program that starts others.
    pub(super) fn start_by(&self, through: &[&str], options: &[&str]) -> Container<'_> {
        let child = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--net",
                "--ipc",
                "--uts",
                "--fork",
                "--kill-child",
            ])
            .args(["sh", "-c", START])
            .arg(self.0.path())
            .args(through)
            .arg("chroot")
            .arg(self.0.path())
            .args(["/.sandyard/agent", "contained"])
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::from(
                fs::File::create(self.path("log")).expect("a log"),
            ))
            .spawn()
            .expect("unshare starts");
        Container { image: self, child }
    }
}

/// One that runs.
pub(super) struct Container<'a> {
    image: &'a Image,
    child: Child,
}

impl Container<'_> {
    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.image.path("run/sandyard/agent.sock"))
    }

    /// Its agent, when that is there.
    pub(super) async fn agent(&mut self) -> AgentClient {
        let client = AgentClient::new(self.endpoint());
        let give_up = Instant::now() + TIMEOUT;
        while client.health().await.is_err() {
            assert!(
                Instant::now() < give_up,
                "no agent: {}",
                self.image.read("log")
            );
            let ended = self.child.try_wait().expect("wait");
            assert!(ended.is_none(), "it ended: {}", self.image.read("log"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client
    }

    /// Sends its first process a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let parent = self.child.id();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let first = fs::read_to_string(children).expect("its children");
        let first = first.trim().parse().expect("a number");
        let first = Pid::from_raw(first).expect("a process");
        rustix::process::kill_process(first, signal).expect("kill");
    }

    /// Waits for its end; gives back the exit code.
    pub(super) async fn ended(&mut self) -> Option<i32> {
        let give_up = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status.code();
            }
            assert!(Instant::now() < give_up, "it goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // Its first process goes with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a line of shell as somebody; gives back what it printed, errors too.
pub(super) async fn sh(client: &AgentClient, user: Option<&str>, line: &str) -> String {
    let process = ProcessConfig {
        cmd: "/bin/bash".to_owned(),
        args: vec!["-c".to_owned(), format!("exec 2>&1; {line}")],
        ..ProcessConfig::default()
    };
    let options = RunOptions {
        user: user.map(str::to_owned),
        ..RunOptions::default()
    };
    let output = client.run(process, &options).await.expect("it runs");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}
