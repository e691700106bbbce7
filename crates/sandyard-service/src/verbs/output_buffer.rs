//! Collects the output of a command as text, up to a limit.

use sandyard_agent_client::wire::event::Output;

use crate::memory::{MEMORY_WAIT, MemoryHold, UNCOUNTED_BYTES};
use crate::request::PartialOutput;

/// The output of a command so far.
pub(super) struct OutputBuffer {
    pub(super) stdout: TextBuffer,
    pub(super) stderr: TextBuffer,
    pub(super) is_truncated: bool,
    /// Accounts for both texts.
    pub(super) memory: MemoryHold,
    /// Most bytes of each text.
    max: usize,
}

impl OutputBuffer {
    pub(super) fn new(max: usize, memory: MemoryHold) -> Self {
        Self {
            stdout: TextBuffer::default(),
            stderr: TextBuffer::default(),
            is_truncated: false,
            memory,
            max,
        }
    }

    /// The output of a command that was killed.
    pub(super) fn into_partial(self, pid: u32) -> PartialOutput {
        PartialOutput {
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            is_truncated: self.is_truncated,
            pid,
            memory: self.memory,
        }
    }

    /// Adds output, up to the limit. Waits while the caller's memory is used up, and the command waits with it. Output that still does not
    /// fit is left out: a command that has run cannot be undone.
    pub(super) async fn push(&mut self, data: &Output) {
        let text = match data {
            Output::Stderr(_) => &mut self.stderr,
            _ => &mut self.stdout,
        };
        let bytes = data.bytes();
        if text.is_full {
            self.is_truncated |= !bytes.is_empty();
            return;
        }
        // A byte that is not valid UTF-8 becomes three.
        let expanded = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(_) => bytes.len().saturating_mul(3),
        };
        let needed = text.text.len() + text.pending.len() + expanded;
        let capacity = needed.min(self.max);
        if capacity > text.text.capacity() {
            let capacity = capacity.max(text.text.capacity() * 2).min(self.max);
            let more = capacity - text.text.capacity();
            let is_counted = capacity > UNCOUNTED_BYTES;
            if is_counted && self.memory.grow(more, MEMORY_WAIT).await.is_err() {
                text.is_full = true;
                self.is_truncated = true;
                return;
            }
            text.text.reserve_exact(capacity - text.text.len());
        }
        text.push(bytes, self.max);
        self.is_truncated |= text.is_full;
    }
}

/// A text that grows by bytes. Bytes that are not valid UTF-8 are replaced.
#[derive(Default)]
pub(super) struct TextBuffer {
    text: String,
    /// The first bytes of a character whose rest has not arrived.
    pending: Vec<u8>,
    /// Whether something was left out. Nothing is added after that.
    is_full: bool,
}

impl TextBuffer {
    fn push(&mut self, bytes: &[u8], max: usize) {
        let joined;
        let bytes = match self.pending.is_empty() {
            true => bytes,
            false => {
                joined = [&std::mem::take(&mut self.pending)[..], bytes].concat();
                &joined
            }
        };
        for chunk in bytes.utf8_chunks() {
            self.push_text(chunk.valid(), max);
            let invalid = chunk.invalid();
            let is_cut =
                std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            let is_last = invalid.as_ptr_range().end == bytes.as_ptr_range().end;
            if is_cut && is_last {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.push_text("\u{fffd}", max);
            }
        }
    }

    fn push_text(&mut self, text: &str, max: usize) {
        if self.is_full {
            return;
        }
        let free_bytes = max.saturating_sub(self.text.len());
        let end = text.floor_char_boundary(free_bytes);
        self.text.push_str(&text[..end]);
        self.is_full = end < text.len();
    }

    /// The whole text. An incomplete character at its end is replaced.
    pub(super) fn finish(mut self) -> String {
        if !self.pending.is_empty() {
            self.push_text("\u{fffd}", usize::MAX);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::memory::MemoryBudget;

    async fn collect(max: usize, pieces: &[&[u8]]) -> (String, bool) {
        let budget = MemoryBudget::new(64 << 20);
        let mut buffer = OutputBuffer::new(max, budget.hold("a"));
        for piece in pieces {
            buffer
                .push(&Output::Stdout(Bytes::copy_from_slice(piece)))
                .await;
        }
        assert!(buffer.stdout.text.capacity() <= buffer.memory.bytes() + UNCOUNTED_BYTES);
        (buffer.stdout.finish(), buffer.is_truncated)
    }

    #[tokio::test]
    async fn output_over_the_limit_is_truncated_between_characters() {
        assert_eq!(collect(4, &[b"abc", b"d"]).await, ("abcd".into(), false));
        assert_eq!(collect(4, &[b"abc", b"de"]).await, ("abcd".into(), true));
        assert_eq!(collect(4, &["aüüü".as_bytes()]).await, ("aü".into(), true));
        let long = vec![b'x'; 100_000];
        let (text, is_truncated) = collect(1 << 20, &[&*long; 11]).await;
        assert_eq!((text.len(), is_truncated), (1 << 20, true));
    }

    #[tokio::test]
    async fn split_characters_are_joined_and_invalid_bytes_are_replaced() {
        let text = "aü€x".as_bytes();
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(
                collect(99, &[head, tail]).await,
                ("aü€x".into(), false),
                "{cut}"
            );
        }
        assert_eq!(collect(99, &[b"a\xffb"]).await.0, "a\u{fffd}b");
        assert_eq!(collect(99, &[b"a\xe2\x82"]).await.0, "a\u{fffd}");
        assert_eq!(collect(99, &[b"a\xe2", b"b"]).await.0, "a\u{fffd}b");
    }

    #[tokio::test(start_paused = true)]
    async fn output_without_memory_for_it_is_left_out() {
        let budget = MemoryBudget::new(400_000);
        let other = budget.hold("a");
        other.try_grow(60_000).unwrap();
        let mut buffer = OutputBuffer::new(1 << 20, budget.hold("a"));
        let piece = Output::Stdout(Bytes::from(vec![b'x'; 30_000]));
        buffer.push(&piece).await;
        assert!(!buffer.is_truncated);
        buffer.push(&piece).await;
        buffer.push(&piece).await;
        assert!(buffer.is_truncated && budget.used() <= 100_000);
        assert_eq!(buffer.stdout.finish().len(), 30_000);
    }
}
