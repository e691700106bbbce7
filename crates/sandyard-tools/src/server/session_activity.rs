//! Activity of a session: its calls, open streams and messages.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};
use tokio::time::{Instant, sleep_until};

/// The library's transport.
type Local = <LocalSessionManager as SessionManager>::Transport;

/// Activity of a session.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    /// When the last message passed.
    last_used: Instant,
    /// Requests that are not answered yet.
    calls: HashSet<RequestId>,
    /// Open streams, besides those of calls.
    streams: usize,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(Counts {
            last_used: Instant::now(),
            calls: HashSet::new(),
            streams: 0,
        }))
    }
}

impl Activity {
    /// Whether a stream is open, and when the session was last used; none during a call.
    pub(super) fn idle(&self) -> Option<(bool, Instant)> {
        let counts = self.0.lock();
        let is_idle = counts.calls.is_empty();
        is_idle.then_some((counts.streams > 0, counts.last_used))
    }

    /// When the session ends unless it is used.
    fn end(&self, idle_timeout: Duration) -> Instant {
        match self.idle() {
            Some((false, last_used)) => last_used + idle_timeout,
            _ => Instant::now() + idle_timeout,
        }
    }

    fn record_received(&self, message: &ClientJsonRpcMessage) {
        let mut counts = self.0.lock();
        counts.last_used = Instant::now();
        match message {
            JsonRpcMessage::Request(request) => {
                counts.calls.insert(request.id.clone());
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(cancelled) = &message.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    counts.calls.remove(id);
                }
            }
            _ => {}
        }
    }

    fn record_sent(&self, message: &ServerJsonRpcMessage) {
        let mut counts = self.0.lock();
        counts.last_used = Instant::now();
        let answered = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            counts.calls.remove(id);
        }
    }
}

/// A transport that records activity. It ends when the session was idle for too long.
pub(super) struct MonitoredTransport {
    pub(super) transport: Local,
    pub(super) activity: Arc<Activity>,
    pub(super) idle_timeout: Duration,
}

impl Transport<RoleServer> for MonitoredTransport {
    type Error = <Local as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.activity.record_sent(&item);
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let end = self.activity.end(self.idle_timeout);
            tokio::select! {
                message = self.transport.receive() => {
                    self.activity.record_received(message.as_ref()?);
                    return message;
                }
                // A message to the client may have extended it meanwhile.
                () = sleep_until(end) => if self.activity.end(self.idle_timeout) <= Instant::now() {
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// Counts an open stream of a session until it is dropped.
pub(super) struct StreamGuard(Arc<Activity>);

impl StreamGuard {
    /// Counts one more stream.
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        activity.0.lock().streams += 1;
        Self(activity)
    }

    /// Keeps the guard as long as the stream.
    pub(super) fn attach(
        guard: Option<Self>,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        stream.inspect(move |_| {
            if let Some(guard) = &guard {
                guard.0.0.lock().last_used = Instant::now();
            }
        })
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut counts = self.0.0.lock();
        counts.streams -= 1;
        counts.last_used = Instant::now();
    }
}
