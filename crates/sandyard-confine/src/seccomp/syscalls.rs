//! Numbers of the system calls by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The numbers of one system call: on x86_64 and on aarch64.
#[derive(Clone, Copy)]
pub(super) struct Syscall {
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Syscall {
    /// Gives the number on the architecture we are built for, if it has this call.
    pub(super) fn number(self) -> Option<u32> {
        if cfg!(target_arch = "x86_64") {
            self.x86_64
        } else {
            self.aarch64
        }
    }
}

/// All of them. A number that cannot be read counts as absent, which the tests exclude.
static SYSCALLS: LazyLock<BTreeMap<&str, Syscall>> = LazyLock::new(|| {
    let lines = include_str!("../../seccomp/syscalls.txt").lines();
    let calls = lines.filter_map(|line| {
        let mut columns = line.split(' ');
        let name = columns.next().filter(|name| !name.starts_with('#'))?;
        let mut number = || Some(columns.next()?.parse().ok());
        let (x86_64, aarch64) = (number()?, number()?);
        Some((name, Syscall { x86_64, aarch64 }))
    });
    calls.collect()
});

/// Finds a system call known to any architecture.
pub(super) fn find(name: &str) -> Option<Syscall> {
    SYSCALLS.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_no_number_occurs_twice() {
        let lines = include_str!("../../seccomp/syscalls.txt").lines();
        let names: Vec<_> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert!(names.is_sorted_by(|one, other| one < other));
        assert!(names.iter().eq(SYSCALLS.keys()));
        let has_number = |call: &Syscall| call.x86_64.is_some();
        assert!(SYSCALLS.values().all(has_number));
        for pick in [|call: &Syscall| call.x86_64, |call: &Syscall| call.aarch64] {
            let mut numbers: Vec<u32> = SYSCALLS.values().filter_map(pick).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }

    #[test]
    fn numbers_agree_with_the_c_library() {
        for (name, number) in [
            ("read", libc::SYS_read),
            ("clone", libc::SYS_clone),
            ("ioctl", libc::SYS_ioctl),
            ("socket", libc::SYS_socket),
            ("mount", libc::SYS_mount),
            ("ptrace", libc::SYS_ptrace),
            ("openat", libc::SYS_openat),
            ("setns", libc::SYS_setns),
            ("bpf", libc::SYS_bpf),
            ("seccomp", libc::SYS_seccomp),
            ("newfstatat", libc::SYS_newfstatat),
            ("statx", libc::SYS_statx),
            ("clone3", libc::SYS_clone3),
            ("mseal", libc::SYS_mseal),
        ] {
            let found = find(name).and_then(Syscall::number).map(i64::from);
            assert_eq!(found, Some(number), "{name}");
        }
    }
}
