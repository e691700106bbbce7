//! Opening files by kernel handle, which needs no path and so knows no root directory.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{Group::Files, Severity::Critical};
use crate::search::{contains, read_fd};
use crate::sys::{self, sys};
use sandyard_confine::mountinfo::mounts;

pub(super) const CHECKS: &[Check] = &[
    Check::new(Files, Critical, "files.handle", planted)
.title("A file handle does not open the host's file")
.attempts("open_by_handle_at with the planted files' own handles, from every mount")
.expects("refused")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Files, Critical, "files.root-handle", guessed)
.title("File handles cannot be guessed")
.attempts("open_by_handle_at with the well-known root inodes of ext4, XFS, btrfs and tmpfs, from every mount")
.expects("refused")
        .on_host(OnHost::Depends),
];

fn planted(context: &Context) -> Outcome {
    let mut tried = false;
    let mut last = None;
    for secret in &context.plan.secrets {
        let Some((kind, bytes)) = &secret.handle else {
            continue;
        };
        tried = true;
        for point in mount_descriptors() {
            match open_by_handle(point, *kind, bytes).and_then(read_fd) {
                Ok(content) if contains(&content, &secret.marker) => {
                    return Outcome::breached(format_args!(
                        "read `{}` by its handle",
                        secret.path.display()
                    ));
                }
                Ok(_) => {}
                Err(errno) => last = Some(errno),
            }
            sys::close(point);
        }
    }
    match (tried, last) {
        (false, _) => Outcome::inconclusive("no handle was planted"),
        (true, Some(errno)) => Outcome::held(errno),
        (true, None) => Outcome::held("other files"),
    }
}

/// Inode numbers and generations, little-endian, as type 1 handles (`FILEID_INO32_GEN`) hold them.
const ROOT_INODES: [u32; 4] = [2, 128, 256, 1];

fn guessed(_: &Context) -> Outcome {
    let mut last = None;
    for point in mount_descriptors() {
        for inode in ROOT_INODES {
            let handle = [inode.to_le_bytes(), 0_u32.to_le_bytes()].concat();
            match open_by_handle(point, 1, &handle) {
                Ok(_) => {
                    return Outcome::breached(format_args!("opened inode {inode} with no path"));
                }
                Err(errno) => last = Some(errno),
            }
        }
        sys::close(point);
    }
    last.map_or_else(
        || Outcome::inconclusive("no mount could be opened"),
        Outcome::held,
    )
}

fn mount_descriptors() -> impl Iterator<Item = i32> {
    mounts()
        .into_iter()
        .filter_map(|mount| sys::open(mount.point, libc::O_RDONLY).ok())
}

fn open_by_handle(mount: i32, kind: i32, bytes: &[u8]) -> sys::Result<i32> {
    let size = u32::try_from(bytes.len()).unwrap_or(0);
    let handle = [&size.to_ne_bytes()[..], &kind.to_ne_bytes(), bytes].concat();
    sys!(
        libc::SYS_open_by_handle_at,
        mount,
        handle.as_slice(),
        libc::O_RDONLY | libc::O_NONBLOCK
    )
    .map(|fd| fd as i32)
}
