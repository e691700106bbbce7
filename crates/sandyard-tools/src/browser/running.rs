//! A running browser with its tabs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::downloads::Downloads;
use super::notes::short;
use super::page::Page;
use super::pipe::{Failure, Pipe};
use super::process::Process;
use super::profile::Profile;
use super::program;
use super::state::{MAX_TABS, State};
use crate::reply::{Problem, Result};
use crate::tool_state::ToolState;

/// Time limit for the start. Longer in tests, which run on busy machines.
const START_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 40 });

/// A running browser.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) pipe: Pipe,
    pub(super) state: Arc<State>,
    pub(super) process: Process,
}

/// A browser that failed to start.
struct FailedStart {
    failure: Failure,
    stderr: String,
}

impl Running {
    /// Starts a browser without tabs.
    pub(super) async fn start(tool_state: &ToolState) -> Result<Self> {
        let program = program::find(|name| std::env::var_os(name))?;
        Self::start_program(&program, tool_state).await
    }

    /// Starts a program. Tries again if it ends immediately, which happens on busy machines.
    pub(super) async fn start_program(program: &Path, tool_state: &ToolState) -> Result<Self> {
        let first = match Self::attempt(program, tool_state).await? {
            Ok(running) => return Ok(running),
            Err(first) => first,
        };
        let last = match first.failure {
            Failure::Ended => match Self::attempt(program, tool_state).await? {
                Ok(running) => return Ok(running),
                Err(second) => second,
            },
            _ => first,
        };
        let why = match last.failure {
            Failure::Refused(why) => why,
            Failure::TimedOut => "it does not answer".to_owned(),
            Failure::Ended | Failure::Crashed | Failure::Closed => {
                "it ended immediately".to_owned()
            }
        };
        Err(Problem::new(format!(
            "the browser failed to start: {why}; its error output: {}",
            short(&last.stderr, 1500)
        )))
    }

    async fn attempt(program: &Path, tool_state: &ToolState) -> Result<Result<Self, FailedStart>> {
        let folder = tool_state.workspace.resolve("downloads").ok();
        // This may remove old folders, so do not do it on the async thread.
        let created = tokio::task::spawn_blocking(Profile::create).await;
        let profile = created.unwrap_or_else(|error| Err(error.into()));
        let started = profile.and_then(|profile| Process::start(program, profile));
        let (process, input, output) = started.map_err(|error| {
            Problem::new(format!(
                "cannot start the browser {}: {error}",
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
        let setup = async {
            running
                .send_within(
                    START_TIMEOUT,
                    "Target.setDiscoverTargets",
                    json!({ "discover": true }),
                )
                .await?;
            running
                .send_within(START_TIMEOUT, "Target.setAutoAttach", attach)
                .await?;
            running
                .send_within(START_TIMEOUT, "Browser.setDownloadBehavior", behaviour)
                .await
        };
        Ok(match setup.await {
            Ok(_) => Ok(running),
            Err(failure) => {
                let stderr = running.process.stderr_text();
                running.end().await;
                Err(FailedStart { failure, stderr })
            }
        })
    }

    /// Returns whether the browser process has exited.
    pub(super) fn is_ended(&self) -> bool {
        self.pipe.is_ended()
    }

    /// Ends the browser and waits for its end.
    pub(super) async fn end(self) {
        self.pipe.end();
        self.process.end().await;
    }

    /// The current tab. Opens one if there is none, and replaces a crashed one.
    pub(super) async fn page(&self) -> Result<Page<'_>, Failure> {
        let (tabs, at) = self.state.tabs();
        let Some(tab) = at.map(|at| &tabs[at]) else {
            return self.open().await;
        };
        if !tab.is_crashed {
            return Ok(Page::new(self, tab));
        }
        self.state.note(format!(
            "the page {} had crashed; its tab was closed and an empty tab was opened",
            short(&tab.url, 500)
        ));
        let close = json!({ "targetId": tab.target });
        if tabs.len() > 1 {
            self.pipe.send(None, "Target.closeTarget", close).await?;
            return self.open().await;
        }
        // Close the last tab only after opening another one, because the browser may end with it.
        let page = self.open().await?;
        self.pipe.notify(None, "Target.closeTarget", close);
        Ok(page)
    }

    /// Opens a tab and makes it the current one.
    pub(super) async fn open(&self) -> Result<Page<'_>, Failure> {
        if self.state.tabs().0.len() >= MAX_TABS {
            return Err(Failure::Refused(format!(
                "the maximum of {MAX_TABS} tabs is reached"
            )));
        }
        let created = self
            .send_within(
                START_TIMEOUT,
                "Target.createTarget",
                json!({ "url": "about:blank" }),
            )
            .await?;
        let target = created["targetId"].as_str().unwrap_or_default();
        // The event about the new tab arrives before the answer.
        let tab = self.state.tab(target).ok_or_else(|| {
            Failure::Refused(format!("the maximum of {MAX_TABS} tabs is reached"))
        })?;
        self.select_tab(target).await?;
        Ok(Page::new(self, &tab))
    }

    /// Makes another tab the current one.
    pub(super) async fn select_tab(&self, target: &str) -> Result<(), Failure> {
        self.state.select_tab(target);
        self.pipe
            .send(None, "Target.activateTarget", json!({ "targetId": target }))
            .await?;
        Ok(())
    }

    async fn send_within(
        &self,
        limit: Duration,
        method: &str,
        params: serde_json::Value,
    ) -> Result<serde_json::Value, Failure> {
        self.pipe.send_within(limit, None, method, params).await
    }
}
