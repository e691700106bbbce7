//! Other layouts of control groups, made out of this host's in private mount namespaces and as other users.

use std::time::Duration;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;
use sandyard_confine::cgroup::{Hierarchy, Place};

use crate::cgroup::{Scratch, settings, small};
use crate::child::{self, sleep_for_ever, told};

const NOBODY: u32 = 65534;

/// Leaves the unified tree out of sight.
fn hide_unified() -> Result<(), String> {
    // SAFETY: the child has one thread; no other state depends on the mount namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(told)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(told)?;
    unmount("/sys/fs/cgroup/unified", UnmountFlags::DETACH).map_err(told)
}

#[test]
fn v1_alone_freezes_kills_and_counts() {
    if !std::path::Path::new("/sys/fs/cgroup/unified/cgroup.procs").exists() {
        eprintln!("not tried: this host is not hybrid, so v1 alone cannot be made out of it");
        return;
    }
    let settings = settings(Place::Highest);
    child::run(|| {
        hide_unified()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        if !(support.freeze && support.kill && support.memory && !support.how.contains("v2")) {
            return Err(told(support));
        }
        let group = hierarchy.create("a", &small()).map_err(told)?;
        if group.clone_into().map_err(told)?.is_some() {
            return Err("there is no unified group to clone into".to_owned());
        }
        let mut inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(told)?;
        group.freeze().map_err(told)?;
        if !group.is_frozen().map_err(told)? {
            return Err("not frozen".to_owned());
        }
        group.kill().map_err(told)?;
        group.wait_empty(Duration::from_secs(120)).map_err(told)?;
        inner.result();
        let stats = group.stats().map_err(told)?;
        if stats.cpu_usage_us.is_none() || stats.memory_bytes.is_none() {
            return Err(told(stats));
        }
        group.remove().map_err(told)?;
        match hierarchy.remove_parent_if_empty() {
            Ok(true) => Ok(()),
            other => Err(told(other)),
        }
    });
}

#[test]
fn ordinary_user_without_delegation_gets_nothing_and_is_told_so() {
    let settings = settings(Place::Highest);
    child::run(|| {
        become_nobody()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        if support.memory
            || support.freeze
            || !support.how.contains("no cgroup hierarchy is writable")
        {
            return Err(told(support));
        }
        let group = hierarchy.create("a", &small()).map_err(told)?;
        match group.freeze() {
            Err(error) if error.to_string() == "this host's control groups cannot freeze" => Ok(()),
            other => Err(told(other)),
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
        let id = Some(rustix::fs::Uid::from_raw(NOBODY));
        rustix::fs::chownat(&dir, file, id, None, rustix::fs::AtFlags::empty()).unwrap();
    }
    let settings = settings(Place::Highest);
    child::run(|| {
        delegated.add(0).map_err(told)?;
        become_nobody()?;
        let hierarchy = Hierarchy::detect_with(&settings);
        let support = hierarchy.support();
        let has = support.freeze && support.kill && support.how.contains("/delegated");
        if !has {
            return Err(told(support));
        }
        let group = hierarchy.create("a", &small()).map_err(told)?;
        let inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(told)?;
        group.freeze().map_err(told)?;
        group.kill().map_err(told)?;
        group.wait_empty(Duration::from_secs(120)).map_err(told)?;
        group.remove().map_err(told)?;
        hierarchy.remove_parent_if_empty().map(|_| ()).map_err(told)
    });
}

#[test]
fn groups_can_be_made_below_our_own() {
    let scratch = Scratch::new();
    let own = scratch.0.create("own", &small()).unwrap();
    let settings = settings(Place::Own);
    child::run(|| {
        own.add(0).map_err(told)?;
        let hierarchy = Hierarchy::detect_with(&settings);
        if !hierarchy.support().how.contains("/own") {
            return Err(told(hierarchy.support()));
        }
        let group = hierarchy.create("a", &small()).map_err(told)?;
        let inner = child::start(sleep_for_ever);
        group.add(inner.pid).map_err(told)?;
        group.kill().map_err(told)?;
        group.wait_empty(Duration::from_secs(120)).map_err(told)?;
        group.remove().map_err(told)?;
        hierarchy.remove_parent_if_empty().map(|_| ()).map_err(told)
    });
}

fn become_nobody() -> Result<(), String> {
    // SAFETY: plain numbers; the child has one thread.
    let results = unsafe {
        [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(NOBODY),
            libc::setuid(NOBODY),
        ]
    };
    match results {
        [0, 0, 0] => Ok(()),
        _ => Err(told(std::io::Error::last_os_error())),
    }
}
