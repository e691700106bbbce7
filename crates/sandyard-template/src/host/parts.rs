//! Which directories of the host become parts, and which of its top-level links are reproduced.

use std::fs;
use std::path::{Path, PathBuf};

use sandyard_confine::mountinfo::{self, Mount};

use super::HostOptions;
use crate::manifest::is_file_name;

/// Where programs and their libraries are. All but `usr` and `opt` are links into `usr` on most hosts.
pub(super) const TOPS: [&str; 8] = [
    "usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
];

/// Most file systems mounted below the tops that are taken along.
const MAX_MOUNTS: usize = 16;
/// File systems that hold no programs, or somebody's private ones.
const SKIPPED_TYPES: [&str; 8] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devtmpfs",
    "autofs",
    "fuse",
    "rpc_pipefs",
];

/// A directory of the host that is shown inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopPart {
    pub(super) target: PathBuf,
    pub(super) key: String,
    pub(super) source: PathBuf,
}

/// What the host has at its top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tops {
    /// Parents before children.
    pub(super) parts: Vec<TopPart>,
    /// Name and target.
    pub(super) links: Vec<(String, PathBuf)>,
}

/// Reads the host's top-level directories.
pub(super) fn find(options: &HostOptions) -> Tops {
    let mut tops = Tops::default();
    for name in TOPS {
        let source = options.host(name);
        let Ok(metadata) = fs::symlink_metadata(&source) else {
            continue;
        };
        if metadata.is_symlink() {
            tops.links
                .extend(fs::read_link(&source).map(|target| (name.to_owned(), target)));
        } else if metadata.is_dir() && (name != "opt" || !is_empty(&source)) {
            tops.parts.push(TopPart {
                target: Path::new("/").join(name),
                key: name.to_owned(),
                source,
            });
        }
    }
    let mounts = mounts_below(&tops.parts);
    tops.parts.extend(mounts);
    tops
}

pub(super) fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// File systems mounted below the parts, such as a separate `/usr/local`: overlayfs sees through a mount to the empty
/// directory beneath it, so each must be a part of its own.
fn mounts_below(parts: &[TopPart]) -> Vec<TopPart> {
    let mut mounts: Vec<TopPart> = Vec::new();
    for Mount { point, kind, .. } in mountinfo::mounts() {
        let skipped = SKIPPED_TYPES
            .iter()
            .any(|skipped| kind.split('.').next() == Some(skipped));
        let below = parts
            .iter()
            .find(|part| point.starts_with(&part.source) && point != part.source);
        let Some(part) = below.filter(|_| !skipped && point.is_dir()) else {
            continue;
        };
        let Ok(rest) = point.strip_prefix(&part.source) else {
            continue;
        };
        let target = part.target.join(rest);
        let key = target.to_string_lossy().trim_matches('/').replace('/', "-");
        if is_file_name(&key)
            && mounts.iter().all(|other| other.target != target)
            && mounts.len() < MAX_MOUNTS
        {
            mounts.push(TopPart {
                target,
                key,
                source: point,
            });
        }
    }
    mounts.sort_by(|a, b| a.target.cmp(&b.target));
    mounts
}
