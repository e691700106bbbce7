//! Identifies the launcher's program: sandboxes get their agent and tool server from it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Identifies a program file, also among files of the same version at the same path. Empty: the file cannot be read.
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
