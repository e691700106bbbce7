//! `GET /v2/sandboxes/{id}/logs` and `GET /sandboxes/{id}/logs`.

use std::collections::BTreeMap;

use crate::prelude::*;

use sandyard_service::{LogEntry, LogSource};
use serde_json::json;

use super::name::{self, SandboxParam};

/// Largest number of lines that are searched.
const MAX_LINES: usize = 1000;

/// Milliseconds since 1970.
type Millis = BoundedInt<0, 253_402_300_799_999>;

/// Level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bLogLevel)]
pub(crate) enum Level {
    /// Not used.
    Debug,
    /// Standard output of commands, and events of the sandbox.
    Info,
    /// Standard error of commands, and connections that the network policy denied.
    Warn,
    /// Not used.
    Error,
}

/// Line of a sandbox's log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bLogEntry)]
pub(crate) struct Line {
    /// Time of the line (RFC 3339).
    timestamp: String,
    /// Text of the line.
    message: String,
    /// Level of the line.
    level: Level,
    /// Where the line comes from, for example the process ID and `stdout` or `stderr`.
    fields: BTreeMap<&'static str, String>,
}

impl From<&LogEntry> for Line {
    fn from(entry: &LogEntry) -> Self {
        let mut fields = BTreeMap::from([("source", source(entry).to_owned())]);
        if let Some(pid) = entry.pid {
            fields.insert("pid", pid.to_string());
        }
        Self {
            timestamp: iso(entry.at_ms),
            message: entry.text.clone(),
            level: level(entry.source),
            fields,
        }
    }
}

fn source(entry: &LogEntry) -> &'static str {
    match entry.source {
        LogSource::Stdout => "stdout",
        LogSource::Stderr => "stderr",
        LogSource::Event => "event",
        LogSource::Gateway => "gateway",
        LogSource::Notice => "notice",
    }
}

fn level(source: LogSource) -> Level {
    match source {
        LogSource::Stdout | LogSource::Event => Level::Info,
        LogSource::Stderr | LogSource::Gateway | LogSource::Notice => Level::Warn,
    }
}

/// Direction of reading a log: `forward` from old to new, `backward` from new to old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bLogDirection)]
pub(crate) enum Direction {
    /// Later lines, oldest first.
    Forward,
    /// Earlier lines, newest first.
    Backward,
}

/// The lines to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// Time to start at, in milliseconds since 1970-01-01 UTC. Default: all of the newest 1,000 lines.
    #[param(inline)]
    cursor: Option<Millis>,
    /// Maximum number of lines, 0–1000 (default 1000).
    #[param(inline)]
    limit: Option<BoundedInt<0, 1000>>,
    /// Order of the lines: `forward` returns the oldest first, `backward` the newest first.
    #[param(inline)]
    direction: Option<Direction>,
    /// Return only lines of this level or above. Default: all.
    #[param(inline)]
    level: Option<Level>,
    /// Return only lines that contain this text, at most 256 characters.
    #[param(max_length = 256, pattern = r"^[^\u0000]*$")]
    search: Option<String>,
}

/// Log of a sandbox.
#[derive(Serialize, ToSchema)]
#[schema(as = E2bLogs)]
pub(crate) struct Logs {
    /// Log entries.
    logs: Vec<Line>,
}

/// Read the log of a sandbox with filters
///
/// Returns the newest output of commands and events.
#[utoipa::path(
    get, path = "/e2b/v2/sandboxes/{id}/logs", tag = "e2b", params(SandboxParam, LogsQuery),
    responses((status = 200, description = "Log returned.", body = Logs))
)]
pub(crate) async fn e2b_logs(
    call: Call,
    target: SandboxParam,
    Query(query): Query<LogsQuery>,
) -> Reply<Logs> {
    bounds::optional_text("search", query.search.as_deref(), 0, 256)?;
    let mut entries = newest(&call, &target).await?;
    let is_backward = query.direction == Some(Direction::Backward);
    entries.retain(|entry| {
        let is_beyond = query.cursor.is_none_or(|cursor| match is_backward {
            true => entry.at_ms <= cursor.0,
            false => entry.at_ms >= cursor.0,
        });
        let has_text = query
            .search
            .as_deref()
            .is_none_or(|text| entry.text.contains(text));
        is_beyond && has_text && query.level.is_none_or(|least| level(entry.source) >= least)
    });
    if is_backward {
        entries.reverse();
    }
    entries.truncate(query.limit.map_or(MAX_LINES, |limit| limit.0 as usize));
    Ok(Json(Logs {
        logs: entries.iter().map(Line::from).collect(),
    }))
}

/// The newest lines of a sandbox's log, oldest first.
async fn newest(call: &Call, target: &SandboxParam) -> ServiceResult<Vec<LogEntry>> {
    let sandbox = name::existing(call, &target.id).await?;
    let service = call.service();
    let lines = service.logs(&call.caller, sandbox.id.as_str(), MAX_LINES);
    Ok(lines.await?.entries)
}

/// The lines to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQueryV1 {
    /// Return only lines from this time on, in milliseconds since 1970-01-01 UTC. Default: the oldest.
    #[param(inline)]
    start: Option<Millis>,
    /// Maximum number of lines, 0–1000 (default 1000).
    #[param(inline)]
    limit: Option<BoundedInt<0, 1000>>,
}

/// Plain line of a sandbox's log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bLogLine)]
pub(crate) struct PlainLine {
    /// Time of the line (RFC 3339).
    timestamp: String,
    /// Level, source and text of the line, as a JSON object with the fields `level`, `logger` and `message`.
    line: String,
}

/// Log of a sandbox, as lines and as entries.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bLogsV1)]
pub(crate) struct LogsV1 {
    /// Log as plain lines.
    logs: Vec<PlainLine>,
    /// The same log as entries.
    log_entries: Vec<Line>,
}

/// Read the log of a sandbox
///
/// Returns the newest output of commands and events, oldest first, both as plain lines and as entries.
#[utoipa::path(
    get, path = "/e2b/sandboxes/{id}/logs", tag = "e2b", params(SandboxParam, LogsQueryV1),
    responses((status = 200, description = "Log returned.", body = LogsV1))
)]
pub(crate) async fn e2b_logs_v1(
    call: Call,
    target: SandboxParam,
    Query(query): Query<LogsQueryV1>,
) -> Reply<LogsV1> {
    let mut entries = newest(&call, &target).await?;
    let start_ms = query.start.map_or(0, |start| start.0);
    entries.retain(|entry| entry.at_ms >= start_ms);
    entries.truncate(query.limit.map_or(MAX_LINES, |limit| limit.0 as usize));
    let plain = |entry: &LogEntry| PlainLine {
        timestamp: iso(entry.at_ms),
        // E2B's command line parses it.
        line: json!({
            "level": level(entry.source),
            "logger": source(entry),
            "message": entry.text,
        })
        .to_string(),
    };
    Ok(Json(LogsV1 {
        logs: entries.iter().map(plain).collect(),
        log_entries: entries.iter().map(Line::from).collect(),
    }))
}
