//! Who the probe is, as the kernel says.

use serde::{Deserialize, Serialize};

/// The probe's ids and privileges, read from /proc/self/status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Effective user id inside.
    pub uid: u32,
    /// Effective group id inside.
    pub gid: u32,
    /// Effective capabilities, one bit each.
    pub effective_caps: u64,
    /// Permitted capabilities.
    pub permitted_caps: u64,
    /// Capabilities that any program, a setuid one too, can ever get.
    pub bounding_caps: u64,
    /// 0 none, 1 strict, 2 filter.
    pub seccomp_mode: u32,
    /// The kernel's release, which decides what is worth trying.
    pub kernel: String,
    /// The host's name as seen from here.
    pub hostname: String,
}

impl Identity {
    pub(crate) fn take() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let uname = rustix::system::uname();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            kernel: uname.release().to_string_lossy().into_owned(),
            hostname: uname.nodename().to_string_lossy().into_owned(),
            ..Self::from_status(&status)
        }
    }

    /// Reads the capability and seccomp lines of a status file.
    pub(crate) fn from_status(status: &str) -> Self {
        let hex = |name| {
            field(status, name)
                .and_then(|text| u64::from_str_radix(text, 16).ok())
                .unwrap_or_default()
        };
        let effective =
            |name| field(status, name).and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        Self {
            uid: effective("Uid").unwrap_or_default(),
            gid: effective("Gid").unwrap_or_default(),
            effective_caps: hex("CapEff"),
            permitted_caps: hex("CapPrm"),
            bounding_caps: hex("CapBnd"),
            seccomp_mode: field(status, "Seccomp")
                .and_then(|mode| mode.parse().ok())
                .unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The value after `name:` in a status file.
pub(crate) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_are_read() {
        let status = "Name:\tx\nUid:\t5\t7\t5\t5\nCapEff:\t0000000000000003\nCapBnd:\t00ff\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let identity = Identity::from_status(status);
        assert_eq!(
            (
                identity.uid,
                identity.effective_caps,
                identity.bounding_caps,
                identity.seccomp_mode
            ),
            (7, 3, 255, 2)
        );
    }
}
