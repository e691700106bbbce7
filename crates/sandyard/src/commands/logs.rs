//! `sandyard logs` and `sandyard events`: what was written, what happened, and what is yet to.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Client, Event, EventFilter, LogEntry};

use super::show::{plain, time_of};
use crate::global::Global;
use crate::output::{self, Format};

/// Lines to begin with when following.
const DEFAULT_TAIL: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Id or name of a sandbox, or the id of a deleted one
    #[arg(value_name = "ID")]
    id: String,
    /// Continue with new lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print only the newest lines [default: all that are kept, or 200 with --follow or --events]
    #[arg(long, short = 'n', value_name = "COUNT")]
    tail: Option<usize>,
    #[command(flatten)]
    format: Format,
    /// Show what happened to the sandbox in between
    #[arg(long)]
    events: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// How many of the newest lines to begin with
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 200)]
    tail: usize,
    #[command(flatten)]
    format: Format,
}

/// Prints a sandbox's log; as JSON one object a line.
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
        if !output::is_read() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints all lines that are kept, page by page.
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
                "sandyard: the first {} lines are no longer kept",
                page.dropped_lines
            ));
        }
        for entry in &page.entries {
            print(entry)?;
            after = after.max(entry.seq);
        }
        if !page.has_more || page.entries.is_empty() || !output::is_read() {
            return Ok(());
        }
    }
}

/// Prints what happened to a sandbox; as JSON one object a line.
pub(crate) async fn events(global: &Global, args: &WhichArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if !args.follow {
        let filter = EventFilter {
            limit: Some(args.tail),
            ..EventFilter::default()
        };
        let mut events = client.events(&args.id, &filter).await?;
        // Commands are written down in batches, so their numbers may come late; people read by time.
        events.sort_by_cached_key(|event| event.other.get("at").map(ToString::to_string));
        for event in &events {
            print_event(event, args.format)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut stream = client.follow_events(&args.id, args.tail).await?;
    while let Some(event) = stream.next().await? {
        print_event(&event, args.format)?;
        // Nothing happens to it after that.
        if event.kind == "deleted" || !output::is_read() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(entry: &LogEntry, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json_line(entry);
    }
    // Lines come with or without their newline; control characters of a stranger stay visible.
    let text = entry.text.trim_end_matches(['\n', '\r']);
    for line in text.split('\n') {
        let line = output::visible(line);
        match entry.source.as_str() {
            // What nobody in the sandbox wrote.
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
    let at = time_of(&event.other);
    let data = plain(&event.data);
    let text = format!("{at}  {:12}  {:10}  {data}", event.kind, event.actor);
    output::line(output::visible(text.trim_end()));
    Ok(())
}
