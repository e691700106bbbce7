//! Getting to a server: starting its program, or calling at its address.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use rustls::RootCertStore;
use tokio::process::Command;
use tokio::sync::{Notify, mpsc};

use super::config::Config;
use super::older::Older;
use crate::outgoing;
use crate::process::{Group, Tail};
use crate::reply::cut;

/// Longest reason.
const MAX_REASON: usize = 2000;

/// A server we are connected to.
#[derive(Debug)]
pub(super) struct Connected {
    /// The conversation.
    pub(super) running: RunningService<RoleClient, Listener>,
    /// Its program, if we started one.
    pub(super) program: Option<Program>,
}

/// A program of a server.
#[derive(Debug)]
pub(super) struct Program {
    /// With everything it started.
    pub(super) group: Group,
    /// What it complained about last.
    pub(super) complaints: Tail,
}

/// Hears what a server tells without being asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Listener {
    /// Told when the list of tools changes.
    pub(super) changed: Arc<Notify>,
    waiting: Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>>,
}

impl Listener {
    /// The progress of one call, until [`Listener::forget`].
    pub(super) fn watch(&self, token: ProgressToken) -> mpsc::Receiver<ProgressNotificationParam> {
        let (sender, receiver) = mpsc::channel(64);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(token, sender);
        receiver
    }

    /// Nobody waits for this progress any more.
    pub(super) fn forget(&self, token: &ProgressToken) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(token);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("sandyard-tools", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.get(&told.progress_token) {
            // Progress is news: what nobody has time for is old.
            let _ = sender.try_send(told);
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects to a server, or says why that did not work.
pub(super) async fn connect(config: &Config, folder: &Path) -> Result<Connected, String> {
    match config {
        Config::Program { command, args, env } => {
            let mut program = Command::new(command);
            program
                .args(args)
                .envs(env)
                .current_dir(folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            start(command, program).await
        }
        Config::Address {
            url,
            headers,
            is_older,
        } => {
            let client = client(url).await?;
            let listener = Listener::default();
            let running = if *is_older {
                let transport = Older::open(client, url, headers).await?;
                serve_client(listener, transport).await
            } else {
                let address = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.clone());
                let transport = StreamableHttpClientTransport::with_client(client, address);
                serve_client(listener, transport).await
            };
            Ok(Connected {
                running: running.map_err(|error| without(url, reason(&error)))?,
                program: None,
            })
        }
    }
}

/// Takes an address out of what went wrong: keys may be in it.
fn without(url: &Url, words: String) -> String {
    words.replace(url.as_str(), "…")
}

async fn start(name: &str, program: Command) -> Result<Connected, String> {
    let mut group = Group::start(program)
        .map_err(|error| format!("the program {name} could not be started: {error}"))?;
    let complaints = Tail::default();
    if let Some(stderr) = group.child.stderr.take() {
        tokio::spawn(complaints.clone().follow(stderr));
    }
    let (Some(stdout), Some(stdin)) = (group.child.stdout.take(), group.child.stdin.take()) else {
        return Err(format!("the program {name} has no input or output"));
    };
    match serve_client(Listener::default(), (stdout, stdin)).await {
        Ok(running) => Ok(Connected {
            running,
            program: Some(Program { group, complaints }),
        }),
        Err(error) => {
            let error = reason(&error);
            let ended = group.end_within(Duration::from_secs(1)).await;
            let ended = ended.map(|status| status.to_string()).unwrap_or_default();
            let complaints = complaints.last_words().await;
            Err(format!("{error} ({ended}) {complaints}").trim().to_owned())
        }
    }
}

/// What went wrong, with its causes.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words.push_str(": ");
        words.push_str(&next.to_string());
        cause = next.source();
    }
    cut(words, MAX_REASON)
}

async fn client(url: &Url) -> Result<reqwest::Client, String> {
    let roots = match url.scheme() {
        "https" => outgoing::roots().await,
        _ => RootCertStore::empty(),
    };
    // The headers hold keys, which are for this server only.
    let same_origin = Policy::custom(|attempt| {
        let first = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() > 5 || first != Some(attempt.url().origin()) {
            attempt.stop()
        } else {
            attempt.follow()
        }
    });
    let builder = outgoing::builder(url, roots).map_err(|error| error.to_string())?;
    builder
        .redirect(same_origin)
        .pool_max_idle_per_host(1)
        .user_agent(concat!("sandyard-tools/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())
}
