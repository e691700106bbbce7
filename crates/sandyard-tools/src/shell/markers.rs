//! Finds the markers of a command in the output of a terminal.

/// A part of the terminal's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Output.
    Output(&'a [u8]),
    /// Marker: the command begins.
    Begin,
    /// Marker: the command ended with this exit code.
    End(i32),
}

/// Maximum length of a marker after its start: a letter, three digits and the terminator.
const MAX_REST: usize = 8;
const END: u8 = 0x07;

/// Finds the markers of one command in a stream of chunks.
#[derive(Debug, Default)]
pub(super) struct MarkerParser {
    start: Vec<u8>,
    /// SessionInfo, and not yet known to be output or not.
    pending: Vec<u8>,
}

impl MarkerParser {
    /// Sets how markers start.
    pub(super) fn set_start(&mut self, start: Vec<u8>) {
        self.start = start;
    }

    /// Parses the next chunk and calls `emit` with its parts in order.
    pub(super) fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Part<'_>)) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let mut output_from = 0;
        let mut at = 0;
        while let Some(found) = self.next_candidate(&pending, at) {
            match self.marker_at(&pending[found..]) {
                Scan::No => at = found + 1,
                Scan::Incomplete => {
                    emit_output(&pending[output_from..found], &mut emit);
                    self.pending = pending.split_off(found);
                    return;
                }
                Scan::Marker(marker, length) => {
                    emit_output(&pending[output_from..found], &mut emit);
                    emit(marker);
                    at = found + length;
                    output_from = at;
                }
            }
        }
        emit_output(&pending[output_from..], &mut emit);
    }

    fn next_candidate(&self, pending: &[u8], from: usize) -> Option<usize> {
        let first = self.start.first()?;
        let offset = pending[from..].iter().position(|byte| byte == first)?;
        Some(from + offset)
    }

    fn marker_at(&self, bytes: &[u8]) -> Scan {
        let Some(rest) = bytes.strip_prefix(self.start.as_slice()) else {
            return if self.start.starts_with(bytes) {
                Scan::Incomplete
            } else {
                Scan::No
            };
        };
        let Some(end) = rest.iter().take(MAX_REST).position(|byte| *byte == END) else {
            return if rest.len() < MAX_REST {
                Scan::Incomplete
            } else {
                Scan::No
            };
        };
        let marker = match &rest[..end] {
            b"B" => Part::Begin,
            [b'E', code @ ..] => {
                match str::from_utf8(code).ok().and_then(|code| code.parse().ok()) {
                    Some(code) => Part::End(code),
                    None => return Scan::No,
                }
            }
            _ => return Scan::No,
        };
        Scan::Marker(marker, self.start.len() + end + 1)
    }
}

enum Scan {
    Marker(Part<'static>, usize),
    /// More bytes are needed to decide.
    Incomplete,
    No,
}

fn emit_output(bytes: &[u8], emit: &mut impl FnMut(Part<'_>)) {
    if !bytes.is_empty() {
        emit(Part::Output(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a stream that arrives in chunks of this size.
    fn parts(stream: &[u8], size: usize) -> (Vec<u8>, Vec<String>) {
        let mut markers = MarkerParser::default();
        markers.set_start(b"\x1b]5379;42;".to_vec());
        let mut output = Vec::new();
        let mut seen = Vec::new();
        for chunk in stream.chunks(size) {
            markers.feed(chunk, |part| match part {
                Part::Output(bytes) => output.extend_from_slice(bytes),
                marker => seen.push(format!("{marker:?} at {}", output.len())),
            });
        }
        (output, seen)
    }

    #[test]
    fn markers_are_found_in_chunks_of_any_size() {
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
