//! Which program a launcher is: sandboxes get their agent and tool server from it, so another one makes other sandboxes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Tells a program file from the one that lay there before or after it, though both say the same version. Empty: it cannot be
/// looked at.
pub(crate) fn of_program(path: &Path) -> String {
    fs::metadata(path).map_or_else(
        |_| String::new(),
        |file| format!("{}-{}.{}", file.len(), file.mtime(), file.mtime_nsec()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let before = of_program(&path);
        assert_eq!(of_program(&path), before);
        fs::write(&path, "another").unwrap();
        assert_ne!(of_program(&path), before);
        fs::remove_file(&path).unwrap();
        assert_eq!(of_program(&path), "");
    }
}
