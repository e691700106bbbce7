//! What the tests share: a store, real overlay mounts, and re-running as root of a user namespace where not root.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use sandyard_template::{ImportOptions, Owners, Part, Store, SweepOptions, Template};
use tempfile::TempDir;

/// A store in a directory that goes with it.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) temp: TempDir,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().expect("temp dir");
        let store = Store::open(&temp.path().join("data"))
            .expect("open store")
            .without_sync();
        Self { store, temp }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Names in the layers' directory, left-overs included.
    pub(crate) fn layer_names(&self) -> Vec<String> {
        names(&self.path("data/layers"))
    }

    /// Sweeps whatever is unused, of any age.
    pub(crate) fn sweep_all(&self) -> Vec<String> {
        let options = SweepOptions {
            older_than: Duration::ZERO,
            in_use: Vec::new(),
        };
        self.store.sweep(&options).expect("sweep").layers
    }

    /// Imports the tree at `dir` with nothing added but what every root gets.
    pub(crate) fn import(&self, name: &str, dir: &Path) -> Template {
        let mut options = ImportOptions::new(owners());
        options.add_user = false;
        self.store
            .import_tree(name, dir, options)
            .expect("import")
            .template
    }
}

pub(crate) fn owners() -> Owners {
    Owners::of_this_process()
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("read dir");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

pub(crate) fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    fs::write(path, text).expect("write");
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

pub(crate) fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path.as_ref()).expect("stat").mode() & 0o7777
}

pub(crate) fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("mkfifo");
}

pub(crate) fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).expect("setxattr");
}

pub(crate) fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(1024);
    rustix::fs::lgetxattr(path, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
    Some(value)
}

/// An overlay as the engine makes it: a detached mount reached through its descriptor, gone when that closes.
pub(crate) struct Overlay {
    mount: OwnedFd,
    pub(crate) upper: PathBuf,
}

impl Overlay {
    pub(crate) fn new(layers: &[PathBuf], disk: &Path) -> Self {
        let (upper, work) = (disk.join("upper"), disk.join("work"));
        fs::create_dir_all(&upper).expect("mkdir");
        fs::create_dir_all(&work).expect("mkdir");
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).expect("fsopen");
        // By descriptor: an option has at most 255 bytes.
        let opened = layers
            .iter()
            .map(|layer| fs::File::open(layer).expect("open layer"));
        let opened: Vec<_> = opened.collect();
        let lower = opened
            .iter()
            .map(|layer| format!("/proc/self/fd/{}", layer.as_raw_fd()));
        let lower = lower.collect::<Vec<_>>().join(":");
        fsconfig_set_string(&context, "lowerdir", lower.as_str()).expect("lowerdir");
        fsconfig_set_string(&context, "upperdir", upper.as_os_str()).expect("upperdir");
        fsconfig_set_string(&context, "workdir", work.as_os_str()).expect("workdir");
        fsconfig_set_flag(&context, "userxattr").expect("userxattr");
        fsconfig_create(&context).expect("create overlay");
        let mount = fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::empty(),
        )
        .expect("fsmount");
        Self { mount, upper }
    }

    pub(crate) fn of(part: &Part, disk: &Path) -> Self {
        Self::new(&part.layers, &disk.join(&part.key))
    }

    /// Path of `rel` in the merged view.
    pub(crate) fn path(&self, rel: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.mount.as_raw_fd())).join(rel)
    }
}

/// Runs a test that mounts. Where this is not root, the same test runs again as root of a new user namespace; where that
/// is not possible either, it fails and says why.
pub(crate) fn as_root(test: &str, body: impl FnOnce()) {
    if rustix::process::geteuid().is_root() {
        return body();
    }
    let program = std::env::current_exe().expect("current exe");
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .output()
        .expect("unshare runs");
    assert!(
        output.status.success(),
        "{test} as root of a user namespace failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
