//! The browser's protocol (CDP) over its pipe: JSON messages with a NUL after each.
//!
//! What is sent with [`Pipe::send`] is answered by a message of the same id. What comes without an id is an event. It is given
//! to one function in the order it came, before any answer that came later is.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::reply::Problem;

/// Largest message. A screenshot is a few MiB; whoever sends more is broken.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Read at once.
const READ: usize = 64 * 1024;
/// How long an answer may take, where nothing else is said. Answers that need the page wait for its scripts, and
/// machines may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// The browser has ended.
    Ended,
    /// The page's process has ended.
    Crashed,
    /// The tab is there no more.
    Closed,
    /// There was none in time.
    Silent,
    /// The browser, or a script of ours in the page, said no.
    Refused(String),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ended => Self::new(
                "the browser ended in the middle of this; call again, and a new one is started with no tabs of the old",
            ),
            Failure::Crashed => Self::new(
                "the page crashed; call browser_navigation to open it again or another, in a new tab",
            ),
            Failure::Closed => Self::new(
                "the tab was closed in the middle of this; call browser_view_interactive_elements or another tool to see the one behind it",
            ),
            Failure::Silent => Self::new(
                "the page does not respond, its scripts may be busy; try browser_wait, or browser_restart with a URL",
            ),
            Failure::Refused(why) => Self::new(format!("the browser refused: {why}")),
        }
    }
}

/// One end of the pipe; cheap to clone.
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

/// Something that happened.
#[derive(Debug)]
pub(super) struct Event<'a> {
    /// In which tab's session; empty for the browser's.
    pub(super) session: &'a str,
    /// What.
    pub(super) method: &'a str,
    /// More on it.
    pub(super) params: &'a Value,
}

impl Pipe {
    /// Over these two, with a function for events. It must not wait.
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

    /// Asks for something in a tab's session, or the browser's, and waits for the answer.
    pub(super) async fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        self.send_within(PATIENCE, session, method, params).await
    }

    /// The same with another patience.
    pub(super) async fn send_within(
        &self,
        patience: Duration,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        let (answer, answered) = oneshot::channel();
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.waiting().insert(
            id,
            Waiting {
                session: session.map(str::to_owned),
                answer,
            },
        );
        // Nobody waits any more when this is dropped, answered or not.
        let _entry = Entry { pipe: self, id };
        self.put(id, session, method, params)?;
        tokio::select! {
            answer = answered => answer.unwrap_or(Err(Failure::Ended)),
            () = tokio::time::sleep(patience) => Err(Failure::Silent),
            () = self.shared.ended.cancelled() => Err(Failure::Ended),
        }
    }

    /// Asks for something whose answer nobody needs.
    pub(super) fn tell(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        // If the browser has ended, so has what it was to be told about.
        let _ = self.put(id, session, method, params);
    }

    /// Everybody who waits for this session does so in vain, for this reason.
    pub(super) fn give_up(&self, session: &str, failure: &Failure) {
        let mut waiting = self.waiting();
        for (_, lost) in
            waiting.extract_if(|_, waiting| waiting.session.as_deref() == Some(session))
        {
            let _ = lost.answer.send(Err(failure.clone()));
        }
    }

    /// Whether there is nobody at the other end.
    pub(super) fn is_ended(&self) -> bool {
        self.shared.ended.is_cancelled()
    }

    /// Lets go of the other end, and of everybody who waits for it.
    pub(super) fn end(&self) {
        self.shared.ended.cancel();
        self.waiting().clear();
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
        if let Some(waiting) = self.waiting().remove(&id) {
            let answer = match message.get("error") {
                Some(error) => Err(Failure::Refused(
                    error["message"].as_str().unwrap_or("no reason").to_owned(),
                )),
                None => Ok(message["result"].clone()),
            };
            // Whoever does not wait any more needs no answer.
            let _ = waiting.answer.send(answer);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.shared
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
        self.pipe.waiting().remove(&self.id);
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
        buffer.reserve(READ);
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
        // A large screenshot must not cost its memory for ever.
        buffer = rest.to_vec();
    }
}
