//! Replacing texts in one pass.

use std::fmt;
use std::ops::Range;

use zeroize::Zeroizing;

/// Texts and their replacements. Replacements are not searched again.
#[derive(Clone)]
pub(super) struct Replacements {
    /// By the first byte of a text; the longest first, so that it wins where several match.
    by_first: Vec<Vec<Pair>>,
    max_length: usize,
}

#[derive(Clone)]
struct Pair {
    from: Zeroizing<Vec<u8>>,
    to: Zeroizing<Vec<u8>>,
}

/// Whether a replacement may have another length than its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It may.
    Variable,
    /// It is cut off or padded with `*`, because the length was announced.
    Fixed,
}

impl Replacements {
    /// Creates replacements from pairs of a text and its replacement. Empty texts are ignored, and of equal ones the first counts.
    pub(super) fn new(pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let mut by_first = vec![Vec::<Pair>::new(); 256];
        for (from, to) in pairs {
            let Some(first) = from.first() else { continue };
            let candidates = &mut by_first[usize::from(*first)];
            if candidates.iter().all(|pair| *pair.from != from) {
                candidates.push(Pair {
                    from: Zeroizing::new(from),
                    to: Zeroizing::new(to),
                });
            }
        }
        for candidates in &mut by_first {
            candidates.sort_by_key(|pair| std::cmp::Reverse(pair.from.len()));
        }
        let lengths = by_first.iter().flatten().map(|pair| pair.from.len());
        let max_length = lengths.max().unwrap_or(0);
        Self {
            by_first,
            max_length,
        }
    }

    /// The same with one more pair.
    pub(super) fn with(&self, from: Vec<u8>, to: Vec<u8>) -> Self {
        let pairs = self.by_first.iter().flatten();
        let pairs = pairs.map(|pair| (pair.from.to_vec(), pair.to.to_vec()));
        Self::new(pairs.chain([(from, to)]))
    }

    /// Whether there is no text to replace.
    pub(super) fn is_empty(&self) -> bool {
        self.by_first.iter().all(Vec::is_empty)
    }

    /// The length of the longest text.
    pub(super) fn max_length(&self) -> usize {
        self.max_length
    }

    /// The value with every text replaced; `None` when it contains none.
    pub(super) fn replace_all(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.replace_in(value, 0..value.len(), Length::Variable).0
    }

    /// The length of the longest text that the data starts with.
    pub(super) fn length_at(&self, data: &[u8]) -> Option<usize> {
        self.find(data).map(|pair| pair.from.len())
    }

    /// Replaces the texts that begin within a range of the data. Returns the new data from the start of the range on, if anything
    /// was replaced, and how far it reaches: a text may end after the range.
    pub(super) fn replace_in(
        &self,
        data: &[u8],
        range: Range<usize>,
        length: Length,
    ) -> (Option<Vec<u8>>, usize) {
        let mut output: Option<Vec<u8>> = None;
        let (mut at, mut copied) = (range.start, range.start);
        while at < range.end {
            let mut rest = data[at..range.end].iter();
            let Some(skipped) = rest.position(|byte| !self.by_first[usize::from(*byte)].is_empty())
            else {
                break;
            };
            at += skipped;
            let Some(pair) = self.find(&data[at..]) else {
                at += 1;
                continue;
            };
            let output = output.get_or_insert_with(|| Vec::with_capacity(data.len()));
            output.extend_from_slice(&data[copied..at]);
            pair.write(output, length);
            at += pair.from.len();
            copied = at;
        }
        let end = range.end.max(copied);
        if let Some(output) = &mut output {
            output.extend_from_slice(&data[copied..end]);
        }
        (output, end)
    }

    fn find(&self, data: &[u8]) -> Option<&Pair> {
        let candidates = &self.by_first[usize::from(*data.first()?)];
        candidates.iter().find(|pair| data.starts_with(&pair.from))
    }
}

impl Pair {
    fn write(&self, output: &mut Vec<u8>, length: Length) {
        match length {
            Length::Variable => output.extend_from_slice(&self.to),
            Length::Fixed => {
                let padding = std::iter::repeat(&b'*');
                output.extend(self.to.iter().chain(padding).take(self.from.len()));
            }
        }
    }
}

impl fmt::Debug for Replacements {
    /// Shows only the number, because the texts are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.by_first.iter().map(Vec::len).sum();
        write!(f, "Replacements({count})")
    }
}
