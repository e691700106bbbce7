//! One tab: scripts of ours in it, going somewhere, waiting for it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::notes::short;
use super::pipe::Failure;
use super::running::Running;
use super::state::Tab;

/// The world our scripts live in. They see the same page, and the page cannot see or change them.
const WORLD: &str = "sandyard";
/// Between two looks at whether a page has come to rest.
const LOOK: Duration = Duration::from_millis(50);

/// A tab of a running browser.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) running: &'a Running,
    pub(super) target: String,
    session: String,
}

/// How it went to wait for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is there.
    Loaded,
    /// Not all of it is.
    StillLoading,
    /// Its scripts keep it from answering.
    Busy,
}

/// How it went to go somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The page is on its way.
    Begun,
    /// Nothing came in time, and it was given up.
    Nothing,
    /// It was no page: a file to keep, or nothing at all.
    NoPage,
    /// It cannot be reached.
    Failed(String),
}

impl<'a> Page<'a> {
    /// Of this tab.
    pub(super) fn new(running: &'a Running, tab: &Tab) -> Self {
        Self {
            running,
            target: tab.target.clone(),
            session: tab.session.clone(),
        }
    }

    /// What is known of it.
    pub(super) fn tab(&self) -> Result<Tab, Failure> {
        let tab = self.running.state.tab(&self.target);
        match tab {
            Some(tab) if tab.is_crashed => Err(Failure::Crashed),
            Some(tab) => Ok(tab),
            None if self.running.is_ended() => Err(Failure::Ended),
            None => Err(Failure::Closed),
        }
    }

    /// Asks for something.
    pub(super) async fn send(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let pipe = &self.running.pipe;
        // Whoever asks a page whose process has ended waits for nothing.
        self.tab()?;
        pipe.send(Some(&self.session), method, params).await
    }

    /// Does something with the page. It may close for it before the browser has said that it was done, and then it was.
    pub(super) async fn act(&self, method: &str, params: Value) -> Result<(), Failure> {
        match self.send(method, params).await {
            Ok(_) | Err(Failure::Closed) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Asks for something whose answer nobody needs.
    pub(super) fn tell(&self, method: &str, params: Value) {
        self.running.pipe.tell(Some(&self.session), method, params);
    }

    /// Calls a function of ours in the page, with these arguments.
    pub(super) async fn script(
        &self,
        function: &str,
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        let world = json!({ "frameId": self.target, "worldName": WORLD });
        let made = self.send("Page.createIsolatedWorld", world).await?;
        let arguments: Vec<_> = arguments
            .iter()
            .map(|value| json!({ "value": value }))
            .collect();
        let call = json!({
            "functionDeclaration": function,
            "executionContextId": made["executionContextId"],
            "arguments": arguments,
            "returnByValue": true,
        });
        let answer = self.send("Runtime.callFunctionOn", call).await?;
        if let Some(problem) = answer.get("exceptionDetails") {
            let words = problem["exception"]["description"]
                .as_str()
                .or_else(|| problem["text"].as_str())
                .unwrap_or_default();
            return Err(Failure::Refused(short(words, 300)));
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Goes to an address. Returns when its first bytes are there.
    pub(super) async fn go(&self, url: &str, deadline: Instant) -> Result<Arrival, Failure> {
        let patience = deadline.saturating_duration_since(Instant::now());
        self.tab()?;
        // The browser answers nothing else about the tab until there is something: nobody is left waiting for that.
        let stop = Stop(self);
        let answer = self
            .running
            .pipe
            .send_within(
                patience,
                Some(&self.session),
                "Page.navigate",
                json!({ "url": url }),
            )
            .await;
        let answer = match answer {
            Err(Failure::Silent) => return Ok(Arrival::Nothing),
            other => other?,
        };
        std::mem::forget(stop);
        Ok(match answer["errorText"].as_str() {
            Some("net::ERR_ABORTED") => Arrival::NoPage,
            Some(error) if !error.is_empty() => Arrival::Failed(error.to_owned()),
            _ => Arrival::Begun,
        })
    }

    /// Waits until nothing is on its way any more and what is there is complete.
    pub(super) async fn rest(&self, deadline: Instant) -> Result<Rest, Failure> {
        let mut calm = 0;
        loop {
            sleep(LOOK).await;
            let answer = timeout_at(deadline, self.script(READY, &[])).await;
            let is_loading = self.tab()?.is_loading;
            let state = match answer.unwrap_or(Err(Failure::Silent)) {
                Ok(state) => state,
                // While another document is awaited the one that is there is not spoken to.
                Err(Failure::Silent) if is_loading && Instant::now() < deadline => Value::Null,
                Err(Failure::Silent) if is_loading => return Ok(Rest::StillLoading),
                Err(Failure::Silent) => return Ok(Rest::Busy),
                // Between two documents there is no place for scripts.
                Err(Failure::Refused(_)) => Value::Null,
                Err(failure) => return Err(failure),
            };
            // Twice, since a click needs a moment until something is on its way.
            calm = if state == "complete" && !is_loading {
                calm + 1
            } else {
                0
            };
            if calm == 2 {
                return Ok(Rest::Loaded);
            }
            if Instant::now() >= deadline {
                return Ok(Rest::StillLoading);
            }
        }
    }
}

/// Gives up what is on its way when it is dropped.
struct Stop<'a>(&'a Page<'a>);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.tell("Page.stopLoading", json!({}));
    }
}

const READY: &str = "function() { return document.readyState; }";
