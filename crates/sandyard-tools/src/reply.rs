//! Results of tools.

use std::fmt::Display;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

/// Maximum text of a reply, in bytes. Tools have smaller limits of their own; this one holds for all.
pub(crate) const MAX_TEXT: usize = 256 * 1024;
/// Maximum size of an image, in bytes.
pub(crate) const MAX_IMAGE: usize = 5 * 1024 * 1024;

/// The result of a tool.
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
    /// From another MCP server.
    Ready(Box<ContentBlock>),
}

/// Why a tool failed. The text tells a model what to do instead.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

/// What a part of a tool returns.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// The outcome of a tool.
pub(crate) type Answer = Result<Reply>;

impl Problem {
    /// A problem with this text.
    pub(crate) fn new(text: impl Display) -> Self {
        Self(text.to_string())
    }
}

impl Reply {
    /// A reply with text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::default().with_text(text)
    }

    /// Adds text.
    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds an image, which the tool keeps below [`MAX_IMAGE`].
    pub(crate) fn with_image(mut self, data: Vec<u8>, media_type: impl Into<String>) -> Self {
        self.parts.push(Part::Image {
            data,
            media_type: media_type.into(),
        });
        self
    }

    /// Adds a content block of another MCP server.
    pub(crate) fn with_block(mut self, block: ContentBlock) -> Self {
        self.parts.push(Part::Ready(Box::new(block)));
        self
    }

    /// Adds a structured result, which must be an object. Some clients show a model only this part, so it must contain what matters
    /// in the text. A reply with images has none, because it cannot contain them.
    pub(crate) fn with_structured(mut self, value: impl Serialize) -> Self {
        self.structured = serde_json::to_value(value).ok().filter(Value::is_object);
        self
    }

    /// Marks the reply as a failure or not.
    pub(crate) fn with_failure(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// All text of the reply.
    #[cfg(test)]
    pub(crate) fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The structured result.
    #[cfg(test)]
    pub(crate) fn structured(&self) -> Option<&Value> {
        self.structured.as_ref()
    }

    /// Returns whether the reply is a failure.
    #[cfg(test)]
    pub(crate) fn is_error(&self) -> bool {
        self.is_error
    }

    /// The reply as an MCP result, within the limits.
    pub(crate) fn into_result(self) -> CallToolResult {
        let mut remaining_bytes = MAX_TEXT;
        let content = self.parts.into_iter().map(|part| match part {
            Part::Text(text) => {
                let text = truncate(text, remaining_bytes);
                remaining_bytes = remaining_bytes.saturating_sub(text.len());
                ContentBlock::text(text)
            }
            Part::Image { data, .. } if data.len() > MAX_IMAGE => ContentBlock::text(format!(
                "[image omitted: {} bytes, the maximum is {MAX_IMAGE}]",
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
        Self::text(problem.0).with_failure(true)
    }
}

/// Truncates a text to a limit in bytes, with a note about it.
pub(crate) fn truncate(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let total = text.len();
    text.truncate(text.floor_char_boundary(limit));
    let kept_bytes = text.len();
    text.push_str(&format!(
        "\n[truncated: the first {kept_bytes} of {total} bytes are shown]"
    ));
    text
}
