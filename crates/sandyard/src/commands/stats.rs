//! `sandyard metrics` and `sandyard stats`: what sandboxes use.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use sandyard_client::{Client, ListFilter, Metrics, SandboxInfo};
use sandyard_core::size::Size;

use super::info::SandboxArgs;
use crate::global::Global;
use crate::output::{self, Cell, Format, terminal_width};

/// Time between two measurements of the CPU time.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// IDs or names of the sandboxes [default: every running sandbox]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print one measurement and exit; implied when standard output is not a terminal
    #[arg(long, visible_alias = "no-stream")]
    once: bool,
    #[command(flatten)]
    format: Format,
}

/// What a sandbox uses, and what it may use.
struct Usage {
    sandbox: SandboxInfo,
    metrics: Metrics,
    /// Cores in use; unknown without two measurements.
    cores: Option<f64>,
}

/// Prints the resource usage of a sandbox without waking it.
pub(crate) async fn metrics(global: &Global, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if args.format.json {
        output::json(&client.metrics(&args.id).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sandbox = client.inspect(&args.id).await?;
    for usage in measure(&client, vec![sandbox]).await? {
        let [cpu, memory, disk, processes] = usage.texts();
        output::fields(&[
            ("CPU", Cell::from(cpu)),
            ("memory", Cell::from(memory)),
            ("disk", Cell::from(disk)),
            ("processes", Cell::from(processes)),
        ]);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the resource usage of several sandboxes, on a terminal until Ctrl-C.
pub(crate) async fn stats(global: &Global, args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let is_live = !args.once && !args.format.json && terminal_width().is_some();
    loop {
        let usages = measure(&client, chosen(&client, &args.ids).await?).await?;
        if args.format.json {
            let all: Vec<&Metrics> = usages.iter().map(|usage| &usage.metrics).collect();
            output::json(&all)?;
            return Ok(ExitCode::SUCCESS);
        }
        if is_live {
            // Clear the screen.
            output::line("\x1b[H\x1b[2J");
        }
        let rows: Vec<Vec<Cell>> = usages.iter().map(Usage::row).collect();
        let headings = ["SANDBOX", "CPU", "MEMORY", "DISK", "PROCESSES"];
        output::lines(&output::fitted_lines(&headings, headings.len(), &rows));
        if !is_live || !output::is_writable() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn chosen(client: &Client, ids: &[String]) -> anyhow::Result<Vec<SandboxInfo>> {
    if ids.is_empty() {
        let filter = ListFilter {
            status: Some("running".to_owned()),
            ..ListFilter::default()
        };
        return Ok(client.list_all(&filter).await?);
    }
    let mut sandboxes = Vec::new();
    for id in ids {
        sandboxes.push(client.inspect(id).await?);
    }
    Ok(sandboxes)
}

/// Measures twice: the CPU usage is the difference.
async fn measure(client: &Client, sandboxes: Vec<SandboxInfo>) -> anyhow::Result<Vec<Usage>> {
    let mut before = Vec::new();
    for sandbox in &sandboxes {
        before.push((client.metrics(&sandbox.sandbox_id).await?, Instant::now()));
    }
    if sandboxes.iter().any(|sandbox| sandbox.status == "running") {
        tokio::time::sleep(INTERVAL).await;
    }
    let mut usages = Vec::new();
    for (sandbox, (earlier, at)) in sandboxes.into_iter().zip(before) {
        let metrics = client.metrics(&sandbox.sandbox_id).await?;
        let spent_us = metrics.cpu_usage_us.zip(earlier.cpu_usage_us);
        let cores = spent_us.map(|(now, before)| {
            now.saturating_sub(before) as f64 / at.elapsed().as_micros().max(1) as f64
        });
        usages.push(Usage {
            cores: cores.filter(|_| sandbox.status == "running"),
            sandbox,
            metrics,
        });
    }
    Ok(usages)
}

impl Usage {
    fn row(&self) -> Vec<Cell> {
        let name = self.sandbox.alias.as_ref();
        let name = Cell::from(name.unwrap_or(&self.sandbox.sandbox_id));
        let texts = self.texts().into_iter().map(Cell::from);
        std::iter::once(name).chain(texts).collect()
    }

    /// CPU, memory, disk and processes with their limits.
    fn texts(&self) -> [String; 4] {
        let limit = |name: &str| self.sandbox.other.get("limits").map(|limits| &limits[name]);
        let size = |bytes: Option<u64>, name: &str| match bytes {
            None => String::new(),
            Some(bytes) => {
                let limit = limit(name).and_then(serde_json::Value::as_u64);
                let limit = limit.map(|limit| format!(" / {}", Size(limit).readable()));
                format!("{}{}", Size(bytes).readable(), limit.unwrap_or_default())
            }
        };
        let cache_bytes = self.metrics.other.get("memory_cache_bytes");
        let cache_bytes = cache_bytes.and_then(serde_json::Value::as_u64).unwrap_or(0);
        let memory_bytes = self.metrics.memory_bytes;
        let pids_limit = limit("pids").map(|limit| format!(" / {limit}"));
        [
            // Of one core, as `top` counts.
            self.cores
                .map(|cores| format!("{:.1} %", cores * 100.0))
                .unwrap_or_default(),
            size(
                memory_bytes.map(|bytes| bytes.saturating_sub(cache_bytes)),
                "memory_bytes",
            ),
            size(self.metrics.disk_bytes, "disk_bytes"),
            self.metrics
                .pids
                .map(|pids| format!("{pids}{}", pids_limit.unwrap_or_default()))
                .unwrap_or_default(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_shown_with_its_limits() {
        let limits = json!({"memory_bytes": 2u64 << 30, "disk_bytes": 4u64 << 30, "pids": 100});
        let mut usage = Usage {
            sandbox: read(json!({"sandbox_id": "abc", "status": "running", "limits": limits})),
            metrics: Metrics {
                memory_bytes: Some(3 << 20),
                pids: Some(2),
                other: read(json!({"memory_cache_bytes": 1 << 20})),
                ..Metrics::default()
            },
            cores: Some(0.25),
        };
        assert_eq!(usage.texts(), ["25.0 %", "2 MiB / 2 GiB", "", "2 / 100"]);
        usage.metrics.pids = None;
        assert_eq!(usage.texts()[3], "");
    }

    fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
        serde_json::from_value(value).unwrap()
    }
}
