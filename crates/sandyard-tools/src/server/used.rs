//! How much a session is used: by calls, by those who listen, by messages.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};
use tokio::time::{Instant, sleep_until};

/// The library's own way.
type Local = <LocalSessionManager as SessionManager>::Transport;

/// What a session is used for.
#[derive(Debug)]
pub(super) struct Use(Mutex<Now>);

#[derive(Debug)]
struct Now {
    /// When it was used last.
    last: Instant,
    /// Its requests that are not answered yet.
    calls: HashSet<RequestId>,
    /// Its streams that somebody listens to, besides those of calls.
    streams: usize,
}

impl Default for Use {
    fn default() -> Self {
        Self(Mutex::new(Now {
            last: Instant::now(),
            calls: HashSet::new(),
            streams: 0,
        }))
    }
}

impl Use {
    /// Whether somebody listens, and since when it was not used; none while a call is under way.
    pub(super) fn idle(&self) -> Option<(bool, Instant)> {
        let now = self.now();
        now.calls.is_empty().then_some((now.streams > 0, now.last))
    }

    /// When it ends unless it is used.
    fn end(&self, life: Duration) -> Instant {
        match self.idle() {
            Some((false, last)) => last + life,
            _ => Instant::now() + life,
        }
    }

    fn hear(&self, message: &ClientJsonRpcMessage) {
        let mut now = self.now();
        now.last = Instant::now();
        match message {
            JsonRpcMessage::Request(request) => {
                now.calls.insert(request.id.clone());
            }
            // What is cancelled is not answered.
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(told) = &told.notification
                    && let Some(id) = &told.params.request_id
                {
                    now.calls.remove(id);
                }
            }
            _ => {}
        }
    }

    fn tell(&self, message: &ServerJsonRpcMessage) {
        let mut now = self.now();
        now.last = Instant::now();
        let answered = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            now.calls.remove(id);
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to a session. It ends when the session has not been used for too long.
pub(super) struct Watched {
    pub(super) transport: Local,
    pub(super) session: Arc<Use>,
    pub(super) life: Duration,
}

impl Transport<RoleServer> for Watched {
    type Error = <Local as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.session.tell(&item);
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let end = self.session.end(self.life);
            tokio::select! {
                message = self.transport.receive() => {
                    self.session.hear(message.as_ref()?);
                    return message;
                }
                // It may have been used meanwhile, by what goes out.
                () = sleep_until(end) => if self.session.end(self.life) <= Instant::now() {
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// A stream somebody listens to.
pub(super) struct Open(Arc<Use>);

impl Open {
    /// One more of a session.
    pub(super) fn new(session: Arc<Use>) -> Self {
        session.now().streams += 1;
        Self(session)
    }

    /// The stream itself, which is known to be open until it is dropped.
    pub(super) fn until_dropped(
        open: Option<Self>,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        stream.inspect(move |_| {
            if let Some(open) = &open {
                open.0.now().last = Instant::now();
            }
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut now = self.0.now();
        now.streams -= 1;
        now.last = Instant::now();
    }
}
