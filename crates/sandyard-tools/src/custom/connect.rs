//! Getting to a server: starting its program, or calling at its address.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
use super::in_order::InOrder;
use super::older::Older;
use super::reasons::reason;
use crate::outgoing;
use crate::process::{Group, Tail};

/// Most notices of progress that wait to be passed on.
const MAX_PROGRESS: usize = 64;

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
    progress: Arc<Mutex<Watched>>,
}

/// The progress of the calls that are under way.
#[derive(Debug, Default)]
struct Watched {
    waiting: HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>,
    /// Told before anybody waited: a call's token is known only when it is sent.
    early: VecDeque<ProgressNotificationParam>,
}

impl Listener {
    /// The progress of one call, until [`Listener::forget`].
    pub(super) fn watch(&self, token: ProgressToken) -> mpsc::Receiver<ProgressNotificationParam> {
        let (sender, receiver) = mpsc::channel(MAX_PROGRESS);
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.early.retain(|told| {
            let is_ours = told.progress_token == token;
            if is_ours {
                let _ = sender.try_send(told.clone());
            }
            !is_ours
        });
        progress.waiting.insert(token, sender);
        receiver
    }

    /// Nobody waits for this progress any more.
    pub(super) fn forget(&self, token: &ProgressToken) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.waiting.remove(token);
    }

    /// Passes progress on to who waits for it.
    pub(super) fn hear(&self, told: ProgressNotificationParam) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = progress.waiting.get(&told.progress_token) {
            // Progress is news: what nobody has time for is old.
            let _ = sender.try_send(told);
            return;
        }
        if progress.early.len() == MAX_PROGRESS {
            progress.early.pop_front();
        }
        progress.early.push_back(told);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("sandyard-tools", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects to a server, or says why that did not work, for [`reasons::shown`](super::reasons::shown).
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
            let running = if *is_older {
                let transport = Older::open(client, url, headers).await?;
                serve(transport).await
            } else {
                let address = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.clone());
                let transport = StreamableHttpClientTransport::with_client(client, address);
                serve(transport).await
            };
            Ok(Connected {
                running: running.map_err(|error| reason(&error))?,
                program: None,
            })
        }
    }
}

/// Begins the conversation.
async fn serve<T, E, A>(
    transport: T,
) -> Result<RunningService<RoleClient, Listener>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let listener = Listener::default();
    let transport = InOrder {
        transport: transport.into_transport(),
        listener: listener.clone(),
    };
    serve_client(listener, transport).await
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
    match serve((stdout, stdin)).await {
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
    outgoing::builder(url, roots)
        .redirect(same_origin)
        .pool_max_idle_per_host(1)
        .user_agent(concat!("sandyard-tools/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())
}
