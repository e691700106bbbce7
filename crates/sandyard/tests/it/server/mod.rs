//! The program as client and as server. Needs what `sandyard run` needs.

mod copy;
mod e2b;
mod exec;
mod follow;
mod mcp;
mod network;
mod remote;
mod serve;
mod session;
mod terminal;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::yard::Yard;

/// A server with a data directory of its own. Its sandboxes and its launcher end with it.
pub(crate) struct Server {
    yard: Yard,
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
        Self::start_in(Yard::new(), flags)
    }

    /// Starts one in a place that may hold a configuration file.
    pub(crate) fn start_in(yard: Yard, flags: &[&str]) -> Self {
        let (child, url) = launch(&yard, &[&["--port", "0"], flags].concat());
        Self { yard, child, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn yard(&self) -> &Yard {
        &self.yard
    }

    /// The key that the first start made.
    pub(crate) fn admin_key(&self) -> String {
        let key = std::fs::read_to_string(self.yard.data().join("admin.key")).expect("a key");
        key.trim().to_owned()
    }

    /// Ends the server, and starts another at the same place.
    pub(crate) fn restart(&mut self) {
        assert!(self.stop(), "it ends well");
        let port = self.url.rsplit(':').next().expect("a port").to_owned();
        // A connection of another program may have got the port meanwhile, and gives it back.
        let give_up = Instant::now() + Duration::from_secs(120);
        let (child, url) = loop {
            match try_launch(&self.yard, &["--port", &port]) {
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

    /// Tells the server to end and says whether it ended well.
    pub(crate) fn stop(&mut self) -> bool {
        // One that was waited for has no number any more: it may be somebody else's.
        if let Ok(Some(status)) = self.child.try_wait() {
            return status.success();
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        self.child.wait().is_ok_and(|status| status.success())
    }

    /// The program as a client that knows the data directory, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = clean(&self.yard);
        command
            .args(arguments)
            .env("SANDYARD_DATA_DIR", self.yard.data())
            .env("SANDYARD_URL", &self.url);
        command
    }

    /// The program as a client of somewhere else: it has nothing but an address and perhaps a key.
    pub(crate) fn far(&self, key: Option<&str>, arguments: &[&str]) -> Output {
        let mut command = clean(&self.yard);
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
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim_end().to_owned()
    }

    /// The same for what prints JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(arguments)).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sandyard(&["rm", "--all"]);
        self.stop();
    }
}

/// What a command said to people.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program with nothing of this host's settings.
fn clean(yard: &Yard) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandyard"));
    command
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", yard.path())
        .current_dir(yard.path())
        .stdin(Stdio::null());
    command
}

fn launch(yard: &Yard, flags: &[&str]) -> (Child, String) {
    try_launch(yard, flags).unwrap_or_else(|why| panic!("{why}"))
}

/// Starts a server, or says why it does not.
fn try_launch(yard: &Yard, flags: &[&str]) -> Result<(Child, String), String> {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(yard.path().join("server.log"))
        .expect("a log");
    let mut child = clean(yard)
        .arg("serve")
        .arg("--data-dir")
        .arg(yard.data())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("start the server");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    // The rest must be taken too, or the server would write to nobody.
    std::thread::spawn(move || lines.for_each(drop));
    match first.rsplit_once(" at ") {
        Some((_, url)) => Ok((child, url.to_owned())),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            let log = std::fs::read_to_string(yard.path().join("server.log"));
            Err(format!("the server did not start: {first:?} {log:?}"))
        }
    }
}

/// Waits until something is so, and fails when it never is.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < give_up, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
