//! Reads and follows a sandbox's log: output of commands, and events.

use std::time::Duration;

use sandyard_core::{Caller, SandboxId};
use sandyard_store::model::{Event, EventFilter};
use tokio::sync::watch;

use crate::background::flows::{FLOW, FLOW_DENIED};
use crate::command_log::{LogCursor, LogPage};
use crate::error::{Result, ServiceError};
use crate::request::{LogEntry, LogLines, LogSource};
use crate::service::Service;

/// Most events among the lines of an answer.
const MAX_EVENTS: usize = 1000;
/// How often a follower checks for lines that another server wrote.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Most lines that a follower reads at once.
const MAX_READ: usize = 1000;

impl Service {
    /// Reads the newest `limit` lines of a sandbox's log: output of commands, and events. Also of a deleted sandbox.
    pub async fn logs(&self, caller: &Caller, name: &str, limit: usize) -> Result<LogLines> {
        let sandbox = self.inspect(caller, name).await?;
        let (page, _) = self.newest(&sandbox.id, limit).await?;
        Ok(lines(page))
    }

    /// Reads `limit` lines of a sandbox's log after the line number `after`, oldest first, without events. Also of a deleted sandbox.
    pub async fn logs_after(
        &self,
        caller: &Caller,
        name: &str,
        after: u64,
        limit: usize,
    ) -> Result<LogLines> {
        let sandbox = self.inspect(caller, name).await?;
        self.command_logs().flush(&sandbox.id).await;
        let cursor = LogCursor::after(after);
        let read = self.command_logs().read(&sandbox.id, cursor, limit).await;
        let (page, _) = read.map_err(unreadable)?;
        Ok(lines(page))
    }

    /// Follows a sandbox's log from its newest `tail` lines, or from the line number `after`.
    pub async fn follow_logs(
        &self,
        caller: &Caller,
        name: &str,
        tail: usize,
        after: Option<u64>,
    ) -> Result<LogFollower> {
        let sandbox = self.existing(caller, name).await?;
        let last_written_batch = self.command_logs().subscribe(&sandbox.id);
        let (page, cursor) = match after {
            Some(after) => (LogPage::default(), LogCursor::after(after)),
            None => self.newest(&sandbox.id, tail).await?,
        };
        Ok(LogFollower {
            service: self.clone(),
            id: sandbox.id,
            last_written_batch,
            ready: page.entries.into(),
            cursor,
            has_ended: false,
        })
    }

    async fn newest(&self, id: &SandboxId, limit: usize) -> Result<(LogPage, LogCursor)> {
        let filter = EventFilter {
            sandbox_id: Some(id.clone()),
            // Denied flows are lines of the log already; other flows are not worth a line.
            except_kinds: vec![FLOW.to_owned(), FLOW_DENIED.to_owned()],
            is_tail: true,
            limit: limit.clamp(1, MAX_EVENTS),
            ..EventFilter::default()
        };
        let events = self.store().events(&filter).await?;
        let (mut page, cursor) = self
            .command_logs()
            .tail(id, limit)
            .await
            .map_err(unreadable)?;
        page.entries = merge(page.entries, events.iter().map(line_of).collect());
        let surplus = page.entries.len().saturating_sub(limit);
        page.entries.drain(..surplus);
        Ok((page, cursor))
    }
}

/// Follows a sandbox's log.
#[derive(Debug)]
pub struct LogFollower {
    service: Service,
    id: SandboxId,
    last_written_batch: watch::Receiver<u64>,
    ready: std::collections::VecDeque<LogEntry>,
    cursor: LogCursor,
    has_ended: bool,
}

impl LogFollower {
    /// Waits for the next line; none after the sandbox was deleted. Loses nothing when cancelled.
    pub async fn next(&mut self) -> Option<LogEntry> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(entry);
            }
            // Before the read, so that no write is missed.
            self.last_written_batch.mark_unchanged();
            let logs = self.service.command_logs();
            let read = logs.read(&self.id, self.cursor.clone(), MAX_READ).await;
            match read {
                Ok((page, cursor)) => {
                    self.cursor = cursor;
                    self.ready.extend(page.entries);
                }
                Err(error) => {
                    tracing::warn!(%error, sandbox.id = %self.id, "Failed to read a command log");
                    return None;
                }
            }
            if !self.ready.is_empty() {
                continue;
            }
            if self.has_ended {
                return None;
            }
            let changed = tokio::time::timeout(POLL_EVERY, self.last_written_batch.changed()).await;
            self.has_ended = matches!(changed, Ok(Err(_)));
        }
    }
}

fn lines(page: LogPage) -> LogLines {
    LogLines {
        entries: page.entries,
        dropped: page.dropped,
        has_more: page.has_more,
    }
}

fn unreadable(error: std::io::Error) -> ServiceError {
    ServiceError::internal("failed to read the log").source(error)
}

/// Merges events into lines by their time. Lines keep their order, even after a clock jump.
fn merge(lines: Vec<LogEntry>, events: Vec<LogEntry>) -> Vec<LogEntry> {
    let mut merged = Vec::with_capacity(lines.len() + events.len());
    let mut events = events.into_iter().peekable();
    for line in lines {
        while let Some(event) = events.next_if(|event| event.at_ms <= line.at_ms) {
            merged.push(event);
        }
        merged.push(line);
    }
    merged.extend(events);
    merged
}

/// An event as a line of the log.
fn line_of(event: &Event) -> LogEntry {
    let data = match &event.data {
        serde_json::Value::Object(fields) if fields.is_empty() => String::new(),
        data => format!(" {data}"),
    };
    LogEntry {
        seq: 0,
        at_ms: event.at_ms,
        source: LogSource::Event,
        pid: None,
        text: format!("{} by {}{data}", event.kind, event.actor),
    }
}

#[cfg(test)]
mod tests {
    use sandyard_agent_client::wire::event::Output;

    use super::*;
    use crate::command_log::{OpenCommand, WhenFull};
    use crate::settings::ServiceSettings;
    use crate::test_service::{create, test_service};

    #[tokio::test]
    async fn a_log_can_be_followed_before_its_first_command_starts() {
        let folder = tempfile::tempdir().unwrap();
        let service = test_service(ServiceSettings {
            log_folder: Some(folder.path().to_owned()),
            ..ServiceSettings::default()
        })
        .await;
        let id = create(&service).await;
        let mut follower = service
            .follow_logs(&Caller::system(), id.as_str(), 0, None)
            .await
            .unwrap();
        let mut next = Box::pin(follower.next());
        assert!(futures_util::poll!(&mut next).is_pending());
        let logs = service.command_logs();
        let command = OpenCommand {
            id: "node/1".to_owned(),
            pid: 7,
            is_logged: true,
            ..OpenCommand::default()
        };
        logs.open_command(&id, command);
        let output = Output::Stdout("first\n".into());
        logs.add_output(&id, 7, None, &output, 1, WhenFull::Lose)
            .await;
        let entry = tokio::time::timeout(Duration::from_secs(60), next).await;
        let entry = entry.expect("the follower is notified").unwrap();
        assert_eq!((entry.pid, entry.text.as_str()), (Some(7), "first"));
        let caller = Caller::system();
        service.delete(&caller, id.as_str()).await.unwrap();
        assert_eq!(follower.next().await, None);
    }
}
