//! Showing answers to people.

use sandyard_client::Other;
use serde_json::Value;

use crate::output::{self, Cell};

/// Fields that people look for first.
const LEADING: [&str; 6] = ["sandbox_id", "name", "alias", "status", "reason", "user_id"];

/// A field of an answer as text; empty if there is none.
pub(super) fn text_of(other: &Other, name: &str) -> String {
    other.get(name).map(plain).unwrap_or_default()
}

/// A value as people write it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let pairs = fields
                .iter()
                .map(|(name, value)| format!("{name}={}", plain(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// When something happened, as text: `at`, or `at_ms` in the same form.
pub(super) fn time_of(other: &Other) -> String {
    let at = text_of(other, "at");
    if !at.is_empty() {
        return at;
    }
    let at_ms = other.get("at_ms").and_then(Value::as_i64);
    let at = at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(at_ms).ok());
    at.map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// Prints an answer, field by field; empty ones are left out.
pub(super) fn whole(answer: &impl serde::Serialize) -> anyhow::Result<()> {
    let Value::Object(fields) = serde_json::to_value(answer)? else {
        return output::json(answer);
    };
    let leading = LEADING
        .iter()
        .filter_map(|name| fields.get_key_value(*name));
    let others = fields
        .iter()
        .filter(|(name, _)| !LEADING.contains(&name.as_str()));
    let shown: Vec<(&str, Cell)> = leading
        .chain(others)
        .filter(|(name, value)| *name != "success" && !plain(value).is_empty())
        .map(|(name, value)| {
            let text = plain(value);
            let cell = match name.as_str() {
                "status" => Cell::status(&text),
                _ => Cell::from(text),
            };
            (name.as_str(), cell)
        })
        .collect();
    output::fields(&shown);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_without_their_brackets() {
        assert_eq!(plain(&json!(["a", 1, null])), "a, 1, ");
        assert_eq!(plain(&json!({"cpu": 2, "memory": "2g"})), "cpu=2 memory=2g");
        assert_eq!(plain(&json!(null)), "");
    }
}
