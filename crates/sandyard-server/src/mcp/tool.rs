//! What a tool is, and what a call of it knows.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{JsonObject, ProgressNotificationParam, ProgressToken, ToolAnnotations};
use rmcp::{Peer, RoleServer};
use sandyard_core::{ErrorKind, Scope};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::outcome::Outcome;
use crate::call::Call;
use crate::error::{ApiError, ApiResult};
use crate::tool_server::Progress as ProgressReport;

/// How long a notification waits for a client that does not read.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// The effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing.
    Reads,
    /// It adds something, another time if it is repeated.
    Adds,
    /// It sets a state; repeating it changes nothing more.
    Sets,
    /// It may remove something, and so may a repeated call.
    Destroys,
    /// It removes something; repeating it changes nothing more.
    Removes,
}

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// For models: short.
    pub(super) description: &'static str,
    /// What the caller's credentials must have.
    pub(super) scope: Scope,
    pub(super) effect: Effect,
    /// Whether it touches more than this server's sandboxes.
    pub(super) is_open: bool,
    /// The schemas of its arguments, and the names of those that must be given.
    pub(super) input: fn() -> Value,
    pub(super) required: &'static [&'static str],
    /// The schemas of the fields of its structured result, if that has one form, and the names of those that are always there.
    pub(super) output: Option<fn() -> Value>,
    pub(super) output_required: &'static [&'static str],
    pub(super) run: fn(ToolCall) -> BoxFuture<'static, ApiResult<Outcome>>,
}

impl Tool {
    /// As clients see it.
    pub(super) fn definition(&self) -> rmcp::model::Tool {
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(self.effect == Effect::Reads)
            .destructive(matches!(self.effect, Effect::Destroys | Effect::Removes))
            .idempotent(matches!(
                self.effect,
                Effect::Reads | Effect::Sets | Effect::Removes
            ))
            .open_world(self.is_open);
        let mut input = schema((self.input)(), self.required);
        input["additionalProperties"] = false.into();
        let tool = rmcp::model::Tool::new(self.name, self.description, object(input))
            .with_title(self.title)
            .with_annotations(hints);
        match self.output {
            Some(output) => {
                let output = schema(output(), self.output_required);
                tool.with_raw_output_schema(object(output))
            }
            None => tool,
        }
    }
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

/// A call of a tool: a [`Call`] with arguments.
pub(super) struct ToolCall {
    pub(super) call: Call,
    pub(super) arguments: JsonObject,
    pub(super) progress: Progress,
}

impl Deref for ToolCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl ToolCall {
    /// Reads the arguments.
    pub(super) fn read<T: DeserializeOwned>(&mut self) -> ApiResult<T> {
        let arguments = std::mem::take(&mut self.arguments);
        serde_json::from_value(Value::Object(arguments))
            .map_err(|error| ApiError::new(ErrorKind::Invalid, error.to_string()))
    }

    /// Gives an argument the name that the native dialect has for it.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.arguments.remove(from) {
            self.arguments.insert(to.to_owned(), value);
        }
    }
}

/// Sends a client the progress of a call, if it asked for that.
pub(super) struct Progress {
    last_progress: Option<f64>,
    to: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl Progress {
    pub(super) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self {
            last_progress: None,
            to: token.map(|token| (peer, token)),
        }
    }

    /// Whether the client asked for progress.
    pub(super) fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Sends a message. A client that no longer listens is not an error.
    pub(super) async fn report(&mut self, message: String) {
        let report = ProgressReport {
            progress: self.last_progress.unwrap_or_default() + 1.0,
            total: None,
            message: Some(message),
        };
        self.forward(report).await;
    }

    /// Forwards a report of a tool server. Drops numbers that do not grow: the protocol requires them to grow.
    pub(super) async fn forward(&mut self, report: ProgressReport) {
        let Some((peer, token)) = &self.to else {
            return;
        };
        let is_more = self
            .last_progress
            .is_none_or(|last_progress| report.progress > last_progress);
        if !is_more || !report.progress.is_finite() {
            return;
        }
        self.last_progress = Some(report.progress);
        let mut notice = ProgressNotificationParam::new(token.clone(), report.progress);
        notice.total = report.total.filter(|total| total.is_finite());
        notice.message = report.message;
        if timeout(NOTIFY_TIMEOUT, peer.notify_progress(notice))
            .await
            .is_err()
        {
            // It does not read: what it waits for is the result, and that must not wait for it.
            self.to = None;
        }
    }
}

/// The schema of an object.
pub(super) fn schema(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of the argument that names a sandbox.
pub(super) fn sandbox_id() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 128,
        "description": "The sandbox: its id or its alias",
    })
}
