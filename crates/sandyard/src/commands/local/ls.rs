//! Lists sandboxes of this data directory's engine, oldest first.

use std::process::ExitCode;

use sandyard_core::size::Size;

use crate::global::Global;
use crate::output::{self, Cell, Format};

/// Lists sandboxes.
pub(in crate::commands) async fn ls(
    global: &Global,
    format: Format,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    let infos = global.engine().await?.list().await?;
    if quiet {
        infos.iter().for_each(|info| output::line(info.id.as_str()));
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["ID", "STATE", "TEMPLATE", "MEMORY", "CPU", "DISK"];
    format.print_table(&headings, &infos, |info| {
        vec![
            Cell::from(info.id.as_str()),
            Cell::status(&format!("{:?}", info.state).to_lowercase()),
            Cell::from(&info.template),
            Cell::from(Size(info.limits.memory_bytes).to_string()),
            Cell::from(format!("{}", f64::from(info.limits.cpu_millis) / 1000.0)),
            Cell::from(Size(info.limits.disk_bytes).to_string()),
        ]
    })
}
