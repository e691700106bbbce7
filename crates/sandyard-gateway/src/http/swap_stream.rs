//! Texts put in the place of others, in data that comes in pieces.

use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::swap::{Length, Swaps};

/// Exchanges texts in data that comes in pieces, also those that begin in one piece and end in another.
///
/// No byte is held back longer than it may belong to a text, so that what is sent in small portions arrives in them.
#[derive(Debug)]
pub(super) struct SwapStream {
    swaps: Arc<Swaps>,
    length: Length,
    /// The beginning of what may be a text.
    held: Zeroizing<Vec<u8>>,
}

impl SwapStream {
    /// Begins a stream.
    pub(super) fn new(swaps: Arc<Swaps>, length: Length) -> Self {
        Self {
            swaps,
            length,
            held: Zeroizing::new(Vec::new()),
        }
    }

    /// Takes the next piece, gives what can be passed on.
    pub(super) fn push(&mut self, piece: Bytes) -> Bytes {
        let piece = if self.held.is_empty() {
            piece
        } else {
            let mut joined = std::mem::take(&mut *self.held);
            joined.extend_from_slice(&piece);
            Bytes::from(joined)
        };
        let (made, end) = self.swaps.pass(&piece, false, self.length);
        self.held.extend_from_slice(&piece[end..]);
        made.map_or_else(|| piece.slice(..end), Bytes::from)
    }

    /// Gives what was held back: there is no more.
    pub(super) fn finish(&mut self) -> Bytes {
        let held = std::mem::take(&mut *self.held);
        let (made, _) = self.swaps.pass(&held, true, self.length);
        Bytes::from(made.unwrap_or(held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swaps(pairs: &[(&str, &str)]) -> Swaps {
        Swaps::new(
            pairs
                .iter()
                .map(|(from, to)| (from.as_bytes().to_vec(), to.as_bytes().to_vec())),
        )
    }

    fn in_pieces(swaps: &Swaps, length: Length, text: &str, size: usize) -> String {
        let mut stream = SwapStream::new(Arc::new(swaps.clone()), length);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend_from_slice(&stream.push(Bytes::copy_from_slice(piece)));
        }
        out.extend_from_slice(&stream.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_text_is_exchanged_and_what_was_put_in_is_not_looked_at() {
        let swaps = swaps(&[("one", "two"), ("two", "one"), ("", "never")]);
        assert_eq!(swaps.whole(b"one two oone tw").unwrap(), b"two one otwo tw");
        assert_eq!(swaps.whole(b"three"), None);
    }

    #[test]
    fn the_longest_of_several_wins() {
        let swaps = swaps(&[("ab", "1"), ("abcd", "2"), ("bc", "3")]);
        for size in 1..8 {
            assert_eq!(
                in_pieces(&swaps, Length::Free, "abcd abc ab bcab", size),
                "2 1c 1 31"
            );
        }
    }

    #[test]
    fn texts_that_are_split_over_pieces_are_found() {
        let swaps = swaps(&[("secret-value", "placeholder"), ("c2VjcmV0", "cGxhY2U=")]);
        let text = "a secret-value, secret-valu, ssecret-value c2VjcmV0 c2Vjc";
        let whole = String::from_utf8(swaps.whole(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            whole,
            "a placeholder, secret-valu, splaceholder cGxhY2U= c2Vjc"
        );
        for size in 1..text.len() {
            assert_eq!(in_pieces(&swaps, Length::Free, text, size), whole, "{size}");
        }
    }

    #[test]
    fn the_length_stays_where_it_must() {
        let swaps = swaps(&[("long-long-secret", "holder"), ("key", "placeholder")]);
        for size in 1..10 {
            assert_eq!(
                in_pieces(&swaps, Length::Kept, "<long-long-secret|key>", size),
                "<holder**********|pla>"
            );
        }
    }

    #[test]
    fn only_what_may_be_a_text_is_held_back() {
        let mut stream = SwapStream::new(Arc::new(swaps(&[("secret", "x")])), Length::Free);
        assert_eq!(
            stream.push(Bytes::from_static(b"data: se\n\n")),
            "data: se\n\n"
        );
        assert_eq!(stream.push(Bytes::from_static(b"data: se")), "data: ");
        assert_eq!(stream.push(Bytes::from_static(b"cre")), "");
        assert_eq!(stream.push(Bytes::from_static(b"t.")), "x.");
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn nothing_shows_the_texts() {
        assert_eq!(format!("{:?}", swaps(&[("secret", "x")])), "Swaps(1)");
    }
}
