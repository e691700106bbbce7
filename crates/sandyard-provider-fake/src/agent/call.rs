//! One request with what is needed to answer it, and helpers for responses.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use sandyard_wire::http::HttpError;
use sandyard_wire::routes::content_type;
use sandyard_wire::{Code, ConnectError, frame, request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::account::Account;
use super::machine::Machine;
use crate::agent::Result;

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// An answer.
pub(super) type Response = http::Response<Body>;

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) machine: Arc<Machine>,
    pub(super) parts: Parts,
    pub(super) body: Incoming,
}

impl Call {
    pub(super) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The user on whose behalf the call is made.
    pub(super) fn account(&self) -> Result<Account> {
        let named = request::named_user(&self.parts.headers)?;
        self.account_named(named.as_deref())
    }

    /// A user by name, the default one when none is named.
    pub(super) fn account_named(&self, name: Option<&str>) -> Result<Account> {
        match name {
            Some(name) => Account::find(name),
            None => Account::find(&self.machine.settings().default_user),
        }
    }

    /// The whole body, up to a limit.
    pub(super) async fn collect(&mut self, max: usize) -> Result<Bytes> {
        let collected = Limited::new(&mut self.body, max).collect().await;
        let collected = collected.map_err(|error| {
            let message = format!("the body cannot be read or has more than {max} bytes: {error}");
            ConnectError::new(Code::ResourceExhausted, message)
        });
        Ok(collected?.to_bytes())
    }

    /// The message of a unary call.
    pub(super) async fn message<T: DeserializeOwned>(&mut self) -> Result<T> {
        let body = self.collect(MAX_MESSAGE_BYTES).await?;
        request::parse(if body.is_empty() { b"{}" } else { &body })
    }

    /// The message of a call that is answered by a stream.
    pub(super) async fn stream_message<T: DeserializeOwned>(&mut self) -> Result<T> {
        let body = self.collect(MAX_MESSAGE_BYTES + frame::HEADER_LEN).await?;
        request::stream_message(&body, MAX_MESSAGE_BYTES)
    }
}

pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body of some type.
pub(super) fn typed(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    reply.headers_mut().insert(CONTENT_TYPE, value);
    reply
}

/// An answer in JSON.
pub(super) fn json_reply<T: Serialize>(message: &T) -> Response {
    json_with_status(StatusCode::OK, message)
}

fn json_with_status<T: Serialize>(status: StatusCode, message: &T) -> Response {
    let json = serde_json::to_vec(message).unwrap_or_else(|_| b"{}".to_vec());
    typed(status, content_type::JSON, full(json))
}

/// An answer without content.
pub(super) fn empty_reply(status: StatusCode) -> Response {
    let mut reply = Response::new(full(Bytes::new()));
    *reply.status_mut() = status;
    reply
}

/// A stream of frames, each produced on demand.
pub(super) fn stream_reply<S, F>(state: S, next: impl Fn(S) -> F + Send + 'static) -> Response
where
    S: Send + 'static,
    F: Future<Output = Option<(Bytes, S)>> + Send + 'static,
{
    let frames = futures_util::stream::unfold((state, next), |(state, next)| async move {
        let (bytes, state) = next(state).await?;
        Some((Ok(Frame::data(bytes)), (state, next)))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    typed(StatusCode::OK, content_type::CONNECT_JSON, body)
}

/// The response of a unary call that failed.
pub(super) fn unary_error(error: &ConnectError) -> Response {
    let status = StatusCode::from_u16(error.code.http_status());
    json_with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
}

/// The response of a stream that failed before its first message: status 200 with the error in its last frame.
pub(super) fn stream_error(error: ConnectError) -> Response {
    let body = full(frame::encode_end(Some(error)));
    typed(StatusCode::OK, content_type::CONNECT_JSON, body)
}

/// The response of a plain HTTP route that failed.
pub(super) fn plain_error(status: StatusCode, message: impl Into<String>) -> Response {
    let error = HttpError {
        code: status.as_u16(),
        message: message.into(),
    };
    json_with_status(status, &error)
}
