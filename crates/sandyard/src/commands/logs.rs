//! `sandyard logs` and `sandyard events`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Client, Event, EventFilter, LogEntry};

use super::render::{event_time, plain_text};
use crate::global::Global;
use crate::output::{self, Format};

/// Number of lines to print before following.
const DEFAULT_TAIL: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// ID or name of the sandbox; the ID of a deleted sandbox also works
    #[arg(value_name = "ID")]
    id: String,
    /// Follow: print new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Number of newest lines to print [default: all, or 200 with --follow or --events]
    #[arg(long, short = 'n', value_name = "COUNT")]
    tail: Option<usize>,
    #[command(flatten)]
    format: Format,
    /// Also print events of the sandbox, such as pauses
    #[arg(long)]
    events: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// ID or name of the sandbox; the ID of a deleted sandbox also works
    #[arg(value_name = "ID")]
    id: String,
    /// Follow: print new events until Ctrl-C or until the sandbox is deleted
    #[arg(long, short)]
    follow: bool,
    /// Number of newest events to print
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 200)]
    tail: usize,
    #[command(flatten)]
    format: Format,
}

/// Prints a sandbox's log. JSON output is one object per line.
pub(crate) async fn logs(global: &Global, args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let print = |entry: &LogEntry| match entry.source.as_str() {
        "event" if !args.events => Ok(()),
        _ => print_line(entry, args.format),
    };
    let id = &args.id;
    if !args.follow && !args.events && args.tail.is_none() {
        print_all(&client, id, print).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let tail = args.tail.unwrap_or(DEFAULT_TAIL);
    if !args.follow {
        for entry in client.logs(id, tail).await? {
            print(&entry)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut stream = client.follow_logs(id, tail).await?;
    while let Some(entry) = stream.next().await? {
        print(&entry)?;
        if !output::is_writable() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the whole log, page by page.
async fn print_all(
    client: &Client,
    id: &str,
    print: impl Fn(&LogEntry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = client.logs_after(id, after).await?;
        if after == 0 && page.dropped_lines > 0 {
            output::note(format!(
                "sandyard: the first {} lines of the log were dropped",
                page.dropped_lines
            ));
        }
        for entry in &page.entries {
            print(entry)?;
            after = after.max(entry.seq);
        }
        if !page.has_more || page.entries.is_empty() || !output::is_writable() {
            return Ok(());
        }
    }
}

/// Prints a sandbox's events. JSON output is one object per line.
pub(crate) async fn events(global: &Global, args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if !args.follow {
        let filter = EventFilter {
            limit: Some(args.tail),
            ..EventFilter::default()
        };
        let mut events = client.events(&args.id, &filter).await?;
        // Command events are stored in batches, so their sequence numbers are not in order of time.
        events.sort_by_cached_key(|event| event.other.get("at").map(ToString::to_string));
        for event in &events {
            print_event(event, args.format)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut stream = client.follow_events(&args.id, args.tail).await?;
    while let Some(event) = stream.next().await? {
        print_event(&event, args.format)?;
        // `deleted` is the last event of a sandbox.
        if event.kind == "deleted" || !output::is_writable() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(entry: &LogEntry, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json_line(entry);
    }
    // Some lines end with a newline, others do not.
    let text = entry.text.trim_end_matches(['\n', '\r']);
    for line in text.split('\n') {
        let line = output::escape_control(line);
        match entry.source.as_str() {
            // Not written by a program in the sandbox.
            "event" | "gateway" | "notice" => output::line(format!("-- {line}")),
            _ => output::line(line),
        }
    }
    Ok(())
}

fn print_event(event: &Event, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json_line(event);
    }
    let at = event_time(&event.other);
    let data = plain_text(&event.data);
    let text = format!("{at}  {:12}  {:10}  {data}", event.kind, event.actor);
    output::line(output::escape_control(text.trim_end()));
    Ok(())
}
