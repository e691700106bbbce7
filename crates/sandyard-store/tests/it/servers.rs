//! Real servers on sockets of their own.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::Mutex;

const UNPRIVILEGED_ID: u32 = 65534;

/// A PostgreSQL that only this process uses.
pub(crate) struct Postgres {
    directory: TempDir,
    bin: PathBuf,
    databases: AtomicU32,
}

impl Postgres {
    /// The server all tests share while any of them runs.
    pub(crate) async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(tokio::task::spawn_blocking(Self::start).await.unwrap());
        *shared = Arc::downgrade(&server);
        server
    }

    /// Starts one of its own.
    pub(crate) fn start() -> Self {
        let server = Self {
            directory: tempfile::tempdir().unwrap(),
            bin: postgres_binaries(),
            databases: AtomicU32::new(0),
        };
        give_away(server.directory.path());
        let data = server.data();
        server.run("initdb", |initdb| {
            initdb
                .args(["--username=sandyard", "--auth=trust", "--encoding=UTF8"])
                .args(["--no-sync", "--locale=C.UTF-8", "--pgdata"])
                .arg(&data);
        });
        server.begin();
        server
    }

    /// Starts its processes.
    pub(crate) fn begin(&self) {
        let socket = self.directory.path().display();
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={socket} -c fsync=off -c max_connections=200"
        );
        self.control(&["start", "--options", &options]);
    }

    /// Ends its processes as a crash would.
    pub(crate) fn crash(&self) {
        self.control(&["stop", "--mode=immediate"]);
    }

    /// Makes an empty database; returns its URL.
    pub(crate) async fn new_database(self: &Arc<Self>) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let server = Arc::clone(self);
        let create = format!("CREATE DATABASE {name}");
        tokio::task::spawn_blocking(move || server.sql("postgres", &create))
            .await
            .unwrap();
        self.url(&name)
    }

    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.directory.path().display();
        format!("postgresql+asyncpg://sandyard@localhost/{database}?host={socket}")
    }

    /// Runs a statement beside the store.
    pub(crate) fn sql(&self, database: &str, statement: &str) {
        let socket = self.directory.path();
        self.run("psql", |psql| {
            psql.args([
                "--username=sandyard",
                "--quiet",
                "--no-psqlrc",
                "--dbname",
                database,
            ])
            .args(["--command", statement, "--host"])
            .arg(socket);
        });
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn control(&self, arguments: &[&str]) {
        let data = self.data();
        self.run("pg_ctl", |control| {
            control
                .args(arguments)
                .args([
                    "--wait",
                    "--silent",
                    "--timeout=180",
                    "--log=/dev/null",
                    "--pgdata",
                ])
                .arg(&data);
        });
    }

    fn run(&self, program: &str, arrange: impl FnOnce(&mut Command)) {
        let mut command = Command::new(self.bin.join(program));
        arrange(&mut command);
        command.current_dir("/").env("LC_ALL", "C");
        // A server started here would hold a pipe open for ever.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID);
        }
        let status = command.status().unwrap();
        assert!(status.success(), "`{program}` failed: {status}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.crash();
        }
    }
}

fn postgres_binaries() -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    versions
        .pop()
        .expect("PostgreSQL is missing: apt-get install postgresql")
}

/// PostgreSQL does not run as root.
fn give_away(path: &Path) {
    if rustix::process::geteuid().is_root() && path.metadata().unwrap().uid() == 0 {
        chown(path, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).unwrap();
    }
}

/// A Redis that keeps nothing and that only one test uses.
pub(crate) struct Redis {
    directory: TempDir,
    child: Option<Child>,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let mut server = Self {
            directory: tempfile::tempdir().unwrap(),
            child: None,
        };
        server.begin();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// Starts it, empty.
    pub(crate) fn begin(&mut self) {
        let mut command = Command::new("redis-server");
        command
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(self.socket())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command
            .spawn()
            .expect("Redis is missing: apt-get install redis-server");
        self.child = Some(child);
        for _ in 0..2400 {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("Redis does not start");
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
            let _ = std::fs::remove_file(self.socket());
        }
    }

    /// Lets it hang: its socket takes what is sent, and nothing comes back.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
