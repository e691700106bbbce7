//! `GET /v2/sandboxes/{id}/logs` and `GET /sandboxes/{id}/logs`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sandyard_service::{LogEntry, LogSource};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::name::{self, Named};
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::Query;
use crate::time::iso;

/// Most lines that are looked at.
const MOST: usize = 1000;

/// Milliseconds since 1970.
type Millis = Whole<0, 253_402_300_799_999>;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bLogLevel)]
pub(crate) enum Level {
    Debug,
    /// What commands write, and what happens to the sandbox.
    Info,
    /// What commands write to standard error, and what the sandbox tried to reach and may not.
    Warn,
    Error,
}

/// A line of a sandbox's log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bLogEntry)]
pub(crate) struct Line {
    timestamp: String,
    message: String,
    level: Level,
    /// Where it comes from.
    fields: BTreeMap<&'static str, String>,
}

impl From<&LogEntry> for Line {
    fn from(entry: &LogEntry) -> Self {
        let source = match entry.source {
            LogSource::Stdout => "stdout",
            LogSource::Stderr => "stderr",
            LogSource::Event => "event",
            LogSource::Gateway => "gateway",
            LogSource::Notice => "notice",
        };
        let mut fields = BTreeMap::from([("source", source.to_owned())]);
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

fn level(source: LogSource) -> Level {
    match source {
        LogSource::Stdout | LogSource::Event => Level::Info,
        LogSource::Stderr | LogSource::Gateway | LogSource::Notice => Level::Warn,
    }
}

/// Which way to go from the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bLogDirection)]
pub(crate) enum Direction {
    /// To later lines, the oldest first.
    Forward,
    /// To earlier lines, the newest first.
    Backward,
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// Milliseconds since 1970 to begin at.
    #[param(inline)]
    cursor: Option<Millis>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<0, 1000>>,
    #[param(inline)]
    direction: Option<Direction>,
    /// Those that matter less are left out.
    #[param(inline)]
    level: Option<Level>,
    /// Only lines with this text in them.
    #[param(max_length = 256, pattern = r"^[^\u0000]*$")]
    search: Option<String>,
}

/// Lines of a sandbox's log.
#[derive(Serialize, ToSchema)]
#[schema(as = E2bLogs)]
pub(crate) struct Logs {
    logs: Vec<Line>,
}

/// Read the newest output of commands, and events
#[utoipa::path(
    get, path = "/e2b/v2/sandboxes/{id}/logs", operation_id = "e2b_logs", tag = "e2b",
    params(Named, LogsQuery),
    responses((status = 200, description = "It.", body = Logs))
)]
pub(crate) async fn e2b_logs(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    named: Named,
    Query(query): Query<LogsQuery>,
) -> Result<Json<Logs>, ApiError> {
    bounds::optional_text("search", query.search.as_deref(), 0, 256)?;
    let sandbox = name::existing(&app, &caller, &named.id).await?;
    let service = app.service();
    let lines = service.logs(&caller, sandbox.id.as_str(), MOST).await?;
    let mut entries = lines.entries;
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
    entries.truncate(query.limit.map_or(MOST, |limit| limit.0 as usize));
    Ok(Json(Logs {
        logs: entries.iter().map(Line::from).collect(),
    }))
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQueryV1 {
    /// Milliseconds since 1970 to begin at.
    #[param(inline)]
    start: Option<Millis>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<0, 1000>>,
}

/// A line, in the first generation's words.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bLogLine)]
pub(crate) struct PlainLine {
    timestamp: String,
    line: String,
}

/// Lines of a sandbox's log, twice.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bLogsV1)]
pub(crate) struct LogsV1 {
    logs: Vec<PlainLine>,
    log_entries: Vec<Line>,
}

/// Read the newest output of commands, and events
#[utoipa::path(
    get, path = "/e2b/sandboxes/{id}/logs", operation_id = "e2b_logs_v1", tag = "e2b",
    params(Named, LogsQueryV1),
    responses((status = 200, description = "It, oldest first.", body = LogsV1))
)]
pub(crate) async fn e2b_logs_v1(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    named: Named,
    Query(query): Query<LogsQueryV1>,
) -> Result<Json<LogsV1>, ApiError> {
    let sandbox = name::existing(&app, &caller, &named.id).await?;
    let service = app.service();
    let lines = service.logs(&caller, sandbox.id.as_str(), MOST).await?;
    let mut entries = lines.entries;
    let start_ms = query.start.map_or(0, |start| start.0);
    entries.retain(|entry| entry.at_ms >= start_ms);
    entries.truncate(query.limit.map_or(MOST, |limit| limit.0 as usize));
    let plain = |entry: &LogEntry| PlainLine {
        timestamp: iso(entry.at_ms),
        line: entry.text.clone(),
    };
    Ok(Json(LogsV1 {
        logs: entries.iter().map(plain).collect(),
        log_entries: entries.iter().map(Line::from).collect(),
    }))
}
