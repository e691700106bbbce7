//! The digest of what is read.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::budget::Budget;
use crate::error::{Result, TemplateError};
use crate::import::tar::read_error;

const BUFFER: usize = 128 << 10;

/// A reader that digests what passes.
pub(super) struct Digesting<R> {
    reader: R,
    digest: Sha256,
}

impl<R: Read> Digesting<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            digest: Sha256::new(),
        }
    }

    /// Reads what is left.
    pub(super) fn read_to_end(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            match self.read(&mut buffer).map_err(read_error)? {
                0 => return Ok(()),
                count => budget.bytes(count as u64)?,
            }
        }
    }

    /// Checks what was read against `expected`, as `sha256:…`.
    pub(super) fn check(self, expected: &str) -> Result<()> {
        let found = self
            .digest
            .finalize()
            .iter()
            .fold("sha256:".to_owned(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
        match found == expected {
            true => Ok(()),
            false => Err(TemplateError::archive(format!(
                "a layer is damaged: its digest is {found} instead of {expected}"
            ))),
        }
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.digest.update(&buffer[..count]);
        Ok(count)
    }
}
