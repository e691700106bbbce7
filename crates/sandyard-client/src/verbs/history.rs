//! Logs and events, as far as they went and as they happen.

use reqwest::Method;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::follow::Follow;
use crate::model::{AuditEntry, AuditFilter, Event, EventFilter, LogEntry, LogPage};
use crate::request::Patience;

/// Lines asked for at once.
const PAGE_LINES: u64 = 10_000;

/// A sandbox's log as it grows.
pub type FollowLogs = Follow<LogEntry>;

impl Client {
    /// The newest lines of a sandbox's log.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn logs(&self, sandbox: &str, tail: usize) -> Result<Vec<LogEntry>> {
        let operation = "reading a log";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "logs"])
            .query(&[("tail", tail)]);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        Ok(answer.page(operation, "logs")?.items)
    }

    /// The lines of a sandbox's log after one, oldest first; those after line 0 are all that are kept.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn logs_after(&self, sandbox: &str, after: u64) -> Result<LogPage> {
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "logs"])
            .query(&[("tail", PAGE_LINES), ("after", after)]);
        self.fetch("reading a log", Patience::Short, request).await
    }

    /// The newest lines of a sandbox's log, and those to come.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn follow_logs(&self, sandbox: &str, tail: usize) -> Result<FollowLogs> {
        let mut url = self.route(["sandboxes", sandbox, "logs"]);
        url.query_pairs_mut()
            .append_pair("tail", &tail.to_string())
            .append_pair("follow", "true");
        Follow::open(self, "following a log", url).await
    }

    /// What happened to a sandbox, also after its deletion.
    ///
    /// # Errors
    ///
    /// When there was no such sandbox.
    pub async fn events(&self, sandbox: &str, filter: &EventFilter) -> Result<Vec<Event>> {
        let operation = "listing events";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "events"])
            .query(filter);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        Ok(answer.page(operation, "events")?.items)
    }

    /// What happened to a sandbox, and what will.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn follow_events(&self, sandbox: &str, tail: usize) -> Result<Follow<Event>> {
        let mut url = self.route(["sandboxes", sandbox, "events"]);
        url.query_pairs_mut()
            .append_pair("limit", &tail.to_string())
            .append_pair("follow", "true");
        Follow::open(self, "following events", url).await
    }

    /// Who did what; for admins.
    ///
    /// # Errors
    ///
    /// When the caller is none.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>> {
        let operation = "reading the audit";
        let request = self.request(Method::GET, ["audit"]).query(filter);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        Ok(answer.page(operation, "entries")?.items)
    }
}
