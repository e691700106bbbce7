//! Finds the marks of a command in what a terminal says.

/// A part of what the terminal said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Output.
    Output(&'a [u8]),
    /// The command begins here.
    Begin,
    /// The command ended here, with this exit code.
    End(i32),
}

/// Longest rest of a mark: a letter, three digits and the end.
const MAX_REST: usize = 8;
const END: u8 = 0x07;

/// Looks for the marks of one command, however the stream is cut.
#[derive(Debug, Default)]
pub(super) struct Marks {
    start: Vec<u8>,
    /// Seen, and not yet known to be output or not.
    held: Vec<u8>,
}

impl Marks {
    /// For marks that begin like this.
    pub(super) fn look_for(&mut self, start: Vec<u8>) {
        self.start = start;
    }

    /// Takes more of the stream, and gives its parts away in order.
    pub(super) fn feed(&mut self, bytes: &[u8], mut give: impl FnMut(Part<'_>)) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let mut output_from = 0;
        let mut at = 0;
        while let Some(found) = self.next_candidate(&held, at) {
            match self.mark_at(&held[found..]) {
                Found::Not => at = found + 1,
                Found::Perhaps => {
                    give_output(&held[output_from..found], &mut give);
                    self.held = held.split_off(found);
                    return;
                }
                Found::Mark(mark, length) => {
                    give_output(&held[output_from..found], &mut give);
                    give(mark);
                    at = found + length;
                    output_from = at;
                }
            }
        }
        give_output(&held[output_from..], &mut give);
    }

    fn next_candidate(&self, held: &[u8], from: usize) -> Option<usize> {
        let first = self.start.first()?;
        let offset = held[from..].iter().position(|byte| byte == first)?;
        Some(from + offset)
    }

    fn mark_at(&self, bytes: &[u8]) -> Found {
        let Some(rest) = bytes.strip_prefix(self.start.as_slice()) else {
            return if self.start.starts_with(bytes) {
                Found::Perhaps
            } else {
                Found::Not
            };
        };
        let Some(end) = rest.iter().take(MAX_REST).position(|byte| *byte == END) else {
            return if rest.len() < MAX_REST {
                Found::Perhaps
            } else {
                Found::Not
            };
        };
        let mark = match &rest[..end] {
            b"B" => Part::Begin,
            [b'E', code @ ..] => {
                match str::from_utf8(code).ok().and_then(|code| code.parse().ok()) {
                    Some(code) => Part::End(code),
                    None => return Found::Not,
                }
            }
            _ => return Found::Not,
        };
        Found::Mark(mark, self.start.len() + end + 1)
    }
}

enum Found {
    Mark(Part<'static>, usize),
    /// More must come before it is known.
    Perhaps,
    Not,
}

fn give_output(bytes: &[u8], give: &mut impl FnMut(Part<'_>)) {
    if !bytes.is_empty() {
        give(Part::Output(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a stream that comes in pieces of this size.
    fn parts(stream: &[u8], size: usize) -> (Vec<u8>, Vec<String>) {
        let mut marks = Marks::default();
        marks.look_for(b"\x1b]5379;42;".to_vec());
        let mut output = Vec::new();
        let mut seen = Vec::new();
        for piece in stream.chunks(size) {
            marks.feed(piece, |part| match part {
                Part::Output(bytes) => output.extend_from_slice(bytes),
                mark => seen.push(format!("{mark:?} at {}", output.len())),
            });
        }
        (output, seen)
    }

    #[test]
    fn marks_are_found_however_the_stream_is_cut() {
        let stream = b"ab\x1b]5379;42;B\x07c\x1b]5379;43;E1\x07\x1b]53\x1b\x1b]5379;42;Ex\x07d\x1b]5379;42;E130\x07e";
        for size in 1..stream.len() + 1 {
            let (output, seen) = parts(stream, size);
            assert_eq!(
                output, b"abc\x1b]5379;43;E1\x07\x1b]53\x1b\x1b]5379;42;Ex\x07de",
                "{size}"
            );
            assert_eq!(seen, ["Begin at 2", "End(130) at 35"], "{size}");
        }
    }
}
