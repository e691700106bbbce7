//! `sandyard logs` and `sandyard events`.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use sandyard_client::{Client, Event, EventFilter, LogEntry};
use serde_json::Value;

use super::args::seconds;
use super::render::{event_time, plain_text};
use crate::global::Global;
use crate::output::{self, Format};

/// Number of lines to print before following.
const DEFAULT_TAIL: usize = 200;
/// Largest number of lines that the server sends before following.
const MAX_TAIL: usize = 10_000;

#[derive(Debug, Args)]
#[command(after_help = "JSON output is one object per line.

Examples:
  sandyard logs build --follow
  sandyard logs build --since 10m --timestamps
  sandyard logs build --pid 12 --tail 50")]
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
    /// Print only lines since a time: a duration such as 10m, or a time such as 2026-11-19T20:30:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Timestamp>,
    /// Print only lines of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Print the time of each line
    #[arg(long, short)]
    timestamps: bool,
    #[command(flatten)]
    format: Format,
    /// Also print events of the sandbox, such as pauses
    #[arg(long)]
    events: bool,
}

/// Parses a moment: how long ago it was, or a time (RFC 3339).
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    let seconds = seconds(text)
        .map_err(|_| "expected a duration such as 10m, or a time such as 2026-11-19T20:30:00Z")?;
    let now = Timestamp::now().as_second();
    let at = now
        .checked_sub_unsigned(seconds)
        .and_then(|at| Timestamp::from_second(at).ok());
    at.ok_or_else(|| "too long ago".to_owned())
}

impl LogsArgs {
    fn prints(&self, entry: &LogEntry) -> bool {
        let is_since = self
            .since
            .is_none_or(|since| time_of(entry).is_none_or(|at| at >= since));
        let is_of_process = self.pid.is_none() || self.pid == entry.pid;
        is_since && is_of_process && (self.events || entry.source != "event")
    }
}

/// When a line was written.
fn time_of(entry: &LogEntry) -> Option<Timestamp> {
    let at_ms = entry.other.get("at_ms")?.as_i64()?;
    Timestamp::from_millisecond(at_ms).ok()
}

#[derive(Debug, Args)]
#[command(after_help = "JSON output is one object per line.

Examples:
  sandyard events build
  sandyard events --follow               # of all sandboxes
  sandyard events --tail 1000 --json")]
pub(crate) struct EventsArgs {
    /// ID or name of the sandbox; the ID of a deleted sandbox also works [default: all your sandboxes; for admins, everyone's]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Follow: print new events until Ctrl-C or until the named sandbox is deleted
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
    let print = |entry: &LogEntry| match args.prints(entry) {
        true => print_line(entry, args),
        false => Ok(()),
    };
    let id = &args.id;
    if !args.follow && !args.events && args.tail.is_none() {
        print_all(&client, id, print).await?;
        return Ok(ExitCode::SUCCESS);
    }
    // The lines to print may be among older ones.
    let is_filtered = args.since.is_some() || args.pid.is_some();
    let tail = args
        .tail
        .unwrap_or(if is_filtered { MAX_TAIL } else { DEFAULT_TAIL });
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
    let id = args.id.as_deref();
    let print = |event: &Event| print_event(event, id.is_none(), args.format);
    if !args.follow {
        let filter = EventFilter {
            limit: Some(args.tail),
            ..EventFilter::default()
        };
        let mut events = client.events(id, &filter).await?;
        // Command events are stored in batches, so their sequence numbers are not in order of time.
        events.sort_by_cached_key(|event| event.other.get("at").map(ToString::to_string));
        events.iter().try_for_each(print)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut stream = client.follow_events(id, args.tail).await?;
    while let Some(event) = stream.next().await? {
        print(&event)?;
        // `deleted` is the last event of a sandbox.
        if (event.kind == "deleted" && id.is_some()) || !output::is_writable() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(entry: &LogEntry, args: &LogsArgs) -> anyhow::Result<()> {
    if args.format.json {
        return output::json_line(entry);
    }
    let at = time_of(entry).filter(|_| args.timestamps);
    let at = at.map(|at| format!("{at:.3} ")).unwrap_or_default();
    // Some lines end with a newline, others do not.
    let text = entry.text.trim_end_matches(['\n', '\r']);
    for line in text.split('\n') {
        let line = output::escape_control(line);
        match entry.source.as_str() {
            // Not written by a program in the sandbox.
            "event" | "gateway" | "notice" => output::line(format!("{at}-- {line}")),
            _ => output::line(format!("{at}{line}")),
        }
    }
    Ok(())
}

fn print_event(event: &Event, names_sandbox: bool, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json_line(event);
    }
    let at = output::clock_time(&event_time(&event.other));
    let details = details(&event.data);
    let sandbox = match names_sandbox {
        true => format!("{:20}  ", event.sandbox_id),
        false => String::new(),
    };
    let text = format!(
        "{at}  {sandbox}{:13}  {:10}  {details}",
        event.kind, event.actor
    );
    output::line(output::escape_control(text.trim_end()));
    Ok(())
}

/// The details of an event, without empty ones.
fn details(data: &Value) -> String {
    let fields = data.as_object().into_iter().flatten();
    // The duration of a command that has not ended is the time that its start took.
    let has_ended = data["exit_code"].is_number() || data["reason"].is_string();
    let pairs = fields.filter_map(|(name, value)| {
        let text = plain_text(value);
        let is_shown = match name.as_str() {
            "command_id" => false,
            "duration_ms" => has_ended,
            _ => !text.is_empty(),
        };
        is_shown.then(|| format!("{name}={text}"))
    });
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_moment_is_a_duration_or_a_time() {
        let at = moment("2026-11-19T20:30:00Z").unwrap();
        assert_eq!(at.to_string(), "2026-11-19T20:30:00Z");
        let age_s = Timestamp::now().as_second() - moment("1h").unwrap().as_second();
        assert!((3600..3660).contains(&age_s), "{age_s}");
        for text in ["", "soon", "9999999999999999"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn empty_details_of_an_event_are_left_out() {
        let start = json!({"command": "sleep 9", "pid": 7, "exit_code": null, "duration_ms": 1, "command_id": "x"});
        assert_eq!(details(&start), "command=sleep 9 pid=7");
        let end = json!({"pid": 7, "exit_code": 0, "duration_ms": 9000});
        assert_eq!(details(&end), "duration_ms=9000 exit_code=0 pid=7");
        assert_eq!(details(&json!(null)), "");
    }
}
