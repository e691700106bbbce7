//! The program as client and as server. Needs what `sandyard run` needs.

mod bulk;
mod completion;
mod copy;
mod e2b;
mod exec;
mod follow;
mod listing;
mod login;
mod mcp;
mod messages;
mod network;
mod processes;
mod remote;
mod serve;
mod session;
mod terminal;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::test_env::TestEnv;

/// A server with its own data directory. Dropping it ends its sandboxes and its launcher.
pub(crate) struct Server {
    env: TestEnv,
    child: Child,
    url: String,
}

impl Server {
    /// Starts one with nothing configured.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with some flags.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::start_in(TestEnv::new(), flags)
    }

    /// Starts one in an environment that may have a configuration file.
    pub(crate) fn start_in(env: TestEnv, flags: &[&str]) -> Self {
        let (child, url) = launch(&env, &[&["--port", "0"], flags].concat());
        Self { env, child, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn env(&self) -> &TestEnv {
        &self.env
    }

    /// The admin key.
    pub(crate) fn admin_key(&self) -> String {
        let key = std::fs::read_to_string(self.env.data().join("admin.key")).expect("a key");
        key.trim().to_owned()
    }

    /// Stops the server and starts another one on the same port.
    pub(crate) fn restart(&mut self) {
        assert!(self.stop(), "the server stops");
        let port = self.url.rsplit(':').next().expect("a port").to_owned();
        // Another program may have taken the port for a moment.
        let give_up = Instant::now() + Duration::from_secs(120);
        let (child, url) = loop {
            match try_launch(&self.env, &["--port", &port]) {
                Ok(launched) => break launched,
                Err(why) if why.contains("another program listens there") => {
                    assert!(Instant::now() < give_up, "{why}");
                    std::thread::sleep(Duration::from_secs(1));
                }
                Err(why) => panic!("{why}"),
            }
        };
        assert_eq!(url, self.url);
        self.child = child;
    }

    /// Stops the server and returns whether it succeeded.
    pub(crate) fn stop(&mut self) -> bool {
        // A reaped process has no pid: another process may have it.
        if let Ok(Some(status)) = self.child.try_wait() {
            return status.success();
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        self.child.wait().is_ok_and(|status| status.success())
    }

    /// The program as a client that knows the data directory, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = clean(&self.env);
        command
            .args(arguments)
            .env("SANDYARD_DATA_DIR", self.env.data())
            .env("SANDYARD_URL", &self.url);
        command
    }

    /// Runs the program as a remote client: it has only a URL and perhaps a key.
    pub(crate) fn as_remote(&self, key: Option<&str>, arguments: &[&str]) -> Output {
        let mut command = clean(&self.env);
        command.args(arguments).env("SANDYARD_URL", &self.url);
        if let Some(key) = key {
            command.env("SANDYARD_API_KEY", key);
        }
        command.output().expect("run the program")
    }

    pub(crate) fn sandyard(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("run the program")
    }

    /// Runs the program, which must succeed; returns what it prints, without the newline at the end.
    pub(crate) fn out(&self, arguments: &[&str]) -> String {
        let output = self.sandyard(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr_of(&output)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim_end().to_owned()
    }

    /// Runs the program, which must print JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(arguments)).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sandyard(&["rm", "--all", "--everyone"]);
        self.stop();
    }
}

/// The standard error of a command.
pub(crate) fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program without this host.s settings.
fn clean(env: &TestEnv) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandyard"));
    command
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", env.path())
        .current_dir(env.path())
        .stdin(Stdio::null());
    command
}

fn launch(env: &TestEnv, flags: &[&str]) -> (Child, String) {
    try_launch(env, flags).unwrap_or_else(|why| panic!("{why}"))
}

/// Starts a server, or returns why it failed.
fn try_launch(env: &TestEnv, flags: &[&str]) -> Result<(Child, String), String> {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(env.path().join("server.log"))
        .expect("a log");
    let mut child = clean(env)
        .arg("serve")
        .arg("--data-dir")
        .arg(env.data())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("start the server");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    // Read the rest too, so that the server.s writes do not fail.
    std::thread::spawn(move || lines.for_each(drop));
    match first.rsplit_once(" at ") {
        Some((_, url)) => Ok((child, url.to_owned())),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            let log = std::fs::read_to_string(env.path().join("server.log"));
            Err(format!("the server did not start: {first:?} {log:?}"))
        }
    }
}

/// Waits for a condition, and fails after two minutes.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < give_up, "timed out waiting: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
