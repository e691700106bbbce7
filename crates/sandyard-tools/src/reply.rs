//! What comes back from a tool.

use std::fmt::Display;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

/// Most text of one reply in bytes. Tools cut more cleverly below this; it is what no mistake of theirs gets past.
pub(crate) const MAX_TEXT: usize = 256 * 1024;
/// Largest image of one reply.
pub(crate) const MAX_IMAGE: usize = 5 * 1024 * 1024;

/// What a tool answers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    parts: Vec<Part>,
    structured: Option<Value>,
    is_error: bool,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Image {
        data: Vec<u8>,
        media_type: String,
    },
    /// Made by somebody else's tool server.
    Ready(Box<ContentBlock>),
}

/// Why a tool could not do it, in words that tell a model what to do instead.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

/// What every tool's work comes to.
pub(crate) type Answer = Result<Reply, Problem>;

impl Problem {
    /// A problem in plain words.
    pub(crate) fn new(words: impl Display) -> Self {
        Self(words.to_string())
    }
}

impl Reply {
    /// A reply of text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::default().with_text(text)
    }

    /// The same with more text.
    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// The same with an image, which the tool has kept below [`MAX_IMAGE`].
    pub(crate) fn with_image(mut self, data: Vec<u8>, media_type: impl Into<String>) -> Self {
        self.parts.push(Part::Image {
            data,
            media_type: media_type.into(),
        });
        self
    }

    /// The same with a part that is ready to be sent.
    pub(crate) fn with_block(mut self, block: ContentBlock) -> Self {
        self.parts.push(Part::Ready(Box::new(block)));
        self
    }

    /// The same for programs to read: an object. Some clients show a model nothing else, so what matters in the text must be in
    /// it too; an answer with pictures, which have no place in it, has none.
    pub(crate) fn with_structured(mut self, value: impl Serialize) -> Self {
        self.structured = serde_json::to_value(value).ok().filter(Value::is_object);
        self
    }

    /// The same as a failure.
    pub(crate) fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Marked as a failure or not.
    pub(crate) fn with_failure(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// All its text.
    #[cfg(test)]
    pub(crate) fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// For programs to read.
    #[cfg(test)]
    pub(crate) fn structured(&self) -> Option<&Value> {
        self.structured.as_ref()
    }

    /// Whether it is a failure.
    #[cfg(test)]
    pub(crate) fn is_error(&self) -> bool {
        self.is_error
    }

    /// As MCP sends it, bounded.
    pub(crate) fn into_result(self) -> CallToolResult {
        let mut room = MAX_TEXT;
        let content = self.parts.into_iter().map(|part| match part {
            Part::Text(text) => {
                let text = cut(text, room);
                room = room.saturating_sub(text.len());
                ContentBlock::text(text)
            }
            Part::Image { data, .. } if data.len() > MAX_IMAGE => ContentBlock::text(format!(
                "[an image of {} bytes was left out: {MAX_IMAGE} are the most]",
                data.len()
            )),
            Part::Image { data, media_type } => {
                ContentBlock::image(STANDARD.encode(data), media_type)
            }
            Part::Ready(block) => *block,
        });
        let content = content.collect();
        let mut result = if self.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = self.structured;
        result
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        Self::text(problem.0).failed()
    }
}

/// Cuts a text at a limit, and says so.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let whole = text.len();
    text.truncate(text.floor_char_boundary(limit));
    let shown = text.len();
    text.push_str(&format!(
        "\n[cut: the first {shown} of {whole} bytes are shown]"
    ));
    text
}
