//! The user's own tool servers.
//!
//! Told by `/custom-mcp`, started in the sandbox or called at their address, kept running, and shown with a prefix: the tool
//! `search` of the server `notes` is `mcp_notes_search`.

mod calls;
mod config;
mod connect;
mod events;
mod in_order;
mod older;
mod reasons;
mod server;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod told;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::RoleServer;
use rmcp::service::Peer;
use serde::Serialize;

pub(crate) use self::config::{Config, read};
use self::server::Server;
use self::told::MAX_TOOLS;
use crate::tool::Tool;

/// Most clients that are told of changes.
const MAX_WATCHERS: usize = 1000;
/// How long a client may take to be told.
const TELLING: Duration = Duration::from_secs(5);

/// The servers, and the tools they have; their names begin with `mcp_<server>_`.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    running: Mutex<BTreeMap<String, Kept>>,
    shown: RwLock<Vec<Arc<Tool>>>,
    watchers: Mutex<Vec<Peer<RoleServer>>>,
    /// Held while the servers are exchanged.
    change: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Kept {
    server: Arc<Server>,
    /// Told on its own: it is not part of the set that is exchanged as a whole.
    is_alone: bool,
}

/// How one server's start went.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `ok` or `failed`.
    pub(crate) status: &'static str,
    /// Its tools as they are shown.
    pub(crate) tools: Vec<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Servers {
    /// All their tools.
    pub(crate) fn tools(&self) -> Vec<Arc<Tool>> {
        self.shown
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One of them.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tool>> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.iter().find(|tool| tool.name() == name).cloned()
    }

    /// Makes these the servers there are: those that are told as before go on running. Answers when all are started or failed.
    pub(crate) async fn replace(
        self: &Arc<Self>,
        configs: BTreeMap<String, Config>,
        folder: &Path,
    ) -> BTreeMap<String, Report> {
        let started = {
            let _change = self.change.lock().await;
            self.end_all_but(&configs).await;
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
            let is_over =
                |other: &String, kept: &mut Kept| other == name && !kept.goes_on_as(&config);
            let old: Vec<_> = self.lock().extract_if(.., is_over).collect();
            for (_, kept) in old {
                kept.server.stop().await;
            }
            self.start(name.to_owned(), config, folder, true)
        };
        self.refresh();
        report(server).await.1
    }

    /// Ends a server and forgets it.
    pub(crate) async fn remove(&self, name: &str) {
        let _change = self.change.lock().await;
        let kept = self.lock().remove(name);
        if let Some(kept) = kept {
            kept.server.stop().await;
        }
        self.refresh();
    }

    /// Tells a client from now on when the tools change.
    pub(crate) fn watch(&self, peer: Peer<RoleServer>) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|peer| !peer.is_transport_closed());
        if watchers.len() < MAX_WATCHERS {
            watchers.push(peer);
        }
    }

    /// Ends every server that is not wanted like this any more.
    async fn end_all_but(&self, configs: &BTreeMap<String, Config>) {
        let ended: Vec<_> = {
            let mut running = self.lock();
            let is_over = |name: &String, kept: &mut Kept| match configs.get(name) {
                Some(config) => !kept.goes_on_as(config),
                None => !kept.is_alone,
            };
            running
                .extract_if(.., is_over)
                .map(|(_, kept)| kept.server)
                .collect()
        };
        join_all(ended.iter().map(|server| server.stop())).await;
    }

    fn start(
        self: &Arc<Self>,
        name: String,
        config: Config,
        folder: &Path,
        is_alone: bool,
    ) -> Arc<Server> {
        let mut running = self.lock();
        if let Some(kept) = running.get(&name) {
            return kept.server.clone();
        }
        // The servers are ours: none of them keeps us.
        let servers = Arc::downgrade(self);
        let changed = move || {
            if let Some(servers) = servers.upgrade() {
                servers.refresh();
            }
        };
        let server = Server::start(name.clone(), config, folder.to_owned(), changed);
        running.insert(
            name,
            Kept {
                server: server.clone(),
                is_alone,
            },
        );
        server
    }

    /// Makes the list of tools anew, and tells it to those who watch if it is another one.
    fn refresh(&self) {
        let servers: Vec<_> = self
            .lock()
            .values()
            .map(|kept| kept.server.clone())
            .collect();
        let mut shown: Vec<Arc<Tool>> = Vec::new();
        for server in servers {
            for tool in server.tools() {
                let is_new = shown.iter().all(|other| other.name() != tool.shown.name);
                if is_new && shown.len() < MAX_TOOLS {
                    let server = server.clone();
                    let work = move |arguments, call| {
                        let (server, name) = (server.clone(), tool.name.clone());
                        async move { server.call(name, arguments, call).await }
                    };
                    shown.push(Arc::new(Tool::raw(tool.shown, work)));
                }
            }
        }
        let is_other = {
            let mut before = self.shown.write().unwrap_or_else(PoisonError::into_inner);
            let is_other = !before
                .iter()
                .map(|tool| &tool.told)
                .eq(shown.iter().map(|tool| &tool.told));
            *before = shown;
            is_other
        };
        if is_other {
            self.tell_watchers();
        }
    }

    fn tell_watchers(&self) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|peer| !peer.is_transport_closed());
        for peer in watchers.iter() {
            let peer = peer.clone();
            tokio::spawn(async move {
                // Whoever does not listen finds out when it asks next.
                let _ = tokio::time::timeout(TELLING, peer.notify_tool_list_changed()).await;
            });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Kept>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn goes_on_as(&self, config: &Config) -> bool {
        self.server.config == *config && self.server.is_up()
    }
}

async fn report(server: Arc<Server>) -> (String, Report) {
    let error = server.started().await.err();
    let tools = server
        .tools()
        .into_iter()
        .map(|tool| tool.shown.name.to_string());
    let report = Report {
        status: if error.is_none() { "ok" } else { "failed" },
        tools: tools.collect(),
        error,
    };
    (server.name.clone(), report)
}
