//! The last output of one process, in order, within a bound.
//!
//! Positions count every byte the process ever wrote, whichever stream it went to; the ring holds `start..end` of them:
//!
//! ```text
//!  0 ───── dropped ───── start ═════ kept ═════ end
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use sandyard_wire::Output;

/// Accounted size of a change of stream, so that one-byte writes to alternating streams are bounded too.
const SEGMENT_COST: usize = size_of::<Segment>();

/// The stream that a process wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
    Pty,
}

impl Channel {
    /// Wraps bytes of this channel as an event carries them.
    pub(crate) fn output(self, bytes: Bytes) -> Output {
        match self {
            Self::Stdout => Output::Stdout(bytes),
            Self::Stderr => Output::Stderr(bytes),
            Self::Pty => Output::Pty(bytes),
        }
    }
}

/// A run of bytes written to one channel.
#[derive(Debug, Clone, Copy)]
struct Segment {
    channel: Channel,
    /// Position after its last byte.
    end: u64,
}

/// A bounded buffer of a process's output.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
    segments: VecDeque<Segment>,
    start: u64,
    capacity: usize,
}

impl Ring {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            segments: VecDeque::new(),
            start: 0,
            capacity,
        }
    }

    /// Position of the oldest byte still kept.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Position after the newest byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Maximum memory that it uses, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Drops what comes before `position`.
    pub(crate) fn drop_before(&mut self, position: u64) {
        let dropped = position.clamp(self.start, self.end()) - self.start;
        self.bytes.drain(..dropped as usize);
        self.start += dropped;
        let passed = self
            .segments
            .partition_point(|segment| segment.end <= self.start);
        self.segments.drain(..passed);
    }

    /// Memory accounted to this ring.
    pub(crate) fn used(&self) -> usize {
        self.bytes.len() + self.segments.len() * SEGMENT_COST
    }

    /// Whether `len` more bytes fit without touching anything at or after `needed`.
    pub(crate) fn fits(&self, len: usize, needed: u64, capacity: usize) -> bool {
        let first = self
            .segments
            .partition_point(|segment| segment.end <= needed);
        let kept_bytes = usize::try_from(self.end().saturating_sub(needed)).unwrap_or(usize::MAX);
        let kept_segments = self.segments.len() - first + 1;
        let needed_total = kept_bytes.saturating_add(kept_segments * SEGMENT_COST);
        // A ring smaller than one read still takes one read at a time.
        kept_bytes == 0 || needed_total.saturating_add(len) <= capacity.min(self.capacity)
    }

    /// Appends output, dropping the oldest to stay within `capacity`, and returns how many bytes were dropped.
    pub(crate) fn push(&mut self, channel: Channel, bytes: &[u8], capacity: usize) -> u64 {
        if bytes.is_empty() {
            return 0;
        }
        let before = self.start;
        let end = self.end() + bytes.len() as u64;
        self.bytes.extend(bytes);
        match self.segments.back_mut() {
            Some(last) if last.channel == channel => last.end = end,
            _ => self.segments.push_back(Segment { channel, end }),
        }
        self.shrink(capacity.min(self.capacity));
        self.start - before
    }

    /// Drops the oldest output until what is left fits in `capacity`.
    pub(crate) fn shrink(&mut self, capacity: usize) {
        while self.used() > capacity {
            let Some(first) = self.segments.front().copied() else {
                return;
            };
            let held = usize::try_from(first.end - self.start).unwrap_or(usize::MAX);
            let excess = self.used() - capacity;
            if held <= excess {
                self.segments.pop_front();
            }
            let dropped = held.min(excess);
            self.bytes.drain(..dropped);
            self.start += dropped as u64;
        }
    }

    /// Releases spare memory, for a process that will not write any more.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.segments.shrink_to_fit();
    }

    /// Copies out what follows `position`: at most `max` bytes, all of one channel.
    ///
    /// A position that was dropped already continues at the oldest byte kept. The second value is the position after
    /// what was returned.
    pub(crate) fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        let from = position.max(self.start);
        if from >= self.end() {
            return None;
        }
        let index = self.segments.partition_point(|segment| segment.end <= from);
        let segment = self.segments.get(index)?;
        let to = segment.end.min(from + max as u64);
        let range = (from - self.start) as usize..(to - self.start) as usize;
        let mut copy = Vec::with_capacity(range.len());
        let (head, tail) = self.bytes.as_slices();
        if range.start < head.len() {
            copy.extend_from_slice(&head[range.start..range.end.min(head.len())]);
        }
        if range.end > head.len() {
            let offset = range.start.saturating_sub(head.len());
            copy.extend_from_slice(&tail[offset..range.end - head.len()]);
        }
        Some((segment.channel, copy.into(), to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: usize = usize::MAX / 4;

    fn drain(ring: &Ring, mut position: u64, max: usize) -> Vec<(Channel, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some((channel, bytes, next)) = ring.read(position, max) {
            out.push((channel, bytes.to_vec()));
            position = next;
        }
        out
    }

    #[test]
    fn output_comes_back_in_the_order_it_was_written() {
        let mut ring = Ring::new(1024);
        ring.push(Channel::Stdout, b"one", BIG);
        ring.push(Channel::Stderr, b"two", BIG);
        ring.push(Channel::Stdout, b"three", BIG);
        assert_eq!(
            drain(&ring, 0, 100),
            [
                (Channel::Stdout, b"one".to_vec()),
                (Channel::Stderr, b"two".to_vec()),
                (Channel::Stdout, b"three".to_vec()),
            ]
        );
        assert_eq!(drain(&ring, 4, 100)[0], (Channel::Stderr, b"wo".to_vec()));
    }

    #[test]
    fn the_oldest_output_makes_room_and_the_loss_is_counted() {
        let mut ring = Ring::new(SEGMENT_COST + 10);
        assert_eq!(ring.push(Channel::Stdout, b"0123456789", BIG), 0);
        assert_eq!(ring.push(Channel::Stdout, b"abc", BIG), 3);
        assert_eq!((ring.start(), ring.end()), (3, 13));
        assert_eq!(
            drain(&ring, 0, 100),
            [(Channel::Stdout, b"3456789abc".to_vec())]
        );
    }

    #[test]
    fn alternating_single_bytes_stay_within_the_bound() {
        let mut ring = Ring::new(4096);
        for _ in 0..10_000 {
            ring.push(Channel::Stdout, b"a", BIG);
            ring.push(Channel::Stderr, b"b", BIG);
        }
        assert!(ring.used() <= 4096);
        assert_eq!(ring.end(), 20_000);
    }

    #[test]
    fn reads_across_the_wrap_point_are_whole() {
        let mut ring = Ring::new(SEGMENT_COST + 7);
        for round in 0..50u8 {
            ring.push(Channel::Pty, &[round, round, round], BIG);
        }
        let got: Vec<u8> = drain(&ring, 0, 2)
            .into_iter()
            .flat_map(|(_, b)| b)
            .collect();
        assert_eq!(got, [47, 48, 48, 48, 49, 49, 49]);
    }

    #[test]
    fn a_ring_full_of_unread_output_has_no_room() {
        let mut ring = Ring::new(SEGMENT_COST * 2 + 10);
        ring.push(Channel::Stdout, b"0123456789", BIG);
        assert!(!ring.fits(5, 0, BIG));
        assert!(ring.fits(5, 8, BIG));
        assert!(ring.fits(500, 10, BIG), "nothing unread: always takes more");
    }
}
