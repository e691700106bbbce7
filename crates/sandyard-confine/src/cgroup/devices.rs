//! Which device nodes a sandbox may open, where the v1 devices controller exists.

use super::tree::Tree;
use crate::cgroup::Result;

/// Everything else is denied. Each entry: who needs it.
const ALLOWED: &[(&str, &str)] = &[
    (
        "c 0:0 rwm",
        "overlayfs marks removed files with it; kernels before 5.8 ask us",
    ),
    ("c 1:3 rw", "/dev/null: everything"),
    ("c 1:5 rw", "/dev/zero: dd, old allocators"),
    ("c 1:7 rw", "/dev/full: test suites"),
    ("c 1:8 rw", "/dev/random: gpg, java"),
    ("c 1:9 rw", "/dev/urandom: everything"),
    ("c 5:0 rw", "/dev/tty: ssh, sudo, pagers"),
    ("c 5:2 rw", "/dev/ptmx: terminals"),
    ("c 136:* rw", "/dev/pts/*: terminals"),
];

/// Restricts the parent group. Children copy its list when made and can never widen it.
pub(super) fn restrict(tree: &Tree) -> Result<()> {
    let list = format!("{}/devices.list", tree.prefix());
    if !tree.read(&list)?.starts_with('a') {
        return Ok(());
    }
    tree.write(&format!("{}/devices.deny", tree.prefix()), "a")?;
    let allow = format!("{}/devices.allow", tree.prefix());
    for (entry, _) in ALLOWED {
        tree.write(&allow, entry)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_device_has_a_reason() {
        assert!(
            ALLOWED
                .iter()
                .all(|(entry, reason)| !entry.is_empty() && reason.len() > 10)
        );
    }
}
