//! Docker through its command line: what a person or a script that calls `docker run` pays.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::{CONTAINERS, DockerConfig, fewer_samples};
use crate::report::Column;
use crate::subject::{Live, Restart, Subject, spawn};

/// Network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Loopback only, as our own sandboxes have.
    None,
    /// The daemon's bridge, which is Docker's default.
    Bridge,
}

/// Starts the `docker` program for each step.
#[derive(Debug)]
pub(crate) struct DockerCli {
    config: DockerConfig,
    network: Network,
}

impl DockerCli {
    /// Uses the program and daemon of `config`, with this network for each container.
    pub(crate) fn new(config: DockerConfig, network: Network) -> Self {
        Self { config, network }
    }

    fn run(&self, options: &[&str], container_command: &[&str]) -> Command {
        let (limits, mut command) = (&self.config.limits, self.config.command("run"));
        if self.network == Network::None {
            command.arg("--network=none");
        }
        command.arg(format!("--memory={}", limits.memory_bytes));
        command.arg(format!("--cpus={}", f64::from(limits.cpu_millis) / 1000.0));
        command.arg(format!("--pids-limit={}", limits.pids));
        command
            .args(options)
            .arg(&self.config.image)
            .args(container_command);
        command
    }

    fn verb(&self, verb: &str, arguments: &[&str]) -> Result<String> {
        spawn::run(self.config.command(verb).args(arguments))
    }
}

impl Subject for DockerCli {
    fn column(&self) -> Column {
        match self.network {
            Network::None => Column::DockerCli,
            Network::Bridge => Column::DockerBridge,
        }
    }

    fn samples(&self, full: usize) -> usize {
        fewer_samples(full, 4)
    }

    fn one_shot(&self) -> Result<()> {
        spawn::run(&mut self.run(&["--rm"], &["true"])).map(drop)
    }

    fn first_output(&self) -> Result<Duration> {
        spawn::first_byte(&mut self.run(&["--rm"], &["echo", "ok"]))
    }

    fn burst_size(&self, full: usize) -> usize {
        full.min(CONTAINERS)
    }

    fn burst(&self, count: usize) -> Result<Duration> {
        let start = Instant::now();
        spawn::run_many(count, || self.run(&["--rm"], &["true"]))?;
        Ok(start.elapsed())
    }

    fn live(&self) -> Option<&dyn Live> {
        // The bridge changes nothing once a container runs, so that column has only rows that start one.
        (self.network == Network::None).then_some(self)
    }
}

impl Live for DockerCli {
    fn create(&self) -> Result<String> {
        spawn::run(&mut self.run(&["--detach"], &["sleep", "infinity"]))
    }

    fn exec(&self, id: &str) -> Result<()> {
        self.verb("exec", &[id, "true"]).map(drop)
    }

    fn pause(&self, id: &str) -> Result<()> {
        self.verb("pause", &[id]).map(drop)
    }

    fn resume(&self, id: &str) -> Result<()> {
        self.verb("unpause", &[id]).map(drop)
    }

    fn delete(&self, id: &str) -> Result<()> {
        self.verb("rm", &["--force", id]).map(drop)
    }

    fn status(&self, id: &str) -> Result<()> {
        let running = self.verb("inspect", &["--format={{.State.Running}}", id])?;
        ensure!(running == "true", "`{id}` does not run");
        Ok(())
    }

    fn keep_ready(&self, _count: usize) -> Result<usize> {
        Ok(0)
    }

    fn crowd_size(&self, _full: usize) -> Option<usize> {
        // The API column has these figures; a command line in between would add nothing to them.
        None
    }

    fn create_many(&self, count: usize) -> Result<Vec<String>> {
        (0..count).map(|_| self.create()).collect()
    }

    fn exec_all(&self, ids: &[String]) -> Result<usize> {
        Ok(ids.iter().filter(|id| self.exec(id).is_ok()).count())
    }

    fn delete_many(&self, ids: &[String]) -> Result<()> {
        ids.iter().try_for_each(|id| self.delete(id))
    }

    fn processes(&self, _id: &str) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn managers(&self) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn restart(&self, _ids: &[String]) -> Result<Option<Restart>> {
        Ok(None)
    }

    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>> {
        let mut file = tempfile::NamedTempFile::new().context("failed to make a file to copy")?;
        file.write_all(&vec![7; bytes])
            .context("failed to fill a file to copy")?;
        let (path, inside) = (file.path().display().to_string(), format!("{id}:/data"));
        let start = Instant::now();
        self.verb("cp", &[&path, &inside])?;
        self.verb("cp", &[&inside, &path])?;
        Ok(Some(start.elapsed()))
    }
}
