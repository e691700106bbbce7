//! Progress reports of a sandbox's tool: bounded, and dropped when the receiver is slow.

use serde_json::Value;
use tokio::sync::mpsc;

/// Reports that may wait for the receiver. Further ones are dropped.
const CAPACITY: usize = 16;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 2000;

/// One progress report of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Progress {
    /// The amount of work done.
    pub(crate) progress: f64,
    /// The amount of all work, if it is known.
    pub(crate) total: Option<f64>,
    /// A text for people.
    pub(crate) message: Option<String>,
}

/// Takes the progress reports of one call.
#[derive(Clone, Debug)]
pub(crate) struct ProgressSender(mpsc::Sender<Progress>);

/// Receives the progress reports.
pub(crate) type ProgressReceiver = mpsc::Receiver<Progress>;

/// The two ends of a channel for progress reports.
pub(crate) fn progress_channel() -> (ProgressSender, ProgressReceiver) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (ProgressSender(sender), receiver)
}

impl ProgressSender {
    /// Takes a message that is not an answer, and ignores it if it is not a progress report.
    pub(super) fn report(&self, notice: &Value) {
        if let Some(progress) = parse(notice) {
            let _ = self.0.try_send(progress);
        }
    }
}

fn parse(notice: &Value) -> Option<Progress> {
    if notice["method"] != "notifications/progress" {
        return None;
    }
    let params = &notice["params"];
    let message = params["message"].as_str().map(|text| {
        let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        text.chars().filter(is_plain).take(MAX_MESSAGE).collect()
    });
    Some(Progress {
        progress: params["progress"].as_f64()?,
        total: params["total"].as_f64(),
        message,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_progress_reports_are_received() {
        let (sender, mut receiver) = progress_channel();
        for other in [
            json!(null),
            json!([1]),
            json!({"method": 7}),
            json!({"method": "notifications/message", "params": {"progress": 1}}),
            json!({"method": "notifications/progress"}),
            json!({"method": "notifications/progress", "params": {"progress": "x"}}),
        ] {
            sender.report(&other);
        }
        let message = format!("a\u{7}\n{}", "x".repeat(2 * MAX_MESSAGE));
        let params = json!({"progressToken": 1, "progress": 0.5, "total": 2, "message": message});
        let good = json!({"method": "notifications/progress", "params": params});
        // More than the channel holds.
        for _ in 0..2 * CAPACITY {
            sender.report(&good);
        }
        let progress = receiver.try_recv().unwrap();
        assert_eq!((progress.progress, progress.total), (0.5, Some(2.0)));
        let message = progress.message.unwrap();
        assert!(message.starts_with("a\nxx") && message.len() == MAX_MESSAGE);
        assert_eq!(
            std::iter::from_fn(|| receiver.try_recv().ok()).count(),
            CAPACITY - 1
        );
    }
}
