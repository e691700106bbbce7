//! Copies the contents of one file: shared blocks if the file system can, else in the kernel, else by hand; holes stay
//! holes.

use std::os::fd::OwnedFd;

use rustix::fs::{SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, seek};
use rustix::io::{Errno, pread, pwrite};

use crate::budget::Budget;
use crate::error::TemplateError;

/// One system call copies at most this much, so that limits and the progress callback are heeded in between.
const STEP: u64 = 8 << 20;
/// Buffer for file systems between which the kernel does not copy.
const BUFFER: usize = 128 << 10;

/// Remembers what the pair of file systems cannot do, so that each file does not ask again.
#[derive(Debug, Default)]
pub(super) struct Copier {
    no_clone: bool,
    no_kernel_copy: bool,
}

/// Failure of a copy: the system's, or a limit.
#[derive(Debug)]
pub(super) enum CopyError {
    System(Errno),
    Stopped(TemplateError),
}

impl CopyError {
    pub(super) fn into_template_error(
        self,
        wrap: impl FnOnce(Errno) -> TemplateError,
    ) -> TemplateError {
        match self {
            Self::System(error) => wrap(error),
            Self::Stopped(error) => error,
        }
    }
}

impl From<Errno> for CopyError {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<TemplateError> for CopyError {
    fn from(error: TemplateError) -> Self {
        Self::Stopped(error)
    }
}

impl Copier {
    /// Copies the first `size` bytes; a file that grows meanwhile is cut there, one that shrinks ends in a hole.
    pub(super) fn copy(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        size: u64,
        budget: &mut Budget<'_>,
    ) -> Result<(), CopyError> {
        if size == 0 {
            return Ok(());
        }
        if !self.no_clone {
            match ioctl_ficlone(to, from) {
                Ok(()) => return Ok(budget.bytes(size)?),
                Err(_) => self.no_clone = true,
            }
        }
        ftruncate(to, size)?;
        let mut at = 0;
        while at < size {
            let data = match seek(from, SeekFrom::Data(at)) {
                Ok(data) => data,
                // Only a hole is left.
                Err(Errno::NXIO) => break,
                // This file system knows no holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                Err(error) => return Err(error.into()),
            };
            let end = seek(from, SeekFrom::Hole(data)).unwrap_or(size).min(size);
            if end <= data {
                break;
            }
            self.extent(from, to, data, end, budget)?;
            at = end;
        }
        Ok(())
    }

    fn extent(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        start: u64,
        end: u64,
        budget: &mut Budget<'_>,
    ) -> Result<(), CopyError> {
        let mut at = start;
        while at < end {
            let step = (end - at).min(STEP);
            let copied = self.step(from, to, at, step)?;
            if copied == 0 {
                break;
            }
            budget.bytes(copied)?;
            at += copied;
        }
        Ok(())
    }

    fn step(&mut self, from: &OwnedFd, to: &OwnedFd, at: u64, length: u64) -> Result<u64, Errno> {
        if !self.no_kernel_copy {
            let (mut from_at, mut to_at) = (at, at);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            match copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), length) {
                // Some file systems answer 0 where they mean that they cannot.
                Ok(0) => {}
                Ok(copied) => return Ok(copied as u64),
                Err(Errno::INTR) => return self.step(from, to, at, length as u64),
                Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => {
                    self.no_kernel_copy = true;
                }
                Err(error) => return Err(error),
            }
        }
        by_hand(from, to, at, length)
    }
}

fn by_hand(from: &OwnedFd, to: &OwnedFd, at: u64, length: u64) -> Result<u64, Errno> {
    let mut buffer = vec![0; BUFFER.min(usize::try_from(length).unwrap_or(BUFFER))];
    let read = pread(from, &mut buffer, at)?;
    let mut written = 0;
    while written < read {
        written += pwrite(to, &buffer[written..read], at + written as u64)?;
    }
    Ok(read as u64)
}
