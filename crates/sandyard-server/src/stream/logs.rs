//! The output of a sandbox's commands, so far and as it is written.

use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::sse::Event;
use futures_util::{Stream, stream};
use sandyard_service::{LogEntry, LogFollower};

use super::sse;
use crate::listen::Shutdown;
use crate::prelude::*;

/// Default number of lines.
const DEFAULT_TAIL: usize = 100;

/// Which lines of the log to read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Whether to stream new lines as server-sent events (default false).
    follow: Option<bool>,
    /// Number of lines, 0–10,000 (default 100): the newest, or with `after` the oldest of those. A response holds about
    /// 4 MiB of text at most, so it may have fewer lines.
    #[serde(alias = "limit")]
    #[param(inline)]
    tail: Option<BoundedInt<0, 10_000>>,
    /// Return only lines with a greater `seq`, oldest first and without events; 0 starts at the oldest line that is
    /// kept. To read a whole log, repeat the request with the last `seq` of the response while `has_more` is true.
    #[param(inline)]
    after: Option<BoundedInt<0, 9_007_199_254_740_991>>,
}

/// Lines of a sandbox's log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogLines {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// ID of the sandbox.
    sandbox_id: String,
    /// Lines, oldest first. Each has `seq`, `at_ms` (milliseconds since 1970-01-01 UTC), `source` (`stdout`, `stderr`,
    /// `event`, `gateway` or `notice`), `pid` and `text`.
    #[schema(value_type = Vec<Object>)]
    logs: Vec<LogEntry>,
    /// Number of the sandbox's first lines that are no longer kept, because the log is bounded.
    dropped_lines: u64,
    /// Whether more lines follow. Always false without `after`.
    has_more: bool,
}

/// Read the output of commands
///
/// Returns lines that the commands of a sandbox wrote. The server keeps the output on disk, up to
/// `logs.max_per_sandbox` (64 MiB by default), until the history of the sandbox expires. A line appears when its
/// newline has arrived or the command has ended.
///
/// With `follow=true`, or with the header `Accept: text/event-stream`, the response is a stream of server-sent events
/// named `log`. To continue a broken stream, send the last received event ID in `Last-Event-ID`.
#[utoipa::path(
    get, path = "/sandboxes/{id}/logs", tag = "sandboxes", params(SandboxName, LogQuery),
    responses((status = 200, description = "Lines returned, or streamed as they are written.", content(
        (LogLines = "application/json"), (String = "text/event-stream"))))
)]
pub(super) async fn read_logs(
    call: Call,
    name: SandboxName,
    Query(query): Query<LogQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let tail = query.tail.map_or(DEFAULT_TAIL, |tail| tail.0 as usize);
    let after = query.after.map(|after| after.0.unsigned_abs());
    let service = call.service();
    if !query.follow.unwrap_or(false) && !sse::is_wanted(&headers) {
        let lines = match after {
            Some(after) => {
                service
                    .logs_after(&call.caller, &name.id, after, tail)
                    .await?
            }
            None => service.logs(&call.caller, &name.id, tail).await?,
        };
        return Ok(Json(LogLines {
            success: true,
            sandbox_id: name.id,
            logs: lines.entries,
            dropped_lines: lines.dropped,
            has_more: lines.has_more,
        })
        .into_response());
    }
    let seen = sse::last_event_id(&headers).or(after);
    let follower = service
        .follow_logs(&call.caller, &name.id, tail, seen)
        .await?;
    Ok(sse::respond(events(follower, shutdown)))
}

fn events(
    follower: LogFollower,
    shutdown: Shutdown,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold(
        (follower, shutdown),
        |(mut follower, shutdown)| async move {
            let line = tokio::select! {
                line = follower.next() => line?,
                () = shutdown.wait() => return None,
            };
            let event = sse::event("log", &line);
            let event = match line.seq {
                // Events have no number.
                0 => event,
                seq => event.id(seq.to_string()),
            };
            Some((Ok(event), (follower, shutdown)))
        },
    )
}
