//! Replacing texts in data that arrives in pieces.

use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::replace::{Length, Replacements};

/// Replaces texts in data that arrives in pieces, also texts that span pieces.
///
/// The end of the data is held back: always as many bytes as the longest text has, less one, whatever they are. If only a possible
/// beginning of a text were held back, the sizes of the output would show how much of a guess is right, and an attacker who
/// chooses the data could read a secret byte by byte. So output sizes depend only on the sizes of the pieces, until a whole text
/// has arrived.
#[derive(Debug)]
pub(super) struct ReplaceStream {
    replacements: Arc<Replacements>,
    length: Length,
    /// The end of the released data, in which a text may have begun.
    released: Zeroizing<Vec<u8>>,
    /// Data that is held back.
    pending: Zeroizing<Vec<u8>>,
}

impl ReplaceStream {
    /// Begins a stream.
    pub(super) fn new(replacements: Arc<Replacements>, length: Length) -> Self {
        Self {
            replacements,
            length,
            released: Zeroizing::new(Vec::new()),
            pending: Zeroizing::new(Vec::new()),
        }
    }

    /// The data that is held back.
    pub(super) fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes the next piece; returns what can be released.
    pub(super) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.pending.extend_from_slice(piece);
        self.release(false)
    }

    /// Releases what was held back: there is no more data, or the reader must not wait. Of a text that begins in there and ends
    /// later, the rest becomes `*`.
    pub(super) fn flush(&mut self) -> Bytes {
        self.release(true)
    }

    fn release(&mut self, is_all: bool) -> Bytes {
        let sent = self.released.len();
        let mut data = std::mem::take(&mut *self.released);
        data.append(&mut self.pending);
        // For every position before this one it is decided which text begins there.
        let decided = (data.len() + 1).saturating_sub(self.replacements.max_length());
        let limit = if is_all { data.len() } else { decided };
        let text_end = (0..sent.min(limit))
            .filter_map(|at| Some(at + self.replacements.length_at(&data[at..])?))
            .max();
        let start = text_end.unwrap_or(0).max(sent);
        let range = start..limit.max(start);
        let (replaced, end) = self.replacements.replace_in(&data, range, self.length);
        self.pending.extend_from_slice(&data[end..]);
        if is_all || decided < sent {
            self.released.extend_from_slice(&data[decided..end]);
        }
        if replaced.is_none() && start == sent {
            return Bytes::from(data).slice(sent..end);
        }
        let mut output = vec![b'*'; start - sent];
        match replaced {
            Some(replaced) => output.extend_from_slice(&replaced),
            None => output.extend_from_slice(&data[start..end]),
        }
        Bytes::from(output)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn replacements(pairs: &[(&str, &str)]) -> Replacements {
        Replacements::new(
            pairs
                .iter()
                .map(|(from, to)| (from.as_bytes().to_vec(), to.as_bytes().to_vec())),
        )
    }

    fn in_pieces(replacements: &Replacements, length: Length, text: &str, size: usize) -> String {
        let mut stream = ReplaceStream::new(Arc::new(replacements.clone()), length);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend_from_slice(&stream.push(piece));
        }
        out.extend_from_slice(&stream.flush());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_text_is_replaced_and_replacements_are_not_searched() {
        let replacements = replacements(&[("one", "two"), ("two", "one"), ("", "never")]);
        assert_eq!(
            replacements.replace_all(b"one two oone tw").unwrap(),
            b"two one otwo tw"
        );
        assert_eq!(replacements.replace_all(b"three"), None);
    }

    #[test]
    fn the_longest_of_several_wins() {
        let replacements = replacements(&[("ab", "1"), ("abcd", "2"), ("bc", "3")]);
        for size in 1..8 {
            assert_eq!(
                in_pieces(&replacements, Length::Variable, "abcd abc ab bcab", size),
                "2 1c 1 31"
            );
        }
    }

    #[test]
    fn texts_that_are_split_over_pieces_are_found() {
        let replacements =
            replacements(&[("secret-value", "placeholder"), ("c2VjcmV0", "cGxhY2U=")]);
        let text = "a secret-value, secret-valu, ssecret-value c2VjcmV0 c2Vjc";
        let whole = String::from_utf8(replacements.replace_all(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            whole,
            "a placeholder, secret-valu, splaceholder cGxhY2U= c2Vjc"
        );
        for size in 1..text.len() {
            assert_eq!(
                in_pieces(&replacements, Length::Variable, text, size),
                whole,
                "{size}"
            );
        }
    }

    #[test]
    fn the_length_stays_where_it_must() {
        let replacements = replacements(&[("long-long-secret", "holder"), ("key", "placeholder")]);
        for size in 1..10 {
            assert_eq!(
                in_pieces(&replacements, Length::Fixed, "<long-long-secret|key>", size),
                "<holder**********|pla>"
            );
        }
    }

    #[test]
    fn as_much_is_held_back_as_a_text_may_need_whatever_it_is() {
        let mut stream =
            ReplaceStream::new(Arc::new(replacements(&[("secret", "x")])), Length::Variable);
        assert_eq!(stream.push(b"data: se"), "dat");
        assert_eq!(stream.push(b"cre"), "a: ");
        assert_eq!(stream.push(b"t."), "x");
        assert_eq!(stream.pending(), b".");
        assert_eq!(stream.push(b"12345"), ".");
        assert_eq!(stream.flush(), "12345");
        assert_eq!(stream.flush(), "");
    }

    #[test]
    fn the_rest_of_a_text_that_was_released_early_is_stars() {
        for length in [Length::Variable, Length::Fixed] {
            let mut stream = ReplaceStream::new(Arc::new(replacements(&[("secret", "x")])), length);
            assert_eq!(stream.push(b"a se"), "");
            assert_eq!(stream.flush(), "a se");
            assert_eq!(stream.push(b"cr"), "");
            assert_eq!(stream.flush(), "cr");
            assert_eq!(stream.push(b"et, secr"), "**,");
            assert_eq!(stream.flush(), " secr");
            assert_eq!(stream.push(b"ow and more"), "ow and");
            assert_eq!(stream.flush(), " more");
        }
    }

    const VALUE: &str = "s3cret-Value-0123456789";
    const ENCODED: &str = "czNjcmV0LVZhbHVl";

    fn forms() -> Arc<Replacements> {
        Arc::new(replacements(&[(VALUE, "placeholder"), (ENCODED, "p")]))
    }

    /// Pieces, and whether there is a pause after each.
    fn shapes() -> impl Strategy<Value = Vec<(usize, bool)>> {
        vec((0_usize..60, any::<bool>()), 1..12)
    }

    /// Sends data in pieces of a shape; gives what comes out after each, and at the end.
    fn send(shape: &[(usize, bool)], length: Length, data: &[u8]) -> Vec<Bytes> {
        let mut stream = ReplaceStream::new(forms(), length);
        let (mut out, mut rest) = (Vec::new(), data);
        for (size, is_pause) in shape {
            let (piece, others) = rest.split_at(*size);
            rest = others;
            out.push(stream.push(piece));
            if *is_pause {
                out.push(stream.flush());
            }
        }
        out.extend([stream.push(rest), stream.flush()]);
        out
    }

    proptest! {
        #[test]
        fn sizes_do_not_tell_how_much_of_a_guess_is_right(
            shape in shapes(),
            guesses in vec((0..VALUE.len(), 0..ENCODED.len()), 100),
            is_kept in any::<bool>(),
        ) {
            let length = if is_kept { Length::Fixed } else { Length::Variable };
            let guesses = guesses.iter().map(|(plain, encoded)| format!("{}{}", &VALUE[..*plain], &ENCODED[..*encoded]));
            let mut guesses = guesses.collect::<String>().into_bytes();
            guesses.resize(60 * 12, b's');
            let right = send(&shape, length, &guesses);
            let wrong = send(&shape, length, &vec![b'.'; guesses.len()]);
            let sizes = |pieces: &[Bytes]| pieces.iter().map(Bytes::len).collect::<Vec<_>>();
            prop_assert_eq!(sizes(&right), sizes(&wrong));
            prop_assert_eq!(right.concat(), guesses);
        }

        #[test]
        fn no_text_gets_through_however_it_is_cut(shape in shapes(), before in 0_usize..200, is_kept in any::<bool>()) {
            let length = if is_kept { Length::Fixed } else { Length::Variable };
            let mut data = format!("{}{VALUE}{ENCODED} {VALUE}", ".".repeat(before)).into_bytes();
            data.resize(60 * 12, b'.');
            let out = send(&shape, length, &data).concat();
            for text in [VALUE, ENCODED] {
                prop_assert!(!out.windows(text.len()).any(|window| window == text.as_bytes()));
            }
            prop_assert!(!is_kept || out.len() == data.len());
        }
    }

    #[test]
    fn nothing_shows_the_texts() {
        assert_eq!(
            format!("{:?}", replacements(&[("secret", "x")])),
            "Replacements(1)"
        );
    }
}
