//! What root inside a sandbox may do.
//!
//! All of these count only within the sandbox's own user namespace: over its own users, processes, files and network.
//! The list is short all the same, since each capability opens kernel code to attack.

use std::io;

/// A capability's number and name, with why root inside keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// Number as in `linux/capability.h`.
    pub number: u32,
    /// Name without `CAP_`.
    pub name: &'static str,
    /// Who needs it.
    pub reason: &'static str,
}

/// Capabilities root inside keeps.
///
/// Dropped with intent: SYS_ADMIN (mounts, namespaces), NET_ADMIN (the agent sets the network up before; netfilter is a
/// rich source of kernel bugs), SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, SYSLOG, BPF, PERFMON, CHECKPOINT_RESTORE,
/// MKNOD (gives nothing in a user namespace), DAC_READ_SEARCH (opening by handle walks out of a root), SYS_RESOURCE
/// (passes quotas and limits), SYS_NICE, IPC_LOCK, IPC_OWNER, LEASE, LINUX_IMMUTABLE, SYS_PACCT, SYS_TTY_CONFIG, the MACs,
/// AUDIT_CONTROL, AUDIT_READ, NET_RAW (raw sockets' buffers are charged to nobody; `ping` needs none), BLOCK_SUSPEND, WAKE_ALARM, NET_BROADCAST, and whatever future kernels add.
pub const RETAINED: &[Capability] = &[
    retained(0, "CHOWN", "package managers set owners"),
    retained(
        1,
        "DAC_OVERRIDE",
        "root reads and writes every file, as root expects",
    ),
    retained(3, "FOWNER", "chmod and utimes on others' files: tar, apt"),
    retained(4, "FSETID", "keeps setuid bits when unpacking packages"),
    retained(5, "KILL", "root stops other users' processes"),
    retained(6, "SETGID", "su, sudo, daemons that change to their user"),
    retained(7, "SETUID", "su, sudo, daemons that change to their user"),
    retained(8, "SETPCAP", "programs that drop capabilities of their own"),
    retained(10, "NET_BIND_SERVICE", "web servers on port 80"),
    retained(18, "SYS_CHROOT", "debootstrap, sshd, package build tools"),
    retained(19, "SYS_PTRACE", "gdb and strace of another user's process"),
    retained(
        29,
        "AUDIT_WRITE",
        "sudo and PAM log through it, and fail without",
    ),
    retained(
        31,
        "SETFCAP",
        "packages that give capabilities to files, as ping does",
    ),
];

const fn retained(number: u32, name: &'static str, reason: &'static str) -> Capability {
    Capability {
        number,
        name,
        reason,
    }
}

/// The capability sets of a thread, one bit per capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapSets {
    /// What counts at the next check.
    pub effective: u64,
    /// What may be made effective.
    pub permitted: u64,
    /// What an exec may pass on to a file that asks for it.
    pub inheritable: u64,
    /// The most any exec can ever give.
    pub bounding: u64,
    /// What an exec passes on to any file.
    pub ambient: u64,
}

/// Says which set could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation}")]
pub struct CapsError {
    operation: String,
    #[source]
    source: io::Error,
}

/// Gives the kept capabilities as bits.
pub fn kept_mask() -> u64 {
    RETAINED
        .iter()
        .fold(0, |mask, retained| mask | 1 << retained.number)
}

/// Confines the calling thread, and all it starts, to [`RETAINED`]. There is no way back.
pub fn confine() -> Result<(), CapsError> {
    confine_to(kept_mask())
}

/// Confines the calling thread, and all it starts, to the capabilities of `mask`. There is no way back.
///
/// The bounding set goes first: dropping from it needs SETPCAP, and it is what holds a setuid program. Where that is refused, the
/// other sets are lowered all the same before the refusal is told.
pub fn confine_to(mask: u64) -> Result<(), CapsError> {
    let bounding = (0..=last_cap())
        .filter(|number| mask & (1 << number) == 0)
        .try_for_each(drop_from_bounding);
    clear_ambient()?;
    let now = get().map_err(|source| failed("read the capability sets", source))?;
    let remaining = now.permitted & mask;
    // Nothing inheritable: it would let a file's inheritable bits survive a change to another user.
    set(remaining, remaining, 0).map_err(|source| failed("lower the capability sets", source))?;
    bounding
}

/// Reads the calling thread's sets.
pub fn current() -> Result<CapSets, CapsError> {
    let mut sets = get().map_err(|source| failed("read the capability sets", source))?;
    for number in 0..=last_cap() {
        sets.bounding |=
            u64::from(prctl(libc::PR_CAPBSET_READ, number, 0).is_ok_and(|is| is == 1)) << number;
        let ambient = prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_IS_SET as u32,
            number,
        );
        sets.ambient |= u64::from(ambient.is_ok_and(|is| is == 1)) << number;
    }
    Ok(sets)
}

/// Finds the highest capability the kernel knows, with no need for /proc.
fn last_cap() -> u32 {
    (0..64)
        .take_while(|number| prctl(libc::PR_CAPBSET_READ, *number, 0).is_ok())
        .last()
        .unwrap_or(0)
}

fn drop_from_bounding(number: u32) -> Result<(), CapsError> {
    match prctl(libc::PR_CAPBSET_READ, number, 0) {
        // Already out, as some are in an outer container: then the right to drop is not needed.
        Ok(0) => Ok(()),
        _ => prctl(libc::PR_CAPBSET_DROP, number, 0)
            .map(|_| ())
            .map_err(|source| failed(&format!("drop capability {number}"), source)),
    }
}

fn clear_ambient() -> Result<(), CapsError> {
    prctl(
        libc::PR_CAP_AMBIENT,
        libc::PR_CAP_AMBIENT_CLEAR_ALL as u32,
        0,
    )
    .map(|_| ())
    .map_err(|source| failed("clear the ambient capabilities", source))
}

fn failed(operation: &str, source: io::Error) -> CapsError {
    let operation = operation.to_owned();
    CapsError { operation, source }
}

fn prctl(option: libc::c_int, first: u32, second: u32) -> io::Result<libc::c_int> {
    let (first, second) = (libc::c_ulong::from(first), libc::c_ulong::from(second));
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take plain numbers and no pointers; unused arguments are zero as they must be.
    match unsafe { libc::prctl(option, first, second, zero, zero) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits in two halves.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn get() -> io::Result<CapSets> {
    let mut header = Header {
        version: VERSION,
        pid: 0,
    };
    let mut halves = [Half::default(); 2];
    // SAFETY: both pointers are to live values of the layout this version has: a header and two halves.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let join =
        |pick: fn(&Half) -> u32| u64::from(pick(&halves[0])) | u64::from(pick(&halves[1])) << 32;
    Ok(CapSets {
        effective: join(|half| half.effective),
        permitted: join(|half| half.permitted),
        inheritable: join(|half| half.inheritable),
        ..CapSets::default()
    })
}

fn set(effective: u64, permitted: u64, inheritable: u64) -> io::Result<()> {
    let mut header = Header {
        version: VERSION,
        pid: 0,
    };
    let half = |shift: u32| Half {
        effective: (effective >> shift) as u32,
        permitted: (permitted >> shift) as u32,
        inheritable: (inheritable >> shift) as u32,
    };
    let halves = [half(0), half(32)];
    // SAFETY: both pointers are to live values of the layout this version has: a header and two halves.
    match unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kept_capability_has_a_reason_and_none_of_the_dangerous_ones_is_kept() {
        assert!(RETAINED.iter().all(|retained| retained.reason.len() > 10));
        // SYS_ADMIN, NET_ADMIN, SYS_MODULE, SYS_RAWIO, DAC_READ_SEARCH, MKNOD, BPF.
        for number in [21, 12, 16, 17, 2, 27, 39] {
            assert_eq!(kept_mask() & (1 << number), 0, "{number}");
        }
    }

    #[test]
    fn current_sets_agree_with_proc() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = |name: &str| {
            let text = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            u64::from_str_radix(text.trim(), 16).unwrap()
        };
        let sets = current().unwrap();
        assert_eq!(
            sets,
            CapSets {
                effective: line("CapEff:"),
                permitted: line("CapPrm:"),
                inheritable: line("CapInh:"),
                bounding: line("CapBnd:"),
                ambient: line("CapAmb:"),
            }
        );
    }
}
