//! Owner, mode, times and extended attributes of a copied entry.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown,
    futimens, utimensat,
};
use rustix::io::Errno;

use super::{Copier, Owners};
use crate::budget::Counts;
use crate::xattr;

/// Ids a sandbox has: its range is 65536 wide.
const IDS: u32 = 65536;
/// Who owns what belongs to nobody a sandbox knows.
const OVERFLOW_ID: u32 = 65534;

/// Says whether this user namespace has every id a sandbox may: root of one with a single id cannot give files away.
pub(super) fn has_all_ids() -> bool {
    let covers = |line: &str| {
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let (first, count) = (fields.next(), fields.nth(1));
        matches!((first, count), (Some(Ok(0)), Some(Ok(count))) if count >= IDS)
    };
    ["/proc/self/uid_map", "/proc/self/gid_map"]
        .iter()
        .all(|map| {
            let text = std::fs::read_to_string(map);
            // Without /proc there is no telling; being root, trying is right.
            text.map_or(true, |text| text.lines().any(covers))
        })
}

impl Copier<'_, '_> {
    /// Gives an open file or directory the attributes of its source.
    ///
    /// The order matters: changing the owner drops capabilities and setuid; setting a `user.*` attribute needs the write
    /// bit that the final mode may lack; setting an access list changes the group bits of the mode.
    pub(super) fn finish_fd(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        stat: &Stat,
    ) -> Result<(), Errno> {
        chown_fd(
            to,
            stat.st_uid,
            stat.st_gid,
            self.rules.owners,
            &mut self.budget.counts,
        )?;
        let names = xattr::list(from)?;
        let (lists, plain): (Vec<_>, Vec<_>) = names
            .iter()
            .partition(|name| xattr::is_acl(name.as_bytes()));
        self.copy_xattrs(from, to, &plain)?;
        fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
        self.copy_xattrs(from, to, &lists)?;
        set_mtime(
            to,
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        )
    }

    fn copy_xattrs(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        names: &[impl AsRef<OsStr>],
    ) -> Result<(), Errno> {
        for name in names.iter().map(AsRef::as_ref) {
            let is_copied = xattr::travels(name.as_bytes(), self.rules.origin)
                && match xattr::get(from, name)? {
                    Some(value) => xattr::set(to, name, &value)?,
                    None => true,
                };
            if !is_copied {
                self.budget.counts.xattrs += 1;
            }
        }
        Ok(())
    }

    /// The same for what cannot be opened: links and pipes.
    pub(super) fn finish_name(
        &mut self,
        to: &OwnedFd,
        name: &OsStr,
        stat: &Stat,
    ) -> Result<(), Errno> {
        chown_name(
            to,
            name,
            stat.st_uid,
            stat.st_gid,
            self.rules.owners,
            &mut self.budget.counts,
        )?;
        set_mtime_name(
            to,
            name,
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        )
    }
}

/// Gives an open file to its owner inside.
pub(crate) fn chown_fd(
    fd: impl AsFd,
    uid: u32,
    gid: u32,
    owners: Owners,
    counts: &mut Counts,
) -> Result<(), Errno> {
    match owners {
        Owners::Current => Ok(()),
        Owners::Keep => {
            let (uid, gid) = known_ids(uid, gid, counts);
            fchown(fd, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
        }
    }
}

/// Gives the entry `name` to its owner inside, not following it.
pub(crate) fn chown_name(
    dir: impl AsFd,
    name: &OsStr,
    uid: u32,
    gid: u32,
    owners: Owners,
    counts: &mut Counts,
) -> Result<(), Errno> {
    match owners {
        Owners::Current => Ok(()),
        Owners::Keep => {
            let (uid, gid) = known_ids(uid, gid, counts);
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
        }
    }
}

/// An id outside a sandbox's range cannot be shown inside, and a file that has one cannot even be copied up.
fn known_ids(uid: u32, gid: u32, counts: &mut Counts) -> (u32, u32) {
    if uid >= IDS || gid >= IDS {
        counts.owners += 1;
    }
    let map_id = |id: u32| if id >= IDS { OVERFLOW_ID } else { id };
    (map_id(uid), map_id(gid))
}

/// Sets the time of last change, leaving that of last access.
pub(crate) fn set_mtime(fd: impl AsFd, seconds: i64, nanoseconds: i64) -> Result<(), Errno> {
    futimens(fd, &mtime(seconds, nanoseconds))
}

/// Sets the time of last change of the entry `name`, not following it.
pub(crate) fn set_mtime_name(
    dir: impl AsFd,
    name: &OsStr,
    seconds: i64,
    nanoseconds: i64,
) -> Result<(), Errno> {
    utimensat(
        dir,
        name,
        &mtime(seconds, nanoseconds),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

fn mtime(seconds: i64, nanoseconds: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        },
    }
}
