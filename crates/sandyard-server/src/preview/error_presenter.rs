//! Presents failures of previews: as a page to browsers, as JSON to programs, and to E2B's clients as the JSON they expect.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use sandyard_agent_client::ClientError;
use sandyard_core::ErrorKind;
use sandyard_preview::access::accepts_html;
use sandyard_preview::{ForwardError, Page, PreviewAddress, PreviewForm, Problem};
use sandyard_service::{NotRunning, Sandbox, ServiceError};
use sandyard_store::model::Expiry;

use crate::app::App;
use crate::e2b::data::{self, Outcome, sandbox_response};
use crate::error::ApiError;

/// Age, in milliseconds, up to which a sandbox may still be starting the program that will listen.
const STARTING_MS: i64 = 60_000;
/// After this time the page of such a sandbox reloads.
const RELOAD: Duration = Duration::from_secs(2);

/// Port of E2B's code interpreter: only E2B's clients request it.
const INTERPRETER_PORT: u16 = 49999;

/// The text of the agent, if it refused the connection to the port.
fn agent_message(error: &ForwardError) -> Option<&str> {
    let ForwardError::Unreachable { source, .. } = error else {
        return None;
    };
    match source.downcast_ref::<ClientError>()? {
        ClientError::Remote { message, .. } => Some(message),
        _ => None,
    }
}

/// Presents failures of one request.
pub(super) struct ErrorPresenter<'a> {
    address: &'a PreviewAddress,
    headers: HeaderMap,
    /// Whether the request comes from a client of E2B.
    is_e2b: bool,
    /// Whether it is VS Code's port, which only some templates serve.
    is_editor: bool,
    /// Whether it is the tool server's port, which programs open with a key.
    is_tools: bool,
    /// Time since the sandbox started.
    age_ms: Option<i64>,
}

impl<'a> ErrorPresenter<'a> {
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

    /// Adds the sandbox. Sandboxes of E2B's clients have a fixed end and decide whether their ports are public.
    pub(super) fn add_sandbox(
        &mut self,
        app: &App,
        sandbox: Option<&Sandbox>,
        is_public: Option<bool>,
    ) {
        let Some(sandbox) = sandbox else { return };
        self.is_e2b |= is_public.is_some() && sandbox.expiry == Expiry::Fixed;
        self.age_ms = sandbox
            .started_ms
            .map(|started_ms| app.service().clock().now_ms() - started_ms);
    }

    /// Says whether the request comes from a client of E2B.
    pub(super) fn is_e2b(&self) -> bool {
        self.is_e2b
    }

    /// Presents a failure.
    pub(super) fn problem(&self, problem: Problem) -> Response {
        // A template with VS Code or tools starts them at the first connection, so a closed port means that it has none.
        let problem = match problem {
            Problem::PortClosed if self.is_editor => Problem::NoEditor,
            Problem::PortClosed if self.is_tools => Problem::NoTools,
            Problem::NeedsLink if self.is_tools => Problem::NeedsKey,
            other => other,
        };
        if !self.is_e2b || accepts_html(&self.headers) {
            return self.page(problem);
        }
        self.e2b_response(&match problem {
            Problem::Gone => Outcome::NotFound,
            Problem::PortClosed | Problem::NoEditor | Problem::NoTools => {
                Outcome::PortClosed(self.address.port)
            }
            other => Outcome::Other(other.status(), other.message(self.address.port)),
        })
    }

    /// Presents the lack of the sandbox's token.
    pub(super) fn token_failure(&self, outcome: &Outcome) -> Response {
        if accepts_html(&self.headers) {
            return self.page(Problem::Refused);
        }
        self.e2b_response(outcome)
    }

    /// Presents why the sandbox does not run.
    pub(super) fn not_running(&self, reason: &NotRunning) -> Response {
        match reason {
            NotRunning::Asleep if !self.is_e2b => self.page(Problem::CannotWake),
            NotRunning::Deleted | NotRunning::Asleep => self.problem(Problem::Gone),
            NotRunning::Failed(error) => self.service_failure(error),
        }
    }

    /// Presents a failure of the service.
    pub(super) fn service_failure(&self, error: &ServiceError) -> Response {
        self.problem(match error.kind {
            ErrorKind::SandboxNotFound | ErrorKind::NotFound => Problem::Gone,
            ErrorKind::Unavailable | ErrorKind::TimedOut => Problem::Unreachable,
            _ => Problem::CannotWake,
        })
    }

    /// Presents a failure to forward the request.
    pub(super) fn forward_failure(&self, error: &ForwardError) -> Response {
        let PreviewAddress { sandbox, port, .. } = self.address;
        tracing::debug!(sandbox.id = %sandbox, port, %error, "Preview failed");
        if let Some(message) = agent_message(error)
            && !accepts_html(&self.headers)
        {
            // For example why there is no tool server: its client can do something about it.
            return ApiError::new(ErrorKind::Conflict, message).into_response();
        }
        self.problem(error.into())
    }

    fn e2b_response(&self, outcome: &Outcome) -> Response {
        sandbox_response(&self.address.sandbox, outcome)
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
