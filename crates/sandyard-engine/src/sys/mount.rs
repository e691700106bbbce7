//! Mounts, made in the sandbox's own mount namespace or detached from any.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    UnmountFlags,
};

use super::{OperationExt, SysResult};

/// Mounts the ext4 on `device`, detached. If it is mounted already, this is another mount of the same file system.
pub(crate) fn detached_ext4(device: &Path, attributes: MountAttrFlags) -> SysResult<OwnedFd> {
    let context = rustix::mount::fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)
        .operation("open file system type", "ext4")?;
    let configure = || {
        rustix::mount::fsconfig_set_string(&context, "source", device)?;
        // Frees blocks of deleted files on the host's disk.
        rustix::mount::fsconfig_set_flag(&context, "discard")?;
        // A damaged file system takes no more writes: the launcher then stops the sandbox, and its next start repairs the disk.
        rustix::mount::fsconfig_set_string(&context, "errors", "remount-ro")?;
        rustix::mount::fsconfig_create(&context)?;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    configure().operation("mount disk on", device.display())
}

/// Attaches a detached mount at `target`.
pub(crate) fn attach(tree: impl AsFd, target: &Path) -> SysResult<()> {
    rustix::mount::move_mount(
        tree,
        "",
        rustix::fs::CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .operation("attach mount at", target.display())
}

/// Attaches a detached mount at the open folder `target`; `name` is for errors.
pub(crate) fn attach_to(tree: impl AsFd, target: impl AsFd, name: &str) -> SysResult<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", target, "", flags).operation("attach mount at", name)
}

/// Mounts a file system of `kind` at `target`.
pub(crate) fn file_system(
    kind: &str,
    target: &Path,
    flags: MountFlags,
    options: &str,
) -> SysResult<()> {
    let data = CString::new(options)
        .map_err(std::io::Error::from)
        .operation("mount with options", options)?;
    rustix::mount::mount(kind, target, kind, flags, data.as_c_str())
        .operation("mount file system on", target.display())
}

/// Bind-mounts `source` at `target`.
pub(crate) fn bind(source: &Path, target: &Path) -> SysResult<()> {
    rustix::mount::mount_bind(source, target).operation("bind-mount on", target.display())
}

/// Bind-mounts `source` at `target`, read-only and without devices, setuid programs and execution.
pub(crate) fn bind_read_only(source: &Path, target: &Path) -> SysResult<()> {
    bind(source, target)?;
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    rustix::mount::mount_remount(target, flags, c"").operation("make read-only", target.display())
}

/// Keeps mounts made here from appearing in the host's namespace, and the reverse.
pub(crate) fn make_everything_private() -> SysResult<()> {
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .operation("make private", "/")
}

/// Makes `new_root` the root and unmounts the old one.
pub(crate) fn pivot_into(new_root: &Path) -> SysResult<()> {
    rustix::process::chdir(new_root).operation("enter", new_root.display())?;
    // Stacks the old root on the new one, then lazily unmounts it: no directory for it is needed
    // (pivot_root(2), "pivot_root(".", ".")").
    rustix::process::pivot_root(".", ".").operation("pivot into", new_root.display())?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).operation("detach", "the old root")?;
    rustix::process::chdir("/").operation("enter", "/")
}
