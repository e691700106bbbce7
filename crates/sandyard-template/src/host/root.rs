//! The synthetic root layer: what a sandbox's `/` holds besides the parts.

use super::parts::Tops;
use super::users::USER_ID;
use super::{HostOptions, etc};
use crate::build::{Builder, Owner, ROOT};
use crate::error::Result;
use crate::tree::Tree;

/// Who works in sandboxes.
const USER_OWNER: Owner = Owner(USER_ID, USER_ID);

/// Directories: path, mode, owner.
const DIRECTORIES: [(&str, u32, Owner); 25] = [
    ("dev", 0o755, ROOT),
    ("proc", 0o755, ROOT),
    ("sys", 0o755, ROOT),
    ("run", 0o755, ROOT),
    ("run/lock", 0o1777, ROOT),
    ("tmp", 0o1777, ROOT),
    ("root", 0o700, ROOT),
    ("home", 0o755, ROOT),
    ("home/user", 0o755, USER_OWNER),
    // Shells add it to the PATH only if it exists, and programs that pip installs are there.
    ("home/user/.local", 0o755, USER_OWNER),
    ("home/user/.local/bin", 0o755, USER_OWNER),
    ("workspace", 0o755, USER_OWNER),
    ("mnt", 0o755, ROOT),
    ("media", 0o755, ROOT),
    ("srv", 0o755, ROOT),
    ("var", 0o755, ROOT),
    ("var/tmp", 0o1777, ROOT),
    ("var/log", 0o755, ROOT),
    ("var/cache", 0o755, ROOT),
    ("var/lib", 0o755, ROOT),
    ("var/spool", 0o755, ROOT),
    ("var/mail", 0o2775, ROOT),
    ("var/opt", 0o755, ROOT),
    ("var/local", 0o755, ROOT),
    ("boot", 0o755, ROOT),
];

/// Fills the layer.
pub(super) fn fill(root: &Tree, options: &HostOptions, tops: &Tops) -> Result<()> {
    let mut build = Builder::new(root, options.owners);
    for (path, mode, owner) in DIRECTORIES {
        build.dir(path, mode, owner)?;
    }
    build.link("var/run", "/run")?;
    build.link("var/lock", "/run/lock")?;
    build.link("home/user/workspace", "/workspace")?;
    for part in &tops.parts {
        // Only mount points directly below the root: those deeper lie in another part, which has them.
        let name = part.target.strip_prefix("/").unwrap_or(&part.target);
        if name.components().count() == 1 {
            build.dir(&name.to_string_lossy(), 0o755, ROOT)?;
        }
    }
    for (name, target) in &tops.links {
        build.link(name, target)?;
    }
    for (home, owner) in [("home/user", USER_OWNER), ("root", ROOT)] {
        build.file(
            &format!("{home}/.bashrc"),
            include_str!("skel/bashrc"),
            0o644,
            owner,
        )?;
        build.file(
            &format!("{home}/.profile"),
            include_str!("skel/dot_profile"),
            0o644,
            owner,
        )?;
    }
    etc::fill(&mut build, root, options)
}
