//! The conversations there are over streamable HTTP, and which of them end.
//!
//! The library ends a session that has had no message for a while, a call under way or not, and keeps any number of them. Here
//! what goes in and out of each is watched ([`used`](super::used)): one that is used does not end, and the one that was idle for
//! the longest time makes room for another. Some clients never say that they are done with theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};

use super::used::{Open, Use, Watched};

/// A session nobody uses ends; a client that comes back begins another and finds the same shells and files.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// Most sessions at once.
const MAX_SESSIONS: usize = 500;

/// The sessions there are.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Arc<Use>>>,
    most: usize,
    life: Duration,
}

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// None of them can make room.
    #[error("all {0} sessions there may be have calls under way: wait until one has ended")]
    Full(usize),
    /// The library's own.
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::with(MAX_SESSIONS, LIFE)
    }

    /// None yet, and never more than so many, which live so long without being used.
    fn with(most: usize, life: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        // It does not know what a session is used for.
        local.session_config.keep_alive = None;
        Self {
            local,
            known: Mutex::default(),
            most,
            life,
        }
    }

    /// Ends the session that was idle for the longest time, if there are too many.
    async fn make_room(&self) -> Result<(), Failure> {
        let idle = {
            let known = self.known();
            if known.len() < self.most {
                return Ok(());
            }
            let idle = known
                .iter()
                .filter_map(|(id, session)| Some((session.idle()?, id)));
            idle.min().map(|(_, id)| id.clone())
        };
        self.close_session(&idle.ok_or(Failure::Full(self.most))?)
            .await
    }

    /// A session somebody listens to from now on.
    fn listen(&self, id: &SessionId) -> Option<Open> {
        self.known().get(id).cloned().map(Open::new)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Use>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = Failure;
    type Transport = Watched;

    async fn create_session(&self) -> Result<(SessionId, Watched), Failure> {
        self.make_room().await?;
        let (id, transport) = self.local.create_session().await?;
        let session = Arc::<Use>::default();
        self.known().insert(id.clone(), session.clone());
        let life = self.life;
        let watched = Watched {
            transport,
            session,
            life,
        };
        Ok((id, watched))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Failure> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Failure> {
        Ok(self.local.has_session(id).await?)
    }

    /// The library calls this too, for each session that has ended by itself.
    async fn close_session(&self, id: &SessionId) -> Result<(), Failure> {
        self.known().remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Failure> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        let open = self.listen(id);
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(Open::until_dropped(open, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Failure> {
        let open = self.listen(id);
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(Open::until_dropped(open, stream))
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
