//! A running browser with its tabs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::downloads::Downloads;
use super::find;
use super::notes::short;
use super::page::Page;
use super::pipe::{Failure, Pipe};
use super::process::Process;
use super::profile::Profile;
use super::state::{MAX_TABS, State};
use crate::reply::Problem;
use crate::workshop::Workshop;

/// How long its start may take. A cold disk and a busy machine make it slow, and many tests at once still slower.
const START: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 40 });

/// The browser.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) pipe: Pipe,
    pub(super) state: Arc<State>,
    pub(super) process: Process,
}

/// One that did not get as far as its greeting.
struct Unready {
    failure: Failure,
    words: String,
}

impl Running {
    /// Starts one, with no tab.
    pub(super) async fn start(workshop: &Workshop) -> Result<Self, Problem> {
        let program = find::find(|name| std::env::var_os(name))?;
        Self::start_program(&program, workshop).await
    }

    /// Starts this program; once more where it ended at once, as browsers do now and then on a busy machine.
    pub(super) async fn start_program(
        program: &Path,
        workshop: &Workshop,
    ) -> Result<Self, Problem> {
        let first = match Self::attempt(program, workshop).await? {
            Ok(running) => return Ok(running),
            Err(first) => first,
        };
        let last = match first.failure {
            Failure::Ended => match Self::attempt(program, workshop).await? {
                Ok(running) => return Ok(running),
                Err(second) => second,
            },
            _ => first,
        };
        let why = match last.failure {
            Failure::Refused(why) => why,
            Failure::Silent => "it does not answer".to_owned(),
            Failure::Ended | Failure::Crashed | Failure::Closed => "it ended at once".to_owned(),
        };
        Err(Problem::new(format!(
            "the browser could not be started: {why}; its last words: {}",
            short(&last.words, 1500)
        )))
    }

    async fn attempt(
        program: &Path,
        workshop: &Workshop,
    ) -> Result<Result<Self, Unready>, Problem> {
        let folder = workshop.workspace.resolve("downloads").ok();
        // Old folders may have to be removed: not on the thread that answers.
        let made = tokio::task::spawn_blocking(Profile::make).await;
        let profile = made.unwrap_or_else(|error| Err(error.into()));
        let started = profile.and_then(|profile| Process::start(program, profile));
        let (process, input, output) = started.map_err(|error| {
            Problem::new(format!(
                "the browser {} cannot be started: {error}",
                program.display()
            ))
        })?;
        let state = Arc::new(State::new(Downloads::new(folder.clone())));
        let pipe = Pipe::new(input, output, {
            let state = state.clone();
            move |pipe: &Pipe, event| state.on_event(pipe, event)
        });
        let running = Self {
            pipe,
            state,
            process,
        };
        let behaviour = match &folder {
            Some(folder) => {
                json!({ "behavior": "allow", "downloadPath": folder, "eventsEnabled": true })
            }
            None => json!({ "behavior": "deny", "eventsEnabled": true }),
        };
        let attach = json!({
            "autoAttach": true,
            "waitForDebuggerOnStart": true,
            "flatten": true,
            "filter": [{ "type": "page" }, { "exclude": true }],
        });
        let greeting = async {
            running
                .ask_within(
                    START,
                    "Target.setDiscoverTargets",
                    json!({ "discover": true }),
                )
                .await?;
            running
                .ask_within(START, "Target.setAutoAttach", attach)
                .await?;
            running
                .ask_within(START, "Browser.setDownloadBehavior", behaviour)
                .await
        };
        Ok(match greeting.await {
            Ok(_) => Ok(running),
            Err(failure) => {
                let words = running.process.last_words();
                running.end().await;
                Err(Unready { failure, words })
            }
        })
    }

    /// Whether it has ended by itself.
    pub(super) fn is_ended(&self) -> bool {
        self.pipe.is_ended()
    }

    /// Ends it and waits for that.
    pub(super) async fn end(self) {
        self.pipe.end();
        self.process.end().await;
    }

    /// The tab that is looked at, opened if there is none. One whose page has crashed is replaced.
    pub(super) async fn page(&self) -> Result<Page<'_>, Failure> {
        let (tabs, at) = self.state.tabs();
        let Some(tab) = at.map(|at| &tabs[at]) else {
            return self.open().await;
        };
        if !tab.is_crashed {
            return Ok(Page::new(self, tab));
        }
        self.state.note(format!(
            "the page {} had crashed; its tab was closed and an empty one opened",
            short(&tab.url, 500)
        ));
        let close = json!({ "targetId": tab.target });
        if tabs.len() > 1 {
            self.pipe.send(None, "Target.closeTarget", close).await?;
            return self.open().await;
        }
        // The last one is closed when there is another: with it the browser might end.
        let page = self.open().await?;
        self.pipe.tell(None, "Target.closeTarget", close);
        Ok(page)
    }

    /// A new tab, which is looked at from now on.
    pub(super) async fn open(&self) -> Result<Page<'_>, Failure> {
        if self.state.tabs().0.len() >= MAX_TABS {
            return Err(Failure::Refused(format!("{MAX_TABS} tabs are the most")));
        }
        let made = self
            .ask_within(
                START,
                "Target.createTarget",
                json!({ "url": "about:blank" }),
            )
            .await?;
        let target = made["targetId"].as_str().unwrap_or_default();
        // The event that it is there comes before the answer.
        let tab = self.state.tab(target).ok_or_else(|| {
            Failure::Refused(format!(
                "there is no room for another tab, {MAX_TABS} are the most"
            ))
        })?;
        self.look_at(target).await?;
        Ok(Page::new(self, &tab))
    }

    /// Looks at another tab.
    pub(super) async fn look_at(&self, target: &str) -> Result<(), Failure> {
        self.state.look_at(target);
        self.pipe
            .send(None, "Target.activateTarget", json!({ "targetId": target }))
            .await?;
        Ok(())
    }

    async fn ask_within(
        &self,
        patience: Duration,
        method: &str,
        params: serde_json::Value,
    ) -> Result<serde_json::Value, Failure> {
        self.pipe.send_within(patience, None, method, params).await
    }
}
