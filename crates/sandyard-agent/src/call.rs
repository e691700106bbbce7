//! One request with its context, and constructors of answers.

use std::rc::Rc;

use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use sandyard_wire::http::HttpError;
use sandyard_wire::routes::content_type;
use sandyard_wire::{Code, ConnectError, frame, request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body::{Body, RequestBody};
use crate::socket::Peer;
use crate::state::Agent;
use crate::user::{Account, Accounts};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// An answer.
pub(crate) type Response = http::Response<Body>;

/// The listener that a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The host's Unix socket: trusted.
    Host,
    /// TCP, open to every program in the sandbox.
    Sandbox,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) agent: Rc<Agent>,
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) peer: Peer,
    pub(crate) origin: Origin,
}

impl Call {
    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// A header's text; `None` when it is absent or not text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The account on whose behalf the call acts.
    pub(crate) fn account(&self) -> Result<(Account, Accounts), ConnectError> {
        self.account_of(request::named_user(self.headers())?)
    }

    /// The account of a user; `None`: the default user.
    pub(crate) fn account_of(
        &self,
        name: Option<String>,
    ) -> Result<(Account, Accounts), ConnectError> {
        let accounts = Accounts::load();
        let name = name.unwrap_or_else(|| self.agent.settings.borrow().default_user.clone());
        Ok((accounts.find(&name)?.clone(), accounts))
    }

    /// The message of a unary call.
    pub(crate) async fn message<T: DeserializeOwned>(&mut self) -> Result<T, ConnectError> {
        self.refuse_encoding(CONTENT_ENCODING.as_str())?;
        let body = self.body.collect(MAX_MESSAGE_BYTES).await?;
        request::parse(if body.is_empty() { b"{}" } else { &body })
    }

    /// The one message of a call that is answered by a stream.
    pub(crate) async fn stream_message<T: DeserializeOwned>(&mut self) -> Result<T, ConnectError> {
        self.refuse_encoding("connect-content-encoding")?;
        let body = self
            .body
            .collect(MAX_MESSAGE_BYTES + frame::HEADER_LEN)
            .await?;
        request::stream_message(&body, MAX_MESSAGE_BYTES)
    }

    fn refuse_encoding(&self, name: &str) -> Result<(), ConnectError> {
        match self.header(name) {
            None | Some("identity") => Ok(()),
            Some(other) => Err(ConnectError::new(
                Code::Unimplemented,
                format!("messages cannot be encoded with '{other}'"),
            )),
        }
    }
}

/// An answer in JSON.
pub(crate) fn json_reply<T: Serialize>(message: &T) -> Response {
    json_with_status(StatusCode::OK, message)
}

fn json_with_status<T: Serialize>(status: StatusCode, message: &T) -> Response {
    let json = serde_json::to_vec(message).unwrap_or_else(|_| b"{}".to_vec());
    typed(status, content_type::JSON, Body::full(json))
}

/// An answer without content.
pub(crate) fn empty_reply(status: StatusCode) -> Response {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = status;
    reply
}

/// The answer after which the connection speaks another protocol.
pub(crate) fn switch_protocols(protocol: HeaderValue) -> Response {
    let mut reply = empty_reply(StatusCode::SWITCHING_PROTOCOLS);
    let headers = reply.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
    reply
}

/// A stream of frames.
pub(crate) fn stream_reply(body: Body) -> Response {
    typed(StatusCode::OK, content_type::CONNECT_JSON, body)
}

/// A body of some type.
pub(crate) fn typed(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// The answer of a failed unary call.
pub(crate) fn unary_error(error: &ConnectError) -> Response {
    let status = StatusCode::from_u16(error.code.http_status());
    json_with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
}

/// The answer of a stream that fails before its first message: status 200, with the error in its last frame.
pub(crate) fn stream_error(error: ConnectError) -> Response {
    stream_reply(Body::full(frame::encode_end(Some(error))))
}

/// The answer of a failed plain HTTP route.
pub(crate) fn plain_error(status: StatusCode, message: impl Into<String>) -> Response {
    let error = HttpError {
        code: status.as_u16(),
        message: message.into(),
    };
    json_with_status(status, &error)
}
