//! What can go wrong between here and the server.

use std::time::Duration;

use reqwest::StatusCode;
use serde::{Deserialize, Serialize};

/// What the server answered instead of doing it. The body is kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status; 0 when the refusal came inside a stream.
    pub status: u16,
    /// The stable word for programs, like `sandbox_not_found`; empty when the answer had none.
    pub code: String,
    /// What went wrong.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Which field of the request is meant.
    pub field: Option<String>,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// What a command wrote before it was killed for its time-out.
    pub partial_output: Option<PartialOutput>,
    /// The answer's body, whole.
    pub body: String,
}

/// What a command wrote before it was killed for its time-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialOutput {
    /// From its standard output.
    pub stdout: String,
    /// From its standard error.
    pub stderr: String,
    /// Whether it wrote more than this.
    pub is_truncated: bool,
    /// Its process id inside.
    pub pid: u32,
}

#[derive(Deserialize, Default)]
struct Body {
    #[serde(default)]
    detail: Option<serde_json::Value>,
    #[serde(default)]
    code: Option<serde_json::Value>,
    #[serde(default)]
    hint: Option<String>,
    #[serde(default)]
    field: Option<String>,
}

impl ApiError {
    /// Reads an error answer; one that is not in our words keeps its body as the detail.
    pub fn from_body(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        let parsed: Body = serde_json::from_slice(body).unwrap_or_default();
        let said = match parsed.detail {
            Some(serde_json::Value::String(detail)) => detail,
            Some(detail) => detail.to_string(),
            None if text.trim().is_empty() => format!("the server answered {status}"),
            None => format!("the server answered {status}: {}", shortened(text.trim())),
        };
        Self {
            status: status.as_u16(),
            code: match parsed.code {
                Some(serde_json::Value::String(code)) => code,
                Some(code) => code.to_string(),
                None => String::new(),
            },
            detail: said,
            hint: parsed.hint,
            field: parsed.field,
            retry_after,
            partial_output: serde_json::from_slice(body).ok(),
            body: text,
        }
    }

    /// Reads a refusal that came inside a stream.
    pub(crate) fn in_stream(body: &[u8]) -> Self {
        let read = Self::from_body(StatusCode::OK, None, body);
        Self { status: 0, ..read }
    }
}

/// Enough of a foreign body to recognise it by; the whole one is in [`ApiError::body`].
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 300;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server's address makes no sense.
    #[error("`{url}` is not the address of a server: {problem}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The key cannot be sent.
    #[error("the API key has characters that a key cannot have")]
    Key,
    /// The client could not be put together.
    #[error("cannot prepare connections: {problem}")]
    Setup {
        /// What failed.
        problem: String,
    },
    /// Nobody answers at the server's address.
    #[error("no server at `{url}`")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server shows a certificate that is not for this name, or not trusted.
    #[error("the certificate of `{url}` is not accepted")]
    Untrusted {
        /// Where the server is.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke while something was under way.
    #[error("the connection failed while {operation}")]
    Connection {
        /// What was being done.
        operation: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection to a process was lost for good.
    #[error("the connection to process {pid} of sandbox `{sandbox}` was lost: {problem}")]
    Disconnected {
        /// Which sandbox it is in.
        sandbox: String,
        /// Its process id inside.
        pid: u32,
        /// Why it was not restored.
        problem: String,
        /// How the last try failed.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The server said no.
    #[error("{}", .0.detail)]
    Api(Box<ApiError>),
    /// The server answered something that is not in the contract.
    #[error("the server's answer while {operation} makes no sense: {problem}")]
    Protocol {
        /// What was being done.
        operation: &'static str,
        /// What is wrong with the answer.
        problem: String,
    },
}

impl ClientError {
    /// There was no connection: nobody is there, or somebody with a certificate that is not accepted.
    pub(crate) fn not_connected(
        url: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> Self {
        let url = url.to_owned();
        // The libraries between here and the handshake hide its error's type, not its words.
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*source);
        while let Some(error) = cause {
            if error.to_string().contains("certificate") {
                return Self::Untrusted { url, source };
            }
            cause = error.source();
        }
        Self::Unreachable { url, source }
    }

    /// What the server said, if it was the server that refused.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// The server's stable word for what went wrong.
    pub fn code(&self) -> Option<&str> {
        self.api().map(|error| error.code.as_str())
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.api().map(|error| error.status)
    }

    /// What a command wrote before it was killed for its time-out.
    pub fn partial_output(&self) -> Option<&PartialOutput> {
        self.api()?.partial_output.as_ref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.api()?.hint.as_deref()
    }

    /// Says whether there was nobody to talk to.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Says whether the connection failed, so that nobody knows what the server did.
    pub(crate) fn is_connection_failure(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Connection { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_answer_is_kept_whole() {
        let body = br#"{"detail":"no sandbox `x`","code":"sandbox_not_found","hint":"look again","more":1}"#;
        let error = ApiError::from_body(StatusCode::NOT_FOUND, None, body);
        assert_eq!(
            (error.status, error.code.as_str(), error.detail.as_str()),
            (404, "sandbox_not_found", "no sandbox `x`")
        );
        assert_eq!(error.hint.as_deref(), Some("look again"));
        assert!(error.body.contains("\"more\":1"));
    }

    #[test]
    fn a_command_that_timed_out_keeps_its_output() {
        let body = br#"{"detail":"too slow","code":"timed_out","stdout":"a","stderr":"b","output":"ab","is_truncated":false,"pid":3}"#;
        let error = ApiError::from_body(StatusCode::REQUEST_TIMEOUT, None, body);
        let output = error.partial_output.unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("a", "b"));
        let other = ApiError::from_body(
            StatusCode::REQUEST_TIMEOUT,
            None,
            br#"{"detail":"too slow"}"#,
        );
        assert_eq!(other.partial_output, None);
    }

    #[test]
    fn a_certificate_that_is_not_accepted_is_not_a_server_that_is_missing() {
        let url = "https://yard.example";
        let refused = std::io::Error::other("invalid peer certificate: UnknownIssuer");
        let error = ClientError::not_connected(url, Box::new(std::io::Error::other(refused)));
        assert!(matches!(error, ClientError::Untrusted { .. }), "{error}");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = ClientError::not_connected(url, Box::new(refused));
        assert!(error.is_unreachable(), "{error}");
    }

    #[test]
    fn an_answer_of_somebody_else_is_shown() {
        let error = ApiError::from_body(StatusCode::BAD_GATEWAY, None, b"<h1>nginx</h1>");
        assert!(error.detail.contains("502") && error.detail.contains("<h1>nginx</h1>"));
        let error = ApiError::from_body(StatusCode::BAD_GATEWAY, None, b"");
        assert_eq!(error.detail, "the server answered 502 Bad Gateway");
        let listed = ApiError::from_body(
            StatusCode::UNPROCESSABLE_ENTITY,
            None,
            br#"{"detail":[{"loc":["body"]}]}"#,
        );
        assert!(listed.detail.contains("loc"));
    }
}
