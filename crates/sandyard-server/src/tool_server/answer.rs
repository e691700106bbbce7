//! Reads the answers of a sandbox's tool server, which is not trusted: size and memory are bounded, and reading takes time in
//! proportion to the size.

use std::time::Duration;

use http::StatusCode;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use sandyard_core::ErrorKind;
use sandyard_service::{MemoryHold, UNCOUNTED_BYTES};
use serde_json::Value;

use super::progress::ProgressSender;
use crate::error::{ApiError, ApiResult};

/// Largest answer of a tool, in bytes: it may contain a screenshot.
pub(super) const MAX_RESULT: usize = 16 << 20;
/// Largest other answer, in bytes, and largest list of tools with all its pages.
pub(super) const MAX_ANSWER: usize = 4 << 20;
/// Most bytes of progress reports before an answer.
const MAX_PROGRESS: usize = 64 << 20;
/// Bytes of memory for a byte of an answer: the text and the values parsed from it.
const EXPANSION: usize = 3;
/// Smallest amount of memory, in bytes, that is reserved at once.
const STEP: usize = 64 << 10;
/// Longest wait of a large answer for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(30);
/// Longest text of the tool server, in characters, that an error repeats.
pub(super) const MAX_TEXT: usize = 500;

/// Response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The JSON message, if there is one.
    pub(super) message: Option<Value>,
    /// Bytes that were read.
    pub(super) size: usize,
}

/// Reads an answer of at most `max` bytes, and sends the progress reports before it to `progress`.
pub(super) async fn read(
    response: http::Response<Incoming>,
    max: usize,
    progress: Option<&ProgressSender>,
    memory: &MemoryHold,
) -> ApiResult<Answer> {
    let is_stream = crate::extract::media_type(response.headers()) == "text/event-stream";
    let mut answer = Answer {
        status: response.status(),
        message: None,
        size: 0,
    };
    let progress_bytes = progress.map_or(0, |_| MAX_PROGRESS);
    let mut body = Limited::new(response.into_body(), max + progress_bytes);
    let mut events = Events::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| not_a_tool_server("its answer is cut off or too long"))?;
        let data = frame.into_data().unwrap_or_default();
        answer.size += data.len();
        events.text.extend_from_slice(&data);
        if events.text.len() > max {
            return Err(not_a_tool_server("its answer is too long"));
        }
        let needed = events.text.len() * EXPANSION;
        if events.text.len() > UNCOUNTED_BYTES && needed > memory.bytes() {
            let more = (needed - memory.bytes()).max(STEP);
            memory.grow(more, MEMORY_WAIT).await?;
        }
        // A stream may stay open after the response.
        if is_stream {
            answer.message = events.take(|notice| {
                if let Some(progress) = progress {
                    progress.report(notice);
                }
            });
            if answer.message.is_some() {
                return Ok(answer);
            }
        }
    }
    if !is_stream {
        answer.message = serde_json::from_slice(&events.text).ok();
    }
    Ok(answer)
}

/// A stream of server-sent events.
#[derive(Default)]
struct Events {
    text: Vec<u8>,
    /// No event ends before this position.
    scanned: usize,
}

impl Events {
    /// Removes complete events until one is an answer; `on_notice` gets the rest of them.
    fn take(&mut self, mut on_notice: impl FnMut(&Value)) -> Option<Value> {
        let mut start = 0;
        let mut found = None;
        while found.is_none()
            && let Some((end, next)) = self.end_of_event()
        {
            found = match message_of(&self.text[start..end]) {
                Some(message) if is_answer(&message) => Some(message),
                Some(notice) => {
                    on_notice(&notice);
                    None
                }
                None => None,
            };
            start = next;
            self.scanned = next;
        }
        self.text.drain(..start);
        self.scanned -= start;
        found
    }

    /// The end of the next event, and the start of the one after it.
    fn end_of_event(&mut self) -> Option<(usize, usize)> {
        while let Some(at) = self.text[self.scanned..].iter().position(|it| *it == b'\n') {
            let end = self.scanned + at;
            match &self.text[end + 1..] {
                [b'\n', ..] => return Some((end, end + 2)),
                [b'\r', b'\n', ..] => return Some((end, end + 3)),
                // The next bytes decide.
                [] | [b'\r'] => {
                    self.scanned = end;
                    return None;
                }
                _ => self.scanned = end + 1,
            }
        }
        self.scanned = self.text.len();
        None
    }
}

/// Message of an event, if it has one.
fn message_of(event: &[u8]) -> Option<Value> {
    let event = String::from_utf8_lossy(event);
    let data: Vec<_> = event
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(str::trim_start)
        .collect();
    serde_json::from_str(&data.join("\n")).ok()
}

fn is_answer(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

/// Result of a response, or its error.
pub(super) fn result_of(method: &str, mut message: Value) -> ApiResult<Value> {
    if let Some(error) = message.get("error") {
        let reason = error["message"].as_str().unwrap_or("it does not say why");
        let detail = format!(
            "the sandbox's tool server refused `{method}`: {}",
            plain(reason, MAX_TEXT)
        );
        return Err(ApiError::new(ErrorKind::Conflict, detail)
            .hint("check the tool's name and its arguments"));
    }
    let result = message.get_mut("result").map(Value::take);
    result.ok_or_else(|| not_a_tool_server("its answer has no result"))
}

/// Tools of a page, and cursor of the next page.
pub(super) fn tools_of(mut page: Value) -> ApiResult<(Vec<Value>, Option<String>)> {
    let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
        return Err(not_a_tool_server("its list of tools is no list"));
    };
    let next = page["nextCursor"].as_str().map(str::to_owned);
    Ok((tools, next))
}

/// A text without control characters, shortened to `max` characters.
pub(crate) fn plain(text: &str, max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(max).collect()
}

/// The program on the tool server's port does not behave like a tool server.
pub(super) fn not_a_tool_server(reason: &str) -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        format!("what listens on the tool server's port is none: {reason}"),
    )
    .hint("use a template with a tool server")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STREAM: &[u8] =
        b"event: message\r\ndata: {\"method\":\"x\"}\r\n\r\nid: 1\ndata: {\"result\":\ndata: 7}\n\nrest";

    #[test]
    fn an_answer_is_found_in_a_stream_of_events_however_it_comes() {
        for size in [1, 2, 3, 7, STREAM.len()] {
            let mut events = Events::default();
            let mut found = None;
            let mut notices = Vec::new();
            for frame in STREAM.chunks(size) {
                events.text.extend_from_slice(frame);
                found = found.or_else(|| events.take(|notice| notices.push(notice.clone())));
            }
            assert_eq!(found.unwrap()["result"], 7, "{size}");
            assert_eq!(notices, [json!({"method": "x"})], "{size}");
            assert_eq!(events.text, b"rest", "{size}");
        }
        let mut events = Events::default();
        events.text.extend_from_slice(b"data: {\"result\":1}\n");
        assert!(events.take(|_| {}).is_none());
    }

    #[test]
    fn streams_without_an_answer_are_read_in_linear_time() {
        // This would take minutes if every event or byte caused a scan of the rest.
        let mut events = Events {
            text: b"\n\n".repeat(1 << 20),
            ..Events::default()
        };
        assert!(events.take(|_| {}).is_none());
        assert!(events.text.is_empty());
        for _ in 0..1 << 20 {
            events.text.push(b'x');
            assert!(events.take(|_| {}).is_none());
        }
        assert_eq!(events.text.len(), 1 << 20);
    }

    #[test]
    fn answers_of_any_form_are_read_without_a_panic() {
        for answer in [json!([]), json!(5), json!("x"), json!(null), json!({})] {
            assert!(result_of("tools/list", answer).is_err());
        }
        for error in [json!([]), json!(5), json!({"message": 7})] {
            assert!(result_of("tools/list", json!({"error": error})).is_err());
        }
        assert_eq!(
            result_of("x", json!({"result": "x"})).ok(),
            Some(json!("x"))
        );
        for page in [json!([]), json!(5), json!("x"), json!({"tools": 7})] {
            assert!(tools_of(page).is_err());
        }
        let (tools, cursor) = tools_of(json!({"tools": [1], "nextCursor": "c"})).unwrap();
        assert_eq!((tools.len(), cursor.as_deref()), (1, Some("c")));
    }
}
