//! What a container says before its agent answers.

use std::sync::{Arc, Mutex, PoisonError};

use bollard::container::AttachContainerResults;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;

use super::daemon::Shared;
use super::error::cut;

/// Bytes kept of it.
const MAX_OUTPUT: usize = 4096;

/// What a container has said so far.
#[derive(Default)]
pub(super) struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    task: Option<tokio::task::AbortHandle>,
}

impl Output {
    /// The last of it.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        cut(&String::from_utf8_lossy(&kept))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    /// Keeps the last of what a container says, for when it ends at once.
    pub(super) async fn listen(&self, id: &str) -> Output {
        let mut output = Output::default();
        let options = AttachContainerOptions {
            stream: true,
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        let Ok(attached) = self.daemon.attach_container(id, Some(options)).await else {
            return output;
        };
        let AttachContainerResults {
            output: mut said, ..
        } = attached;
        let kept = output.kept.clone();
        let task = tokio::spawn(async move {
            while let Some(Ok(piece)) = said.next().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece.into_bytes());
                let over = kept.len().saturating_sub(MAX_OUTPUT);
                kept.drain(..over);
            }
        });
        output.task = Some(task.abort_handle());
        output
    }
}
