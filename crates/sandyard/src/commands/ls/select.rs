//! Fields of a sandbox by name, for `--filter`, `--sort` and `--format`.

use std::str::FromStr;

use sandyard_client::SandboxInfo;
use serde_json::Value;

use super::super::render::plain_text;
use super::super::sandbox_text::status;
use crate::output::escape_control;

/// Fields with a short name.
pub(super) const FIELDS: [&str; 8] = [
    "id", "name", "status", "user", "template", "provider", "created", "expires",
];

/// A field and the value that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    field: String,
    /// The parts of the value between its `*`.
    parts: Vec<String>,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_field = |name: &str| FIELDS.contains(&name) || name.starts_with("metadata.");
        match text.split_once('=') {
            Some((name, value)) if is_field(name) => Ok(Self {
                field: name.to_owned(),
                parts: value.split('*').map(str::to_owned).collect(),
            }),
            _ => Err(format!(
                "expected FIELD=VALUE with one of the fields {} or metadata.NAME",
                FIELDS.join(", ")
            )),
        }
    }
}

impl Filter {
    /// The status that this filter is for.
    pub(super) fn status(&self) -> Option<&str> {
        match &self.parts[..] {
            [status] if self.field == "status" => Some(status),
            _ => None,
        }
    }

    /// Whether a sandbox has the value.
    pub(super) fn matches(&self, sandbox: &SandboxInfo) -> bool {
        let value = field(sandbox, &self.field);
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.concat() == value;
        };
        let Some(mut rest) = value.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            match rest.split_once(part.as_str()) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

/// The value of a field as text; empty if the sandbox has no such field.
pub(super) fn field(sandbox: &SandboxInfo, name: &str) -> String {
    let Ok(all) = serde_json::to_value(sandbox) else {
        return String::new();
    };
    let name = match name {
        "status" => return status(sandbox).to_owned(),
        "id" => "sandbox_id",
        "name" => "alias",
        "user" => "user_id",
        "created" => "created_at",
        "expires" => "expires_at",
        other => other,
    };
    let value = match name.split_once('.') {
        Some((object, member)) => all.get(object).and_then(|object| object.get(member)),
        None => all.get(name),
    };
    plain_text(value.unwrap_or(&Value::Null))
}

/// Replaces each `{field}` of a text, and `\t` and `\n`.
pub(super) fn format_line(text: &str, sandbox: &SandboxInfo) -> String {
    let text = text.replace("\\t", "\t").replace("\\n", "\n");
    let mut line = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        line.push_str(before);
        line.push_str(&escape_control(&field(sandbox, name)));
        rest = after;
    }
    line + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sandbox() -> SandboxInfo {
        serde_json::from_value(json!({
            "sandbox_id": "abc", "alias": "build-7-x", "status": "paused", "is_stopped": true,
            "user_id": "alice", "metadata": {"ticket": "42"},
        }))
        .unwrap()
    }

    #[test]
    fn filters_compare_the_whole_value() {
        for (filter, expected) in [
            ("name=build-7-x", true),
            ("name=build-7", false),
            ("name=build-*", true),
            ("name=*-7-*", true),
            ("name=*x", true),
            ("name=*y*", false),
            ("status=stopped", true),
            ("status=paused", false),
            ("metadata.ticket=42", true),
            ("metadata.other=", true),
        ] {
            let filter: Filter = filter.parse().unwrap();
            assert_eq!(filter.matches(&sandbox()), expected, "{filter:?}");
        }
        assert!("owners=x".parse::<Filter>().unwrap_err().contains("name"));
        assert!("name".parse::<Filter>().is_err());
    }

    #[test]
    fn a_line_has_the_named_fields() {
        assert_eq!(
            format_line(r"{id}\t{name}/{metadata.ticket} {nosuch}{", &sandbox()),
            "abc\tbuild-7-x/42 {"
        );
    }
}
