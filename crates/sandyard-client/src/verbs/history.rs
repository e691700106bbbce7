//! Logs, events and the audit log.

use reqwest::Method;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::follow::Follow;
use crate::model::{AuditEntry, AuditFilter, Event, EventFilter, LogEntry, LogPage};
use crate::request::TimeLimit;

/// Lines per request.
const PAGE_LINES: u64 = 10_000;

/// Stream of a sandbox's log.
pub type FollowLogs = Follow<LogEntry>;

impl Client {
    /// Returns the newest lines of a sandbox's log.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn logs(&self, sandbox: &str, tail: usize) -> Result<Vec<LogEntry>> {
        let operation = "reading a log";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "logs"])
            .query(&[("tail", tail)]);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        Ok(answer.page(operation, "logs")?.items)
    }

    /// Returns the lines of a sandbox's log after a sequence number, oldest first. After 0 means all that are kept.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn logs_after(&self, sandbox: &str, after: u64) -> Result<LogPage> {
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "logs"])
            .query(&[("tail", PAGE_LINES), ("after", after)]);
        self.fetch("reading a log", TimeLimit::Short, request).await
    }

    /// Returns the newest lines of a sandbox's log and streams new ones.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn follow_logs(&self, sandbox: &str, tail: usize) -> Result<FollowLogs> {
        let mut url = self.route(["sandboxes", sandbox, "logs"]);
        url.query_pairs_mut()
            .append_pair("tail", &tail.to_string())
            .append_pair("follow", "true");
        Follow::open(self, "following a log", url).await
    }

    /// Lists events of a sandbox, also after its deletion; without one, of all that the caller can see.
    ///
    /// # Errors
    ///
    /// If the sandbox never existed.
    pub async fn events(&self, sandbox: Option<&str>, filter: &EventFilter) -> Result<Vec<Event>> {
        let operation = "listing events";
        let request = match sandbox {
            Some(sandbox) => self.request(Method::GET, ["sandboxes", sandbox, "events"]),
            None => self.request(Method::GET, ["events"]),
        };
        let request = request.query(filter);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        Ok(answer.page(operation, "events")?.items)
    }

    /// Lists events of a sandbox, or of all that the caller can see, and streams new ones.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn follow_events(&self, sandbox: Option<&str>, tail: usize) -> Result<Follow<Event>> {
        let mut url = match sandbox {
            Some(sandbox) => self.route(["sandboxes", sandbox, "events"]),
            None => self.route(["events"]),
        };
        url.query_pairs_mut()
            .append_pair("limit", &tail.to_string())
            .append_pair("follow", "true");
        Follow::open(self, "following events", url).await
    }

    /// Lists audit entries. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the caller is not an admin.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>> {
        let operation = "listing audit entries";
        let request = self.request(Method::GET, ["audit"]).query(filter);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        Ok(answer.page(operation, "entries")?.items)
    }
}
