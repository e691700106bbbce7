//! What is sent to a running command.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::TerminalSize;
use super::shared::Shared;
use crate::Result;

/// The server takes messages of a limited size.
const MAX_PIECE: usize = 256 << 10;

/// The way in to a running command. It survives a lost connection while [`ExecOutput::next`](super::ExecOutput::next) is called.
#[derive(Debug)]
pub struct ExecInput {
    shared: Arc<Shared>,
}

/// A message beside the input.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Control<'a> {
    Resize(TerminalSize),
    Signal { signal: &'a str },
    Eof,
}

impl Control<'_> {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("words and numbers are always JSON")
    }
}

impl ExecInput {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Writes to the command's standard input or terminal. While the connection is lost this waits for the next one.
    ///
    /// # Errors
    ///
    /// When the connection is gone for good.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_PIECE));
            self.shared.write(piece).await?;
        }
        Ok(())
    }

    /// Ends its standard input.
    ///
    /// # Errors
    ///
    /// When the connection is gone for good.
    pub async fn end(&mut self) -> Result<()> {
        self.shared.end().await
    }

    /// Says that the terminal has another size.
    ///
    /// # Errors
    ///
    /// When the connection is gone for good.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<()> {
        self.shared.resize(size).await
    }

    /// Sends a signal, by a name like `SIGINT`.
    ///
    /// # Errors
    ///
    /// When the connection is gone for good.
    pub async fn signal(&mut self, signal: &str) -> Result<()> {
        self.shared.signal(signal).await
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
