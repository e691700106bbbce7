//! How much to measure.

use crate::selection::Selection;

/// Amount of work, and groups of rows to measure.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Whether this is the short run.
    pub(crate) quick: bool,
    /// Rounds in which subjects take turns.
    pub(crate) round_count: usize,
    /// Samples of a sequential figure for a subject that is fast.
    pub(crate) samples: usize,
    /// Sandboxes started at once.
    pub(crate) burst: usize,
    /// Sandboxes live at once.
    pub(crate) crowd: usize,
    /// Bytes of the file that travels.
    pub(crate) file_bytes: usize,
    /// Selection of the parts of the table to measure.
    pub(crate) selection: Selection,
}

impl Plan {
    /// Makes the full or the quick plan.
    pub(crate) fn new(quick: bool, selection: Selection) -> Self {
        match quick {
            true => Self {
                quick,
                round_count: 2,
                samples: 20,
                burst: 20,
                crowd: 50,
                file_bytes: 16 << 20,
                selection,
            },
            false => Self {
                quick,
                round_count: 5,
                samples: 200,
                burst: 100,
                crowd: 1000,
                file_bytes: 100 << 20,
                selection,
            },
        }
    }
}
