//! A copy of this program in memory that cannot be changed.
//!
//! The first process of a sandbox is a fork of the launcher, so `/proc/1/exe` inside is the launcher's program file on the host. If
//! an ordinary user owns that file, root inside is its owner and could change the program that the user starts next (as in
//! CVE-2019-5736). So the launcher of an ordinary user runs from a sealed copy.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

/// Argument that tells the copy the path of the original.
pub(super) const PROGRAM_FLAG: &str = "--program";

/// Executes a sealed copy if that is needed. Returns only if it is not, or if it failed.
pub(super) fn exec_if_needed() -> io::Result<()> {
    let own = Path::new("/proc/self/exe");
    let owner = fs::metadata(own)?.uid();
    if rustix::process::geteuid().is_root()
        || owner != rustix::process::geteuid().as_raw()
        || is_sealed(own)
    {
        return Ok(());
    }
    let copy = copy(own)?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(format!("/proc/self/fd/{}", copy.as_raw_fd()));
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command
        .args(arguments)
        .arg(PROGRAM_FLAG)
        .arg(std::env::current_exe()?);
    Err(command.exec())
}

fn is_sealed(program: &Path) -> bool {
    let seals = File::open(program).and_then(|file| Ok(fcntl_get_seals(file)?));
    seals.is_ok_and(|seals| seals.contains(SealFlags::WRITE))
}

fn copy(program: &Path) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Before Linux 6.3 the flag is unknown, and every such file can be executed.
    let memory = memfd_create("sandyard", flags | MemfdFlags::EXEC)
        .or_else(|_| memfd_create("sandyard", flags))?;
    let mut memory = File::from(memory);
    io::copy(&mut File::open(program)?, &mut memory)?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&memory, all)?;
    Ok(memory)
}
