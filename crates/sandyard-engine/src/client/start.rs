//! Starting the launcher when none runs.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::EngineConfig;
use super::connection::Connection;
use crate::error::{EngineError, ErrorKind, Result};

/// How long a new launcher may take to answer. Its first sweep may take a while.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOG: &str = "launcher.log";

/// Starts the launcher as a process that outlives this one.
pub(super) async fn start(config: &EngineConfig) -> Result<()> {
    let Some((program, arguments)) = config.launcher.as_deref().and_then(<[String]>::split_first)
    else {
        return Err(
            EngineError::new(ErrorKind::Unavailable, "no launcher is running")
                .hint("start one with `sandyard launcher`"),
        );
    };
    let failed = |error: std::io::Error| {
        EngineError::failed(format!("starting the launcher `{program}`"), &error)
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|error| {
            let operation = format!("making the data directory `{}`", config.data_dir.display());
            EngineError::failed(operation, &error).hint("use another directory with --data-dir")
        })?;
    let log = fs::File::create(config.data_dir.join(LOG)).map_err(failed)?;
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .arg("--detach")
        .arg("--data-dir")
        .arg(&config.data_dir);
    command
        .arg("--idle-exit")
        .arg(config.idle_exit.as_secs().to_string());
    if let Some(port) = config.tools_port {
        command.arg("--tools-port").arg(port.to_string());
    }
    if let Some(bytes) = config.memory_reserve {
        command.arg("--memory-reserve").arg(bytes.to_string());
    }
    if config.allow_faults {
        command.arg("--allow-faults");
    }
    // Root inside a sandbox can read the environment that its first process inherited from the launcher.
    command.env_clear().env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // It detaches at once, so this takes a few milliseconds.
    let status = tokio::task::spawn_blocking(move || command.status()).await;
    match status
        .map_err(|error| EngineError::failed("starting the launcher", &error))?
        .map_err(failed)?
    {
        status if status.success() => Ok(()),
        status => Err(explain(
            config,
            &format!("the launcher exited with {status}"),
        )),
    }
}

/// Connects as soon as the new launcher answers.
pub(super) async fn wait_for(socket: &Path, config: &EngineConfig) -> Result<Connection> {
    let deadline = Instant::now() + TIMEOUT;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(connection) = Connection::open(socket).await {
            return Ok(connection);
        }
        let has_failed = log(config).is_some_and(|log| log.contains("error"));
        if has_failed || Instant::now() >= deadline {
            return Err(explain(config, "the launcher does not answer"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn explain(config: &EngineConfig, what: &str) -> EngineError {
    let message = match log(config) {
        Some(log) => format!("{what}: {log}"),
        None => what.to_owned(),
    };
    EngineError::new(ErrorKind::Unavailable, message)
        .hint("run `sandyard doctor` to see what is missing on this host")
}

/// What the launcher has logged, if anything.
fn log(config: &EngineConfig) -> Option<String> {
    let text = fs::read_to_string(config.data_dir.join(LOG)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
