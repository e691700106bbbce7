//! Changes that the editor can undo.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Maximum number of changes, of all files together.
const MAX_STEPS: usize = 200;
/// Maximum size of all changes, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Changes of all files. The oldest are forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    steps: Mutex<VecDeque<Step>>,
}

/// One change of a file.
#[derive(Debug)]
pub(super) struct Step {
    path: PathBuf,
    /// The text before the change; none if the file did not exist.
    pub(super) before: Option<String>,
    /// Hash of the text after the change.
    after: [u8; 32],
}

impl Step {
    /// Returns whether the file still has the text that this change wrote.
    pub(super) fn matches_after(&self, text: &str) -> bool {
        hash(text) == self.after
    }
}

impl Undo {
    /// Adds a change.
    pub(super) fn push(&self, path: &Path, before: Option<String>, after: &str) {
        let mut steps = self.steps.lock();
        steps.push_back(Step {
            path: path.to_owned(),
            before,
            after: hash(after),
        });
        let mut bytes: usize = steps.iter().map(Step::size).sum();
        while bytes > MAX_BYTES || steps.len() > MAX_STEPS {
            let Some(oldest) = steps.pop_front() else {
                break;
            };
            bytes -= oldest.size();
        }
    }

    /// Calls `work` with the last change of a file, and forgets the change if that succeeds; none if there is no change.
    pub(super) fn revert<T, E>(
        &self,
        path: &Path,
        work: impl FnOnce(&Step) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let mut steps = self.steps.lock();
        let at = steps.iter().rposition(|step| step.path == path)?;
        let done = work(&steps[at]);
        if done.is_ok() {
            steps.remove(at);
        }
        Some(done)
    }
}

impl Step {
    fn size(&self) -> usize {
        self.before.as_ref().map_or(0, String::len)
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_change_is_forgotten() {
        let undo = Undo::default();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        undo.push(a, Some("first".to_owned()), "second");
        undo.push(b, Some("x".repeat(MAX_BYTES)), "");
        let work = |step: &Step| Ok::<_, ()>(step.before.clone());
        assert!(undo.revert(a, work).is_none(), "too many bytes");
        assert!(undo.revert(b, work).is_some());
        for number in 0..=MAX_STEPS {
            undo.push(a, Some(number.to_string()), "");
        }
        assert_eq!(undo.steps.lock().len(), MAX_STEPS);
        let last = undo.revert(a, work).unwrap().unwrap();
        assert_eq!(last.unwrap(), MAX_STEPS.to_string());
    }
}
