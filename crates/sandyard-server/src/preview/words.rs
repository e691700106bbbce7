//! What is said when a port cannot be shown: a page to people, JSON to programs, and to E2B's clients the JSON they know.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use sandyard_agent_client::ClientError;
use sandyard_core::ErrorKind;
use sandyard_preview::access::accepts_html;
use sandyard_preview::{ForwardError, Page, PreviewAddress, PreviewForm, Problem};
use sandyard_service::{Sandbox, ServiceError};
use sandyard_store::model::Expiry;

use crate::app::App;
use crate::e2b::data::{self, Absent, Told, about};
use crate::error::ApiError;

/// For how long after its start a sandbox may still be starting what shall listen.
const STARTING_MS: i64 = 60_000;
/// How soon a page then looks again.
const RELOAD: Duration = Duration::from_secs(2);

/// The port that E2B's code interpreter has in every sandbox: only E2B's clients ask for it.
const INTERPRETER_PORT: u16 = 49999;

/// What the way to a port said stands in the way.
fn reason(error: &ForwardError) -> Option<&str> {
    let ForwardError::Unreachable { source, .. } = error else {
        return None;
    };
    match source.downcast_ref::<ClientError>()? {
        ClientError::Remote { message, .. } => Some(message),
        _ => None,
    }
}

/// What is known of who asks, and of what for.
pub(super) struct Words<'a> {
    address: &'a PreviewAddress,
    headers: HeaderMap,
    is_e2b: bool,
    /// Whether it is VS Code's port, which only some templates serve.
    is_editor: bool,
    /// Whether it is the tool server's port, which programs open with a key.
    is_tools: bool,
    age_ms: Option<i64>,
}

impl<'a> Words<'a> {
    pub(super) fn new(app: &App, parts: &Parts, address: &'a PreviewAddress) -> Self {
        Self {
            is_editor: address.port == app.settings().vscode_port,
            is_tools: app.is_tools_port(address.port),
            address,
            headers: parts.headers.clone(),
            is_e2b: data::is_data(&parts.extensions)
                || (address.form == PreviewForm::Host && address.port == INTERPRETER_PORT),
            age_ms: None,
        }
    }

    /// Notes what is known of the sandbox. Those of E2B's clients have a fixed end and say who may open their ports.
    pub(super) fn know(&mut self, app: &App, sandbox: Option<&Sandbox>, is_public: Option<bool>) {
        let Some(sandbox) = sandbox else { return };
        self.is_e2b |= is_public.is_some() && sandbox.expiry == Expiry::Fixed;
        self.age_ms = sandbox
            .started_ms
            .map(|started_ms| app.service().clock().now_ms() - started_ms);
    }

    /// Says whether E2B's clients are meant.
    pub(super) fn is_e2b(&self) -> bool {
        self.is_e2b
    }

    pub(super) fn problem(&self, problem: Problem) -> Response {
        // A template that has it has it started by the first connection: this one has none.
        let problem = match problem {
            Problem::PortClosed if self.is_editor => Problem::NoEditor,
            Problem::PortClosed if self.is_tools => Problem::NoTools,
            Problem::NeedsLink if self.is_tools => Problem::NeedsKey,
            other => other,
        };
        if !self.is_e2b || accepts_html(&self.headers) {
            return self.page(problem);
        }
        self.tell(&match problem {
            Problem::Gone => Told::NotFound,
            Problem::PortClosed | Problem::NoEditor | Problem::NoTools => {
                Told::PortClosed(self.address.port)
            }
            other => Told::Other(other.status(), other.message(self.address.port)),
        })
    }

    /// Says that a sandbox's token is needed.
    pub(super) fn token(&self, told: &Told) -> Response {
        if accepts_html(&self.headers) {
            return self.page(Problem::Refused);
        }
        self.tell(told)
    }

    /// Says why there is no sandbox to talk to.
    pub(super) fn absent(&self, absent: &Absent) -> Response {
        match absent {
            Absent::Resting if !self.is_e2b => self.page(Problem::CannotWake),
            Absent::Gone | Absent::Resting => self.problem(Problem::Gone),
            Absent::Failed(error) => self.failure(error),
        }
    }

    /// Says that the lifecycle failed.
    pub(super) fn failure(&self, error: &ServiceError) -> Response {
        self.problem(match error.kind {
            ErrorKind::SandboxNotFound | ErrorKind::NotFound => Problem::Gone,
            ErrorKind::Unavailable | ErrorKind::TimedOut => Problem::Unreachable,
            _ => Problem::CannotWake,
        })
    }

    /// Says that a request did not get through.
    pub(super) fn failed(&self, error: &ForwardError) -> Response {
        let PreviewAddress { sandbox, port, .. } = self.address;
        tracing::debug!(sandbox.id = %sandbox, port, %error, "Preview failed");
        if let Some(reason) = reason(error)
            && !accepts_html(&self.headers)
        {
            // Why there is no tool server, say: whoever connects to it by a program can do something about it.
            return ApiError::new(ErrorKind::Conflict, reason).into_response();
        }
        self.problem(error.into())
    }

    fn tell(&self, told: &Told) -> Response {
        about(&self.address.sandbox, told)
    }

    fn page(&self, problem: Problem) -> Response {
        Page {
            reload: self
                .age_ms
                .filter(|age_ms| *age_ms < STARTING_MS)
                .map(|_| RELOAD),
            ..Page::new(problem, &self.address.sandbox, self.address.port)
        }
        .into_response(&self.headers)
        .map(Body::new)
    }
}
