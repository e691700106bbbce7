//! Text from bytes that are cut anywhere.

/// Makes text of pieces: a character cut in two waits for its rest, and what is no text becomes `U+FFFD`.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8Pieces {
    /// Beginning of a character; three bytes at most.
    rest: Vec<u8>,
}

impl Utf8Pieces {
    /// Takes a piece and returns the text that is whole by now.
    pub(super) fn push(&mut self, piece: &[u8]) -> String {
        let joined;
        let mut bytes = if self.rest.is_empty() {
            piece
        } else {
            joined = [&self.rest, piece].concat();
            self.rest.clear();
            &joined
        };
        let mut text = String::with_capacity(bytes.len());
        loop {
            match std::str::from_utf8(bytes) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = bytes.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    let Some(len) = error.error_len() else {
                        self.rest = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    bytes = &after[len..];
                }
            }
        }
    }

    /// Returns what is left when nothing comes any more.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_wherever_it_is_cut() {
        let samples: [&[u8]; 5] = [
            "aß€😀z".as_bytes(),
            b"\xff\xfeok\xe2\x82",
            b"\xf0\x9f\x98",
            b"\xe2\x28\xa1",
            b"\xed\xa0\x80x",
        ];
        for sample in samples {
            let whole = String::from_utf8_lossy(sample);
            for first in 0..=sample.len() {
                for second in first..=sample.len() {
                    let mut pieces = Utf8Pieces::default();
                    let mut text = pieces.push(&sample[..first]);
                    text += &pieces.push(&sample[first..second]);
                    text += &pieces.push(&sample[second..]);
                    text += &pieces.finish();
                    assert_eq!(text, whole, "{sample:?} cut at {first} and {second}");
                }
            }
        }
    }
}
