//! The server as a process: started with default settings, killed, restarted and removed.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::api::Api;
use crate::memory;
use crate::subject::engine::OwnEngine;

/// Time limit for a server to answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for a server to stop, longer than its grace period for running requests.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(1);

/// A running `sandyard serve` with a data directory of its own.
#[derive(Debug)]
pub(super) struct Process {
    program: PathBuf,
    data_dir: PathBuf,
    setup: Setup,
    pub(super) address: SocketAddr,
    child: Child,
}

/// What it is started with.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Flags.
    pub(super) options: Vec<String>,
    /// Variables.
    pub(super) settings: Vec<(&'static str, String)>,
}

impl Process {
    /// Starts `program` on a free port and waits until it answers.
    pub(super) fn start(program: PathBuf, data_dir: PathBuf, setup: Setup) -> Result<Self> {
        std::fs::create_dir_all(&data_dir)
            .with_context(|| format!("failed to make `{}`", data_dir.display()))?;
        let address = free_address()?;
        let child = spawn(&program, &data_dir, &setup, address)?;
        let mut process = Self {
            program,
            data_dir,
            setup,
            address,
            child,
        };
        process.wait_until_it_answers()?;
        Ok(process)
    }

    /// Returns its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with SIGKILL and restarts it on the same data. Returns when the new one answered.
    pub(super) fn crash_and_restart(&mut self) -> Result<()> {
        self.child.kill().context("failed to kill the server")?;
        self.child.wait().context("failed to wait for the server")?;
        self.child = spawn(&self.program, &self.data_dir, &self.setup, self.address)?;
        self.wait_until_it_answers()
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let give_up = Instant::now() + START_TIMEOUT;
        loop {
            let answer = Api::open(self.address).and_then(|api| api.health());
            let Err(error) = answer else {
                return Ok(());
            };
            if let Some(status) = self.child.try_wait()? {
                bail!("the server exited with {status}: {}", self.last_log_line());
            }
            if Instant::now() > give_up {
                return Err(error.context(format!(
                    "the server does not answer: {}",
                    self.last_log_line()
                )));
            }
            std::thread::sleep(INTERVAL);
        }
    }

    fn last_log_line(&self) -> String {
        let text = std::fs::read(log_file(&self.data_dir)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn stop(&mut self) -> Result<()> {
        end(self.child.id(), || Ok(self.child.try_wait()?.is_some()))
    }
}

impl Drop for Process {
    /// Leaves nothing running, even if a row failed.
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            use std::io::Write as _;
            writeln!(std::io::stderr(), "failed to end a server: {error:#}").ok();
        }
        take_sandboxes_away(&self.program, &self.data_dir);
    }
}

/// Stops the servers of an earlier run on `data_dir` and deletes their sandboxes.
pub(super) fn clear_up(program: &Path, data_dir: &Path) -> Result<()> {
    // Only processes that name this directory belong to the benchmark.
    for pid in memory::started_as("serve", &data_dir.display().to_string())? {
        end(pid, || Ok(!Path::new(&format!("/proc/{pid}")).exists()))?;
    }
    if data_dir.is_dir() {
        take_sandboxes_away(program, data_dir);
    }
    Ok(())
}

/// Dropping the engine deletes them and reports failures.
fn take_sandboxes_away(program: &Path, data_dir: &Path) {
    if let Err(error) = OwnEngine::start(program.to_owned(), data_dir.to_owned()) {
        use std::io::Write as _;
        writeln!(std::io::stderr(), "failed to clear up a server: {error:#}").ok();
    }
}

/// Terminates a process, and kills it if it does not stop in time.
fn end(pid: u32, mut is_over: impl FnMut() -> Result<bool>) -> Result<()> {
    let target = Pid::from_raw(i32::try_from(pid)?).context("there is no process 0")?;
    for signal in [Signal::TERM, Signal::KILL] {
        if is_over()? {
            return Ok(());
        }
        kill_process(target, signal).ok();
        let give_up = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < give_up {
            if is_over()? {
                return Ok(());
            }
            std::thread::sleep(INTERVAL);
        }
    }
    bail!("process {pid} does not end")
}

/// The environment and working directory of this process must not configure the server.
fn spawn(program: &Path, data_dir: &Path, setup: &Setup, address: SocketAddr) -> Result<Child> {
    let log = open_log(data_dir)?;
    Command::new(program)
        .arg("serve")
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--port", &address.port().to_string()])
        .args(&setup.options)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(setup.settings.iter().cloned())
        .current_dir(data_dir)
        // A Ctrl-C in the terminal must not reach the servers: the benchmark stops them itself.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("failed to share a log")?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("failed to start `{} serve`", program.display()))
}

fn open_log(data_dir: &Path) -> Result<File> {
    let path = log_file(data_dir);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("failed to open `{}`", path.display()))
}

/// Beside the directory, which is the server's own.
fn log_file(data_dir: &Path) -> PathBuf {
    data_dir.with_extension("log")
}

/// Finds a loopback port that is free, and the next one with it, which servers may also listen on.
fn free_address() -> Result<SocketAddr> {
    for _ in 0..100 {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = first.local_addr().context("a listener has no address")?;
        let second = address.port().checked_add(1);
        if second.is_some_and(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return Ok(address);
        }
    }
    bail!("no two neighbouring ports are free")
}
