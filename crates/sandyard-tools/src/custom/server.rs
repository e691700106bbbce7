//! A user's MCP server, restarted when it fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rmcp::RoleClient;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::connect::{Connected, Listener, Program, connect};
use super::convert::{self, MAX_TOOLS, RemoteTool};
use super::redact;

/// Time limit for a start, including the list of tools.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before a restart. It doubles with every failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause. A server that ran this long starts with the first pause again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After this many failures in a row, the server is restarted only when it is called.
const MAX_FAILURES: u32 = 10;
/// Time that a program has to exit before it is killed. Longer in tests, which run on busy machines.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });
/// Changes of the list of tools within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Maximum length of an error text, in bytes.
const MAX_REASON: usize = 2000;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 50;

/// A server that runs until it is stopped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) config: Config,
    pub(super) state: watch::Sender<State>,
    tools: RwLock<Vec<RemoteTool>>,
    pub(super) called: Notify,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// State of a server.
#[derive(Clone, Debug)]
pub(super) enum State {
    Starting,
    Up(Link),
    /// The reason, without secrets.
    Down(String),
}

/// A connection to a server.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
}

impl Server {
    /// Starts a server. `changed` is called when its tools change.
    pub(super) fn start(
        name: String,
        config: Config,
        folder: PathBuf,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            name,
            config,
            state: watch::Sender::new(State::Starting),
            tools: RwLock::default(),
            called: Notify::new(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        let supervised = server.clone();
        tokio::spawn(async move {
            supervised.keep_running(&folder, &changed).await;
            supervised
                .state
                .send_replace(State::Down("the server was stopped".into()));
            supervised.ended.cancel();
        });
        server
    }

    /// Stops the server and waits until it has ended.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let _ = timeout(SHUTDOWN_TIMEOUT * 2, self.ended.cancelled()).await;
    }

    /// Waits until the server runs or its start has failed.
    pub(super) async fn started(&self) -> Result<(), String> {
        let mut state = self.state.subscribe();
        let settled = state
            .wait_for(|state| !matches!(state, State::Starting))
            .await;
        match settled.as_deref() {
            Ok(State::Down(why)) => Err(why.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err("the server was stopped".into()),
        }
    }

    /// Returns whether the server is running.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(_))
    }

    /// The tools of the server, as last listed.
    pub(super) fn tools(&self) -> Vec<RemoteTool> {
        let tools = self.tools.read();
        tools.clone()
    }

    async fn keep_running(&self, folder: &std::path::Path, changed: &(dyn Fn() + Send + Sync)) {
        let mut failures = 0;
        while !self.stop.is_cancelled() {
            let start = async {
                let connected = connect(&self.config, folder).await?;
                let tools = list(connected.running.peer()).await?;
                Ok::<_, String>((connected, tools))
            };
            let Some(started) = self
                .stop
                .run_until_cancelled(timeout(START_TIMEOUT, start))
                .await
            else {
                return;
            };
            let why = match started {
                Ok(Ok((connected, tools))) => {
                    let started_at = Instant::now();
                    self.set_tools(tools, changed);
                    let why = self.run(connected, changed).await;
                    if started_at.elapsed() >= LONGEST_PAUSE {
                        failures = 0;
                    }
                    why
                }
                Ok(Err(why)) => why,
                Err(_) => format!(
                    "the server did not start within {} seconds",
                    START_TIMEOUT.as_secs()
                ),
            };
            let why = redact::redacted(&self.config, why, MAX_REASON);
            self.state.send_replace(State::Down(why));
            failures += 1;
            self.stop.run_until_cancelled(self.pause(failures)).await;
        }
    }

    async fn pause(&self, failures: u32) {
        if failures > MAX_FAILURES {
            self.called.notified().await;
        } else {
            sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow(failures.min(7) - 1))).await;
        }
    }

    /// Runs until the server ends, and returns why.
    async fn run(&self, connected: Connected, changed: &(dyn Fn() + Send + Sync)) -> String {
        let Connected { running, program } = connected;
        let link = Link {
            peer: running.peer().clone(),
            listener: running.service().clone(),
        };
        self.state.send_replace(State::Up(link.clone()));
        let cancel = running.cancellation_token();
        let mut end = std::pin::pin!(running.waiting());
        loop {
            tokio::select! {
                _ = &mut end => return shut_down(program).await,
                () = self.stop.cancelled() => break,
                () = link.listener.changed.notified() => {}
            }
            let refresh = async {
                sleep(DEBOUNCE).await;
                list(&link.peer).await
            };
            tokio::select! {
                _ = &mut end => return shut_down(program).await,
                () = self.stop.cancelled() => break,
                listed = timeout(START_TIMEOUT, refresh) => {
                    if let Ok(Ok(tools)) = listed {
                        self.set_tools(tools, changed);
                    }
                }
            }
        }
        cancel.cancel();
        let _ = timeout(SHUTDOWN_TIMEOUT, end).await;
        shut_down(program).await
    }

    fn set_tools(&self, listed_tools: Vec<rmcp::model::Tool>, changed: &(dyn Fn() + Send + Sync)) {
        let new = convert::tools(&self.name, listed_tools);
        let has_changed = {
            let mut tools = self.tools.write();
            let has_changed = !tools
                .iter()
                .map(|tool| &tool.definition)
                .eq(new.iter().map(|tool| &tool.definition));
            *tools = new;
            has_changed
        };
        if has_changed {
            changed();
        }
    }
}

/// Ends a program and returns how it ended.
async fn shut_down(program: Option<Program>) -> String {
    let Some(Program { group, stderr_tail }) = program else {
        return "the connection closed".into();
    };
    let ended = match group.end_within(SHUTDOWN_TIMEOUT).await {
        Ok(status) => format!("the program ended ({status})"),
        Err(error) => format!("the program's exit status is unknown ({error})"),
    };
    format!("{ended} {}", stderr_tail.final_text().await)
        .trim()
        .to_owned()
}

async fn list(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Tool>, String> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer
            .list_tools(Some(page))
            .await
            .map_err(|error| format!("the tools cannot be listed: {error}"))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    Ok(tools)
}
