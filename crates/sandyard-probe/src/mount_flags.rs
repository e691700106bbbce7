//! The flags of a mount, for mounting it again.

use sandyard_confine::mountinfo::Mount;

/// The mount(2) flags to give again with a remount: leaving a locked one out is refused for that alone.
pub(crate) fn mount_flags(mount: &Mount) -> u64 {
    let flag = |option: &String| match option.as_str() {
        "nosuid" => libc::MS_NOSUID,
        "nodev" => libc::MS_NODEV,
        "noexec" => libc::MS_NOEXEC,
        "noatime" => libc::MS_NOATIME,
        "nodiratime" => libc::MS_NODIRATIME,
        "relatime" => libc::MS_RELATIME,
        _ => 0,
    };
    mount.options.iter().map(flag).fold(0, |all, one| all | one)
}
