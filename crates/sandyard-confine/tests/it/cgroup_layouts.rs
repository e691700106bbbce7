//! Other layouts of control groups, made out of this host's in private mount namespaces and as other users.

use std::time::Duration;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;
use sandyard_confine::cgroup::{Hierarchy, ParentLocation};

use crate::cgroup::{Scratch, settings, small};
use crate::child::{self, message, sleep_for_ever};

const ORDINARY_USER: u32 = 65534;

/// Leaves the unified tree out of sight.
fn hide_unified() -> Result<(), String> {
    // SAFETY: the child has one thread; no other state depends on the mount namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(message)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(message)?;
    unmount("/sys/fs/cgroup/unified", UnmountFlags::DETACH).map_err(message)
}

#[test]
fn v1_alone_freezes_kills_and_counts() {
    if !std::path::Path::new("/sys/fs/cgroup/unified/cgroup.procs").exists() {
        eprintln!("not tried: this host is not hybrid, so v1 alone cannot be made out of it");
        return;
    }
    let settings = settings(ParentLocation::Highest);
    child::run(|| {
        hide_unified()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        if !(support.freeze && support.kill && support.memory && !support.how.contains("v2")) {
            return Err(message(support));
        }
        let group = hierarchy.create("a", &small()).map_err(message)?;
        if group.clone_into().map_err(message)?.is_some() {
            return Err("there is no unified group to clone into".to_owned());
        }
        let mut inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(message)?;
        group.freeze().map_err(message)?;
        if !group.is_frozen().map_err(message)? {
            return Err("not frozen".to_owned());
        }
        group.kill().map_err(message)?;
        group
            .wait_empty(Duration::from_secs(120))
            .map_err(message)?;
        inner.result();
        let stats = group.stats().map_err(message)?;
        if stats.cpu_usage_us.is_none() || stats.memory_bytes.is_none() {
            return Err(message(stats));
        }
        group.remove().map_err(message)?;
        match hierarchy.remove_parent_if_empty() {
            Ok(true) => Ok(()),
            other => Err(message(other)),
        }
    });
}

#[test]
fn ordinary_user_without_delegation_has_no_limits_and_a_reason() {
    let settings = settings(ParentLocation::Highest);
    child::run(|| {
        become_ordinary_user()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        if support.memory
            || support.freeze
            || !support.how.contains("no cgroup hierarchy is writable")
        {
            return Err(message(support));
        }
        let group = hierarchy.create("a", &small()).map_err(message)?;
        match group.freeze() {
            Err(error) if error.to_string() == "this host's control groups cannot freeze" => Ok(()),
            other => Err(message(other)),
        }
    });
}

#[test]
fn ordinary_user_uses_the_delegated_group_it_is_in() {
    let scratch = Scratch::new();
    let delegated = scratch.0.create("delegated", &small()).unwrap();
    let dir = delegated
        .clone_into()
        .unwrap()
        .expect("this host has a unified tree");
    for file in [
        ".",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.threads",
    ] {
        let id = Some(rustix::fs::Uid::from_raw(ORDINARY_USER));
        rustix::fs::chownat(&dir, file, id, None, rustix::fs::AtFlags::empty()).unwrap();
    }
    let settings = settings(ParentLocation::Highest);
    child::run(|| {
        delegated.add(0).map_err(message)?;
        become_ordinary_user()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        let has = support.freeze && support.kill && support.how.contains("/delegated");
        if !has {
            return Err(message(support));
        }
        let group = hierarchy.create("a", &small()).map_err(message)?;
        let inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(message)?;
        group.freeze().map_err(message)?;
        group.kill().map_err(message)?;
        group
            .wait_empty(Duration::from_secs(120))
            .map_err(message)?;
        group.remove().map_err(message)?;
        hierarchy
            .remove_parent_if_empty()
            .map(|_| ())
            .map_err(message)
    });
}

#[test]
fn groups_can_be_made_below_our_own() {
    let scratch = Scratch::new();
    let own = scratch.0.create("own", &small()).unwrap();
    let settings = settings(ParentLocation::Current);
    child::run(|| {
        own.add(0).map_err(message)?;
        let hierarchy = Hierarchy::detect_with(&settings);
        if !hierarchy.support().how.contains("/own") {
            return Err(message(hierarchy.support()));
        }
        let group = hierarchy.create("a", &small()).map_err(message)?;
        let inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(message)?;
        group.kill().map_err(message)?;
        group
            .wait_empty(Duration::from_secs(120))
            .map_err(message)?;
        group.remove().map_err(message)?;
        hierarchy
            .remove_parent_if_empty()
            .map(|_| ())
            .map_err(message)
    });
}

fn become_ordinary_user() -> Result<(), String> {
    // SAFETY: plain numbers; the child has one thread.
    let results = unsafe {
        [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(ORDINARY_USER),
            libc::setuid(ORDINARY_USER),
        ]
    };
    match results {
        [0, 0, 0] => Ok(()),
        _ => Err(message(std::io::Error::last_os_error())),
    }
}
