//! A root tree as an archive, by `tar(1)`: it knows sparse files, extended attributes and hard links.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// `tar` at work.
#[derive(Debug)]
pub(super) struct Packing(Child);

/// Packs a root tree; the archive is read while it is made.
pub(super) fn pack_root(folder: &Path) -> anyhow::Result<(tokio::fs::File, Packing)> {
    let mut child = Command::new("tar")
        .args([
            "--create",
            "--numeric-owner",
            "--xattrs",
            "--one-file-system",
            "--file=-",
            "--directory",
        ])
        .arg(folder)
        .arg(".")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting tar")?;
    let pipe = child.stdout.take().context("reading from tar")?;
    let pipe = tokio::fs::File::from_std(std::os::fd::OwnedFd::from(pipe).into());
    Ok((pipe, Packing(child)))
}

impl Packing {
    /// Waits for its end; fails if it could not read everything.
    pub(super) fn finish(mut self, folder: &Path) -> anyhow::Result<()> {
        if !self.0.wait().context("waiting for tar")?.success() {
            bail!("tar could not read all of `{}`", folder.display());
        }
        Ok(())
    }
}
