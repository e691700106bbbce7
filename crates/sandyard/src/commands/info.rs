//! `sandyard info`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::SandboxInfo;
use sandyard_core::size::Size;
use serde_json::Value;

use super::network;
use super::render::{field_text, plain_text};
use super::sandbox_text::{next_change, status};
use crate::global::Global;
use crate::output::{self, Cell, Format, ago, clock_time};

/// A sandbox, and how to print the answer.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) format: Format,
}

/// Prints the details of a sandbox.
pub(crate) async fn info(global: &Global, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let info = global.client()?.inspect(&args.id).await?;
    if args.format.json {
        output::json(&info)?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields: Vec<(&str, Cell)> = page(&info)
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| match name {
            "status" => (name, Cell::status(&text)),
            _ => (name, Cell::from(text)),
        })
        .collect();
    output::fields(&fields);
    Ok(ExitCode::SUCCESS)
}

fn page(info: &SandboxInfo) -> Vec<(&'static str, String)> {
    let other = |name: &str| field_text(&info.other, name);
    let joined = |pairs: &std::collections::BTreeMap<String, String>, between: &str| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| format!("{key}{between}{value}"));
        pairs.collect::<Vec<_>>().join(", ")
    };
    let ports: Vec<String> = info.public_ports.iter().map(u16::to_string).collect();
    let mut page = vec![
        ("id", info.sandbox_id.clone()),
        ("name", info.alias.clone().unwrap_or_default()),
        ("status", status(info).to_owned()),
        ("reason", other("reason")),
        ("next", next_change(info)),
        ("user", info.user_id.clone()),
        ("project", other("project")),
        ("template", info.template_id.clone()),
        ("provider", info.provider.clone()),
        (
            "created",
            time(info.created_at.as_deref().unwrap_or_default()),
        ),
        ("last used", time(&other("last_activity_at"))),
        ("stopped", time(&other("stopped_at"))),
        ("deleted", time(&other("deleted_at"))),
        (
            "limits",
            info.other.get("limits").map(limits).unwrap_or_default(),
        ),
        (
            "metadata",
            info.other
                .get("metadata")
                .map(plain_text)
                .unwrap_or_default(),
        ),
        // A policy is one line here; `sandyard network show` prints all of it.
        (
            "network",
            info.network
                .as_ref()
                .map(network::summary)
                .unwrap_or_default(),
        ),
        ("secrets", joined(&info.secrets, "=")),
        ("volumes", joined(&info.volumes, " from ")),
        ("public ports", ports.join(", ")),
        ("MCP tools", other("mcp_url")),
    ];
    let limitations = info.other.get("limitations").and_then(Value::as_array);
    for (index, sentence) in limitations.into_iter().flatten().enumerate() {
        let name = if index == 0 { "limitations" } else { "" };
        page.push((name, plain_text(sentence)));
    }
    page
}

/// A moment, relative and in full.
fn time(at: &str) -> String {
    match at {
        "" => String::new(),
        at => format!("{} ({} UTC)", ago(at), clock_time(at)),
    }
}

fn limits(limits: &Value) -> String {
    let size = |name: &str| Size(limits[name].as_u64().unwrap_or(0)).readable();
    let cores = match plain_text(&limits["cpu"]).trim_end_matches(".0") {
        "1" => "1 core".to_owned(),
        count => format!("{count} cores"),
    };
    format!(
        "{cores}, {} of memory, {} of disk, {} processes",
        size("memory_bytes"),
        size("disk_bytes"),
        limits["pids"]
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_has_only_what_the_sandbox_has() {
        let info: SandboxInfo = serde_json::from_value(json!({
            "sandbox_id": "abc", "status": "paused", "is_stopped": true, "user_id": "alice",
            "limits": {"cpu": 2.0, "memory_bytes": 2u64 << 30, "disk_bytes": 4u64 << 30, "pids": 1024},
            "limitations": ["no memory limit", "no disk limit"],
            "capabilities": {"pause": true}, "metadata": {"ticket": "42"},
        }))
        .unwrap();
        let page = page(&info);
        let of = |name| {
            let found = page
                .iter()
                .find(|(key, text)| *key == name && !text.is_empty());
            found.map(|(_, text)| text.as_str())
        };
        assert_eq!(of("status"), Some("stopped"));
        assert_eq!(
            of("limits"),
            Some("2 cores, 2 GiB of memory, 4 GiB of disk, 1024 processes")
        );
        assert_eq!(of("metadata"), Some("ticket=42"));
        assert_eq!(
            (of("limitations"), of("")),
            (Some("no memory limit"), Some("no disk limit"))
        );
        for name in ["name", "secrets", "next", "capabilities"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
