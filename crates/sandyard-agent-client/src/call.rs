//! One request and its reply, within limits.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use sandyard_wire::http::HttpError;
use sandyard_wire::routes::{content_type, header};
use sandyard_wire::{Code, ConnectError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::body::{self, RequestBody};
use crate::client::AgentClient;
use crate::connection::{self, Sender};
use crate::error::{ClientError, Result};

/// Bytes of a failed reply's body that are read for its message.
const MAX_ERROR_BODY: usize = 16 << 10;

/// How long a pooled connection may take to be ready. An honest agent's takes microseconds.
const READY_TIMEOUT: Duration = Duration::from_millis(50);

/// Bounds the time of a call.
pub(crate) async fn within<T>(
    call: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::Timeout { call, after: limit }),
    }
}

impl AgentClient {
    /// Makes a unary Connect call.
    pub(crate) async fn unary<Q: Serialize, R: DeserializeOwned>(
        &self,
        call: &'static str,
        message: &Q,
    ) -> Result<R> {
        let (status, reply) = self.post_json(call, message).await?;
        parse(call, status, StatusCode::OK, &reply)
    }

    /// Posts JSON to a plain route whose reply has no content.
    pub(crate) async fn post<Q: Serialize>(&self, call: &'static str, message: &Q) -> Result<()> {
        let (status, reply) = self.post_json(call, message).await?;
        check(call, status, StatusCode::NO_CONTENT, &reply)
    }

    async fn post_json<Q: Serialize>(
        &self,
        call: &'static str,
        message: &Q,
    ) -> Result<(StatusCode, Vec<u8>)> {
        let json = serde_json::to_vec(message).map_err(ClientError::request)?;
        let builder = self
            .request(Method::POST, call)
            .header(http::header::CONTENT_TYPE, content_type::JSON)
            .header(header::CONNECT_PROTOCOL_VERSION, "1");
        self.exchange(call, finish(builder, body::full(json))?)
            .await
    }

    /// Fetches JSON from a plain route.
    pub(crate) async fn get<R: DeserializeOwned>(&self, call: &'static str) -> Result<R> {
        let request = finish(self.request(Method::GET, call), body::empty())?;
        let (status, reply) = self.exchange(call, request).await?;
        parse(call, status, StatusCode::OK, &reply)
    }

    /// Sends a request over a pooled connection and collects the reply, all within the call's time.
    pub(crate) async fn exchange(
        &self,
        call: &'static str,
        request: Request<RequestBody>,
    ) -> Result<(StatusCode, Vec<u8>)> {
        within(call, self.limits().call_timeout, async {
            let (sender, reply) = self.send_pooled(call, request).await?;
            let (head, body) = reply.into_parts();
            let limits = self.limits();
            let body =
                body::collect(call, body, limits.max_body_len, limits.max_header_len).await?;
            self.shared.pool.put(sender);
            Ok((head.status, body))
        })
        .await
    }

    /// Sends over an idle connection, or over a new one when there is none that takes the request.
    async fn send_pooled(
        &self,
        call: &'static str,
        mut request: Request<RequestBody>,
    ) -> Result<(Sender, Response<Incoming>)> {
        while let Some(mut sender) = self.shared.pool.take() {
            // Skip a connection that ends, or that never finishes its last exchange.
            if !matches!(timeout(READY_TIMEOUT, sender.ready()).await, Ok(Ok(()))) {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(reply) => return Ok((sender, reply)),
                Err(mut failure) => match failure.take_message() {
                    // hyper returned the request, so nothing of it was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(self.hyper_error(call, failure.into_error())),
                },
            }
        }
        self.send_new(call, request).await
    }

    /// Sends over a connection of its own.
    pub(crate) async fn send_new(
        &self,
        call: &'static str,
        request: Request<RequestBody>,
    ) -> Result<(Sender, Response<Incoming>)> {
        let mut sender = connection::open(&self.shared.endpoint, self.limits()).await?;
        let reply = sender
            .send_request(request)
            .await
            .map_err(|error| self.hyper_error(call, error))?;
        Ok((sender, reply))
    }

    pub(crate) fn hyper_error(&self, call: &'static str, error: hyper::Error) -> ClientError {
        ClientError::hyper(call, self.limits().max_header_len, error)
    }

    /// Makes an error of a failed reply and its body.
    pub(crate) async fn failure(
        &self,
        call: &'static str,
        reply: Response<Incoming>,
    ) -> ClientError {
        let (head, body) = reply.into_parts();
        // Without a readable body the status alone makes the error.
        let text = body::collect(call, body, MAX_ERROR_BODY, self.limits().max_header_len)
            .await
            .unwrap_or_default();
        refusal(head.status, &text)
    }
}

/// Adds the body to a request.
pub(crate) fn finish(
    builder: http::request::Builder,
    body: RequestBody,
) -> Result<Request<RequestBody>> {
    builder.body(body).map_err(ClientError::request)
}

/// Reads a collected reply.
pub(crate) fn parse<R: DeserializeOwned>(
    call: &'static str,
    status: StatusCode,
    expected: StatusCode,
    body: &[u8],
) -> Result<R> {
    check(call, status, expected, body)?;
    serde_json::from_slice(body).map_err(|error| ClientError::protocol(call, error))
}

/// Checks a collected reply's status.
pub(crate) fn check(
    call: &'static str,
    status: StatusCode,
    expected: StatusCode,
    body: &[u8],
) -> Result<()> {
    if status == expected {
        Ok(())
    } else if status.is_client_error() || status.is_server_error() {
        Err(refusal(status, body))
    } else {
        Err(unexpected_status(call, status))
    }
}

pub(crate) fn unexpected_status(call: &'static str, status: StatusCode) -> ClientError {
    ClientError::protocol(call, format_args!("unexpected status {status}"))
}

/// Makes an error of a failed reply in either of the two forms.
fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    let by_status = Code::from_http_status(status.as_u16());
    let (code, message) = if let Ok(error) = serde_json::from_slice::<HttpError>(body) {
        (by_status, error.message)
    } else {
        match serde_json::from_slice::<ConnectError>(body) {
            Ok(error) if error.code == Code::Unknown => (by_status, error.message),
            Ok(error) => (error.code, error.message),
            Err(_) => (by_status, String::new()),
        }
    };
    if message.is_empty() {
        return ClientError::remote(code, &format!("HTTP status {status}"));
    }
    ClientError::remote(code, &message)
}
