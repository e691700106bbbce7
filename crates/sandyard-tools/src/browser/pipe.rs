//! The DevTools protocol (CDP) over a pipe: JSON messages, each followed by a NUL.
//!
//! A command of [`Pipe::send`] is answered by a message with the same ID. Messages without an ID are events. One function handles them
//! in order, before later answers are delivered.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::reply::Problem;

/// Maximum size of a message. A screenshot has a few MiB.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Size of a read.
const READ_SIZE: usize = 64 * 1024;
/// Default time limit of a command. Some commands wait for the page's scripts.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a command failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// The browser has ended.
    Ended,
    /// The page's process has ended.
    Crashed,
    /// The tab was closed.
    Closed,
    /// There was no answer in time.
    TimedOut,
    /// The browser, or a script, returned an error.
    Refused(String),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ended => Self::new(
                "the browser ended during this call: call again to start a new one without the old tabs",
            ),
            Failure::Crashed => {
                Self::new("the page crashed: call browser_navigation to open it again in a new tab")
            }
            Failure::Closed => Self::new(
                "the tab was closed during this call: call browser_view_interactive_elements or another tool to see the current tab",
            ),
            Failure::TimedOut => Self::new(
                "the page does not respond, its scripts may be busy: try browser_wait, or browser_restart with a URL",
            ),
            Failure::Refused(why) => Self::new(format!("the browser returned an error: {why}")),
        }
    }
}

/// The connection to the browser; cheap to clone.
#[derive(Clone)]
pub(super) struct Pipe {
    shared: Arc<Shared>,
}

struct Shared {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    ended: CancellationToken,
}

struct Waiting {
    session: Option<String>,
    answer: oneshot::Sender<Result<Value, Failure>>,
}

/// An event of the browser.
#[derive(Debug)]
pub(super) struct Event<'a> {
    /// Session of the tab; empty for the browser.
    pub(super) session: &'a str,
    /// Name of the event.
    pub(super) method: &'a str,
    /// Parameters of the event.
    pub(super) params: &'a Value,
}

impl Pipe {
    /// A connection over these streams, with a function for events, which must not block.
    pub(super) fn new<W, R, E>(input: W, output: R, on_event: E) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
        R: AsyncRead + Unpin + Send + 'static,
        E: Fn(&Pipe, Event<'_>) + Send + Sync + 'static,
    {
        let (outgoing, messages) = mpsc::unbounded_channel();
        let pipe = Self {
            shared: Arc::new(Shared {
                next: AtomicU64::new(1),
                waiting: Mutex::default(),
                outgoing,
                ended: CancellationToken::new(),
            }),
        };
        tokio::spawn(write(input, messages, pipe.shared.ended.clone()));
        tokio::spawn({
            let pipe = pipe.clone();
            async move {
                read(output, &pipe, on_event).await;
                pipe.end();
            }
        });
        pipe
    }

    /// Sends a command to a tab's session, or to the browser, and waits for the answer.
    pub(super) async fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        self.send_within(TIMEOUT, session, method, params).await
    }

    /// Sends a command with another time limit.
    pub(super) async fn send_within(
        &self,
        limit: Duration,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        let (answer, answered) = oneshot::channel();
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.waiting.lock().insert(
            id,
            Waiting {
                session: session.map(str::to_owned),
                answer,
            },
        );
        // Removes the entry when this is dropped, answered or not.
        let _entry = Entry { pipe: self, id };
        self.put(id, session, method, params)?;
        tokio::select! {
            answer = answered => answer.unwrap_or(Err(Failure::Ended)),
            () = tokio::time::sleep(limit) => Err(Failure::TimedOut),
            () = self.shared.ended.cancelled() => Err(Failure::Ended),
        }
    }

    /// Sends a command without waiting for its answer.
    pub(super) fn notify(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let _ = self.put(id, session, method, params);
    }

    /// Fails all pending commands of a session.
    pub(super) fn fail_session(&self, session: &str, failure: &Failure) {
        let mut waiting = self.shared.waiting.lock();
        for (_, lost) in
            waiting.extract_if(|_, waiting| waiting.session.as_deref() == Some(session))
        {
            let _ = lost.answer.send(Err(failure.clone()));
        }
    }

    /// Returns whether the browser has closed the connection.
    pub(super) fn is_ended(&self) -> bool {
        self.shared.ended.is_cancelled()
    }

    /// Closes the connection and fails all pending commands.
    pub(super) fn end(&self) {
        self.shared.ended.cancel();
        self.shared.waiting.lock().clear();
    }

    fn put(
        &self,
        id: u64,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<(), Failure> {
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.shared.outgoing.send(bytes).map_err(|_| Failure::Ended)
    }

    fn take(&self, message: &Value, on_event: &impl Fn(&Self, Event<'_>)) {
        let Some(id) = message["id"].as_u64() else {
            on_event(
                self,
                Event {
                    session: message["sessionId"].as_str().unwrap_or_default(),
                    method: message["method"].as_str().unwrap_or_default(),
                    params: &message["params"],
                },
            );
            return;
        };
        if let Some(waiting) = self.shared.waiting.lock().remove(&id) {
            let answer = match message.get("error") {
                Some(error) => Err(Failure::Refused(
                    error["message"].as_str().unwrap_or("no reason").to_owned(),
                )),
                None => Ok(message["result"].clone()),
            };
            // The caller may be gone.
            let _ = waiting.answer.send(answer);
        }
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("is_ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}

struct Entry<'a> {
    pipe: &'a Pipe,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.pipe.shared.waiting.lock().remove(&self.id);
    }
}

async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Vec<u8>>,
    ended: CancellationToken,
) {
    let all = async {
        while let Some(message) = messages.recv().await {
            if input.write_all(&message).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = all => ended.cancel(),
        () = ended.cancelled() => {}
    }
}

async fn read(
    mut output: impl AsyncRead + Unpin,
    pipe: &Pipe,
    on_event: impl Fn(&Pipe, Event<'_>),
) {
    let ended = pipe.shared.ended.clone();
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let seen = buffer.len();
        buffer.reserve(READ_SIZE);
        let count = tokio::select! {
            count = output.read_buf(&mut buffer) => count,
            () = ended.cancelled() => return,
        };
        if !matches!(count, Ok(1..)) {
            return;
        }
        if !buffer[seen..].contains(&0) {
            if buffer.len() > MAX_MESSAGE {
                tracing::warn!("the browser sent a message larger than {MAX_MESSAGE} bytes");
                return;
            }
            continue;
        }
        let mut rest = &buffer[..];
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            if let Ok(message) = serde_json::from_slice(&rest[..end]) {
                pipe.take(&message, &on_event);
            }
            rest = &rest[end + 1..];
        }
        // A new buffer, to free the memory of a large screenshot.
        buffer = rest.to_vec();
    }
}
