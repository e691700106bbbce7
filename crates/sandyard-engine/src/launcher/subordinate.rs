//! Subordinate user ids of an ordinary user: the launcher moves into a user namespace in which it is root of the ids that
//! `/etc/subuid` and `/etc/subgid` assign to the user.
//!
//! Only `newuidmap` and `newgidmap` of the package `uidmap` may write the map. Without them, or without ids, sandboxes have a
//! single id.

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use rustix::process::{Gid, Pid, Uid, WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

use super::run_and_leave;
use crate::id_range::IDS_PER_RANGE;
use crate::mode::Mode;
use crate::sys::clone::{Forked, fork};

/// Moves this process if possible. Returns its mode afterwards.
///
/// Must be called before any thread is started.
pub(super) fn enter_if_possible() -> Mode {
    let mode = Mode::detect();
    let Mode::Rootless { uid, gid } = mode else {
        return mode;
    };
    let Some(ids) = Ids::of_user(uid) else {
        return mode;
    };
    // A process cannot leave a half-made namespace, so a fork tries it first.
    if !works_in_a_fork(&ids, uid, gid) || enter(&ids, uid, gid).is_err() {
        return mode;
    }
    Mode::Subordinate { uid, gid }
}

/// The first subordinate ids.
struct Ids {
    first_uid: u32,
    first_gid: u32,
}

impl Ids {
    fn of_user(uid: u32) -> Option<Self> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })?;
        let first = |path| first_range(&fs::read_to_string(path).unwrap_or_default(), &name, uid);
        Some(Self {
            first_uid: first("/etc/subuid")?,
            first_gid: first("/etc/subgid")?,
        })
    }
}

/// The start of the first range in `text` that belongs to the user and is large enough. Lines are `NAME-OR-ID:FIRST:COUNT`.
fn first_range(text: &str, name: &str, uid: u32) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (
            fields.next()?.parse().ok()?,
            fields.next()?.trim().parse().ok()?,
        );
        let is_own = owner == name || owner.parse() == Ok(uid);
        (is_own && count >= IDS_PER_RANGE - 1).then_some(first)
    })
}

fn works_in_a_fork(ids: &Ids, uid: u32, gid: u32) -> bool {
    match fork() {
        Ok(Forked::Child) => {
            run_and_leave(|| enter(ids, uid, gid).expect("the parent sees the exit code"))
        }
        Ok(Forked::Parent { pid }) => has_succeeded(pid),
        Err(_) => false,
    }
}

fn enter(ids: &Ids, uid: u32, gid: u32) -> io::Result<()> {
    let target = std::process::id().to_string();
    let (mut ready_reader, mut ready_writer) = io::pipe()?;
    // A process of ours outside of the namespace must write the map.
    let writer = match fork()? {
        Forked::Parent { pid } => pid,
        Forked::Child => {
            drop(ready_writer);
            run_and_leave(|| {
                let ready = ready_reader.read_exact(&mut [0]);
                ready
                    .and_then(|()| write_maps(ids, &target, uid, gid))
                    .expect("the parent sees the exit code");
            })
        }
    };
    drop(ready_reader);
    // SAFETY: a user namespace changes ids and rights of this only thread; no descriptor or memory is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    ready_writer.write_all(b"1")?;
    if !has_succeeded(writer) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    Ok(())
}

fn write_maps(ids: &Ids, target: &str, uid: u32, gid: u32) -> io::Result<()> {
    for (program, own, first) in [
        ("newuidmap", uid, ids.first_uid),
        ("newgidmap", gid, ids.first_gid),
    ] {
        let map = format!("{target} 0 {own} 1 1 {first} {}", IDS_PER_RANGE - 1);
        let status = Command::new(program)
            .args(map.split(' '))
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }
    Ok(())
}

fn has_succeeded(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return false;
    };
    matches!(waitpid(Some(pid), WaitOptions::empty()), Ok(Some((_, status))) if status.exit_status() == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_by_name_and_by_number_if_it_is_large_enough() {
        let text = "other:1:65536\nme:100:10\nme:100000:65536\n1001:200000:65535\n";
        assert_eq!(first_range(text, "me", 1000), Some(100_000));
        assert_eq!(first_range(text, "you", 1001), Some(200_000));
        assert_eq!(first_range(text, "nobody", 7), None);
        assert_eq!(first_range("me:x:y\nme\n\n", "me", 1000), None);
    }
}
