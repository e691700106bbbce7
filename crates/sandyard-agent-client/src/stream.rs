//! Connect's streams: one request, then messages in frames until the last one.

use std::marker::PhantomData;
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandyard_wire::connect_error::EndStream;
use sandyard_wire::frame::{self, Decoder, Frame};
use sandyard_wire::routes::{content_type, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body;
use crate::call::{finish, unexpected_status, within};
use crate::client::AgentClient;
use crate::connection::Sender;
use crate::error::{ClientError, Result};

/// Messages of one stream. Dropping it closes its connection.
#[derive(Debug)]
pub(crate) struct MessageStream<T> {
    call: &'static str,
    body: Incoming,
    decoder: Decoder,
    silence: Option<Duration>,
    max_header_len: usize,
    is_over: bool,
    /// Held because the connection ends when its sender is dropped.
    _sender: Sender,
    messages: PhantomData<fn() -> T>,
}

impl AgentClient {
    /// Opens a stream and returns it with the reply's headers. The caller bounds the time.
    pub(crate) async fn open_stream<Q: Serialize, R>(
        &self,
        call: &'static str,
        message: &Q,
        headers: HeaderMap,
    ) -> Result<(MessageStream<R>, HeaderMap)> {
        let payload = frame::encode_json(message).map_err(ClientError::request)?;
        let builder = self
            .request(Method::POST, call)
            .header(http::header::CONTENT_TYPE, content_type::CONNECT_JSON)
            .header(header::CONNECT_PROTOCOL_VERSION, "1")
            .header(
                header::KEEPALIVE_PING_INTERVAL,
                self.limits().keepalive_seconds(),
            );
        let mut request = finish(builder, body::full(payload))?;
        request.headers_mut().extend(headers);
        let (sender, reply) = self.send_new(call, request).await?;
        self.read_stream(call, sender, reply).await
    }

    /// Takes the reply of a stream apart.
    pub(crate) async fn read_stream<R>(
        &self,
        call: &'static str,
        sender: Sender,
        reply: Response<Incoming>,
    ) -> Result<(MessageStream<R>, HeaderMap)> {
        if reply.status().is_client_error() || reply.status().is_server_error() {
            return Err(self.failure(call, reply).await);
        }
        if reply.status() != StatusCode::OK {
            return Err(unexpected_status(call, reply.status()));
        }
        let (head, body) = reply.into_parts();
        let stream = MessageStream {
            call,
            body,
            decoder: Decoder::new(self.limits().max_frame_len),
            silence: self.limits().silence_timeout,
            max_header_len: self.limits().max_header_len,
            is_over: false,
            _sender: sender,
            messages: PhantomData,
        };
        Ok((stream, head.headers))
    }
}

impl<T: DeserializeOwned> MessageStream<T> {
    /// Waits for the next message; none after the last, or after an error. Loses nothing when cancelled.
    pub(crate) async fn next(&mut self) -> Option<Result<T>> {
        if self.is_over {
            return None;
        }
        let next = match self.silence {
            Some(limit) => within(self.call, limit, self.read()).await,
            None => self.read().await,
        };
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }

    /// Makes the stream end here, whatever the agent goes on to send.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    async fn read(&mut self) -> Result<Option<T>> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(Frame::Message(payload))) => return self.parse(&payload).map(Some),
                Ok(Some(Frame::End(payload))) => return self.parse_end(&payload).map(|()| None),
                Ok(None) => self.fill().await?,
                Err(error) => return Err(ClientError::frame(self.call, error)),
            }
        }
    }

    /// Reads one piece of the body into the decoder.
    async fn fill(&mut self) -> Result<()> {
        match self.body.frame().await {
            Some(Ok(piece)) => {
                if let Some(data) = piece.data_ref() {
                    self.decoder.push(data);
                }
                Ok(())
            }
            Some(Err(error)) => Err(ClientError::hyper(self.call, self.max_header_len, error)),
            // Without a last frame a complete stream looks like one that was cut short.
            None => Err(ClientError::Closed { call: self.call }),
        }
    }

    fn parse(&self, payload: &[u8]) -> Result<T> {
        serde_json::from_slice(payload).map_err(|error| ClientError::protocol(self.call, error))
    }

    fn parse_end(&self, payload: &[u8]) -> Result<()> {
        let end: EndStream = serde_json::from_slice(payload)
            .map_err(|error| ClientError::protocol(self.call, error))?;
        match end.error {
            Some(error) => Err(ClientError::remote(error.code, &error.message)),
            None => Ok(()),
        }
    }
}
