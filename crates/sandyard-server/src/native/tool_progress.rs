//! What a sandbox's tool tells while it works: bounded, and let go when nobody has time for it.

use serde_json::Value;
use tokio::sync::mpsc;

/// Steps that wait to be heard. Progress is news: what comes while all of these wait is old.
const WAITING: usize = 16;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 2000;

/// One step of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// How far it is.
    pub(crate) progress: f64,
    /// Of how much, if that is known.
    pub(crate) total: Option<f64>,
    /// In words.
    pub(crate) message: Option<String>,
}

/// Hears the steps of one call.
#[derive(Clone, Debug)]
pub(crate) struct Hearer(mpsc::Sender<Step>);

/// The steps as they come.
pub(crate) type Steps = mpsc::Receiver<Step>;

/// A hearer, and what it hears.
pub(crate) fn hearer() -> (Hearer, Steps) {
    let (sender, steps) = mpsc::channel(WAITING);
    (Hearer(sender), steps)
}

impl Hearer {
    /// Takes a message that is no answer; what is no step is nothing.
    pub(super) fn hear(&self, notice: &Value) {
        if let Some(step) = step(notice) {
            let _ = self.0.try_send(step);
        }
    }
}

fn step(notice: &Value) -> Option<Step> {
    if notice["method"] != "notifications/progress" {
        return None;
    }
    let params = &notice["params"];
    let message = params["message"].as_str().map(|text| {
        let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        text.chars().filter(is_plain).take(MAX_MESSAGE).collect()
    });
    Some(Step {
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
    fn steps_are_heard_and_nothing_else() {
        let (hearer, mut steps) = hearer();
        for other in [
            json!(null),
            json!([1]),
            json!({"method": 7}),
            json!({"method": "notifications/message", "params": {"progress": 1}}),
            json!({"method": "notifications/progress"}),
            json!({"method": "notifications/progress", "params": {"progress": "x"}}),
        ] {
            hearer.hear(&other);
        }
        let words = format!("a\u{7}\n{}", "x".repeat(2 * MAX_MESSAGE));
        let params = json!({"progressToken": 1, "progress": 0.5, "total": 2, "message": words});
        let good = json!({"method": "notifications/progress", "params": params});
        // More than anybody waits for.
        for _ in 0..2 * WAITING {
            hearer.hear(&good);
        }
        let step = steps.try_recv().unwrap();
        assert_eq!((step.progress, step.total), (0.5, Some(2.0)));
        let message = step.message.unwrap();
        assert!(message.starts_with("a\nxx") && message.len() == MAX_MESSAGE);
        assert_eq!(
            std::iter::from_fn(|| steps.try_recv().ok()).count(),
            WAITING - 1
        );
    }
}
