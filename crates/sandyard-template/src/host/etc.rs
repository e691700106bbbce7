//! The made-up `/etc`: accounts and settings of our own, and what `etc_allowlist.rs` lets through of the host's.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, lstat};

use super::HostOptions;
use super::etc_allowlist::{self, ETC, Rule};
use super::users::{Accounts, SUDOERS};
use crate::budget::{Budget, Limits};
use crate::build::{Builder, Owner, ROOT};
use crate::copy::{Owners, Rules, copy_tree};
use crate::error::{OperationExt, Result};
use crate::tree::{Tree, names};
use crate::xattr::Origin;

/// Bounds of what one host's /etc adds; a tree beyond them is no /etc.
const LIMITS: Limits = Limits {
    entries: 100_000,
    bytes: 512 << 20,
};

/// Lets `pip install` work where the system manages Python.
pub(crate) const PIP_CONF: &str = include_str!("skel/pip.conf");

/// Files of our own: name, text.
const FILES: [(&str, &str); 13] = [
    ("bash.bashrc", include_str!("skel/bash.bashrc")),
    ("environment", include_str!("skel/environment")),
    ("fstab", ""),
    ("hostname", "sandbox\n"),
    ("hosts", include_str!("skel/hosts")),
    ("machine-id", ""), // empty: each sandbox looks like a first boot
    ("nsswitch.conf", include_str!("skel/nsswitch.conf")),
    ("pip.conf", PIP_CONF),
    ("profile", include_str!("skel/profile")),
    ("resolv.conf", "nameserver 127.0.0.1\n"),
    ("default/locale", "LANG=C.UTF-8\n"),
    ("skel/.bashrc", include_str!("skel/bashrc")),
    ("skel/.profile", include_str!("skel/dot_profile")),
];

/// Files of our own for hosts whose package would bring them and did not: name, text.
const FALLBACKS: [(&str, &str); 3] = [
    ("shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n"),
    ("host.conf", "multi on\n"),
    ("inputrc", include_str!("skel/inputrc")),
];

/// Fills `/etc` of the root layer.
pub(super) fn fill(build: &mut Builder<'_>, root: &Tree, options: &HostOptions) -> Result<()> {
    build.dir("etc", 0o755, ROOT)?;
    copy_allowed(build, root, options)?;
    for (name, text) in FALLBACKS {
        if !build.exists(&format!("etc/{name}")) {
            build.file(&format!("etc/{name}"), text, 0o644, ROOT)?;
        }
    }
    for (name, text) in FILES {
        build.file(&format!("etc/{name}"), text, 0o644, ROOT)?;
    }
    // Fedora's bash reads it by this name.
    build.link("etc/bashrc", "bash.bashrc")?;
    build.link("etc/mtab", "/proc/self/mounts")?;
    build.dir("etc/profile.d", 0o755, ROOT)?;
    build.dir("etc/opt", 0o755, ROOT)?;
    accounts(build, options)?;
    pam(build, options)
}

fn accounts(build: &mut Builder<'_>, options: &HostOptions) -> Result<()> {
    let read = |name: &str| {
        let bytes = fs::read(options.host("etc").join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let accounts = Accounts::like(&read("passwd"), &read("group"));
    let readers = Owner(0, accounts.shadow_gid);
    build.file("etc/passwd", accounts.passwd, 0o644, ROOT)?;
    build.file("etc/group", accounts.group, 0o644, ROOT)?;
    build.file("etc/shadow", accounts.shadow, 0o640, readers)?;
    build.file("etc/gshadow", accounts.gshadow, 0o640, readers)?;
    build.file("etc/subuid", "", 0o644, ROOT)?;
    build.file("etc/subgid", "", 0o644, ROOT)?;
    build.dir("etc/sudoers.d", 0o750, ROOT)?;
    build.file("etc/sudoers", SUDOERS, 0o440, ROOT)
}

/// Lets `user` become root: users of a sandbox are root inside anyway.
fn pam(build: &mut Builder<'_>, options: &HostOptions) -> Result<()> {
    if !has_pam(options) {
        return Ok(());
    }
    let permit = include_str!("skel/pam_permit");
    let other = include_str!("skel/pam_other");
    for service in [
        "sudo",
        "sudo-i",
        "su",
        "su-l",
        "runuser",
        "runuser-l",
        "login",
    ] {
        build.file(&format!("etc/pam.d/{service}"), permit, 0o644, ROOT)?;
    }
    build.file("etc/pam.d/other", other, 0o644, ROOT)
}

fn has_pam(options: &HostOptions) -> bool {
    let direct = [
        "usr/lib/security",
        "usr/lib64/security",
        "lib/security",
        "lib64/security",
    ];
    let mut dirs: Vec<PathBuf> = direct.iter().map(|dir| options.host(dir)).collect();
    for lib in ["usr/lib", "lib"] {
        let entries = fs::read_dir(options.host(lib))
            .into_iter()
            .flatten()
            .flatten();
        // Debian keeps libraries in a directory per architecture: x86_64-linux-gnu.
        let arch = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"));
        dirs.extend(arch.map(|entry| entry.path().join("security")));
    }
    dirs.iter().any(|dir| dir.join("pam_permit.so").exists())
}

fn copy_allowed(build: &mut Builder<'_>, root: &Tree, options: &HostOptions) -> Result<()> {
    let etc = options.host("etc");
    for (path, rule) in sources(options) {
        copy_one(build, root, &etc, &path, rule)?;
    }
    Ok(())
}

/// Every path below `/etc` that the list stands for on this host, whether it exists or not.
pub(super) fn sources(options: &HostOptions) -> Vec<(PathBuf, &'static Rule)> {
    let etc = Tree::open(&options.host("etc"));
    let names = etc
        .ok()
        .and_then(|etc| names(&etc).ok())
        .unwrap_or_default();
    let expand = |rule: &'static Rule| {
        rule.expand(&names)
            .into_iter()
            .map(move |path| (path, rule))
    };
    ETC.iter().flat_map(expand).collect()
}

fn copy_one(
    build: &mut Builder<'_>,
    root: &Tree,
    etc: &Path,
    path: &Path,
    rule: &'static Rule,
) -> Result<()> {
    let source = etc.join(path);
    let path_inside = Path::new("/etc").join(path);
    let Ok(stat) = lstat(&source) else {
        return Ok(());
    };
    let link = fs::read_link(&source).ok();
    let link_bytes = link
        .as_deref()
        .map(|link| link.as_os_str().as_encoded_bytes());
    if !etc_allowlist::may_copy(&source, &path_inside, &stat, link_bytes, rule.except) {
        return Ok(());
    }
    let Some(name) = path_inside.to_str() else {
        return Ok(());
    };
    match (FileType::from_raw_mode(stat.st_mode), link) {
        (FileType::Symlink, Some(target)) => build.link(name, target),
        (FileType::RegularFile, _) => {
            let bytes = fs::read(&source).operation(|| format!("read `{}`", source.display()))?;
            build.file(name, bytes, stat.st_mode & 0o755, ROOT)
        }
        (FileType::Directory, _) => {
            build.dir(name, 0o755, ROOT)?;
            copy_dir(root, &source, &path_inside, rule.except)
        }
        _ => Ok(()),
    }
}

/// Copies what may be copied of the host's directory `source` into the layer's existing directory `path_inside`.
pub(super) fn copy_dir(
    root: &Tree,
    source: &Path,
    path_inside: &Path,
    except: &'static [&'static str],
) -> Result<()> {
    let from = Tree::open(source)?;
    let to = root.subtree(path_inside)?;
    let admit = |rel: &Path, stat: &Stat, link: Option<&[u8]>| {
        etc_allowlist::may_copy(
            &source.join(rel),
            &path_inside.join(rel),
            stat,
            link,
            except,
        )
    };
    let rules = Rules {
        origin: Origin::Foreign,
        // Ours, which is root inside: the host's owners mean nothing there.
        owners: Owners::Current,
        admit: &admit,
    };
    let mut on_progress = |_| ControlFlow::Continue(());
    copy_tree(
        &from,
        &to,
        &rules,
        &mut Budget::new(LIMITS, &mut on_progress),
    )
}
