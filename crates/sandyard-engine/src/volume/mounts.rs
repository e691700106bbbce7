//! Where volumes may be in a sandbox.

use crate::error::{EngineError, ErrorKind, Result};
use crate::spec::MountSpec;

const MAX_MOUNTS: usize = 32;
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;

/// The kernel's own folders, which are not the user's to cover.
const TAKEN: [&str; 3] = ["proc", "sys", "dev"];

/// Refuses mounts that could not work.
pub(crate) fn check(mounts: &[MountSpec]) -> Result<()> {
    if mounts.len() > MAX_MOUNTS {
        return invalid(format!("more than {MAX_MOUNTS} volumes"));
    }
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for mount in mounts {
        let path = pieces(&mount.path)?;
        let nested = |other: &Vec<&str>| other.starts_with(&path) || path.starts_with(other);
        if seen.iter().any(nested) {
            return invalid(format!(
                "`{}` is at or below the path of another volume, or above it",
                mount.path
            ));
        }
        seen.push(path);
    }
    Ok(())
}

/// The names on the way to `path`, if a volume may be there.
pub(crate) fn pieces(path: &str) -> Result<Vec<&str>> {
    let short: String = path.chars().take(100).collect();
    let refuse = |why: &str| {
        let message = format!("no volume can be at `{}`: {why}", short.escape_debug());
        invalid(message)
    };
    if path.len() > MAX_PATH {
        return refuse("the path is too long");
    }
    if !path.starts_with('/') || path.contains('\0') {
        return refuse("the path does not begin with `/`, or has a NUL byte");
    }
    let pieces: Vec<&str> = path.split('/').filter(|piece| !piece.is_empty()).collect();
    match pieces.first() {
        None => return refuse("that is the root of all"),
        Some(first) if TAKEN.contains(first) => return refuse("that is the kernel's"),
        Some(_) => {}
    }
    let odd = |piece: &&str| *piece == "." || *piece == ".." || piece.len() > MAX_NAME;
    if pieces.iter().any(odd) {
        return refuse("the path has `.` or `..` in it, or a name that is too long");
    }
    Ok(pieces)
}

fn invalid<T>(message: String) -> Result<T> {
    let hint = "use absolute paths, each beside the others, such as `/mnt/data`";
    Err(EngineError::new(ErrorKind::Invalid, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(paths: &[&str]) -> Vec<MountSpec> {
        let mount = |path: &&str| MountSpec {
            volume: "v".to_owned(),
            path: (*path).to_owned(),
        };
        paths.iter().map(mount).collect()
    }

    #[test]
    fn paths_beside_each_other_are_taken() {
        check(&mounts(&[])).expect("none");
        check(&mounts(&[
            "/mnt/a",
            "/mnt/ab",
            "/data/",
            "/home//user/x",
            "/procs",
        ]))
        .expect("fine");
        assert_eq!(
            pieces("/home//user/x/").expect("fine"),
            ["home", "user", "x"]
        );
    }

    #[test]
    fn paths_that_lead_elsewhere_or_into_each_other_are_refused() {
        let long = format!("/{}", "x".repeat(256));
        let longer = "/x".repeat(600);
        for paths in [
            &[""][..],
            &["mnt"],
            &["/"],
            &["//"],
            &["/a/../b"],
            &["/.."],
            &["/./a"],
            &["/proc"],
            &["/proc/sys"],
            &["//sys/kernel"],
            &["/dev/shm"],
            &["/a\0b"],
            &["/a", "/a"],
            &["/a", "/a/"],
            &["/a", "/a/b"],
            &["/a/b", "/a"],
            &[&long],
            &[&longer],
            &["/a"; MAX_MOUNTS + 1],
        ] {
            let error = check(&mounts(paths)).expect_err(&format!("{paths:?}"));
            assert_eq!(error.kind, ErrorKind::Invalid, "{paths:?}");
        }
    }
}
