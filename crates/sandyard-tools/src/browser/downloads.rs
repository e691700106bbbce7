//! Downloads into the folder `downloads` of the workspace.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::notes::short;
use super::pipe::Pipe;

/// Maximum size of a file, in bytes.
pub(super) const MAX_BYTES: f64 = 512.0 * 1024.0 * 1024.0;
/// Maximum number of downloads at the same time.
const MAX_RUNNING: usize = 20;

/// Running downloads.
#[derive(Debug)]
pub(super) struct Downloads {
    /// Target folder; none to refuse downloads.
    folder: Option<PathBuf>,
    running: HashMap<String, Download>,
}

#[derive(Debug)]
struct Download {
    name: String,
    received: f64,
}

impl Downloads {
    /// Downloads into this folder.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            running: HashMap::new(),
        }
    }

    /// Records the start of a download.
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

    /// Records the progress of a download. Returns a note when it has ended.
    pub(super) fn progress(&mut self, pipe: &Pipe, params: &Value) -> Option<String> {
        let id = params["guid"].as_str()?;
        let received = params["receivedBytes"].as_f64().unwrap_or_default();
        let Some(download) = self.running.get_mut(id) else {
            // Too many downloads, or one that was cancelled.
            if params["state"] == "inProgress" {
                pipe.notify(None, "Browser.cancelDownload", json!({ "guid": id }));
            }
            return None;
        };
        download.received = received;
        let total = params["totalBytes"].as_f64().unwrap_or_default();
        let state = params["state"].as_str().unwrap_or_default();
        if state == "inProgress" && received.max(total) <= MAX_BYTES {
            return None;
        }
        let name = self.running.remove(id)?.name;
        Some(match (state, &self.folder) {
            ("completed", Some(folder)) => {
                // The browser renames a file if the name exists.
                let path = params["filePath"]
                    .as_str()
                    .map_or_else(|| folder.join(&name), PathBuf::from);
                format!("downloaded {} ({received} bytes)", path.display())
            }
            ("inProgress", _) => {
                pipe.notify(None, "Browser.cancelDownload", json!({ "guid": id }));
                format!(
                    "the download of {name} was cancelled: the maximum is {} MiB; use curl instead",
                    MAX_BYTES / 1024.0 / 1024.0
                )
            }
            (_, None) => {
                format!("the download of {name} was refused: the workspace has no folder for it")
            }
            _ => format!("the download of {name} failed"),
        })
    }

    /// Notes about running downloads.
    pub(super) fn running(&self) -> impl Iterator<Item = String> {
        self.running.values().map(|download| {
            format!(
                "{} is still downloading ({} bytes so far)",
                download.name, download.received
            )
        })
    }
}
