//! What commands of a sandbox wrote, and what they write from now on.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use sandyard_core::Caller;
use sandyard_service::LogEntry;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};

use super::sse;
use crate::app::App;
use crate::bounds::Whole;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::listen::Ending;
use crate::need::Who;

/// Lines given when the caller does not say.
const DEFAULT_TAIL: usize = 100;
/// Lines given at most.
const MOST: usize = 10_000;

/// Which lines.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Whether to go on with lines as they come, as server-sent events.
    follow: Option<bool>,
    /// The newest so many; 100 if not said.
    #[serde(alias = "limit")]
    #[param(inline)]
    tail: Option<Whole<0, 10_000>>,
}

/// Lines of a log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogLines {
    success: bool,
    sandbox_id: String,
    /// Oldest first: `seq`, `at_ms`, `source` (stdout, stderr, event, gateway), `pid`, `text`.
    #[schema(value_type = Vec<Object>)]
    logs: Vec<LogEntry>,
}

/// Tells what commands of a sandbox wrote.
///
/// With `follow=true`, or when the client asks for `text/event-stream`, lines come as events named `log` as they are
/// written; `Last-Event-ID` goes on after a line.
#[utoipa::path(get, path = "/sandboxes/{id}/logs", operation_id = "read_logs", tag = "sandboxes",
    params(SandboxName, LogQuery),
    responses(
        (status = 200, description = "Lines", content(
            (LogLines = "application/json"), (String = "text/event-stream")))))]
pub(super) async fn read_logs(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    Query(query): Query<LogQuery>,
    ending: Ending,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tail = query.tail.map_or(DEFAULT_TAIL, |tail| tail.0 as usize);
    if !query.follow.unwrap_or(false) && !sse::is_wanted(&headers) {
        let logs = app.service().logs(&caller, &name.id, tail).await?;
        return Ok(Json(LogLines {
            success: true,
            sandbox_id: name.id,
            logs,
        })
        .into_response());
    }
    // First the new lines, then the old ones: none falls between.
    let lines = app.service().follow_logs(&caller, &name.id).await?;
    let seen: Option<u64> = sse::last_event_id(&headers);
    let wanted = if seen.is_some() { MOST } else { tail };
    let old = app.service().logs(&caller, &name.id, wanted).await?;
    let mut follower = Follower {
        app,
        caller,
        id: name.id,
        seen: seen.unwrap_or(0),
        ready: VecDeque::new(),
        lines,
        ending,
    };
    if seen.is_none() {
        // Those about the sandbox itself have no number and come only now.
        follower.seen = old.iter().map(|line| line.seq).max().unwrap_or(0);
        follower.ready = old.into();
    } else {
        follower.take(old);
    }
    Ok(sse::respond(follower.into_events()))
}

/// A client that follows.
struct Follower {
    app: App,
    caller: Caller,
    id: String,
    /// Number of the last line that was taken.
    seen: u64,
    ready: VecDeque<LogEntry>,
    lines: Receiver<LogEntry>,
    ending: Ending,
}

impl Follower {
    fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        stream::unfold(self, |mut follower| async move {
            let line = follower.next().await?;
            let event = sse::event("log", &line);
            let event = match line.seq {
                0 => event,
                seq => event.id(seq.to_string()),
            };
            Some((Ok(event), follower))
        })
    }

    async fn next(&mut self) -> Option<LogEntry> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            let line = tokio::select! {
                line = self.lines.recv() => line,
                () = self.ending.wait() => return None,
            };
            match line {
                Ok(line) => self.take([line]),
                // The client is slower than the command; what is still kept is given from where it stands.
                Err(RecvError::Lagged(_)) => {
                    let logs = self.app.service().logs(&self.caller, &self.id, MOST);
                    let lines = logs.await.ok()?;
                    self.take(lines);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
    /// Takes the lines that are new.
    fn take(&mut self, lines: impl IntoIterator<Item = LogEntry>) {
        for line in lines {
            if line.seq > self.seen {
                self.seen = line.seq;
                self.ready.push_back(line);
            }
        }
    }
}
