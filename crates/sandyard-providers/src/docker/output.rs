//! Output of a container before its agent answers.

use std::sync::Arc;

use bollard::container::AttachContainerResults;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;
use parking_lot::Mutex;

use super::daemon::Shared;
use super::error::shorten;

/// Maximum number of stored bytes.
const MAX_OUTPUT: usize = 4096;

/// The captured output of a container.
#[derive(Default)]
pub(super) struct Output {
    buffer: Arc<Mutex<Vec<u8>>>,
    task: Option<tokio::task::AbortHandle>,
}

impl Output {
    /// The last lines.
    pub(super) fn text(&self) -> String {
        let buffer = self.buffer.lock();
        shorten(&String::from_utf8_lossy(&buffer))
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
    /// Captures the last output of a container, in case it exits at once.
    pub(super) async fn capture_output(&self, id: &str) -> Output {
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
            output: mut stream, ..
        } = attached;
        let buffer = output.buffer.clone();
        let task = tokio::spawn(async move {
            while let Some(Ok(piece)) = stream.next().await {
                let mut buffer = buffer.lock();
                buffer.extend_from_slice(&piece.into_bytes());
                let over = buffer.len().saturating_sub(MAX_OUTPUT);
                buffer.drain(..over);
            }
        });
        output.task = Some(task.abort_handle());
        output
    }
}
