//! What pages give to keep: files in `downloads` of the workspace.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::notes::short;
use super::pipe::Pipe;

/// Largest file.
pub(super) const MAX_BYTES: f64 = 512.0 * 1024.0 * 1024.0;
/// Most at once.
const MAX_RUNNING: usize = 20;

/// Those that run.
#[derive(Debug)]
pub(super) struct Downloads {
    /// Where they go; none: they are refused.
    folder: Option<PathBuf>,
    running: HashMap<String, Download>,
}

#[derive(Debug)]
struct Download {
    name: String,
    received: f64,
}

impl Downloads {
    /// Into this folder.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            running: HashMap::new(),
        }
    }

    /// One begins.
    pub(super) fn begin(&mut self, params: &Value) {
        let Some(id) = params["guid"].as_str() else {
            return;
        };
        if self.running.len() >= MAX_RUNNING {
            return;
        }
        let name = short(
            params["suggestedFilename"].as_str().unwrap_or("a file"),
            200,
        );
        self.running.insert(
            id.to_owned(),
            Download {
                name,
                received: 0.0,
            },
        );
    }

    /// How far one is; words when it is over.
    pub(super) fn progress(&mut self, pipe: &Pipe, params: &Value) -> Option<String> {
        let id = params["guid"].as_str()?;
        let received = params["receivedBytes"].as_f64().unwrap_or_default();
        let Some(known) = self.running.get_mut(id) else {
            // One too many, or one that has been stopped.
            if params["state"] == "inProgress" {
                pipe.tell(None, "Browser.cancelDownload", json!({ "guid": id }));
            }
            return None;
        };
        known.received = received;
        let total = params["totalBytes"].as_f64().unwrap_or_default();
        let state = params["state"].as_str().unwrap_or_default();
        if state == "inProgress" && received.max(total) <= MAX_BYTES {
            return None;
        }
        let name = self.running.remove(id)?.name;
        Some(match (state, &self.folder) {
            ("completed", Some(folder)) => {
                // The browser gives another name where one is taken.
                let path = params["filePath"]
                    .as_str()
                    .map_or_else(|| folder.join(&name), PathBuf::from);
                format!("downloaded {} ({received} bytes)", path.display())
            }
            ("inProgress", _) => {
                pipe.tell(None, "Browser.cancelDownload", json!({ "guid": id }));
                format!(
                    "the download of {name} was stopped: {} MiB are the most; fetch it with curl instead",
                    MAX_BYTES / 1024.0 / 1024.0
                )
            }
            (_, None) => format!(
                "the download of {name} was refused: there is no folder for it in the workspace"
            ),
            _ => format!("the download of {name} was broken off"),
        })
    }

    /// Words on those that run.
    pub(super) fn running(&self) -> impl Iterator<Item = String> {
        self.running.values().map(|download| {
            format!(
                "{} is still being downloaded ({} bytes so far)",
                download.name, download.received
            )
        })
    }
}
