//! The files of a start program. Root inside may put anything in their place.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::fs;

/// Maximum length of a user name, in bytes.
const MAX_USER_BYTES: usize = 256;

/// Maximum size of a ports file, in bytes; a longer file is ignored.
const MAX_PORTS_BYTES: usize = 4096;

/// Maximum number of ports of one program.
const MAX_PORTS: usize = 64;

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartProgram {
    pub(super) program: PathBuf,
    pub(super) user: Option<String>,
    pub(super) ports: Vec<u16>,
}

/// Finds the program of a name; `None` when the file does not exist.
///
/// # Errors
///
/// Why an existing file cannot be executed.
pub(super) fn find(folder: &Path, name: &str) -> Result<Option<StartProgram>, String> {
    let program = folder.join(name);
    let refused = |reason: &str| Err(format!("{} was not started: {reason}", program.display()));
    let found = match std::fs::metadata(&program) {
        Ok(found) => found,
        Err(_) if std::fs::symlink_metadata(&program).is_err() => return Ok(None),
        Err(error) => return refused(&error.to_string()),
    };
    if !found.is_file() {
        return refused("it is not a regular file");
    }
    if found.permissions().mode() & 0o111 == 0 {
        return refused("it is not executable: use `chmod +x`");
    }
    let beside = |what: &str| folder.join(format!("{name}.{what}"));
    Ok(Some(StartProgram {
        user: read_text(&beside("user"), MAX_USER_BYTES)
            .map(|text| text.trim().to_owned())
            .filter(|name| !name.is_empty()),
        ports: read_text(&beside("ports"), MAX_PORTS_BYTES)
            .map(|text| parse_ports(&text))
            .unwrap_or_default(),
        program,
    }))
}

/// Reads a whole text file; `None` when it is longer than `max` bytes or cannot be read.
fn read_text(path: &Path, max: usize) -> Option<String> {
    let content = fs::read_small(path, max + 1).ok()?;
    if content.len() > max {
        return None;
    }
    String::from_utf8(content).ok()
}

fn parse_ports(text: &str) -> Vec<u16> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let tokens = lines.flat_map(|line| line.split([' ', '\t', ',', '\r']));
    let mut ports: Vec<u16> = tokens.filter_map(|token| token.parse().ok()).collect();
    ports.retain(|&port| port != 0);
    ports.truncate(MAX_PORTS);
    ports
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn executable(path: &Path) {
        std::fs::write(path, "#!/bin/sh\n").expect("write");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    #[test]
    fn a_program_is_found_with_its_user_and_ports() {
        let folder = tempfile::tempdir().expect("a folder");
        executable(&folder.path().join("start"));
        std::fs::write(folder.path().join("start.user"), " user\n").expect("write");
        std::fs::write(
            folder.path().join("start.ports"),
            "49999, 80\n# 81\n8080 # web",
        )
        .expect("write");
        let found = find(folder.path(), "start")
            .expect("usable")
            .expect("a program");
        assert_eq!(found.user.as_deref(), Some("user"));
        assert_eq!(found.ports, [49999, 80, 8080]);
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("start");
        let find = || find(folder.path(), "start");
        let is_refused = |reason: &str| find().expect_err(reason).contains(reason);
        assert_eq!(find(), Ok(None));
        std::fs::write(&program, "#!/bin/sh\n").expect("write");
        assert!(is_refused("not executable"));
        std::fs::remove_file(&program).expect("remove");
        symlink("start", &program).expect("link");
        assert!(is_refused("symbolic links"));
        std::fs::remove_file(&program).expect("remove");
        std::fs::create_dir(&program).expect("folder");
        assert!(is_refused("not a regular file"));
        std::fs::remove_dir(&program).expect("remove");
        fifo(&program);
        assert!(is_refused("not a regular file"));
    }

    #[test]
    fn invalid_files_beside_the_program_are_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        executable(&folder.path().join("start"));
        fifo(&folder.path().join("start.user"));
        symlink("/dev/zero", folder.path().join("start.ports")).expect("link");
        let found = find(folder.path(), "start")
            .expect("usable")
            .expect("a program");
        assert_eq!((found.user, found.ports), (None, vec![]));
        assert_eq!(parse_ports("0 65536 -1 x 7"), [7]);
        let many: String = (1..1000).map(|port| format!("{port} ")).collect();
        assert_eq!(parse_ports(&many).len(), MAX_PORTS);
    }

    fn fifo(path: &Path) {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("a fifo");
    }
}
