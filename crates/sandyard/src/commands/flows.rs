//! `sandyard flows`.

use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use indicatif::BinaryBytes;
use sandyard_client::{Flow, FlowFilter};

use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
#[command(after_help = "JSON output is one object per line.

Examples:
  sandyard flows build
  sandyard flows build --denied            # denied connections with the reason
  sandyard flows build --follow --json")]
pub(crate) struct FlowsArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Show only denied flows
    #[arg(long)]
    denied: bool,
    /// Follow: print new flows until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Number of newest flows to print
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 200,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    tail: u16,
    #[command(flatten)]
    format: Format,
}

/// Prints the network flows of a sandbox.
pub(crate) async fn flows(global: &Global, args: &FlowsArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let filter = FlowFilter {
        verdict: args.denied.then(|| "denied".to_owned()),
        limit: Some(args.tail.into()),
        ..FlowFilter::default()
    };
    if args.follow {
        let mut stream = client.follow_flows(&args.id, &filter).await?;
        while let Some(flow) = stream.next().await? {
            match args.format.json {
                true => output::json_line(&flow)?,
                false => output::line(output::escape_control(line(&flow).trim_end())),
            }
            if !output::is_writable() {
                break;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let flows = client.flows(&args.id, &filter).await?;
    match args.format.json {
        true => flows.iter().try_for_each(output::json_line)?,
        false => table(&flows),
    }
    Ok(ExitCode::SUCCESS)
}

fn table(flows: &[Flow]) {
    let row = |flow: &Flow| {
        vec![
            Cell::from(output::clock_time(&flow.at)),
            Cell::status(&flow.verdict),
            Cell::from(protocol(flow)),
            Cell::from(target(flow)),
            Cell::from(reason(flow)),
            Cell::from(bytes(flow.sent_bytes)),
            Cell::from(bytes(flow.received_bytes)),
            Cell::from(flow.address.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Cell>> = flows.iter().map(row).collect();
    let headings = [
        "TIME", "VERDICT", "PROTOCOL", "TARGET", "REASON", "SENT", "RECEIVED", "ADDRESS",
    ];
    output::lines(&output::fitted_lines(&headings, 5, &rows));
}

/// A flow as a line with fixed column widths, because the width of later flows is not known.
fn line(flow: &Flow) -> String {
    let sent_and_received = format!("{}/{}", bytes(flow.sent_bytes), bytes(flow.received_bytes));
    format!(
        "{}  {:7}  {:8}  {:32}  {:15}  {sent_and_received:21}  {}",
        flow.at,
        flow.verdict,
        protocol(flow),
        target(flow),
        flow.address.as_deref().unwrap_or("-"),
        reason(flow),
    )
}

/// The protocol; a summary covers several.
fn protocol(flow: &Flow) -> &str {
    let unknown = if flow.is_summary { "summary" } else { "-" };
    flow.protocol.as_deref().unwrap_or(unknown)
}

/// Name and port, or the address when the name is not known.
fn target(flow: &Flow) -> String {
    let host = match (&flow.name, &flow.address) {
        (Some(name), _) => name.clone(),
        (None, Some(address)) => match address.parse() {
            Ok(IpAddr::V6(address)) if flow.port.is_some() => format!("[{address}]"),
            _ => address.clone(),
        },
        (None, None) => "-".to_owned(),
    };
    match flow.port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

fn bytes(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        count => BinaryBytes(count).to_string(),
    }
}

fn reason(flow: &Flow) -> String {
    let reason = flow.reason.as_deref().unwrap_or_default();
    match flow.count {
        0 | 1 => reason.to_owned(),
        count => format!("{reason} ({count} times)").trim_start().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flow(fields: serde_json::Value) -> Flow {
        let mut flow = json!({"seq": 1, "sandbox_id": "abc", "protocol": "tcp", "verdict": "denied", "count": 1});
        let (all, more) = (flow.as_object_mut().unwrap(), fields.as_object().unwrap());
        all.extend(more.clone());
        serde_json::from_value(flow).unwrap()
    }

    #[test]
    fn a_target_is_a_name_or_else_an_address() {
        for (fields, expected) in [
            (
                json!({"name": "a.example", "address": "192.0.2.1", "port": 443}),
                "a.example:443",
            ),
            (json!({"name": "a.example"}), "a.example"),
            (json!({"address": "192.0.2.1", "port": 25}), "192.0.2.1:25"),
            (
                json!({"address": "2001:db8::1", "port": 80}),
                "[2001:db8::1]:80",
            ),
            (json!({"address": "2001:db8::1"}), "2001:db8::1"),
            (json!({}), "-"),
        ] {
            assert_eq!(target(&flow(fields)), expected);
        }
    }

    #[test]
    fn a_summary_is_labelled() {
        let summary = flow(
            json!({"protocol": null, "is_summary": true, "count": 900, "reason": "too many at once"}),
        );
        let text = line(&summary);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..3], ["denied", "summary", "-"]);
        assert!(text.ends_with("too many at once (900 times)"), "{text}");
        assert_eq!(protocol(&flow(json!({"protocol": null}))), "-");
        assert_eq!(protocol(&flow(json!({}))), "tcp");
    }

    #[test]
    fn the_count_of_equal_flows_is_shown() {
        assert_eq!(
            reason(&flow(json!({"reason": "no", "count": 3}))),
            "no (3 times)"
        );
        assert_eq!(reason(&flow(json!({"count": 3}))), "(3 times)");
        assert_eq!(reason(&flow(json!({"reason": "no"}))), "no");
    }

    #[test]
    fn byte_counts_have_binary_units() {
        assert_eq!([0, 512, 1536].map(bytes), ["0", "512 B", "1.50 KiB"]);
    }
}
