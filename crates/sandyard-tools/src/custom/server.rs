//! One of the user's own tool servers, kept running.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::connect::{Connected, Listener, Program, connect};
use super::reasons;
use super::told::{self, MAX_TOOLS, Theirs};

/// How long a start may take, its list of tools included.
const START: Duration = Duration::from_secs(60);
/// The pause before a server is started again, which doubles with every failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause; a server that ran this long begins anew.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After so many failures in a row it is only started again when it is called.
const MAX_FAILURES: u32 = 10;
/// How long a program may take to end by itself. Tests see that it does, on machines that may be busy.
pub(super) const FAREWELL: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });
/// Changes of the list of tools within this time are one.
const CALM: Duration = Duration::from_millis(200);
/// Longest reason.
const MAX_REASON: usize = 2000;
/// Most pages of a list.
const MAX_PAGES: usize = 50;

/// A server that is kept running until it is dropped or stopped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) config: Config,
    pub(super) state: watch::Sender<State>,
    tools: RwLock<Vec<Theirs>>,
    pub(super) called: Notify,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// How a server is.
#[derive(Clone, Debug)]
pub(super) enum State {
    Starting,
    Up(Link),
    /// Why, as it may be shown.
    Down(String),
}

/// A connection to a server.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
}

impl Server {
    /// Starts a server; `changed` is called whenever its tools are others.
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
        let kept = server.clone();
        tokio::spawn(async move {
            kept.keep_running(&folder, &changed).await;
            kept.state
                .send_replace(State::Down("it was stopped".into()));
            kept.ended.cancel();
        });
        server
    }

    /// Ends it, and waits for that.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let _ = timeout(FAREWELL * 2, self.ended.cancelled()).await;
    }

    /// Waits until it is running, or could not be started.
    pub(super) async fn started(&self) -> Result<(), String> {
        let mut state = self.state.subscribe();
        let settled = state
            .wait_for(|state| !matches!(state, State::Starting))
            .await;
        match settled.as_deref() {
            Ok(State::Down(why)) => Err(why.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err("it was stopped".into()),
        }
    }

    /// Whether it is running now.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(_))
    }

    /// Its tools, as far as they are known.
    pub(super) fn tools(&self) -> Vec<Theirs> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
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
            let Some(started) = self.stop.run_until_cancelled(timeout(START, start)).await else {
                return;
            };
            let why = match started {
                Ok(Ok((connected, tools))) => {
                    let began = Instant::now();
                    self.set_tools(tools, changed);
                    let why = self.run(connected, changed).await;
                    if began.elapsed() >= LONGEST_PAUSE {
                        failures = 0;
                    }
                    why
                }
                Ok(Err(why)) => why,
                Err(_) => format!("it did not start within {} seconds", START.as_secs()),
            };
            let why = reasons::shown(&self.config, why, MAX_REASON);
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

    /// Runs it until it ends, and says why it did.
    async fn run(&self, connected: Connected, changed: &(dyn Fn() + Send + Sync)) -> String {
        let Connected { running, program } = connected;
        let link = Link {
            peer: running.peer().clone(),
            listener: running.service().clone(),
        };
        self.state.send_replace(State::Up(link.clone()));
        let hang_up = running.cancellation_token();
        let mut end = std::pin::pin!(running.waiting());
        loop {
            tokio::select! {
                _ = &mut end => return farewell(program).await,
                () = self.stop.cancelled() => break,
                () = link.listener.changed.notified() => {}
            }
            let again = async {
                sleep(CALM).await;
                list(&link.peer).await
            };
            tokio::select! {
                _ = &mut end => return farewell(program).await,
                () = self.stop.cancelled() => break,
                listed = timeout(START, again) => {
                    if let Ok(Ok(tools)) = listed {
                        self.set_tools(tools, changed);
                    }
                }
            }
        }
        hang_up.cancel();
        let _ = timeout(FAREWELL, end).await;
        farewell(program).await
    }

    fn set_tools(&self, listed: Vec<rmcp::model::Tool>, changed: &(dyn Fn() + Send + Sync)) {
        let new = told::tools(&self.name, listed);
        let is_other = {
            let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            let is_other = !tools
                .iter()
                .map(|tool| &tool.shown)
                .eq(new.iter().map(|tool| &tool.shown));
            *tools = new;
            is_other
        };
        if is_other {
            changed();
        }
    }
}

/// Ends what is left of a program, and says how it ended.
async fn farewell(program: Option<Program>) -> String {
    let Some(Program { group, complaints }) = program else {
        return "the connection closed".into();
    };
    let ended = match group.end_within(FAREWELL).await {
        Ok(status) => format!("the program ended ({status})"),
        Err(error) => format!("the program is lost ({error})"),
    };
    format!("{ended} {}", complaints.last_words().await)
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
            .map_err(|error| format!("its tools cannot be listed: {error}"))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    Ok(tools)
}
