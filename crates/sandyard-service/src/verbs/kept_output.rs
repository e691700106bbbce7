//! Output of a command, collected as text up to a limit.

use sandyard_agent_client::wire::event::Output;

use crate::memory::{MemoryHold, PATIENCE, UNCOUNTED};
use crate::request::PartialOutput;

/// What a command wrote, so far.
pub(super) struct Kept {
    pub(super) stdout: Text,
    pub(super) stderr: Text,
    pub(super) is_truncated: bool,
    /// Accounts for both texts.
    pub(super) memory: MemoryHold,
    /// Bytes kept of each.
    max: usize,
}

impl Kept {
    pub(super) fn new(max: usize, memory: MemoryHold) -> Self {
        Self {
            stdout: Text::default(),
            stderr: Text::default(),
            is_truncated: false,
            memory,
            max,
        }
    }

    /// What a command that was killed had written.
    pub(super) fn into_partial(self, pid: u32) -> PartialOutput {
        PartialOutput {
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            is_truncated: self.is_truncated,
            pid,
            memory: self.memory,
        }
    }

    /// Keeps what fits. Waits while the caller's memory is used up, by which the command waits, too; what then still does not fit
    /// is left out, since a command that has run cannot be taken back.
    pub(super) async fn keep(&mut self, data: &Output) {
        let text = match data {
            Output::Stderr(_) => &mut self.stderr,
            _ => &mut self.stdout,
        };
        let bytes = data.bytes();
        if text.is_full {
            self.is_truncated |= !bytes.is_empty();
            return;
        }
        // A byte that is no text becomes three.
        let expanded = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(_) => bytes.len().saturating_mul(3),
        };
        let needed = text.kept.len() + text.pending.len() + expanded;
        let room = needed.min(self.max);
        if room > text.kept.capacity() {
            let room = room.max(text.kept.capacity() * 2).min(self.max);
            let more = room - text.kept.capacity();
            let is_counted = room > UNCOUNTED;
            if is_counted && self.memory.grow(more, PATIENCE).await.is_err() {
                text.is_full = true;
                self.is_truncated = true;
                return;
            }
            text.kept.reserve_exact(room - text.kept.len());
        }
        text.push(bytes, self.max);
        self.is_truncated |= text.is_full;
    }
}

/// A text that grows by bytes; those that are no text are replaced.
#[derive(Default)]
pub(super) struct Text {
    kept: String,
    /// The beginning of a character whose rest has not come.
    pending: Vec<u8>,
    /// Whether something was left out: then nothing follows.
    is_full: bool,
}

impl Text {
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
        let room = max.saturating_sub(self.kept.len());
        let end = text.floor_char_boundary(room);
        self.kept.push_str(&text[..end]);
        self.is_full = end < text.len();
    }

    /// The whole text; a character whose rest never came is replaced.
    pub(super) fn finish(mut self) -> String {
        if !self.pending.is_empty() {
            self.push_text("\u{fffd}", usize::MAX);
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::memory::MemoryBudget;

    async fn keep(max: usize, pieces: &[&[u8]]) -> (String, bool) {
        let budget = MemoryBudget::new(64 << 20);
        let mut kept = Kept::new(max, budget.hold("a"));
        for piece in pieces {
            kept.keep(&Output::Stdout(Bytes::copy_from_slice(piece)))
                .await;
        }
        assert!(kept.stdout.kept.capacity() <= kept.memory.bytes() + UNCOUNTED);
        (kept.stdout.finish(), kept.is_truncated)
    }

    #[tokio::test]
    async fn output_over_the_limit_is_cut_between_characters_and_said_to_be() {
        assert_eq!(keep(4, &[b"abc", b"d"]).await, ("abcd".into(), false));
        assert_eq!(keep(4, &[b"abc", b"de"]).await, ("abcd".into(), true));
        assert_eq!(keep(4, &["aüüü".as_bytes()]).await, ("aü".into(), true));
        let long = vec![b'x'; 100_000];
        let (text, is_truncated) = keep(1 << 20, &[&*long; 11]).await;
        assert_eq!((text.len(), is_truncated), (1 << 20, true));
    }

    #[tokio::test]
    async fn characters_in_two_pieces_are_whole_and_what_is_no_text_is_replaced() {
        let text = "aü€x".as_bytes();
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(
                keep(99, &[head, tail]).await,
                ("aü€x".into(), false),
                "{cut}"
            );
        }
        assert_eq!(keep(99, &[b"a\xffb"]).await.0, "a\u{fffd}b");
        assert_eq!(keep(99, &[b"a\xe2\x82"]).await.0, "a\u{fffd}");
        assert_eq!(keep(99, &[b"a\xe2", b"b"]).await.0, "a\u{fffd}b");
    }

    #[tokio::test(start_paused = true)]
    async fn output_without_memory_for_it_is_left_out() {
        let budget = MemoryBudget::new(400_000);
        let other = budget.hold("a");
        other.try_grow(60_000).unwrap();
        let mut kept = Kept::new(1 << 20, budget.hold("a"));
        let piece = Output::Stdout(Bytes::from(vec![b'x'; 30_000]));
        kept.keep(&piece).await;
        assert!(!kept.is_truncated);
        kept.keep(&piece).await;
        kept.keep(&piece).await;
        assert!(kept.is_truncated && budget.used() <= 100_000);
        assert_eq!(kept.stdout.finish().len(), 30_000);
    }
}
