//! Starting the launcher when none runs.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::EngineConfig;
use super::connection::Connection;
use crate::error::{EngineError, ErrorKind, Result};

/// How long a new launcher may take until it answers; its first sweep may have much to do.
const PATIENCE: Duration = Duration::from_secs(60);
const LOG: &str = "launcher.log";

/// Starts the launcher as a process of its own, which outlives us.
pub(super) async fn start(config: &EngineConfig) -> Result<()> {
    let Some((program, arguments)) = config.launcher.as_deref().and_then(<[String]>::split_first)
    else {
        return Err(EngineError::new(ErrorKind::Unavailable, "no launcher runs")
            .hint("start one with `sandyard launcher`"));
    };
    let failed = |error: std::io::Error| {
        EngineError::failed(format!("starting the launcher `{program}`"), &error)
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|error| {
            let doing = format!("making the data directory `{}`", config.data_dir.display());
            EngineError::failed(doing, &error).hint("name another one with --data-dir")
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
    // It passes its environment on to nobody, but root inside a sandbox can read what its first process was born with.
    command.env_clear().env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // It detaches at once: what we wait for is only the parent half, a few milliseconds.
    let status = tokio::task::spawn_blocking(move || command.status()).await;
    match status
        .map_err(|error| EngineError::failed("starting the launcher", &error))?
        .map_err(failed)?
    {
        status if status.success() => Ok(()),
        status => Err(explain(
            config,
            &format!("the launcher ended with {status}"),
        )),
    }
}

/// Connects as soon as the new launcher answers.
pub(super) async fn wait_for(socket: &Path, config: &EngineConfig) -> Result<Connection> {
    let give_up = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(connection) = Connection::open(socket).await {
            return Ok(connection);
        }
        let said = said(config);
        if Instant::now() >= give_up || said.is_some_and(|said| said.contains("error")) {
            return Err(explain(config, "the launcher does not answer"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn explain(config: &EngineConfig, what: &str) -> EngineError {
    let said = said(config).unwrap_or_default();
    let message = if said.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {said}")
    };
    EngineError::new(ErrorKind::Unavailable, message)
        .hint("`sandyard doctor` says what this host lacks")
}

fn said(config: &EngineConfig) -> Option<String> {
    let text = fs::read_to_string(config.data_dir.join(LOG)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
