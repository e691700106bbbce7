//! User and group ids: the ranges of a user namespace, and mounts that shift owners by them.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::OpenTreeFlags;

use super::{OperationExt, SysResult, check};

const AT_EMPTY_PATH: libc::c_int = 0x1000;

/// Writes `/proc/<pid>/{uid,gid}_map`: `count` ids from 0 inside become those from `first` outside.
pub(crate) fn write_maps(pid: i32, first: u32, count: u32) -> SysResult<()> {
    write_both(pid, &format!("0 {first} {count}\n"))
}

/// Maps the `count` ids of our own user namespace, in which root is mapped apart from the rest.
pub(crate) fn write_same_maps(pid: i32, count: u32) -> SysResult<()> {
    // In two lines: a line may not span two lines of our own map.
    write_both(pid, &format!("0 0 1\n1 1 {}\n", count - 1))
}

fn write_both(pid: i32, map: &str) -> SysResult<()> {
    for file in ["uid_map", "gid_map"] {
        let path = format!("/proc/{pid}/{file}");
        fs::write(&path, map).operation("write", &path)?;
    }
    Ok(())
}

/// Maps root inside to our own ids and nothing else: an ordinary user may map no more without helper programs.
pub(crate) fn write_single_maps(pid: i32, uid: u32, gid: u32) -> SysResult<()> {
    // Without this the kernel refuses gid_map: dropping a group could grant access (user_namespaces(7)).
    let setgroups = format!("/proc/{pid}/setgroups");
    fs::write(&setgroups, "deny").operation("write", &setgroups)?;
    for (file, id) in [("uid_map", uid), ("gid_map", gid)] {
        let path = format!("/proc/{pid}/{file}");
        fs::write(&path, format!("0 {id} 1\n")).operation("write", &path)?;
    }
    Ok(())
}

/// Opens the user namespace of `pid`.
pub(crate) fn user_namespace(pid: i32) -> SysResult<OwnedFd> {
    let path = format!("/proc/{pid}/ns/user");
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .operation("open", &path)
}

/// Clones the mount at `path` as a detached, read-only one whose owners are shifted into `user_namespace`.
pub(crate) fn shifted_read_only(path: &Path, user_namespace: impl AsFd) -> SysResult<OwnedFd> {
    let tree = read_only(path)?;
    set_attributes(&tree, 0, Some(user_namespace.as_fd().as_raw_fd()))
        .operation("shift owners of", path.display())?;
    Ok(tree)
}

/// Clones the mount at `path` as a detached one, without devices and setuid programs.
pub(crate) fn safe_clone(path: &Path) -> SysResult<OwnedFd> {
    let tree = clone_mount(path)?;
    // Only added to the attributes of the host's mount: the kernel does not allow clearing any.
    let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    set_attributes(&tree, attributes, None).operation("secure clone of", path.display())?;
    Ok(tree)
}

fn clone_mount(path: &Path) -> SysResult<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(rustix::fs::CWD, path, flags)
        .operation("clone mount at", path.display())
}

/// Clones the mount at `path` as a detached, read-only one.
pub(crate) fn read_only(path: &Path) -> SysResult<OwnedFd> {
    let tree = clone_mount(path)?;
    set_attributes(
        &tree,
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
        None,
    )
    .operation("make read-only clone of", path.display())?;
    Ok(tree)
}

/// Shifts the owners of a detached mount into `user_namespace`.
pub(crate) fn shift(tree: impl AsFd, user_namespace: impl AsFd) -> SysResult<()> {
    set_attributes(&tree, 0, Some(user_namespace.as_fd().as_raw_fd()))
        .operation("shift owners of", "a disk")
}

fn set_attributes(tree: &impl AsFd, set: u64, user_namespace: Option<i32>) -> std::io::Result<()> {
    let mut attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    if let Some(fd) = user_namespace {
        attributes.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attributes.userns_fd = fd as u64;
    }
    // SAFETY: the path is a NUL-terminated constant, `attributes` lives across the call and its size is passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}
