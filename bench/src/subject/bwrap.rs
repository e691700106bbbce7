//! bubblewrap: namespaces around one command, and nothing else.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Live, Subject, spawn};
use crate::report::Column;

/// Starts every command with all namespaces unshared and the host's tree bound read-only.
#[derive(Debug)]
pub(crate) struct Bubblewrap {
    program: PathBuf,
}

impl Bubblewrap {
    /// Uses the `bwrap` at `program`.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Returns its name and version.
    pub(crate) fn version(&self) -> Result<String> {
        spawn::run(Command::new(&self.program).arg("--version"))
    }

    fn command(&self, sandbox_command: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--unshare-all", "--ro-bind", "/", "/"])
            .args(sandbox_command);
        command
    }
}

impl Subject for Bubblewrap {
    fn column(&self) -> Column {
        Column::Bubblewrap
    }

    fn samples(&self, full: usize) -> usize {
        full
    }

    fn one_shot(&self) -> Result<()> {
        spawn::run(&mut self.command(&["true"])).map(drop)
    }

    fn first_output(&self) -> Result<Duration> {
        spawn::first_byte(&mut self.command(&["echo", "ok"]))
    }

    fn burst_size(&self, full: usize) -> usize {
        full
    }

    fn burst(&self, count: usize) -> Result<Duration> {
        let start = Instant::now();
        spawn::run_many(count, || self.command(&["true"]))?;
        Ok(start.elapsed())
    }

    fn live(&self) -> Option<&dyn Live> {
        None
    }
}
