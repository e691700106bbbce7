//! JSON answers with long texts in them: each text is in memory once, and escaped while it is sent.
//!
//! A client that reads slowly therefore costs the server the text itself and one small piece, not a second copy of it in JSON, and
//! the memory is accounted for until the last piece is sent or the client is gone.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use sandyard_service::MemoryHold;
use serde::Serialize;

use crate::middleware::held_answer::SelfAccounted;

/// Bytes of a text that are escaped at once.
const PIECE: usize = 8 << 10;

/// A JSON object under construction.
#[derive(Debug, Default)]
pub(crate) struct StreamedObject {
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    /// JSON as it is.
    Json(Bytes),
    /// A text of which the bytes from `at` on are still to be escaped.
    Text { text: Arc<String>, at: usize },
}

impl StreamedObject {
    /// Adds a short field.
    pub(crate) fn field(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        self.begin(name, &value);
        self
    }

    /// Adds a text made of others.
    pub(crate) fn text(mut self, name: &str, texts: &[&Arc<String>]) -> Self {
        self.begin(name, "\"");
        for text in texts {
            let text = Arc::clone(text);
            self.parts.push_back(Part::Text { text, at: 0 });
        }
        self.parts.push_back(Part::Json(Bytes::from_static(b"\"")));
        self
    }

    fn begin(&mut self, name: &str, value: &str) {
        let before = if self.parts.is_empty() { '{' } else { ',' };
        let name = serde_json::Value::from(name);
        let json = format!("{before}{name}:{value}");
        self.parts.push_back(Part::Json(json.into()));
    }

    /// The answer, which holds `memory` until it is sent.
    pub(crate) fn into_response(mut self, memory: MemoryHold) -> Response {
        self.parts.push_back(Part::Json(Bytes::from_static(b"}")));
        let remaining_bytes = self.parts.iter().map(Part::len).sum();
        let body = Pieces {
            parts: self.parts,
            remaining_bytes,
            _memory: memory,
        };
        let json = [(header::CONTENT_TYPE, "application/json")];
        (json, Extension(SelfAccounted), Body::new(body)).into_response()
    }
}

impl Part {
    /// Bytes that are still to be sent.
    fn len(&self) -> u64 {
        match self {
            Self::Json(json) => json.len() as u64,
            Self::Text { text, at } => text.as_bytes()[*at..].iter().map(escaped_len).sum(),
        }
    }
}

/// How long a byte of a text is in JSON, as serde_json writes it.
fn escaped_len(byte: &u8) -> u64 {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// The body of such an answer.
#[derive(Debug)]
struct Pieces {
    parts: VecDeque<Part>,
    remaining_bytes: u64,
    _memory: MemoryHold,
}

impl Pieces {
    fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            let piece = match self.parts.front_mut()? {
                Part::Json(json) => std::mem::take(json),
                Part::Text { text, at } => {
                    let rest = &text[*at..];
                    let piece = &rest[..rest.floor_char_boundary(PIECE)];
                    *at += piece.len();
                    let json = serde_json::to_string(piece).unwrap_or_default();
                    match json.len() {
                        0..=2 => Bytes::new(),
                        // Without the quotes.
                        end => Bytes::from(json).slice(1..end - 1),
                    }
                }
            };
            if piece.is_empty() {
                self.parts.pop_front();
                continue;
            }
            return Some(piece);
        }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.next_piece();
        self.remaining_bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use sandyard_service::MemoryBudget;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn the_answer_is_what_serde_would_write_and_its_length_is_announced() {
        let every: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let long = every.repeat(100) + "😀";
        let budget = MemoryBudget::new(1 << 20);
        for text in [String::new(), "x".to_owned(), every, long] {
            let memory = budget.hold("a");
            memory.try_grow(1000).unwrap();
            let text = Arc::new(text);
            let response = StreamedObject::default()
                .field("n", 7)
                .text("one", &[&text])
                .text("two", &[&text, &text])
                .field("end", Option::<u8>::None)
                .into_response(memory);
            let announced = response.body().size_hint().exact().unwrap();
            let sent = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(announced, sent.len() as u64);
            let read: Value = serde_json::from_slice(&sent).unwrap();
            let two = format!("{text}{text}");
            assert_eq!(read, json!({"n": 7, "one": *text, "two": two, "end": null}));
            assert_eq!(budget.used(), 0);
        }
    }
}
