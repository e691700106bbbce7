//! Splits a command's output into whole lines.
//!
//! An unfinished line waits here until its newline arrives, it gets too long, or the command ends. So lines do not depend on how their
//! bytes arrive, and a restarted server continues where the unfinished line begins.

use super::record::{Lines, OpenCommand};

/// Most bytes of one line. A longer line is split.
pub(super) const MAX_LINE: usize = 8 << 10;

/// The output of one command that is being recorded.
#[derive(Debug)]
pub(super) struct LineSplitter {
    pub(super) command: OpenCommand,
    /// The position in the output after the last piece.
    position: u64,
    /// The unfinished lines of standard output and standard error.
    unfinished: [Unfinished; 2],
}

#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The position of its first byte.
    start: u64,
}

impl LineSplitter {
    pub(super) fn new(command: OpenCommand) -> Self {
        Self {
            position: command.resume,
            command,
            unfinished: Default::default(),
        }
    }

    /// Says whether this is the `expected` command; none expects any.
    pub(super) fn is_of(&self, expected: Option<&str>) -> bool {
        expected.is_none_or(|expected| self.command.id == expected)
    }

    /// Continues at another position, after a reconnect or a loss.
    pub(super) fn seek(&mut self, position: u64) {
        self.position = position;
        self.unfinished = Default::default();
        self.command.resume = position;
    }

    /// Adds output of stream 0 (standard output) or 1 (standard error). Returns the lines that are complete now.
    pub(super) fn push(&mut self, stream: usize, piece: &[u8], at_ms: i64) -> Option<Lines> {
        let from = self.position;
        self.position += piece.len() as u64;
        let already_recorded = self.command.recorded[stream].saturating_sub(from);
        let piece = piece.get(usize::try_from(already_recorded).unwrap_or(usize::MAX)..)?;
        let unfinished = &mut self.unfinished[stream];
        if unfinished.bytes.is_empty() {
            unfinished.start = self.position - piece.len() as u64;
        }
        let mut text = std::mem::take(&mut unfinished.bytes);
        let begins = unfinished.start;
        text.extend_from_slice(piece);
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut rest = text.split_off(whole);
        let mut lines = split_long(text);
        // An unfinished line that is too long already is split.
        while rest.len() > MAX_LINE {
            let tail = rest.split_off(cut_at(&rest));
            lines.append(&mut rest);
            lines.push(b'\n');
            rest = tail;
        }
        // Bytes of the other stream may lie between, so only the end is exact. Nothing else is needed.
        let end = self.position - rest.len() as u64;
        let unfinished = &mut self.unfinished[stream];
        unfinished.start = if lines.is_empty() { begins } else { end };
        unfinished.bytes = rest;
        self.lines(stream, lines, end, at_ms)
    }

    /// Returns the unfinished lines at the end of the output.
    pub(super) fn finish(&mut self, at_ms: i64) -> Vec<Lines> {
        let mut all = Vec::new();
        for stream in 0..2 {
            let mut rest = std::mem::take(&mut self.unfinished[stream].bytes);
            if !rest.is_empty() {
                rest.push(b'\n');
                all.extend(self.lines(stream, rest, self.position, at_ms));
            }
        }
        all
    }

    fn lines(&mut self, stream: usize, text: Vec<u8>, end: u64, at_ms: i64) -> Option<Lines> {
        if text.is_empty() {
            return None;
        }
        self.command.recorded[stream] = end;
        let starts = self.unfinished.iter().filter(|line| !line.bytes.is_empty());
        self.command.resume = starts.map(|line| line.start).fold(end, u64::min);
        Some(Lines {
            seq: 0,
            at_ms,
            source: stream as u8,
            pid: self.command.pid,
            command: self.command.id.clone(),
            end,
            resume: self.command.resume,
            count: text.iter().filter(|byte| **byte == b'\n').count() as u32,
            text,
        })
    }
}

/// Splits lines that are too long.
pub(super) fn split_long(text: Vec<u8>) -> Vec<u8> {
    let is_long = |line: &[u8]| line.len() > MAX_LINE + 1;
    if text.len() <= MAX_LINE || !text.split_inclusive(|byte| *byte == b'\n').any(is_long) {
        return text;
    }
    let mut out = Vec::with_capacity(text.len() + text.len() / MAX_LINE + 1);
    for mut line in text.split_inclusive(|byte| *byte == b'\n') {
        while is_long(line) {
            let (piece, rest) = line.split_at(cut_at(line));
            out.extend_from_slice(piece);
            out.push(b'\n');
            line = rest;
        }
        out.extend_from_slice(line);
    }
    out
}

/// Where to split a line that is too long: not within a character.
fn cut_at(line: &[u8]) -> usize {
    let is_continuation = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let limit = MAX_LINE.min(line.len());
    (limit.saturating_sub(3)..=limit)
        .rev()
        .find(|at| !is_continuation(at))
        .unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: impl IntoIterator<Item = Lines>) -> String {
        let all: Vec<u8> = lines.into_iter().flat_map(|lines| lines.text).collect();
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn a_line_is_recorded_when_it_is_complete() {
        let mut splitter = LineSplitter::new(OpenCommand::default());
        assert!(splitter.push(0, b"on", 1).is_none());
        let lines = splitter.push(0, b"e\ntwo\nthr", 1).unwrap();
        assert_eq!((lines.count, lines.end, lines.resume), (2, 8, 8));
        assert_eq!(texts([lines]), "one\ntwo\n");
        assert_eq!(texts(splitter.finish(1)), "thr\n");
    }

    #[test]
    fn a_restart_continues_without_gap_or_repetition() {
        // Standard output is in the middle of a line while a line of standard error is complete.
        let pieces: [(usize, &[u8]); 5] = [
            (0, b"one\ntw"),
            (1, b"error\n"),
            (0, b"o\nthree\n"),
            (1, b"again"),
            (1, b"\n"),
        ];
        for killed_after in 0..=pieces.len() {
            let mut first = LineSplitter::new(OpenCommand::default());
            let mut got = [String::new(), String::new()];
            let mut state = first.command.clone();
            for (stream, piece) in &pieces[..killed_after] {
                if let Some(lines) = first.push(*stream, piece, 1) {
                    // What the log knows after a restart.
                    state.recorded[*stream] = lines.end;
                    state.resume = lines.resume;
                    got[*stream] += &texts([lines]);
                }
            }
            let mut second = LineSplitter::new(state.clone());
            let mut position = 0;
            for (stream, piece) in &pieces {
                let skip = (state.resume as usize)
                    .saturating_sub(position)
                    .min(piece.len());
                position += piece.len();
                let lines = second.push(*stream, &piece[skip..], 2);
                got[*stream] += &texts(lines);
            }
            assert_eq!(
                got,
                ["one\ntwo\nthree\n", "error\nagain\n"],
                "after {killed_after}"
            );
        }
    }

    #[test]
    fn long_lines_are_split_between_characters() {
        let long = "é".repeat(MAX_LINE);
        let mut splitter = LineSplitter::new(OpenCommand::default());
        let mut got = texts(splitter.push(0, long.as_bytes(), 1));
        got += &texts(splitter.finish(1));
        assert!(got.lines().all(|line| line.len() <= MAX_LINE));
        assert_eq!(got.replace('\n', ""), long);
        let got = String::from_utf8(split_long(format!("{long}\nend\n").into_bytes())).unwrap();
        assert!(got.lines().all(|line| line.len() <= MAX_LINE) && got.ends_with("\nend\n"));
    }
}
