//! Input of a running command.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::TerminalSize;
use super::session::Session;
use crate::Result;

/// Largest piece of input in one message, in bytes. The server limits the size of messages.
const MAX_PIECE: usize = 256 << 10;

/// Input of a running command. It survives a lost connection as long as [`ExecOutput::next`](super::ExecOutput::next)
/// is called.
#[derive(Debug)]
pub struct ExecInput {
    session: Arc<Session>,
}

/// Control message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Control<'a> {
    Resize(TerminalSize),
    Signal { signal: &'a str },
    Eof,
}

impl Control<'_> {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a control message is always valid JSON")
    }
}

impl ExecInput {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    /// Writes to the command's standard input or terminal. Waits while the connection is lost.
    ///
    /// # Errors
    ///
    /// If the connection cannot be restored.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_PIECE));
            self.session.write(piece).await?;
        }
        Ok(())
    }

    /// Closes the command's standard input.
    ///
    /// # Errors
    ///
    /// If the connection cannot be restored.
    pub async fn end(&mut self) -> Result<()> {
        self.session.end().await
    }

    /// Changes the size of the terminal.
    ///
    /// # Errors
    ///
    /// If the connection cannot be restored.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<()> {
        self.session.resize(size).await
    }

    /// Sends a signal by name, like `SIGINT`.
    ///
    /// # Errors
    ///
    /// If the connection cannot be restored.
    pub async fn signal(&mut self, signal: &str) -> Result<()> {
        self.session.signal(signal).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_are_what_the_server_reads() {
        let size = TerminalSize { cols: 80, rows: 24 };
        assert_eq!(
            Control::Resize(size).to_json(),
            r#"{"type":"resize","cols":80,"rows":24}"#
        );
        assert_eq!(
            Control::Signal { signal: "SIGINT" }.to_json(),
            r#"{"type":"signal","signal":"SIGINT"}"#
        );
        assert_eq!(Control::Eof.to_json(), r#"{"type":"eof"}"#);
    }
}
