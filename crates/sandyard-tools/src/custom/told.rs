//! What other tool servers say, cut to size: it is not to be trusted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool};
use serde_json::json;

use crate::reply::{MAX_IMAGE, MAX_TEXT, Reply, cut};

/// Most tools, of one server and of all.
pub(super) const MAX_TOOLS: usize = 500;
/// Longest name of a tool of theirs.
const MAX_NAME: usize = 128;
/// Longest title.
const MAX_TITLE: usize = 200;
/// Longest description.
const MAX_DESCRIPTION: usize = 10_000;
/// Largest schema, as JSON.
const MAX_SCHEMA: usize = 100 * 1024;
/// Largest structured content, as JSON.
const MAX_STRUCTURED: usize = 1024 * 1024;
/// Most parts of a result.
const MAX_BLOCKS: usize = 200;
/// Longest encoded image, sound or file.
const MAX_DATA: usize = MAX_IMAGE / 3 * 4 + 4;

/// A tool of theirs: its own name, and as we show it.
#[derive(Clone, Debug)]
pub(super) struct Theirs {
    /// As the server knows it.
    pub(super) name: String,
    /// As our callers know it.
    pub(super) shown: Tool,
}

/// Their tools as we show them; those that cannot be shown are left out.
pub(super) fn tools(server: &str, listed: Vec<Tool>) -> Vec<Theirs> {
    let mut names = BTreeSet::new();
    let shown = listed.into_iter().filter_map(|tool| {
        let name = tool.name.to_string();
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        let shown = shown(server, tool);
        names
            .insert(shown.name.to_string())
            .then_some(Theirs { name, shown })
    });
    shown.take(MAX_TOOLS).collect()
}

fn shown(server: &str, tool: Tool) -> Tool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain: String = tool
        .name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let description = tool.description.as_deref().unwrap_or_default();
    let description = match description.trim() {
        "" => format!("{plain} of your MCP server `{server}`"),
        told => cut(told.to_owned(), MAX_DESCRIPTION),
    };
    let mut shown = tool;
    shown.name = format!("mcp_{server}_{plain}").into();
    shown.description = Some(Cow::Owned(description));
    shown.title = shown.title.map(|title| cut_line(title, MAX_TITLE));
    shown.input_schema = input_schema(shown.input_schema);
    shown.output_schema = shown
        .output_schema
        .filter(|schema| fits(schema, MAX_SCHEMA));
    if let Some(annotations) = &mut shown.annotations {
        annotations.title = annotations
            .title
            .take()
            .map(|title| cut_line(title, MAX_TITLE));
    }
    shown.icons = None;
    shown.meta = None;
    shown
}

fn input_schema(schema: Arc<JsonObject>) -> Arc<JsonObject> {
    let mut object = if fits(&schema, MAX_SCHEMA) {
        Arc::unwrap_or_clone(schema)
    } else {
        JsonObject::new()
    };
    object.insert("type".into(), "object".into());
    object.entry("properties").or_insert_with(|| json!({}));
    Arc::new(object)
}

/// A result of theirs as a reply of ours.
pub(super) fn reply(result: CallToolResult) -> Reply {
    let mut reply = Reply::default();
    let mut room = MAX_TEXT;
    let blocks = result.content.len();
    for block in result.content.into_iter().take(MAX_BLOCKS) {
        reply = reply.with_block(bounded(block, &mut room));
    }
    if blocks > MAX_BLOCKS {
        reply = reply.with_text(format!(
            "[cut: the first {MAX_BLOCKS} of {blocks} parts are shown]"
        ));
    }
    let mut failed = result.is_error.unwrap_or_default();
    match result.structured_content {
        Some(value) if fits(&value, MAX_STRUCTURED) => reply = reply.with_structured(value),
        Some(_) => {
            let note = format!(
                "[its structured content is larger than {MAX_STRUCTURED} bytes and was left out: ask for less]"
            );
            reply = reply.with_text(note);
            failed = true;
        }
        None => {}
    }
    reply.with_failure(failed)
}

fn bounded(block: ContentBlock, room: &mut usize) -> ContentBlock {
    let left_out = |what: &str, length: usize| {
        ContentBlock::text(format!(
            "[{what} of {length} bytes was left out: it is too large]"
        ))
    };
    match block {
        ContentBlock::Text(mut text) => {
            text.text = cut(text.text, *room);
            *room = room.saturating_sub(text.text.len());
            ContentBlock::Text(text)
        }
        ContentBlock::Image(image) if image.data.len() > MAX_DATA => {
            left_out("an image", image.data.len())
        }
        ContentBlock::Audio(audio) if audio.data.len() > MAX_DATA => {
            left_out("a sound", audio.data.len())
        }
        ContentBlock::Resource(mut resource) => {
            match &mut resource.resource {
                ResourceContents::TextResourceContents { text, .. } => {
                    *text = cut(std::mem::take(text), *room);
                    *room = room.saturating_sub(text.len());
                }
                ResourceContents::BlobResourceContents { blob, .. } if blob.len() > MAX_DATA => {
                    return left_out("a file", blob.len());
                }
                _ => {}
            }
            ContentBlock::Resource(resource)
        }
        other => other,
    }
}

/// Cuts a line without saying so.
pub(super) fn cut_line(mut line: String, limit: usize) -> String {
    line.truncate(line.floor_char_boundary(limit));
    line
}

fn fits(value: &impl serde::Serialize, limit: usize) -> bool {
    let mut counter = Counter { left: limit };
    serde_json::to_writer(&mut counter, value).is_ok()
}

/// Counts what is written, and refuses more than a limit.
struct Counter {
    left: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or_else(|| std::io::Error::other("too large"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Their progress as one line.
pub(super) fn progress(told: &rmcp::model::ProgressNotificationParam) -> String {
    let words = told.message.clone().map(|words| cut_line(words, 1000));
    words.unwrap_or_else(|| match told.total {
        Some(total) => format!("{} of {total}", told.progress),
        None => told.progress.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool::new(name.to_owned(), "words", Arc::new(JsonObject::new()))
    }

    #[test]
    fn what_they_say_is_cut_to_size() {
        let mut wordy = tool("wordy");
        wordy.description = Some("x".repeat(MAX_DESCRIPTION * 2).into());
        wordy.title = Some("é".repeat(MAX_TITLE));
        let large: JsonObject =
            serde_json::from_value(json!({"description": "y".repeat(MAX_SCHEMA)})).unwrap();
        wordy.input_schema = Arc::new(large.clone());
        wordy.output_schema = Some(Arc::new(large));
        let listed = vec![
            tool(""),
            tool(&"n".repeat(MAX_NAME + 1)),
            tool("a b"),
            tool("a/b"),
            wordy,
        ];
        let shown = tools("s", listed);
        let names: Vec<_> = shown.iter().map(|tool| tool.shown.name.as_ref()).collect();
        assert_eq!(names, ["mcp_s_a_b", "mcp_s_wordy"]);
        let wordy = &shown[1].shown;
        assert!(wordy.description.as_ref().unwrap().len() < MAX_DESCRIPTION + 100);
        assert!(wordy.title.as_ref().unwrap().len() <= MAX_TITLE);
        assert_eq!(
            serde_json::Value::Object((*wordy.input_schema).clone()),
            json!({"type": "object", "properties": {}})
        );
        assert!(wordy.output_schema.is_none());
        let many = (0..MAX_TOOLS * 2)
            .map(|number| tool(&format!("t{number}")))
            .collect();
        assert_eq!(tools("s", many).len(), MAX_TOOLS);
    }

    #[test]
    fn results_are_cut_to_size() {
        let content = vec![
            ContentBlock::text("a".repeat(MAX_TEXT)),
            ContentBlock::text("more"),
            ContentBlock::image("A".repeat(MAX_DATA + 1), "image/png"),
            ContentBlock::image("AAAA", "image/png"),
        ];
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(json!({"x": "y".repeat(MAX_STRUCTURED)}));
        let result = reply(result).into_result();
        let length = serde_json::to_vec(&result).unwrap().len();
        assert!(length < MAX_TEXT + 2000, "{length}");
        assert_eq!(result.is_error, Some(true));
        assert!(result.content[3].as_image().is_some());
        assert!(result.structured_content.is_none());
    }
}
