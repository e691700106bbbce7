//! Rendering of the server's JSON answers as text.

use std::process::ExitCode;

use sandyard_client::Other;
use serde_json::Value;

use crate::output::{self, Cell, Format};

/// Fields that come first.
const LEADING: [&str; 6] = ["sandbox_id", "name", "alias", "status", "reason", "user_id"];

/// A field of an answer as text; empty if the answer has no such field.
pub(super) fn field_text(other: &Other, name: &str) -> String {
    other.get(name).map(plain_text).unwrap_or_default()
}

/// A JSON value as text, without quotes and brackets.
pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let pairs = fields
                .iter()
                .map(|(name, value)| format!("{name}={}", plain_text(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// The time of an event as text: the field `at`, or `at_ms` in the same form.
pub(super) fn event_time(other: &Other) -> String {
    let at = field_text(other, "at");
    if !at.is_empty() {
        return at;
    }
    let at_ms = other.get("at_ms").and_then(Value::as_i64);
    let at = at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok());
    at.map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// Prints an answer as JSON, or as one line for each field that is not empty.
pub(super) fn print_fields(
    answer: &impl serde::Serialize,
    format: Format,
) -> anyhow::Result<ExitCode> {
    match serde_json::to_value(answer)? {
        Value::Object(fields) if !format.json => {
            let leading = LEADING
                .iter()
                .filter_map(|name| fields.get_key_value(*name));
            let others = fields
                .iter()
                .filter(|(name, _)| !LEADING.contains(&name.as_str()));
            let cells: Vec<(&str, Cell)> = leading
                .chain(others)
                .map(|(name, value)| (name.as_str(), plain_text(value)))
                .filter(|(name, text)| *name != "success" && !text.is_empty())
                .map(|(name, text)| match name {
                    "status" => (name, Cell::status(&text)),
                    _ => (name, Cell::from(text)),
                })
                .collect();
            output::fields(&cells);
        }
        _ => output::json(answer)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_rendered_without_quotes_and_brackets() {
        assert_eq!(plain_text(&json!(["a", 1, null])), "a, 1, ");
        assert_eq!(
            plain_text(&json!({"cpu": 2, "memory": "2g"})),
            "cpu=2 memory=2g"
        );
        assert_eq!(plain_text(&json!(null)), "");
    }
}
