//! Texts put in the place of others, in data that comes in pieces.

use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::replace::{Length, Replacements};

/// Exchanges texts in data that comes in pieces, also those that begin in one piece and end in another.
///
/// The end of what came is held back, always as many bytes as the longest text has, less one, and whatever they are. Were it
/// only what may begin a text, the sizes of what is passed on would tell how much of a guess is right, and a secret could be
/// read byte by byte by whoever chooses the data. So sizes depend on those of the pieces alone, until a whole text is there.
#[derive(Debug)]
pub(super) struct ReplaceStream {
    replacements: Arc<Replacements>,
    length: Length,
    /// The end of what was passed on before one could tell what it begins.
    passed: Zeroizing<Vec<u8>>,
    /// What came after it and waits.
    held: Zeroizing<Vec<u8>>,
}

impl ReplaceStream {
    /// Begins a stream.
    pub(super) fn new(replacements: Arc<Replacements>, length: Length) -> Self {
        Self {
            replacements,
            length,
            passed: Zeroizing::new(Vec::new()),
            held: Zeroizing::new(Vec::new()),
        }
    }

    /// What is held back.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Takes the next piece, gives what can be passed on.
    pub(super) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        self.release(false)
    }

    /// Gives what was held back: there is no more, or nobody can wait for it. Of a text that began in there and ends in what
    /// comes later, the rest will be `*`.
    pub(super) fn flush(&mut self) -> Bytes {
        self.release(true)
    }

    fn release(&mut self, is_all: bool) -> Bytes {
        let sent = self.passed.len();
        let mut data = std::mem::take(&mut *self.passed);
        data.append(&mut self.held);
        // Of every place before this one it is known which text begins there.
        let known = (data.len() + 1).saturating_sub(self.replacements.longest());
        let place = if is_all { data.len() } else { known };
        let begun = (0..sent.min(place))
            .filter_map(|at| Some(at + self.replacements.length_at(&data[at..])?))
            .max();
        let start = begun.unwrap_or(0).max(sent);
        let places = start..place.max(start);
        let (made, end) = self.replacements.pass(&data, places, self.length);
        self.held.extend_from_slice(&data[end..]);
        if is_all || known < sent {
            self.passed.extend_from_slice(&data[known..end]);
        }
        if made.is_none() && start == sent {
            return Bytes::from(data).slice(sent..end);
        }
        let mut given = vec![b'*'; start - sent];
        match made {
            Some(made) => given.extend_from_slice(&made),
            None => given.extend_from_slice(&data[start..end]),
        }
        Bytes::from(given)
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
    fn every_text_is_exchanged_and_what_was_put_in_is_not_looked_at() {
        let replacements = replacements(&[("one", "two"), ("two", "one"), ("", "never")]);
        assert_eq!(
            replacements.whole(b"one two oone tw").unwrap(),
            b"two one otwo tw"
        );
        assert_eq!(replacements.whole(b"three"), None);
    }

    #[test]
    fn the_longest_of_several_wins() {
        let replacements = replacements(&[("ab", "1"), ("abcd", "2"), ("bc", "3")]);
        for size in 1..8 {
            assert_eq!(
                in_pieces(&replacements, Length::Free, "abcd abc ab bcab", size),
                "2 1c 1 31"
            );
        }
    }

    #[test]
    fn texts_that_are_split_over_pieces_are_found() {
        let replacements =
            replacements(&[("secret-value", "placeholder"), ("c2VjcmV0", "cGxhY2U=")]);
        let text = "a secret-value, secret-valu, ssecret-value c2VjcmV0 c2Vjc";
        let whole = String::from_utf8(replacements.whole(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            whole,
            "a placeholder, secret-valu, splaceholder cGxhY2U= c2Vjc"
        );
        for size in 1..text.len() {
            assert_eq!(
                in_pieces(&replacements, Length::Free, text, size),
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
                in_pieces(&replacements, Length::Kept, "<long-long-secret|key>", size),
                "<holder**********|pla>"
            );
        }
    }

    #[test]
    fn as_much_is_held_back_as_a_text_may_need_whatever_it_is() {
        let mut stream =
            ReplaceStream::new(Arc::new(replacements(&[("secret", "x")])), Length::Free);
        assert_eq!(stream.push(b"data: se"), "dat");
        assert_eq!(stream.push(b"cre"), "a: ");
        assert_eq!(stream.push(b"t."), "x");
        assert_eq!(stream.held(), b".");
        assert_eq!(stream.push(b"12345"), ".");
        assert_eq!(stream.flush(), "12345");
        assert_eq!(stream.flush(), "");
    }

    #[test]
    fn the_rest_of_a_text_that_nobody_could_wait_for_is_stars() {
        for length in [Length::Free, Length::Kept] {
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
            let length = if is_kept { Length::Kept } else { Length::Free };
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
            let length = if is_kept { Length::Kept } else { Length::Free };
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
