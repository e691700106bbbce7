//! What commands wrote and what happened, for people who watch.

use sandyard_core::Caller;
use sandyard_store::model::{Event, EventFilter};
use tokio::sync::broadcast;

use crate::error::ServiceResult;
use crate::flows::{FLOW, FLOW_DENIED};
use crate::request::{LogEntry, LogSource};
use crate::service::Service;

impl Service {
    /// The newest lines of a sandbox's log, at most `limit`: output this server still remembers, and events.
    pub async fn logs(
        &self,
        caller: &Caller,
        name: &str,
        limit: usize,
    ) -> ServiceResult<Vec<LogEntry>> {
        let sandbox = self.inspect(caller, name).await?;
        let events = self
            .store()
            .events(&EventFilter {
                sandbox_id: Some(sandbox.id.clone()),
                // What was denied is in the log book, in words; the rest is nothing to read line by line.
                except_kinds: vec![FLOW.to_owned(), FLOW_DENIED.to_owned()],
                is_tail: true,
                limit: limit.min(1000),
                ..EventFilter::default()
            })
            .await?;
        let mut lines: Vec<LogEntry> = events.iter().map(line_of).collect();
        lines.extend(self.log_books().tail(&sandbox.id, limit));
        lines.sort_by_key(|line| line.at_ms);
        let surplus = lines.len().saturating_sub(limit);
        Ok(lines.split_off(surplus))
    }

    /// The output of a sandbox's commands from now on.
    pub async fn follow_logs(
        &self,
        caller: &Caller,
        name: &str,
    ) -> ServiceResult<broadcast::Receiver<LogEntry>> {
        let sandbox = self.existing(caller, name).await?;
        Ok(self.log_books().follow(&sandbox.id))
    }
}

/// An event as a line.
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
