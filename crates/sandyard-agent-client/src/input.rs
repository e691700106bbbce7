//! An input stream to a command, for input of any length and a command that reads at its own pace.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream;
use http::Method;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use sandyard_wire::frame;
use sandyard_wire::json::Empty;
use sandyard_wire::process::{ProcessInput, ProcessSelector, StreamInputRequest};
use sandyard_wire::routes::{content_type, header, process as route};
use tokio::sync::mpsc;

use crate::body::RequestBody;
use crate::call::{finish, within};
use crate::client::AgentClient;
use crate::connection;
use crate::error::{ClientError, Result};
use crate::process::InputTo;
use crate::stream::MessageStream;

const CALL: &str = route::STREAM_INPUT;

/// Maximum bytes per message; in base64 and JSON still far below the limit of either side.
const MAX_PIECE: usize = 256 << 10;

type Reply = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// An input stream to a command. Dropping it leaves the command's own input open.
pub struct InputStream {
    to: InputTo,
    messages: mpsc::Sender<Bytes>,
    /// `None` after the reply arrived.
    reply: Option<Reply>,
}

impl AgentClient {
    /// Opens an input stream to a command. Unlike [`AgentClient::send_input`] it gives the command no time limit for reading.
    pub async fn open_input(&self, process: ProcessSelector, to: InputTo) -> Result<InputStream> {
        // One message in flight: a sender of more waits for the command to read.
        let (messages, queue) = mpsc::channel(1);
        let builder = self
            .request(Method::POST, CALL)
            .header(http::header::CONTENT_TYPE, content_type::CONNECT_JSON)
            .header(header::CONNECT_PROTOCOL_VERSION, "1");
        let request = finish(builder, body_of(queue))?;
        let open = connection::open(&self.shared.endpoint, self.limits());
        let mut sender = within(CALL, self.limits().call_timeout, open).await?;
        let client = self.clone();
        let reply = async move {
            let reply = sender.send_request(request).await;
            let reply = reply.map_err(|error| client.hyper_error(CALL, error))?;
            let (mut replies, _): (MessageStream<Empty>, _) =
                client.read_stream(CALL, sender, reply).await?;
            while let Some(reply) = replies.next().await {
                let Empty {} = reply?;
            }
            Ok(())
        };
        let mut input = InputStream {
            to,
            messages,
            reply: Some(Box::pin(reply)),
        };
        input.put(&StreamInputRequest::Start { process }).await?;
        Ok(input)
    }
}

impl InputStream {
    /// Sends bytes, waiting for as long as the command leaves too much unread. When cancelled, some may have been sent.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_PIECE));
            let input = match self.to {
                InputTo::Stdin => ProcessInput::Stdin(piece),
                InputTo::Pty => ProcessInput::Pty(piece),
            };
            self.put(&StreamInputRequest::Data { input }).await?;
        }
        Ok(())
    }

    /// Waits until the command has been given everything. Its input stays open; see [`AgentClient::close_stdin`].
    pub async fn finish(self) -> Result<()> {
        let Self {
            messages, reply, ..
        } = self;
        drop(messages);
        reply.ok_or(ClientError::Closed { call: CALL })?.await
    }

    async fn put(&mut self, message: &StreamInputRequest) -> Result<()> {
        let framed = frame::encode_json(message).map_err(ClientError::request)?;
        let Some(reply) = &mut self.reply else {
            return Err(ClientError::Closed { call: CALL });
        };
        let early = tokio::select! {
            biased;
            early = reply.as_mut() => early,
            permit = self.messages.reserve() => match permit {
                Ok(permit) => {
                    permit.send(framed);
                    return Ok(());
                }
                // The connection is gone; the reply says why.
                Err(_) => reply.as_mut().await,
            },
        };
        self.reply = None;
        // A reply before the end of the input is a refusal, whatever it says.
        early.and(Err(ClientError::Closed { call: CALL }))
    }
}

fn body_of(queue: mpsc::Receiver<Bytes>) -> RequestBody {
    let frames = stream::unfold(queue, |mut queue| async {
        let message = queue.recv().await?;
        Some((Ok::<_, io::Error>(Frame::data(message)), queue))
    });
    StreamBody::new(frames).boxed_unsync()
}

sandyard_core::debug_fields!(InputStream: to);
