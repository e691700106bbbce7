//! Examples of requests and responses, by operation. They are in `examples/`, one JSON file for each tag.
//!
//! An entry has `request` and `response`, and `stream` or `binary` for a response with those media types.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::envelope;

const FILES: [&str; 12] = [
    include_str!("examples/accounts.json"),
    include_str!("examples/commands.json"),
    include_str!("examples/docker.json"),
    include_str!("examples/e2b.json"),
    include_str!("examples/files.json"),
    include_str!("examples/monitoring.json"),
    include_str!("examples/network.json"),
    include_str!("examples/operations.json"),
    include_str!("examples/ports.json"),
    include_str!("examples/sandboxes.json"),
    include_str!("examples/templates.json"),
    include_str!("examples/volumes.json"),
];

/// The examples of an operation. A route that is mounted at several paths has the same ones at each.
pub(super) fn find(operation_id: &str) -> &'static Value {
    static EXAMPLES: OnceLock<Map<String, Value>> = OnceLock::new();
    let examples = EXAMPLES.get_or_init(|| {
        let parse = |text| {
            serde_json::from_str::<Map<String, Value>>(text).expect("the examples are valid JSON")
        };
        FILES.into_iter().flat_map(parse).collect()
    });
    // The longer prefix comes last.
    let prefixes = envelope::PREFIXES.iter().rev();
    let id = prefixes
        .filter_map(|(_, prefix)| operation_id.strip_prefix(prefix))
        .next()
        .unwrap_or(operation_id);
    let id = id.split_once("_by_").map_or(id, |(id, _)| id);
    examples.get(id).unwrap_or(&Value::Null)
}
