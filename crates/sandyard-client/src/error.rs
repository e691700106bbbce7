//! Errors of the client.

use std::time::Duration;

use reqwest::StatusCode;
use serde::{Deserialize, Serialize};

/// Error response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status; 0 if the error arrived within a stream.
    pub status: u16,
    /// Machine-readable error code, like `sandbox_not_found`. Empty if the response had none.
    pub code: String,
    /// What went wrong, for people.
    pub detail: String,
    /// What to do about the error.
    pub hint: Option<String>,
    /// Request field that caused the error.
    pub field: Option<String>,
    /// Time to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// Output of a command that exceeded its timeout and was killed.
    pub partial_output: Option<PartialOutput>,
    /// Whole body of the response.
    pub body: String,
}

/// Output of a command that exceeded its timeout and was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialOutput {
    /// Standard output of the command.
    pub stdout: String,
    /// Standard error of the command.
    pub stderr: String,
    /// Whether the command wrote more than this.
    pub is_truncated: bool,
    /// Process ID inside the sandbox.
    pub pid: u32,
}

#[derive(Deserialize, Default)]
struct Body {
    detail: Option<serde_json::Value>,
    code: Option<serde_json::Value>,
    hint: Option<String>,
    field: Option<String>,
}

impl ApiError {
    /// Parses an error response. The detail of a response in another format is its body.
    pub fn from_body(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        let parsed: Body = serde_json::from_slice(body).unwrap_or_default();
        let detail = match parsed.detail {
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
            detail,
            hint: parsed.hint,
            field: parsed.field,
            retry_after,
            partial_output: serde_json::from_slice(body).ok(),
            body: text,
        }
    }

    /// Parses an error that arrived within a stream.
    pub(crate) fn in_stream(body: &[u8]) -> Self {
        let read = Self::from_body(StatusCode::OK, None, body);
        Self { status: 0, ..read }
    }
}

/// Beginning of a body in another format; [`ApiError::body`] has all of it.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server's address is malformed.
    #[error("`{url}` is not a valid server address: {problem}")]
    Address {
        /// Address that was given.
        url: String,
        /// What is wrong with the address.
        problem: String,
    },
    /// The key contains characters that cannot be sent in a header.
    #[error("the API key contains characters that are not allowed")]
    Key,
    /// The HTTP client could not be built.
    #[error("cannot set up the HTTP client: {problem}")]
    Setup {
        /// Error of the HTTP library.
        problem: String,
    },
    /// No server answers at the address.
    #[error("no server at `{url}`")]
    Unreachable {
        /// Address that was tried.
        url: String,
        /// Cause of the failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server's certificate is for another name, or not trusted.
    #[error("the certificate of `{url}` is not accepted")]
    Untrusted {
        /// Address of the server.
        url: String,
        /// Cause of the failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server speaks the other one of HTTP and HTTPS.
    #[error("the server at `{url}` speaks {spoken}")]
    WrongScheme {
        /// Address of the server.
        url: String,
        /// What the server speaks: `plain HTTP` or `HTTPS`.
        spoken: &'static str,
        /// Address with the right scheme.
        right_url: String,
    },
    /// The connection broke during an operation.
    #[error("the connection failed while {operation}")]
    Connection {
        /// Operation that failed.
        operation: &'static str,
        /// Cause of the failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection to a process was lost and could not be restored.
    #[error("the connection to process {pid} of sandbox `{sandbox}` was lost: {problem}")]
    Disconnected {
        /// Sandbox of the process.
        sandbox: String,
        /// Process ID inside the sandbox.
        pid: u32,
        /// Reason why the connection was not restored.
        problem: String,
        /// Error of the last attempt.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The server returned an error response.
    #[error("{}", .0.detail)]
    Api(Box<ApiError>),
    /// The response of the server violates the API.
    #[error("the server's response while {operation} is not valid: {problem}")]
    Protocol {
        /// Operation that failed.
        operation: &'static str,
        /// What is wrong with the response.
        problem: String,
    },
}

impl ClientError {
    /// Classifies a failed connection: no server, or a certificate that is not accepted.
    pub(crate) fn not_connected(
        url: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> Self {
        if let Some(wrong) = Self::wrong_scheme(url, &*source) {
            return wrong;
        }
        let url = url.to_owned();
        // The HTTP library hides the type of a TLS error, so its text decides.
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*source);
        while let Some(error) = cause {
            if error.to_string().contains("certificate") {
                return Self::Untrusted { url, source };
            }
            cause = error.source();
        }
        Self::Unreachable { url, source }
    }

    /// Whether a failure means that the server speaks the other one of HTTP and HTTPS.
    pub(crate) fn wrong_scheme(
        url: &str,
        source: &(dyn std::error::Error + 'static),
    ) -> Option<Self> {
        // What an HTTP server says to a TLS handshake, and a TLS server to an HTTP request.
        let (scheme, rest) = url.split_once("://")?;
        let (signs, spoken, right) = match scheme {
            "https" => (
                ["InvalidContentType", "corrupt message"],
                "plain HTTP",
                "http",
            ),
            _ => (
                ["invalid HTTP version", "InvalidHttpVersion"],
                "HTTPS",
                "https",
            ),
        };
        let mut cause = Some(source);
        while let Some(error) = cause {
            let text = error.to_string();
            if signs.iter().any(|sign| text.contains(sign)) {
                return Some(Self::WrongScheme {
                    url: url.to_owned(),
                    spoken,
                    right_url: format!("{right}://{rest}"),
                });
            }
            cause = error.source();
        }
        None
    }

    /// Error response of the server, if there was one.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Machine-readable error code of the server.
    pub fn code(&self) -> Option<&str> {
        self.api().map(|error| error.code.as_str())
    }

    /// HTTP status, if the server responded.
    pub fn status(&self) -> Option<u16> {
        self.api().map(|error| error.status)
    }

    /// Output of a command that exceeded its timeout and was killed.
    pub fn partial_output(&self) -> Option<&PartialOutput> {
        self.api()?.partial_output.as_ref()
    }

    /// What to do about the error.
    pub fn hint(&self) -> Option<&str> {
        self.api()?.hint.as_deref()
    }

    /// Whether no server was reached.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether the connection failed, so that the outcome of the operation is unknown.
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
    fn a_server_that_speaks_the_other_scheme_is_recognised() {
        for (url, text, right) in [
            (
                "https://a:1",
                "received corrupt message of type InvalidContentType",
                "http://a:1",
            ),
            ("http://a:1", "invalid HTTP version parsed", "https://a:1"),
        ] {
            let error = ClientError::not_connected(url, text.into());
            let ClientError::WrongScheme { right_url, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(right_url, right);
        }
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
