//! Installs the compiled policy.

use std::io;

use libc::{sock_filter, sock_fprog};

use super::assemble::assemble;
use super::policy::{Policy, PolicyError};

/// A policy compiled for this architecture. Compile once; install in each sandbox's first process.
#[derive(Clone)]
pub struct Filter {
    program: Vec<sock_filter>,
}

/// Says why the filter is not in force.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The kernel has no filters, or the caller neither has SYS_ADMIN in its user namespace nor set `no_new_privs`.
    #[error("failed to install the seccomp filter")]
    Seccomp(#[source] io::Error),
    /// `no_new_privs` could not be set.
    #[error("failed to set no_new_privs")]
    NoNewPrivs(#[source] io::Error),
}

impl Filter {
    /// Compiles the policy that sandboxes run under.
    pub fn compile() -> Self {
        Self::from_text(Policy::TEXT).expect("a test reads the embedded policy")
    }

    /// Compiles another policy, in the format of [`Policy::TEXT`].
    pub fn from_text(text: &str) -> Result<Self, PolicyError> {
        let program = assemble(&Policy::parse(text)?);
        Ok(Self { program })
    }

    /// Puts the filter on the calling thread and all it starts, for good.
    ///
    /// Needs SYS_ADMIN in the caller's user namespace, so it comes before the capabilities go. Setuid programs keep
    /// working: `sudo` inside needs them, and the filter holds for what they become.
    pub fn install(&self) -> Result<(), InstallError> {
        let fprog = sock_fprog {
            // The kernel refuses what is too long, so a cut-off length cannot pass for a whole program.
            len: u16::try_from(self.program.len()).unwrap_or(u16::MAX),
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel reads `len` instructions from `filter`, which outlives the call, and writes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0_u32,
                &raw const fprog,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(InstallError::Seccomp(io::Error::last_os_error())),
        }
    }

    /// Installs the filter where the caller has no privilege at all. Setuid programs then give nothing.
    pub fn install_with_no_new_privs(&self) -> Result<(), InstallError> {
        rustix::thread::set_no_new_privs(true)
            .map_err(|errno| InstallError::NoNewPrivs(errno.into()))?;
        self.install()
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({} instructions)", self.program.len())
    }
}
