//! MCP sessions over streamable HTTP, and when they end.
//!
//! The library ends a session after a time without messages, even during a call, and does not limit their number. Here the messages
//! of each session are monitored ([`session_activity`](super::session_activity)): a session in use does not end, and the session
//! that was idle longest is closed when there are too many. Some clients never close theirs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};

use super::session_activity::{Activity, MonitoredTransport, StreamGuard};

/// How long an unused session lives. A client that returns starts another one and finds the same shells and files.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Maximum number of sessions.
const MAX_SESSIONS: usize = 500;

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    activity: Mutex<HashMap<SessionId, Arc<Activity>>>,
    max_sessions: usize,
    idle_timeout: Duration,
}

/// Why a session cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// All sessions are in use.
    #[error("all {0} sessions have calls in progress: wait until one ends")]
    Full(usize),
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// No sessions.
    pub(super) fn new() -> Self {
        Self::with(MAX_SESSIONS, IDLE_TIMEOUT)
    }

    /// No sessions, with these limits.
    fn with(max_sessions: usize, idle_timeout: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        // The library does not know whether a session is in use.
        local.session_config.keep_alive = None;
        Self {
            local,
            activity: Mutex::default(),
            max_sessions,
            idle_timeout,
        }
    }

    /// Closes the session that was idle longest, if there are too many.
    async fn make_room(&self) -> Result<(), SessionError> {
        let idle = {
            let sessions = self.activity.lock();
            if sessions.len() < self.max_sessions {
                return Ok(());
            }
            let idle = sessions
                .iter()
                .filter_map(|(id, session)| Some((session.idle()?, id)));
            idle.min().map(|(_, id)| id.clone())
        };
        self.close_session(&idle.ok_or(SessionError::Full(self.max_sessions))?)
            .await
    }

    /// Marks a session as having an open stream.
    fn open_stream(&self, id: &SessionId) -> Option<StreamGuard> {
        self.activity.lock().get(id).cloned().map(StreamGuard::new)
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = MonitoredTransport;

    async fn create_session(&self) -> Result<(SessionId, MonitoredTransport), SessionError> {
        self.make_room().await?;
        let (id, transport) = self.local.create_session().await?;
        let activity = Arc::<Activity>::default();
        self.activity.lock().insert(id.clone(), activity.clone());
        let monitored = MonitoredTransport {
            transport,
            activity,
            idle_timeout: self.idle_timeout,
        };
        Ok((id, monitored))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.local.has_session(id).await?)
    }

    /// The library also calls this for sessions that have ended already.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.activity.lock().remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let guard = self.open_stream(id);
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(StreamGuard::attach(guard, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let guard = self.open_stream(id);
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(StreamGuard::attach(guard, stream))
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
