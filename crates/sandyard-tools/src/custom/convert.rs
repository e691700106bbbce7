//! Converts tools and results of other MCP servers, within limits. They are untrusted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool};
use serde_json::json;

use crate::reply::{MAX_IMAGE, MAX_TEXT, Reply, truncate};

/// Maximum number of tools of one server, and of all.
pub(super) const MAX_TOOLS: usize = 500;
/// Maximum length of a tool name.
const MAX_NAME: usize = 128;
/// Maximum length of a title.
const MAX_TITLE: usize = 200;
/// Maximum length of a description.
const MAX_DESCRIPTION: usize = 10_000;
/// Maximum size of a schema as JSON.
const MAX_SCHEMA: usize = 100 * 1024;
/// Maximum size of a structured result as JSON.
const MAX_STRUCTURED: usize = 1024 * 1024;
/// Maximum number of content blocks of a result.
const MAX_BLOCKS: usize = 200;
/// Maximum length of encoded image, audio or file data.
const MAX_DATA: usize = MAX_IMAGE / 3 * 4 + 4;

/// A tool of another server.
#[derive(Clone, Debug)]
pub(super) struct RemoteTool {
    /// Its name on that server.
    pub(super) name: String,
    /// Its definition for our callers.
    pub(super) definition: Tool,
}

/// Converts the tools of a server. Leaves out invalid ones.
pub(super) fn tools(server: &str, listed_tools: Vec<Tool>) -> Vec<RemoteTool> {
    let mut names = BTreeSet::new();
    let tools = listed_tools.into_iter().filter_map(|tool| {
        let name = tool.name.to_string();
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        let definition = definition(server, tool);
        names
            .insert(definition.name.to_string())
            .then_some(RemoteTool { name, definition })
    });
    tools.take(MAX_TOOLS).collect()
}

fn definition(server: &str, tool: Tool) -> Tool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain: String = tool
        .name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let description = tool.description.as_deref().unwrap_or_default();
    let description = match description.trim() {
        "" => format!("{plain} of your MCP server `{server}`"),
        text => truncate(text.to_owned(), MAX_DESCRIPTION),
    };
    let mut definition = tool;
    definition.name = format!("mcp_{server}_{plain}").into();
    definition.description = Some(Cow::Owned(description));
    definition.title = definition.title.map(|title| cut_line(title, MAX_TITLE));
    definition.input_schema = input_schema(definition.input_schema);
    definition.output_schema = definition
        .output_schema
        .filter(|schema| fits(schema, MAX_SCHEMA));
    if let Some(annotations) = &mut definition.annotations {
        annotations.title = annotations
            .title
            .take()
            .map(|title| cut_line(title, MAX_TITLE));
    }
    definition.icons = None;
    definition.meta = None;
    definition
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

/// Converts a result.
pub(super) fn reply(result: CallToolResult) -> Reply {
    let mut reply = Reply::default();
    let mut remaining_bytes = MAX_TEXT;
    let blocks = result.content.len();
    for block in result.content.into_iter().take(MAX_BLOCKS) {
        reply = reply.with_block(bounded(block, &mut remaining_bytes));
    }
    if blocks > MAX_BLOCKS {
        reply = reply.with_text(format!(
            "[truncated: the first {MAX_BLOCKS} of {blocks} blocks are shown]"
        ));
    }
    let mut failed = result.is_error.unwrap_or_default();
    match result.structured_content {
        Some(value) if fits(&value, MAX_STRUCTURED) => reply = reply.with_structured(value),
        Some(_) => {
            let note = format!(
                "[structured content omitted: it is larger than {MAX_STRUCTURED} bytes; ask for less]"
            );
            reply = reply.with_text(note);
            failed = true;
        }
        None => {}
    }
    reply.with_failure(failed)
}

fn bounded(block: ContentBlock, remaining_bytes: &mut usize) -> ContentBlock {
    let omitted = |what: &str, length: usize| {
        ContentBlock::text(format!("[{what} omitted: {length} bytes is too large]"))
    };
    match block {
        ContentBlock::Text(mut text) => {
            text.text = truncate(text.text, *remaining_bytes);
            *remaining_bytes = remaining_bytes.saturating_sub(text.text.len());
            ContentBlock::Text(text)
        }
        ContentBlock::Image(image) if image.data.len() > MAX_DATA => {
            omitted("image", image.data.len())
        }
        ContentBlock::Audio(audio) if audio.data.len() > MAX_DATA => {
            omitted("audio", audio.data.len())
        }
        ContentBlock::Resource(mut resource) => {
            match &mut resource.resource {
                ResourceContents::TextResourceContents { text, .. } => {
                    *text = truncate(std::mem::take(text), *remaining_bytes);
                    *remaining_bytes = remaining_bytes.saturating_sub(text.len());
                }
                ResourceContents::BlobResourceContents { blob, .. } if blob.len() > MAX_DATA => {
                    return omitted("file", blob.len());
                }
                _ => {}
            }
            ContentBlock::Resource(resource)
        }
        other => other,
    }
}

/// Truncates a line without a note.
pub(super) fn cut_line(mut line: String, limit: usize) -> String {
    line.truncate(line.floor_char_boundary(limit));
    line
}

fn fits(value: &impl serde::Serialize, limit: usize) -> bool {
    let mut counter = Counter { remaining: limit };
    serde_json::to_writer(&mut counter, value).is_ok()
}

/// A writer that fails after a number of bytes.
struct Counter {
    remaining: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let remaining = self.remaining.checked_sub(bytes.len());
        self.remaining = remaining.ok_or_else(|| std::io::Error::other("too large"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A progress notification as one line.
pub(super) fn progress(notification: &rmcp::model::ProgressNotificationParam) -> String {
    let message = notification.message.clone();
    let message = message.map(|message| cut_line(message, 1000));
    message.unwrap_or_else(|| match notification.total {
        Some(total) => format!("{} of {total}", notification.progress),
        None => notification.progress.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool::new(name.to_owned(), "words", Arc::new(JsonObject::new()))
    }

    #[test]
    fn tools_are_limited_in_size() {
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
        let converted = tools("s", listed);
        let names: Vec<_> = converted
            .iter()
            .map(|tool| tool.definition.name.as_ref())
            .collect();
        assert_eq!(names, ["mcp_s_a_b", "mcp_s_wordy"]);
        let wordy = &converted[1].definition;
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
    fn results_are_limited_in_size() {
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
