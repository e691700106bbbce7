//! Results, and failures as results: a model reads what went wrong and what to do about it.

use rmcp::model::{CallToolResult, ContentBlock};
use sandyard_core::ErrorKind;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{ApiError, status_of};

/// What a call came to.
pub(super) struct Outcome {
    /// For programs; none for what has no form of its own.
    value: Option<Value>,
    /// For models.
    content: Vec<ContentBlock>,
    is_error: bool,
}

impl Outcome {
    /// A result that reads well as it is.
    pub(super) fn of(value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        let text = value.to_string();
        Self::with_text(value, text)
    }

    /// A result with a text that reads better.
    pub(super) fn with_text(value: Value, text: impl Into<String>) -> Self {
        Self {
            value: Some(value),
            content: vec![ContentBlock::text(text)],
            is_error: false,
        }
    }

    /// What somebody else's tool answered.
    pub(super) fn relayed(
        content: Vec<ContentBlock>,
        value: Option<Value>,
        is_error: bool,
    ) -> Self {
        Self {
            value,
            content,
            is_error,
        }
    }

    /// The same as a failure.
    pub(super) fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// What the audit says of it: what a request would be answered with.
    pub(super) fn status(&self) -> u16 {
        if self.is_error {
            status_of(ErrorKind::Invalid).as_u16()
        } else {
            200
        }
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = if self.is_error {
            CallToolResult::error(self.content)
        } else {
            CallToolResult::success(self.content)
        };
        result.structured_content = self.value;
        result
    }
}

/// A failure in the words of the API.
pub(super) fn failure(error: ApiError) -> (CallToolResult, u16) {
    let field = error.field_name();
    let error = *error.error;
    let status = status_of(error.kind);
    if status.is_server_error() {
        tracing::error!(error.code = error.kind.code(), %error, "Tool call failed");
    }
    let mut body = json!({"code": error.kind.code(), "detail": error.message});
    for (name, word) in [("hint", error.hint), ("field", field)] {
        if let Some(word) = word {
            body[name] = word.into();
        }
    }
    if let Some(seconds) = error.retry_after_s {
        body["retry_after_seconds"] = seconds.into();
    }
    let text = ContentBlock::text(body.to_string());
    (CallToolResult::error(vec![text]), status.as_u16())
}
