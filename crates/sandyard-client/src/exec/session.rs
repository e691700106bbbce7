//! State that input and output of a session share: the connection, and input that may have to be sent again.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::SinkExt;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedMutexGuard};
use tokio_tungstenite::tungstenite::Message;

use super::input::Control;
use super::{Sink, TerminalSize, closed};
use crate::Result;

/// Bytes of input kept to send again when the server dies: more than sockets and buffers on the path hold.
const REPLAY_BYTES: usize = 16 << 20;
/// Maximum number of signals kept while there is no connection.
const MAX_PENDING: usize = 16;

/// Connection of a session, shared by input and output.
#[derive(Debug)]
pub(super) struct Session {
    state: Arc<Mutex<InputState>>,
    changed: Arc<Notify>,
}

/// Connection for input, and input that has not arrived yet.
#[derive(Debug)]
pub(super) struct InputState {
    /// `None` while there is no connection.
    sink: Option<Sink>,
    replay: Replay,
    has_ended: bool,
    size: Option<TerminalSize>,
    /// Signals to send after the next connection.
    pending_signals: Vec<String>,
    is_closed: bool,
}

impl Session {
    /// Creates a session whose input starts at `input_offset` of the command's input.
    pub(super) fn new(sink: Sink, input_offset: u64) -> Self {
        let state = InputState {
            sink: Some(sink),
            replay: Replay::new(input_offset),
            has_ended: false,
            size: None,
            pending_signals: Vec::new(),
            is_closed: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
        }
    }

    /// Writes input. Waits while there is no connection.
    pub(super) async fn write(&self, piece: Bytes) -> Result<()> {
        let mut state = self.connected().await?;
        state.replay.push(piece.clone());
        // Input that does not arrive is sent again after the next connection.
        state.send(Message::Binary(piece)).await;
        Ok(())
    }

    pub(super) async fn end(&self) -> Result<()> {
        let mut state = self.open().await?;
        state.has_ended = true;
        state.control(&Control::Eof).await;
        Ok(())
    }

    pub(super) async fn resize(&self, size: TerminalSize) -> Result<()> {
        let mut state = self.open().await?;
        state.size = Some(size);
        state.control(&Control::Resize(size)).await;
        Ok(())
    }

    pub(super) async fn signal(&self, signal: &str) -> Result<()> {
        let mut state = self.open().await?;
        let is_sent = state.control(&Control::Signal { signal }).await;
        if !is_sent && state.pending_signals.len() < MAX_PENDING {
            state.pending_signals.push(signal.to_owned());
        }
        Ok(())
    }

    /// Continues on a new connection. Returns `None` if input is missing that is no longer kept.
    pub(super) async fn resume(&self, sink: Sink, input_offset: Option<u64>) -> Option<Resumed> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        state.sink = Some(sink);
        let received = input_offset.unwrap_or(state.replay.end);
        let pieces = state.replay.since(received)?;
        Some(Resumed {
            // On a terminal the end of input is a byte, which the offset counts.
            sends_end: state.has_ended && received <= state.replay.end,
            state,
            pieces,
            changed: Arc::clone(&self.changed),
        })
    }

    /// Marks the session as closed: there will be no other connection.
    pub(super) fn close(&self) {
        let (state, changed) = (Arc::clone(&self.state), Arc::clone(&self.changed));
        // A writer may hold the lock until its broken connection fails.
        tokio::spawn(async move {
            state.lock().await.is_closed = true;
            changed.notify_waiters();
        });
    }

    async fn open(&self) -> Result<MutexGuard<'_, InputState>> {
        let state = self.state.lock().await;
        if state.is_closed {
            return Err(closed());
        }
        Ok(state)
    }

    async fn connected(&self) -> Result<MutexGuard<'_, InputState>> {
        loop {
            let changed = self.changed.notified();
            let state = self.open().await?;
            if state.sink.is_some() {
                return Ok(state);
            }
            drop(state);
            changed.await;
        }
    }
}

impl InputState {
    /// Sends a message if there is a connection. Returns whether it was sent.
    async fn send(&mut self, message: Message) -> bool {
        let Some(sink) = &mut self.sink else {
            return false;
        };
        let is_sent = sink.send(message).await.is_ok();
        if !is_sent {
            self.sink = None;
        }
        is_sent
    }

    async fn control(&mut self, control: &Control<'_>) -> bool {
        self.send(Message::text(control.to_json())).await
    }
}

/// New connection on which missing input must be sent first. New input waits.
#[derive(Debug)]
pub(super) struct Resumed {
    state: OwnedMutexGuard<InputState>,
    pieces: Vec<Bytes>,
    sends_end: bool,
    changed: Arc<Notify>,
}

impl Resumed {
    /// Sends the missing input. Takes as long as the command takes to read it.
    pub(super) async fn send(mut self) {
        if let Some(size) = self.state.size {
            self.state.control(&Control::Resize(size)).await;
        }
        for piece in self.pieces {
            self.state.send(Message::Binary(piece)).await;
        }
        if self.sends_end {
            self.state.control(&Control::Eof).await;
        }
        for signal in std::mem::take(&mut self.state.pending_signals) {
            let control = Control::Signal { signal: &signal };
            self.state.control(&control).await;
        }
        drop(self.state);
        self.changed.notify_waiters();
    }
}

/// Most recent input, by offset in the command's whole input.
#[derive(Debug)]
struct Replay {
    pieces: VecDeque<Bytes>,
    start: u64,
    end: u64,
}

impl Replay {
    fn new(offset: u64) -> Self {
        Self {
            pieces: VecDeque::new(),
            start: offset,
            end: offset,
        }
    }

    fn push(&mut self, piece: Bytes) {
        self.end += piece.len() as u64;
        self.pieces.push_back(piece);
        while self.end - self.start > REPLAY_BYTES as u64 {
            let Some(oldest) = self.pieces.pop_front() else {
                return;
            };
            self.start += oldest.len() as u64;
        }
    }

    /// Returns the input from an offset on, or `None` if it is no longer kept.
    fn since(&self, offset: u64) -> Option<Vec<Bytes>> {
        if offset < self.start {
            return None;
        }
        let mut skipped = offset - self.start;
        let mut pieces = Vec::new();
        for piece in &self.pieces {
            let length = piece.len() as u64;
            if skipped >= length {
                skipped -= length;
                continue;
            }
            let from = usize::try_from(skipped).unwrap_or(piece.len());
            pieces.push(piece.slice(from..));
            skipped = 0;
        }
        Some(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_sent_again_from_where_the_command_has_it() {
        let mut replay = Replay::new(100);
        for piece in ["one", "two", "three"] {
            replay.push(Bytes::from_static(piece.as_bytes()));
        }
        let since = |offset| replay.since(offset).map(|pieces| pieces.concat());
        assert_eq!(since(100).unwrap(), b"onetwothree");
        assert_eq!(since(104).unwrap(), b"wothree");
        assert_eq!(since(111).unwrap(), b"");
        assert_eq!(since(200).unwrap(), b"", "somebody else wrote too");
        assert_eq!(since(99), None);
    }

    #[test]
    fn old_input_is_forgotten_within_the_bound() {
        let mut replay = Replay::new(0);
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        for _ in 0..40 {
            replay.push(piece.clone());
        }
        assert_eq!(replay.end - replay.start, REPLAY_BYTES as u64);
        assert_eq!(replay.since(replay.start - 1), None);
    }
}
