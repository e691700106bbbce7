//! Texts put in the place of others, in one pass.

use std::fmt;
use std::ops::Range;

use zeroize::Zeroizing;

/// Texts and what stands in their place afterwards. What was put in is not looked at again.
#[derive(Clone)]
pub(super) struct Replacements {
    /// By the byte that a text begins with; the longest first, so that it wins where several begin.
    by_first: Vec<Vec<Pair>>,
    longest: usize,
}

#[derive(Clone)]
struct Pair {
    from: Zeroizing<Vec<u8>>,
    to: Zeroizing<Vec<u8>>,
}

/// Whether what is put in may be of another length than what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It may.
    Free,
    /// It is cut off, or filled up with `*`: somebody has been told how many bytes come.
    Kept,
}

impl Replacements {
    /// Takes pairs of a text and what to put in its place. Empty texts are left out, and of equal ones the first counts.
    pub(super) fn new(pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let mut by_first = vec![Vec::<Pair>::new(); 256];
        for (from, to) in pairs {
            let Some(first) = from.first() else { continue };
            let alike = &mut by_first[usize::from(*first)];
            if alike.iter().all(|pair| *pair.from != from) {
                alike.push(Pair {
                    from: Zeroizing::new(from),
                    to: Zeroizing::new(to),
                });
            }
        }
        for alike in &mut by_first {
            alike.sort_by_key(|pair| std::cmp::Reverse(pair.from.len()));
        }
        let lengths = by_first.iter().flatten().map(|pair| pair.from.len());
        let longest = lengths.max().unwrap_or(0);
        Self { by_first, longest }
    }

    /// The same with one pair more.
    pub(super) fn with(&self, from: Vec<u8>, to: Vec<u8>) -> Self {
        let pairs = self.by_first.iter().flatten();
        let pairs = pairs.map(|pair| (pair.from.to_vec(), pair.to.to_vec()));
        Self::new(pairs.chain([(from, to)]))
    }

    /// Says whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.by_first.iter().all(Vec::is_empty)
    }

    /// The length of the longest text.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The value with every text exchanged; `None` when it holds none.
    pub(super) fn whole(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.pass(value, 0..value.len(), Length::Free).0
    }

    /// The length of the longest text that the data starts with.
    pub(super) fn length_at(&self, data: &[u8]) -> Option<usize> {
        self.find(data).map(|pair| pair.from.len())
    }

    /// Goes once over the places of the data where texts may begin. Gives what it has become from the first of them on, if
    /// anything was exchanged, and how far that reaches: a text may end behind the last place.
    pub(super) fn pass(
        &self,
        data: &[u8],
        places: Range<usize>,
        length: Length,
    ) -> (Option<Vec<u8>>, usize) {
        let mut made: Option<Vec<u8>> = None;
        let (mut at, mut copied) = (places.start, places.start);
        while at < places.end {
            let mut rest = data[at..places.end].iter();
            let Some(skipped) = rest.position(|byte| !self.by_first[usize::from(*byte)].is_empty())
            else {
                break;
            };
            at += skipped;
            let Some(pair) = self.find(&data[at..]) else {
                at += 1;
                continue;
            };
            let made = made.get_or_insert_with(|| Vec::with_capacity(data.len()));
            made.extend_from_slice(&data[copied..at]);
            pair.put(made, length);
            at += pair.from.len();
            copied = at;
        }
        let end = places.end.max(copied);
        if let Some(made) = &mut made {
            made.extend_from_slice(&data[copied..end]);
        }
        (made, end)
    }

    fn find(&self, data: &[u8]) -> Option<&Pair> {
        let alike = &self.by_first[usize::from(*data.first()?)];
        alike.iter().find(|pair| data.starts_with(&pair.from))
    }
}

impl Pair {
    fn put(&self, made: &mut Vec<u8>, length: Length) {
        match length {
            Length::Free => made.extend_from_slice(&self.to),
            Length::Kept => {
                let filling = std::iter::repeat(&b'*');
                made.extend(self.to.iter().chain(filling).take(self.from.len()));
            }
        }
    }
}

impl fmt::Debug for Replacements {
    /// The texts are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.by_first.iter().map(Vec::len).sum();
        write!(f, "Replacements({count})")
    }
}
