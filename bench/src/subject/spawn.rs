//! Runs programs of the host and waits for them.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// Runs `command` and returns its output. A non-zero exit code is an error with its standard error.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(
        output.status.success(),
        "{command:?} exited with {}: {stderr}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs `command` and returns the time to its first byte of output.
pub(super) fn first_byte(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let mut output = child.stdout.take().context("a piped output went missing")?;
    let mut byte = [0];
    let arrived = output.read_exact(&mut byte).map(|()| start.elapsed());
    finish(child, command)?;
    arrived.with_context(|| format!("{command:?} wrote nothing"))
}

/// Runs `count` of `command` at once and waits for all.
pub(super) fn run_many(count: usize, command: impl Fn() -> Command) -> Result<()> {
    let children: Vec<Child> = (0..count)
        .map(|_| spawn(command().stdout(Stdio::null())))
        .collect::<Result<_>>()?;
    children
        .into_iter()
        .try_for_each(|child| finish(child, &command()))
}

fn spawn(command: &mut Command) -> Result<Child> {
    command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("failed to run {command:?}"))
}

fn finish(mut child: Child, command: &Command) -> Result<()> {
    let status = child.wait().context("failed to wait for a child")?;
    ensure!(status.success(), "{command:?} exited with {status}");
    Ok(())
}
