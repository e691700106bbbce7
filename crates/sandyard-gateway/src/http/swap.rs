//! Texts put in the place of others, in one pass.

use std::fmt;

use zeroize::Zeroizing;

/// Texts and what stands in their place afterwards. What was put in is not looked at again.
#[derive(Clone)]
pub(super) struct Swaps {
    /// By the byte that a text begins with; the longest first, so that it wins where several begin.
    by_first: Vec<Vec<Pair>>,
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

/// What stands at one place of the data.
enum Found<'a> {
    Nothing,
    Text(&'a Pair),
    /// The data ends before one can tell.
    Perhaps,
}

impl Swaps {
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
        Self { by_first }
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

    /// The value with every text exchanged; `None` when it holds none.
    pub(super) fn whole(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.pass(value, true, Length::Free).0
    }

    /// Goes over the data once. Gives what it has become, if anything was exchanged, up to the place from which one cannot tell
    /// before more has come, and that place.
    pub(super) fn pass(
        &self,
        data: &[u8],
        is_last: bool,
        length: Length,
    ) -> (Option<Vec<u8>>, usize) {
        let mut made: Option<Vec<u8>> = None;
        let (mut at, mut copied) = (0, 0);
        let end = loop {
            let mut rest = data[at..].iter();
            let Some(skipped) = rest.position(|byte| !self.by_first[usize::from(*byte)].is_empty())
            else {
                break data.len();
            };
            at += skipped;
            match self.find(&data[at..], is_last) {
                Found::Nothing => at += 1,
                Found::Perhaps => break at,
                Found::Text(pair) => {
                    let made = made.get_or_insert_with(|| Vec::with_capacity(data.len()));
                    made.extend_from_slice(&data[copied..at]);
                    pair.put(made, length);
                    at += pair.from.len();
                    copied = at;
                }
            }
        };
        if let Some(made) = &mut made {
            made.extend_from_slice(&data[copied..end]);
        }
        (made, end)
    }

    fn find(&self, data: &[u8], is_last: bool) -> Found<'_> {
        let Some(first) = data.first() else {
            return Found::Nothing;
        };
        for pair in &self.by_first[usize::from(*first)] {
            if data.starts_with(&pair.from) {
                return Found::Text(pair);
            }
            // A longer one that is still possible goes before a shorter one that is there.
            if !is_last && data.len() < pair.from.len() && pair.from.starts_with(data) {
                return Found::Perhaps;
            }
        }
        Found::Nothing
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

impl fmt::Debug for Swaps {
    /// The texts are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.by_first.iter().map(Vec::len).sum();
        write!(f, "Swaps({count})")
    }
}
