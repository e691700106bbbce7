//! Ranges of user ids for sandboxes.

use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

use super::namespaces::unshare;
use crate::attempt::{Attempt, Failure, StepExt, attempt_helped};
use crate::host::{Host, read};
use crate::report::{Check, Need};

/// Where root's ranges are taken from: far above what distributions and directories use.
const FIRST: u64 = 0x7000_0000;
const LAST: u64 = 0x7fff_ffff;
/// Ids in one sandbox.
const COUNT: u64 = 65_536;

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![match host.is_root() {
        true => root(),
        false => user(host),
    }]
}

fn root() -> Check {
    let check = Check::ok("uid-ranges", Need::Required)
        .purpose("each sandbox has 65536 user ids that nothing else uses")
        .detail(format!("ids {FIRST} to {LAST} are free and can be mapped"));
    let map = |pid: Pid| {
        let line = format!("0 {FIRST} {COUNT}");
        for file in ["gid_map", "uid_map"] {
            let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
            std::fs::write(path, &line).step(&format!("write {file}"))?;
        }
        Ok(())
    };
    if let Err(failure) = try_map(map) {
        let fix =
            "start Sandyard outside of any user namespace; in a container, use `--userns=host`";
        return check.missing(failure.text(), fix);
    }
    match conflicting_ids() {
        Some((line, fix)) => check.partial(
            format!("`{line}` is within {FIRST} to {LAST}, the ids that sandboxes use"),
            fix,
        ),
        None => check,
    }
}

/// Finds ids in our range that belong to another user, and the command that frees them.
fn conflicting_ids() -> Option<(String, String)> {
    let overlaps = |first: u64, count: u64| first <= LAST && first + count > FIRST;
    let ranges = format!("{}\n{}", read("/etc/subuid"), read("/etc/subgid"));
    for line in ranges.lines() {
        if parse_range(line).is_some_and(|(_, first, count)| overlaps(first, count)) {
            let fix = format!("sudo sed -i '/^{line}$/d' /etc/subuid /etc/subgid");
            return Some((line.to_owned(), fix));
        }
    }
    read("/etc/passwd").lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let fix = format!("sudo usermod --uid NEW_ID {name}");
        overlaps(uid, 1).then(|| (line.to_owned(), fix))
    })
}

/// Parses `name:first:count`.
fn parse_range(line: &str) -> Option<(&str, u64, u64)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    Some((
        name,
        fields.next()?.parse().ok()?,
        fields.next()?.trim().parse().ok()?,
    ))
}

fn user(host: &Host) -> Check {
    let check = Check::ok("uid-ranges", Need::Recommended)
        .purpose("root, the user and services inside a sandbox have different user ids");
    let fix = format!(
        "sudo apt-get install -y uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {}",
        host.user
    );
    let (Some(uids), Some(gids)) = (
        own_range("/etc/subuid", host),
        own_range("/etc/subgid", host),
    ) else {
        let detail = format!(
            "`{}` has no range of {COUNT} ids in /etc/subuid and /etc/subgid, so everything in a sandbox runs as one user id",
            host.user
        );
        return check.missing(detail, fix);
    };
    let map = |pid: Pid| {
        helper("newgidmap", pid, host.gid, gids)?;
        helper("newuidmap", pid, host.uid, uids)
    };
    match try_map(map) {
        Ok(()) => Check {
            detail: format!("ids {uids} to {}, mapped by newuidmap", uids + COUNT - 1),
            ..check
        },
        Err(failure) => check.missing(failure.text(), fix),
    }
}

/// Finds a range that is large enough for one sandbox.
fn own_range(file: &str, host: &Host) -> Option<u64> {
    let uid = host.uid.to_string();
    read(file).lines().find_map(|line| {
        let (name, first, count) = parse_range(line)?;
        ((name == host.user || name == uid) && count >= COUNT).then_some(first)
    })
}

fn helper(program: &str, pid: Pid, own_id: u32, first: u64) -> Attempt {
    let rest = COUNT - 1;
    let status = Command::new(program)
        .arg(pid.as_raw_nonzero().to_string())
        .args([
            "0",
            &own_id.to_string(),
            "1",
            "1",
            &first.to_string(),
            &rest.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .step(&format!("run {program}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(program, Errno::PERM)),
    }
}

/// Creates a user namespace in a child, maps its ids from outside, and checks that the child can become another user.
fn try_map(map: impl FnOnce(Pid) -> Attempt) -> Attempt {
    attempt_helped(
        || unshare(UnshareFlags::NEWUSER, "make a user namespace"),
        map,
        || {
            let user = rustix::process::Uid::from_raw(1000);
            // The raw call: the C library's would take a lock to tell other threads.
            rustix::thread::set_thread_uid(user).step("become user 1000 inside")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_lines_are_read() {
        assert_eq!(
            parse_range("ada:100000:65536"),
            Some(("ada", 100_000, 65_536))
        );
        assert_eq!(parse_range("# comment"), None);
        assert_eq!(parse_range("ada:x:1"), None);
    }
}
