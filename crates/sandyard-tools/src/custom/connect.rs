//! Connects to a server: starts its program, or connects to its URL.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService, serve_client};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use rmcp::{ClientHandler, RoleClient};
use rustls::RootCertStore;
use tokio::process::Command;
use tokio::sync::{Notify, mpsc};

use super::config::Config;
use super::ordered_progress::OrderedProgress;
use super::redact::error_chain;
use super::sse_transport::SseTransport;
use crate::http_client;
use crate::process::{OutputTail, ProcessGroup};

/// Maximum number of queued progress notifications.
const MAX_PROGRESS: usize = 64;

/// A connected server.
#[derive(Debug)]
pub(super) struct Connected {
    /// The MCP connection.
    pub(super) running: RunningService<RoleClient, Listener>,
    /// Its program, if we started one.
    pub(super) program: Option<Program>,
}

/// A program of a server.
#[derive(Debug)]
pub(super) struct Program {
    /// The program with everything it started.
    pub(super) group: ProcessGroup,
    /// The end of its standard error.
    pub(super) stderr_tail: OutputTail,
}

/// Receives notifications of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Listener {
    /// Notified when the list of tools changes.
    pub(super) changed: Arc<Notify>,
    progress: Arc<Mutex<CallProgress>>,
}

/// Progress of the pending calls.
#[derive(Debug, Default)]
struct CallProgress {
    waiting: HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>,
    /// Notifications that arrived before `watch`: a call's token is known only after it was sent.
    early: VecDeque<ProgressNotificationParam>,
}

impl Listener {
    /// The progress of a call, until [`Listener::unwatch`].
    pub(super) fn watch(&self, token: ProgressToken) -> mpsc::Receiver<ProgressNotificationParam> {
        let (sender, receiver) = mpsc::channel(MAX_PROGRESS);
        let mut progress = self.progress.lock();
        progress.early.retain(|notification| {
            let is_ours = notification.progress_token == token;
            if is_ours {
                let _ = sender.try_send(notification.clone());
            }
            !is_ours
        });
        progress.waiting.insert(token, sender);
        receiver
    }

    /// Stops watching a call.
    pub(super) fn unwatch(&self, token: &ProgressToken) {
        let mut progress = self.progress.lock();
        progress.waiting.remove(token);
    }

    /// Delivers a progress notification to its call.
    pub(super) fn deliver(&self, notification: ProgressNotificationParam) {
        let mut progress = self.progress.lock();
        if let Some(sender) = progress.waiting.get(&notification.progress_token) {
            // Drop it if the queue is full.
            let _ = sender.try_send(notification);
            return;
        }
        if progress.early.len() == MAX_PROGRESS {
            progress.early.pop_front();
        }
        progress.early.push_back(notification);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("sandyard-tools", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects to a server. The error text needs [`redact::redacted`](super::redact::redacted).
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
            is_sse,
        } => {
            let client = client(url).await?;
            let running = if *is_sse {
                let transport = SseTransport::open(client, url, headers).await?;
                serve(transport).await
            } else {
                let address = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.clone());
                let transport = StreamableHttpClientTransport::with_client(client, address);
                serve(transport).await
            };
            Ok(Connected {
                running: running.map_err(|error| error_chain(&error))?,
                program: None,
            })
        }
    }
}

/// Initialises the MCP connection.
async fn serve<T, E, A>(
    transport: T,
) -> Result<RunningService<RoleClient, Listener>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let listener = Listener::default();
    let transport = OrderedProgress {
        transport: transport.into_transport(),
        listener: listener.clone(),
    };
    serve_client(listener, transport).await
}

async fn start(name: &str, program: Command) -> Result<Connected, String> {
    let mut group = ProcessGroup::start(program)
        .map_err(|error| format!("cannot start the program {name}: {error}"))?;
    let stderr_tail = OutputTail::default();
    if let Some(stderr) = group.child.stderr.take() {
        tokio::spawn(stderr_tail.clone().follow(stderr));
    }
    let (Some(stdout), Some(stdin)) = (group.child.stdout.take(), group.child.stdin.take()) else {
        return Err(format!("the program {name} has no input or output"));
    };
    match serve((stdout, stdin)).await {
        Ok(running) => Ok(Connected {
            running,
            program: Some(Program { group, stderr_tail }),
        }),
        Err(error) => {
            let error = error_chain(&error);
            let ended = group.end_within(Duration::from_secs(1)).await;
            let ended = ended.map(|status| status.to_string()).unwrap_or_default();
            let stderr_tail = stderr_tail.final_text().await;
            Err(format!("{error} ({ended}) {stderr_tail}").trim().to_owned())
        }
    }
}

async fn client(url: &Url) -> Result<reqwest::Client, String> {
    let roots = match url.scheme() {
        "https" => http_client::roots().await,
        _ => RootCertStore::empty(),
    };
    // The headers contain keys, so follow redirects only within the same origin.
    let same_origin = Policy::custom(|attempt| {
        let first = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() > 5 || first != Some(attempt.url().origin()) {
            attempt.stop()
        } else {
            attempt.follow()
        }
    });
    http_client::builder(url, roots)
        .redirect(same_origin)
        .pool_max_idle_per_host(1)
        .user_agent(concat!("sandyard-tools/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())
}
