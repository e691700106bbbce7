//! Packs a root file system with `tar(1)`, which supports sparse files, extended attributes and hard links.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// A running `tar` process.
#[derive(Debug)]
pub(super) struct TarProcess(Child);

/// Starts packing a root file system. The returned pipe yields the archive.
pub(super) fn pack_root(folder: &Path) -> anyhow::Result<(tokio::fs::File, TarProcess)> {
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
    Ok((pipe, TarProcess(child)))
}

impl TarProcess {
    /// Waits for `tar` to end. Fails if it could not read every file.
    pub(super) fn finish(mut self, folder: &Path) -> anyhow::Result<()> {
        if !self.0.wait().context("waiting for tar")?.success() {
            bail!("tar could not read every file of `{}`", folder.display());
        }
        Ok(())
    }
}
