//! A tab: scripts, navigation, and waiting for it to load.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::notes::short;
use super::pipe::Failure;
use super::running::Running;
use super::state::Tab;

/// Isolated world of our scripts: they see the page, but the page cannot see or change them.
const WORLD: &str = "sandyard";
/// Interval of checks whether a page has loaded.
const POLL: Duration = Duration::from_millis(50);

/// A tab of a running browser.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) running: &'a Running,
    pub(super) target: String,
    session: String,
}

/// Result of waiting for a page to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadState {
    /// The page has loaded.
    Loaded,
    /// The page is still loading.
    StillLoading,
    /// Its scripts keep it from responding.
    Busy,
}

/// Result of a navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Navigation {
    /// The page is loading.
    Started,
    /// The server did not answer in time, and loading was cancelled.
    TimedOut,
    /// The response is a download or empty.
    NotAPage,
    /// The navigation failed.
    Failed(String),
}

impl<'a> Page<'a> {
    /// The page of a tab.
    pub(super) fn new(running: &'a Running, tab: &Tab) -> Self {
        Self {
            running,
            target: tab.target.clone(),
            session: tab.session.clone(),
        }
    }

    /// The state of the tab.
    pub(super) fn tab(&self) -> Result<Tab, Failure> {
        let tab = self.running.state.tab(&self.target);
        match tab {
            Some(tab) if tab.is_crashed => Err(Failure::Crashed),
            Some(tab) => Ok(tab),
            None if self.running.is_ended() => Err(Failure::Ended),
            None => Err(Failure::Closed),
        }
    }

    /// Sends a command and waits for its result.
    pub(super) async fn send(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let pipe = &self.running.pipe;
        // A crashed page would not answer.
        self.tab()?;
        pipe.send(Some(&self.session), method, params).await
    }

    /// Sends a command. If the page closes before the browser answers, the command has succeeded.
    pub(super) async fn act(&self, method: &str, params: Value) -> Result<(), Failure> {
        match self.send(method, params).await {
            Ok(_) | Err(Failure::Closed) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Sends a command without waiting for its result.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.running
            .pipe
            .notify(Some(&self.session), method, params);
    }

    /// Calls a script function in the page.
    pub(super) async fn script(
        &self,
        function: &str,
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        let world = json!({ "frameId": self.target, "worldName": WORLD });
        let created = self.send("Page.createIsolatedWorld", world).await?;
        let arguments: Vec<_> = arguments
            .iter()
            .map(|value| json!({ "value": value }))
            .collect();
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": created["executionContextId"],
            "arguments": arguments,
            "returnByValue": true,
        });
        let answer = self.send("Runtime.callFunctionOn", call).await?;
        if let Some(problem) = answer.get("exceptionDetails") {
            let text = problem["exception"]["description"]
                .as_str()
                .or_else(|| problem["text"].as_str())
                .unwrap_or_default();
            return Err(Failure::Refused(short(text, 300)));
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Navigates to a URL. Returns when the response starts.
    pub(super) async fn navigate(
        &self,
        url: &str,
        deadline: Instant,
    ) -> Result<Navigation, Failure> {
        let limit = deadline.saturating_duration_since(Instant::now());
        self.tab()?;
        // The browser does not answer other commands of the tab until the response starts, so cancel loading if the call ends.
        let stop = StopLoading(self);
        let answer = self
            .running
            .pipe
            .send_within(
                limit,
                Some(&self.session),
                "Page.navigate",
                json!({ "url": url }),
            )
            .await;
        let answer = match answer {
            Err(Failure::TimedOut) => return Ok(Navigation::TimedOut),
            other => other?,
        };
        std::mem::forget(stop);
        Ok(match answer["errorText"].as_str() {
            Some("net::ERR_ABORTED") => Navigation::NotAPage,
            Some(error) if !error.is_empty() => Navigation::Failed(error.to_owned()),
            _ => Navigation::Started,
        })
    }

    /// Waits until the page has loaded.
    pub(super) async fn wait_for_load(&self, deadline: Instant) -> Result<LoadState, Failure> {
        let mut ready_count = 0;
        loop {
            sleep(POLL).await;
            let answer = timeout_at(deadline, self.script(READY_STATE, &[])).await;
            let is_loading = self.tab()?.is_loading;
            let state = match answer.unwrap_or(Err(Failure::TimedOut)) {
                Ok(state) => state,
                // While another document loads, the current one does not answer.
                Err(Failure::TimedOut) if is_loading && Instant::now() < deadline => Value::Null,
                Err(Failure::TimedOut) if is_loading => return Ok(LoadState::StillLoading),
                Err(Failure::TimedOut) => return Ok(LoadState::Busy),
                // Between two documents scripts cannot run.
                Err(Failure::Refused(_)) => Value::Null,
                Err(failure) => return Err(failure),
            };
            // Check twice, because loading starts a moment after a click.
            ready_count = if state == "complete" && !is_loading {
                ready_count + 1
            } else {
                0
            };
            if ready_count == 2 {
                return Ok(LoadState::Loaded);
            }
            if Instant::now() >= deadline {
                return Ok(LoadState::StillLoading);
            }
        }
    }
}

/// Cancels loading when it is dropped.
struct StopLoading<'a>(&'a Page<'a>);

impl Drop for StopLoading<'_> {
    fn drop(&mut self) {
        self.0.notify("Page.stopLoading", json!({}));
    }
}

const READY_STATE: &str = "function() { return document.readyState; }";
