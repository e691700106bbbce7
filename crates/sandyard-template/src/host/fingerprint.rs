//! Tells cheaply whether the host is still what the host template was made from.
//!
//! *Quick*: a status call for each source, for programs looked for and for the top-level directories: some hundred
//! microseconds, taken at every create. A directory's time shows names that came and went in it. *Full*: the status of
//! every file below the sources too, which also shows files changed in place; taken at most once a minute.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{HostOptions, etc, parts, usr};
use crate::copy::Owners;

/// Counts the versions of the code that makes the template: raised with each change of what it makes.
const VERSION: u32 = 3;
/// How long a full check is good for.
const FULL_CHECK_EVERY: Duration = Duration::from_secs(60);
/// Maximum number of files in a full check.
const MAX_FILES: usize = 50_000;

/// What the template was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    quick: String,
    full: String,
}

impl Fingerprint {
    pub(super) fn take(options: &HostOptions) -> Self {
        Self {
            quick: quick(options),
            full: full(options),
        }
    }
}

/// Compares the host with what is stored; `stamp` is the file whose time is that of the last full check.
pub(super) fn is_current(options: &HostOptions, stored: &Fingerprint, stamp_file: &Path) -> bool {
    if quick(options) != stored.quick {
        return false;
    }
    if is_fresh(stamp_file, FULL_CHECK_EVERY) {
        return true;
    }
    let same = full(options) == stored.full;
    if same {
        stamp(stamp_file);
    }
    same
}

/// Notes that a full check was made just now. Failing to only means another one soon.
pub(super) fn stamp(file: &Path) {
    let opened = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(file);
    let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether a stamp was set less than `trust_for` ago.
pub(super) fn is_fresh(stamp_file: &Path, trust_for: Duration) -> bool {
    let modified = fs::metadata(stamp_file).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age < trust_for)
}

fn quick(options: &HostOptions) -> String {
    let mut hash = DefaultHasher::new();
    VERSION.hash(&mut hash);
    // Layers of the host template are not synced to disk: after a boot nobody knows how much of them is there.
    fs::read("/proc/sys/kernel/random/boot_id")
        .ok()
        .hash(&mut hash);
    options.host_root.hash(&mut hash);
    options.prefer_shim.hash(&mut hash);
    (options.owners == Owners::Keep).hash(&mut hash);
    // The program's status stands for its content: reading megabytes each time would cost more than the create.
    options.shim_program.hash(&mut hash);
    if let Some(program) = &options.shim_program {
        status(&mut hash, fs::metadata(program));
    }
    (usr::has_sudo(options), usr::needs_python(options)).hash(&mut hash);
    usr::replaced_package_managers(options).hash(&mut hash);
    for name in parts::TOPS {
        // A directory is its identity only, for its content is shown live; a link is all it says.
        let top = fs::symlink_metadata(options.host(name));
        let identity = top.map(|metadata| (metadata.dev(), metadata.ino(), metadata.is_symlink()));
        identity.ok().hash(&mut hash);
    }
    parts::is_empty(&options.host("opt")).hash(&mut hash);
    let etc = options.host("etc");
    for (path, _) in etc::sources(options) {
        path.hash(&mut hash);
        status(&mut hash, fs::symlink_metadata(etc.join(path)));
    }
    // Read for their numbers.
    for name in ["passwd", "group"] {
        status(&mut hash, fs::symlink_metadata(etc.join(name)));
    }
    status(
        &mut hash,
        fs::symlink_metadata(options.host(usr::LOCAL_ETC)),
    );
    format!("{:016x}", hash.finish())
}

fn full(options: &HostOptions) -> String {
    let mut hash = DefaultHasher::new();
    for part in parts::find(options).parts {
        (part.target, part.key).hash(&mut hash);
    }
    let etc = options.host("etc");
    let mut pending: Vec<_> = etc::sources(options)
        .iter()
        .map(|(path, _)| etc.join(path))
        .collect();
    pending.push(options.host(usr::LOCAL_ETC));
    let mut file_count = 0;
    while let Some(path) = pending.pop() {
        file_count += 1;
        if file_count > MAX_FILES {
            break;
        }
        let metadata = fs::symlink_metadata(&path);
        let is_dir = metadata.as_ref().is_ok_and(|metadata| metadata.is_dir());
        path.hash(&mut hash);
        status(&mut hash, metadata);
        if is_dir {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let mut below: Vec<_> = entries.map(|entry| entry.path()).collect();
            below.sort();
            pending.extend(below);
        }
    }
    format!("{:016x}", hash.finish())
}

fn status(hash: &mut DefaultHasher, metadata: std::io::Result<fs::Metadata>) {
    let identity = metadata.ok().map(|metadata| {
        let time = (
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        (
            metadata.dev(),
            metadata.ino(),
            metadata.mode(),
            metadata.size(),
            time,
        )
    });
    identity.hash(hash);
}
