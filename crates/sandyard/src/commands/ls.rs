//! `sandyard ls`: which sandboxes there are.

use std::process::ExitCode;

use clap::Args;
use sandyard_core::size::Size;
use sandyard_engine::SandboxInfo;

use crate::cli::Global;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists sandboxes, oldest first.
pub(crate) async fn ls(global: &Global, args: &LsArgs) -> anyhow::Result<ExitCode> {
    let infos = global.engine().await?.list().await?;
    if args.json {
        output::json(&infos)?;
    } else {
        output::table(
            &["ID", "STATE", "TEMPLATE", "MEMORY", "CPU", "DISK"],
            &infos.iter().map(row).collect::<Vec<_>>(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn row(info: &SandboxInfo) -> Vec<String> {
    vec![
        info.id.to_string(),
        format!("{:?}", info.state).to_lowercase(),
        info.template.clone(),
        Size(info.limits.memory_bytes).to_string(),
        format!("{}", f64::from(info.limits.cpu_millis) / 1000.0),
        Size(info.limits.disk_bytes).to_string(),
    ]
}
