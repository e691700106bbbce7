//! An official SDK as a program of its own, since they are not Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{SdkOrder, SdkRun};

/// A Python with the SDKs, and the program that drives them.
#[derive(Clone, Debug)]
pub(crate) struct Sdk {
    /// The Python of a virtual environment.
    pub(crate) python: PathBuf,
    /// The program.
    pub(crate) program: PathBuf,
}

/// What the program prints last.
#[derive(Deserialize)]
struct Printed {
    millis: Vec<f64>,
    failures: Vec<String>,
}

impl Sdk {
    /// Creates `count` sandboxes with the SDK `name`, configured by `variables`.
    pub(super) fn run(
        &self,
        name: &str,
        order: SdkOrder,
        count: usize,
        variables: &[(&str, String)],
    ) -> Result<SdkRun> {
        let mut command = Command::new(&self.python);
        command.arg(&self.program).arg(name).arg(count.to_string());
        if order == SdkOrder::AtOnce {
            command.arg("--at-once");
        }
        // The environment of this process must not configure the SDK.
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(variables.iter().map(|(name, value)| (*name, value)));
        let output = command
            .output()
            .with_context(|| format!("failed to start `{}`", self.python.display()))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "the SDK's program exited with {}: {}",
            output.status,
            last_line(&stderr)
        );
        let printed = String::from_utf8_lossy(&output.stdout);
        let line = printed.lines().last().unwrap_or_default();
        let Printed { millis, failures } =
            serde_json::from_str(line).context("the SDK's program printed no figures")?;
        if let Some(failure) = failures.first() {
            use std::io::Write as _;
            let count = failures.len();
            writeln!(
                std::io::stderr(),
                "{count} failed through the SDK: {failure}"
            )
            .ok();
        }
        Ok(SdkRun { millis })
    }
}

fn last_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// The key of the first admin, who may have any number of sandboxes.
pub(super) fn admin_key(data_dir: &Path) -> Result<String> {
    let path = data_dir.join("admin.key");
    let key = std::fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    Ok(key.trim().to_owned())
}
