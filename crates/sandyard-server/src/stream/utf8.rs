//! Text from chunks of bytes.

/// Decodes chunks: a character that a chunk splits waits for its rest, and invalid bytes become `U+FFFD`.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8Decoder {
    /// Start of a character, at most three bytes.
    rest: Vec<u8>,
}

impl Utf8Decoder {
    /// Adds a chunk and returns the text that is complete.
    pub(super) fn push(&mut self, chunk: &[u8]) -> String {
        let joined;
        let mut bytes = if self.rest.is_empty() {
            chunk
        } else {
            joined = [&self.rest, chunk].concat();
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

    /// Returns the rest after the last chunk.
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
                    let mut decoder = Utf8Decoder::default();
                    let mut text = decoder.push(&sample[..first]);
                    text += &decoder.push(&sample[first..second]);
                    text += &decoder.push(&sample[second..]);
                    text += &decoder.finish();
                    assert_eq!(text, whole, "{sample:?} cut at {first} and {second}");
                }
            }
        }
    }
}
