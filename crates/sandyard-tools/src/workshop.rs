//! What the tools share.

use std::sync::{Arc, PoisonError, RwLock};

use crate::browser::Browser;
use crate::custom::Servers;
use crate::files::Undo;
use crate::options::Options;
use crate::shell::Sessions;
use crate::todo::Todos;
use crate::workspace::Workspace;

/// Everything that lasts from call to call.
#[derive(Debug)]
pub(crate) struct Workshop {
    /// As it was started.
    pub(crate) options: Options,
    /// Which paths tools may touch.
    pub(crate) workspace: Workspace,
    /// Shells.
    pub(crate) sessions: Sessions,
    /// The one browser.
    pub(crate) browser: Browser,
    /// The list of what is to be done.
    pub(crate) todos: Todos,
    /// What editors can take back.
    pub(crate) undo: Undo,
    /// The user's own tool servers.
    pub(crate) custom: Arc<Servers>,
    /// What the seed's routes have told.
    told: RwLock<Told>,
}

/// What the server or the user told after the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Where search, images and videos are asked for.
    pub(crate) tool_server_url: Option<String>,
    /// For that server.
    pub(crate) credential: Option<Credential>,
    /// The preview URL of a port, with `{port}` for the number; none: it is not known from inside.
    pub(crate) port_url: Option<String>,
}

/// The user's key for the tool server outside.
#[derive(Clone)]
pub(crate) struct Credential {
    /// The key.
    pub(crate) user_api_key: String,
    /// Which conversation it is for.
    pub(crate) session_id: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

impl Workshop {
    /// An empty one.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            workspace: Workspace::new(&options),
            sessions: Sessions::default(),
            browser: Browser::default(),
            todos: Todos::default(),
            undo: Undo::default(),
            custom: Arc::default(),
            told: RwLock::default(),
            options,
        }
    }

    /// What was told.
    pub(crate) fn told(&self) -> Told {
        self.told
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes what was told.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.write().unwrap_or_else(PoisonError::into_inner));
    }
}
