//! Checks the paths at which volumes are mounted in a sandbox.

use crate::error::{EngineError, ErrorKind, Result};
use crate::spec::MountSpec;

const MAX_MOUNTS: usize = 32;
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;

/// Folders of the kernel, where no volume can be mounted.
const RESERVED: [&str; 3] = ["proc", "sys", "dev"];

/// Rejects mounts that cannot work.
pub(crate) fn check(mounts: &[MountSpec]) -> Result<()> {
    if mounts.len() > MAX_MOUNTS {
        return invalid(format!(
            "a sandbox can have at most {MAX_MOUNTS} volumes (got {})",
            mounts.len()
        ));
    }
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for mount in mounts {
        let path = components(&mount.path)?;
        let nested = |other: &Vec<&str>| other.starts_with(&path) || path.starts_with(other);
        if seen.iter().any(nested) {
            return invalid(format!(
                "`{}` contains the path of another volume, or is inside it",
                mount.path
            ));
        }
        seen.push(path);
    }
    Ok(())
}

/// The components of `path`, if a volume may be mounted there.
pub(crate) fn components(path: &str) -> Result<Vec<&str>> {
    let short: String = path.chars().take(100).collect();
    let refuse = |reason: &str| {
        let message = format!(
            "a volume cannot be mounted at `{}`: {reason}",
            short.escape_debug()
        );
        invalid(message)
    };
    if path.len() > MAX_PATH {
        return refuse("the path is longer than 1024 bytes");
    }
    if !path.starts_with('/') || path.contains('\0') {
        return refuse("the path does not begin with `/`, or contains a NUL byte");
    }
    let components: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    match components.first() {
        None => return refuse("it is the root folder"),
        Some(first) if RESERVED.contains(first) => {
            return refuse("`/proc`, `/sys` and `/dev` belong to the kernel");
        }
        Some(_) => {}
    }
    let is_invalid = |name: &&str| *name == "." || *name == ".." || name.len() > MAX_NAME;
    if components.iter().any(is_invalid) {
        return refuse("the path contains `.`, `..` or a name longer than 255 bytes");
    }
    Ok(components)
}

fn invalid<T>(message: String) -> Result<T> {
    let hint = "use absolute paths that do not contain each other, such as `/mnt/data`";
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
    fn paths_beside_each_other_are_accepted() {
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
            components("/home//user/x/").expect("fine"),
            ["home", "user", "x"]
        );
    }

    #[test]
    fn paths_that_lead_elsewhere_or_into_each_other_are_rejected() {
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
