//! The user's own MCP servers.
//!
//! `/custom-mcp` configures them. They run in the sandbox or at a URL, are restarted when they fail, and their tools are listed with
//! a prefix: the tool `search` of the server `notes` is `mcp_notes_search`.

mod calls;
mod config;
mod connect;
mod convert;
mod event_stream;
mod ordered_progress;
mod redact;
mod server;
mod sse_transport;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, RwLock};
use rmcp::RoleServer;
use rmcp::service::Peer;
use serde::Serialize;

pub(crate) use self::config::{Config, read};
use self::convert::MAX_TOOLS;
use self::server::Server;
use crate::tool::Tool;

/// Maximum number of clients that are notified of changes.
const MAX_WATCHERS: usize = 1000;
/// Time limit for notifying a client.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// The servers and their tools, whose names start with `mcp_<server>_`.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    running: Mutex<BTreeMap<String, Entry>>,
    tools: RwLock<Vec<Arc<Tool>>>,
    watchers: Mutex<Vec<Peer<RoleServer>>>,
    /// Held while servers are added or removed.
    change: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Entry {
    server: Arc<Server>,
    /// Whether the server stays when the others are replaced.
    is_pinned: bool,
}

/// The result of starting a server.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `ok` or `failed`.
    pub(crate) status: &'static str,
    /// Names of its tools, with the prefix.
    pub(crate) tools: Vec<String>,
    /// Why the start failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Servers {
    /// The tools of all servers.
    pub(crate) fn tools(&self) -> Vec<Arc<Tool>> {
        self.tools.read().clone()
    }

    /// Finds a tool by name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tool>> {
        let tools = self.tools.read();
        tools.iter().find(|tool| tool.name() == name).cloned()
    }

    /// Replaces the servers. Servers whose configuration is unchanged keep running. Returns when all have started or failed.
    pub(crate) async fn replace(
        self: &Arc<Self>,
        configs: BTreeMap<String, Config>,
        folder: &Path,
    ) -> BTreeMap<String, Report> {
        let started = {
            let _change = self.change.lock().await;
            self.stop_all_except(&configs).await;
            configs
                .into_iter()
                .map(|(name, config)| self.start(name, config, folder, false))
                .collect::<Vec<_>>()
        };
        self.refresh();
        join_all(started.into_iter().map(report))
            .await
            .into_iter()
            .collect()
    }

    /// Adds a server that stays when the others are replaced.
    pub(crate) async fn add(self: &Arc<Self>, name: &str, config: Config, folder: &Path) -> Report {
        let server = {
            let _change = self.change.lock().await;
            let is_obsolete = |other: &String, entry: &mut Entry| {
                other == name && !entry.is_running_with(&config)
            };
            let old: Vec<_> = self.running.lock().extract_if(.., is_obsolete).collect();
            for (_, entry) in old {
                entry.server.stop().await;
            }
            self.start(name.to_owned(), config, folder, true)
        };
        self.refresh();
        report(server).await.1
    }

    /// Stops a server and removes it.
    pub(crate) async fn remove(&self, name: &str) {
        let _change = self.change.lock().await;
        let entry = self.running.lock().remove(name);
        if let Some(entry) = entry {
            entry.server.stop().await;
        }
        self.refresh();
    }

    /// Notifies a client from now on when the tools change.
    pub(crate) fn watch(&self, peer: Peer<RoleServer>) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|peer| !peer.is_transport_closed());
        if watchers.len() < MAX_WATCHERS {
            watchers.push(peer);
        }
    }

    /// Stops every server whose configuration is missing or different.
    async fn stop_all_except(&self, configs: &BTreeMap<String, Config>) {
        let obsolete: Vec<_> = {
            let mut running = self.running.lock();
            let is_obsolete = |name: &String, entry: &mut Entry| match configs.get(name) {
                Some(config) => !entry.is_running_with(config),
                None => !entry.is_pinned,
            };
            running
                .extract_if(.., is_obsolete)
                .map(|(_, entry)| entry.server)
                .collect()
        };
        join_all(obsolete.iter().map(|server| server.stop())).await;
    }

    fn start(
        self: &Arc<Self>,
        name: String,
        config: Config,
        folder: &Path,
        is_pinned: bool,
    ) -> Arc<Server> {
        let mut running = self.running.lock();
        if let Some(entry) = running.get(&name) {
            return entry.server.clone();
        }
        // A weak reference: the servers must not keep their owner alive.
        let servers = Arc::downgrade(self);
        let changed = move || {
            if let Some(servers) = servers.upgrade() {
                servers.refresh();
            }
        };
        let server = Server::start(name.clone(), config, folder.to_owned(), changed);
        running.insert(
            name,
            Entry {
                server: server.clone(),
                is_pinned,
            },
        );
        server
    }

    /// Rebuilds the list of tools, and notifies clients if it changed.
    fn refresh(&self) {
        let servers: Vec<_> = self
            .running
            .lock()
            .values()
            .map(|entry| entry.server.clone())
            .collect();
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        for server in servers {
            for tool in server.tools() {
                let is_new = tools
                    .iter()
                    .all(|other| other.name() != tool.definition.name);
                if is_new && tools.len() < MAX_TOOLS {
                    let server = server.clone();
                    let work = move |arguments, call| {
                        let (server, name) = (server.clone(), tool.name.clone());
                        async move { server.call(name, arguments, call).await }
                    };
                    tools.push(Arc::new(Tool::raw(tool.definition, work)));
                }
            }
        }
        let has_changed = {
            let mut before = self.tools.write();
            let has_changed = !before
                .iter()
                .map(|tool| &tool.definition)
                .eq(tools.iter().map(|tool| &tool.definition));
            *before = tools;
            has_changed
        };
        if has_changed {
            self.notify_watchers();
        }
    }

    /// Tells clients that the list of tools has changed.
    pub(crate) fn notify_watchers(&self) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|peer| !peer.is_transport_closed());
        for peer in watchers.iter() {
            let peer = peer.clone();
            tokio::spawn(async move {
                // A client that misses this sees the change when it lists the tools.
                let _ = tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_tool_list_changed()).await;
            });
        }
    }
}

impl Entry {
    fn is_running_with(&self, config: &Config) -> bool {
        self.server.config == *config && self.server.is_up()
    }
}

async fn report(server: Arc<Server>) -> (String, Report) {
    let error = server.started().await.err();
    let tools = server
        .tools()
        .into_iter()
        .map(|tool| tool.definition.name.to_string());
    let report = Report {
        status: if error.is_none() { "ok" } else { "failed" },
        tools: tools.collect(),
        error,
    };
    (server.name.clone(), report)
}
