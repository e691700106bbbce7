//! What the editor can take back.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// So many steps are kept, of all files together.
const MAX_STEPS: usize = 200;
/// And so many bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What editors can take back, of every file, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    steps: Mutex<VecDeque<Step>>,
}

/// One change of a file.
#[derive(Debug)]
pub(super) struct Step {
    path: PathBuf,
    /// Its text before; none: it was not there.
    pub(super) before: Option<String>,
    /// To recognise its text after.
    after: [u8; 32],
}

impl Step {
    /// Whether the file is still as this step left it.
    pub(super) fn left(&self, text: &str) -> bool {
        hash(text) == self.after
    }
}

impl Undo {
    /// Keeps a change.
    pub(super) fn keep(&self, path: &Path, before: Option<String>, after: &str) {
        let mut steps = self.steps();
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

    /// Does something with the last change of a file, which is forgotten if that succeeds; none: nothing is known of
    /// the file.
    pub(super) fn take_back<T, E>(
        &self,
        path: &Path,
        work: impl FnOnce(&Step) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let mut steps = self.steps();
        let at = steps.iter().rposition(|step| step.path == path)?;
        let done = work(&steps[at]);
        if done.is_ok() {
            steps.remove(at);
        }
        Some(done)
    }

    fn steps(&self) -> MutexGuard<'_, VecDeque<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_oldest_is_forgotten() {
        let undo = Undo::default();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        undo.keep(a, Some("first".to_owned()), "second");
        undo.keep(b, Some("x".repeat(MAX_BYTES)), "");
        let work = |step: &Step| Ok::<_, ()>(step.before.clone());
        assert!(undo.take_back(a, work).is_none(), "too many bytes");
        assert!(undo.take_back(b, work).is_some());
        for number in 0..=MAX_STEPS {
            undo.keep(a, Some(number.to_string()), "");
        }
        assert_eq!(undo.steps().len(), MAX_STEPS);
        let last = undo.take_back(a, work).unwrap().unwrap();
        assert_eq!(last.unwrap(), MAX_STEPS.to_string());
    }
}
