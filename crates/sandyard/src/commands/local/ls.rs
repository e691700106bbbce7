//! Sandboxes of this data directory's engine, oldest first.

use std::process::ExitCode;

use sandyard_core::size::Size;
use sandyard_engine::SandboxInfo;

use crate::global::Global;
use crate::output::{self, Cell, Format};

/// Lists sandboxes.
pub(in crate::commands) async fn ls(
    global: &Global,
    format: Format,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    let infos = global.engine().await?.list().await?;
    if format.json {
        output::json(&infos)?;
    } else if quiet {
        for info in &infos {
            output::line(info.id.as_str());
        }
    } else {
        output::table(
            &["ID", "STATE", "TEMPLATE", "MEMORY", "CPU", "DISK"],
            &infos.iter().map(row).collect::<Vec<_>>(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn row(info: &SandboxInfo) -> Vec<Cell> {
    vec![
        Cell::from(info.id.as_str()),
        Cell::status(&format!("{:?}", info.state).to_lowercase()),
        Cell::from(&info.template),
        Cell::from(Size(info.limits.memory_bytes).to_string()),
        Cell::from(format!("{}", f64::from(info.limits.cpu_millis) / 1000.0)),
        Cell::from(Size(info.limits.disk_bytes).to_string()),
    ]
}
