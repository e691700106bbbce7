//! State that the tools share.

use std::sync::Arc;

use parking_lot::RwLock;
use sandyard_core::ToolSelection;

use crate::browser::Browser;
use crate::custom::Servers;
use crate::files::Undo;
use crate::options::Options;
use crate::shell::Sessions;
use crate::todo::Todos;
use crate::workspace::Workspace;

/// Everything that outlives a call.
#[derive(Debug)]
pub(crate) struct ToolState {
    /// Options from the start.
    pub(crate) options: Options,
    /// Which paths tools may access.
    pub(crate) workspace: Workspace,
    /// Shell sessions.
    pub(crate) sessions: Sessions,
    /// The browser.
    pub(crate) browser: Browser,
    /// The to-do list.
    pub(crate) todos: Todos,
    /// Changes that the editor can undo.
    pub(crate) undo: Undo,
    /// The user's own MCP servers.
    pub(crate) custom: Arc<Servers>,
    config: RwLock<RuntimeConfig>,
}

/// Settings that the settings routes change while the server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuntimeConfig {
    /// URL of the service that searches and generates images and videos.
    pub(crate) tool_server_url: Option<String>,
    /// Credential for that service.
    pub(crate) credential: Option<Credential>,
    /// Preview URL of a port, with `{port}` in place of the number; none if it is not known in the sandbox.
    pub(crate) port_url: Option<String>,
    /// Tools to list for clients that do not say.
    pub(crate) tools: ToolSelection,
}

/// The user's credential for the service at `tool_server_url`.
#[derive(Clone)]
pub(crate) struct Credential {
    /// The API key.
    pub(crate) user_api_key: String,
    /// ID of the conversation.
    pub(crate) session_id: String,
}

sandyard_core::debug_fields!(Credential);

impl ToolState {
    /// The state of a new tool server.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            workspace: Workspace::new(&options),
            sessions: Sessions::default(),
            browser: Browser::default(),
            todos: Todos::default(),
            undo: Undo::default(),
            custom: Arc::default(),
            config: RwLock::default(),
            options,
        }
    }

    /// The current settings.
    pub(crate) fn runtime_config(&self) -> RuntimeConfig {
        self.config.read().clone()
    }

    /// Changes the settings.
    pub(crate) fn update_config(&self, change: impl FnOnce(&mut RuntimeConfig)) {
        change(&mut self.config.write());
    }
}
