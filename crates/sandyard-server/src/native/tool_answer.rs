//! Reads what a sandbox's tool server answers: bounded, in time that grows with its length and no faster, and not believed.

use std::time::Duration;

use http::StatusCode;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use sandyard_core::ErrorKind;
use sandyard_service::{MemoryHold, UNCOUNTED};
use serde_json::Value;

use super::tool_progress::Hearer;
use super::tool_server::{MAX_WORD, nonsense, plain};
use crate::error::ApiError;

/// Largest answer of a tool: a picture of a screen may be in it.
pub(super) const MAX_RESULT: usize = 16 << 20;
/// Largest of all other answers, and of a list of tools with all its pages.
pub(super) const MAX_ANSWER: usize = 4 << 20;
/// Most that may be told before an answer, by calls whose progress somebody hears.
const MAX_TOLD: usize = 64 << 20;
/// Bytes of memory for a byte of an answer: itself, and what is read from it.
const EXPANSION: usize = 3;
/// The least that is taken at once.
const STEP: usize = 64 << 10;
/// How long a large answer waits for memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// None if it has none.
    pub(super) message: Option<Value>,
    /// How many bytes were read.
    pub(super) size: usize,
}

/// Reads an answer of at most `most` bytes, and lets what is told before it be heard.
pub(super) async fn read(
    response: http::Response<Incoming>,
    most: usize,
    hearer: Option<&Hearer>,
    memory: &MemoryHold,
) -> Result<Answer, ApiError> {
    let is_stream = crate::extract::media_type(response.headers()) == "text/event-stream";
    let mut answer = Answer {
        status: response.status(),
        message: None,
        size: 0,
    };
    let told = hearer.map_or(0, |_| MAX_TOLD);
    let mut body = Limited::new(response.into_body(), most + told);
    let mut events = Events::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| nonsense("its answer is cut off or too long"))?;
        let data = frame.into_data().unwrap_or_default();
        answer.size += data.len();
        events.text.extend_from_slice(&data);
        if events.text.len() > most {
            return Err(nonsense("its answer is too long"));
        }
        let needed = events.text.len() * EXPANSION;
        if events.text.len() > UNCOUNTED && needed > memory.bytes() {
            let more = (needed - memory.bytes()).max(STEP);
            memory.grow(more, PATIENCE).await?;
        }
        // A stream may stay open after the answer.
        if is_stream {
            answer.message = events.take(|notice| {
                if let Some(hearer) = hearer {
                    hearer.hear(notice);
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

/// A stream of events as it comes.
#[derive(Default)]
struct Events {
    text: Vec<u8>,
    /// Up to here no event ends.
    scanned: usize,
}

impl Events {
    /// Takes whole events off the front until one is an answer; `others` gets the rest of them.
    fn take(&mut self, mut others: impl FnMut(&Value)) -> Option<Value> {
        let mut start = 0;
        let mut found = None;
        while found.is_none()
            && let Some((end, next)) = self.end_of_event()
        {
            found = match message_of(&self.text[start..end]) {
                Some(message) if is_answer(&message) => Some(message),
                Some(notice) => {
                    others(&notice);
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

    /// Where the next event ends, and where the one after it begins.
    fn end_of_event(&mut self) -> Option<(usize, usize)> {
        while let Some(at) = self.text[self.scanned..].iter().position(|it| *it == b'\n') {
            let end = self.scanned + at;
            match &self.text[end + 1..] {
                [b'\n', ..] => return Some((end, end + 2)),
                [b'\r', b'\n', ..] => return Some((end, end + 3)),
                // What follows decides.
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

/// The message of an event, if it has one.
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

/// The result in an answer, or what went wrong.
pub(super) fn result_of(method: &str, mut message: Value) -> Result<Value, ApiError> {
    if let Some(error) = message.get("error") {
        let why = error["message"].as_str().unwrap_or("it does not say why");
        let detail = format!(
            "the sandbox's tool server refused `{method}`: {}",
            plain(why, MAX_WORD)
        );
        return Err(ApiError::new(ErrorKind::Conflict, detail)
            .hint("check the tool's name and its arguments"));
    }
    let result = message.get_mut("result").map(Value::take);
    result.ok_or_else(|| nonsense("its answer has no result"))
}

/// The tools of a page, and where the next one begins.
pub(super) fn tools_of(mut page: Value) -> Result<(Vec<Value>, Option<String>), ApiError> {
    let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
        return Err(nonsense("its list of tools is no list"));
    };
    let next = page["nextCursor"].as_str().map(str::to_owned);
    Ok((tools, next))
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
            let mut heard = Vec::new();
            for frame in STREAM.chunks(size) {
                events.text.extend_from_slice(frame);
                found = found.or_else(|| events.take(|notice| heard.push(notice.clone())));
            }
            assert_eq!(found.unwrap()["result"], 7, "{size}");
            assert_eq!(heard, [json!({"method": "x"})], "{size}");
            assert_eq!(events.text, b"rest", "{size}");
        }
        let mut events = Events::default();
        events.text.extend_from_slice(b"data: {\"result\":1}\n");
        assert!(events.take(|_| {}).is_none());
    }

    #[test]
    fn streams_without_an_answer_do_not_hold_up_the_server() {
        // Minutes, if every event or every byte made it look at all the rest again.
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
