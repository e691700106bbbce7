//! What is sent to a running command.

use bytes::Bytes;
use futures_util::SinkExt;
use serde::Serialize;
use tokio_tungstenite::tungstenite::Message;

use super::{Sink, TerminalSize, broken};
use crate::Result;

/// The server takes messages of a limited size.
const MAX_PIECE: usize = 256 << 10;

/// The way in to a running command.
#[derive(Debug)]
pub struct ExecInput {
    sink: Sink,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Wish<'a> {
    Resize(TerminalSize),
    Signal { signal: &'a str },
    Eof,
}

impl ExecInput {
    pub(super) fn new(sink: Sink) -> Self {
        Self { sink }
    }

    /// Writes to the command's standard input or terminal.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_PIECE));
            self.send(Message::Binary(piece)).await?;
        }
        Ok(())
    }

    /// Ends its standard input.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub async fn end(&mut self) -> Result<()> {
        self.wish(&Wish::Eof).await
    }

    /// Says that the terminal has another size.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<()> {
        self.wish(&Wish::Resize(size)).await
    }

    /// Sends a signal, by a name like `SIGINT`.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub async fn signal(&mut self, signal: &str) -> Result<()> {
        self.wish(&Wish::Signal { signal }).await
    }

    async fn wish(&mut self, wish: &Wish<'_>) -> Result<()> {
        let text = serde_json::to_string(wish).expect("words and numbers are always JSON");
        self.send(Message::text(text)).await
    }

    async fn send(&mut self, message: Message) -> Result<()> {
        self.sink.send(message).await.map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_what_the_server_reads() {
        let text = |wish: &Wish<'_>| serde_json::to_string(wish).unwrap();
        let size = TerminalSize { cols: 80, rows: 24 };
        assert_eq!(
            text(&Wish::Resize(size)),
            r#"{"type":"resize","cols":80,"rows":24}"#
        );
        assert_eq!(
            text(&Wish::Signal { signal: "SIGINT" }),
            r#"{"type":"signal","signal":"SIGINT"}"#
        );
        assert_eq!(text(&Wish::Eof), r#"{"type":"eof"}"#);
    }
}
