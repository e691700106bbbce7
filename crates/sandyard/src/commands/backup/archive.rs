//! The archive of a backup, written and read by `tar(1)`, which keeps holes, owners, links, devices and extended attributes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Options that keep files as they are.
const EXACT: [&str; 3] = ["--numeric-owner", "--xattrs", "--xattrs-include=*"];
/// A file changed or vanished while it was read: the exit code of GNU tar.
const CHANGED: i32 = 1;

/// An archive in the making. It has its name when it is finished.
#[derive(Debug)]
pub(super) struct Archive {
    file: PathBuf,
    partial: PathBuf,
    is_empty: bool,
}

impl Archive {
    /// Begins one that only its owner can read.
    pub(super) fn create(file: &Path) -> anyhow::Result<Self> {
        let mut partial = file.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut options = OpenOptions::new();
        let made = options.create(true).truncate(true).write(true).mode(0o600);
        made.open(&partial)
            .with_context(|| format!("creating `{}`", partial.display()))?;
        Ok(Self {
            file: file.to_owned(),
            partial,
            is_empty: true,
        })
    }

    /// Adds files and directories by their names below `folder`.
    pub(super) fn add(&mut self, folder: &Path, names: &[String]) -> anyhow::Result<()> {
        let action = match std::mem::take(&mut self.is_empty) {
            true => "--create",
            false => "--append",
        };
        let mut tar = Command::new("tar");
        tar.args([action, "--sparse", "--one-file-system"])
            .args([
                "--warning=no-file-changed",
                "--warning=no-file-removed",
                "--warning=no-file-ignored",
            ])
            .args(EXACT)
            .arg("--file")
            .arg(&self.partial)
            .arg("--directory")
            .arg(folder)
            .arg("--")
            .args(names)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let status = tar.status().context("starting tar")?;
        match status.code() {
            Some(0 | CHANGED) => Ok(()),
            _ => bail!("tar failed; `{}` is as it was before", self.file.display()),
        }
    }

    /// The same for those that exist.
    pub(super) fn add_existing(&mut self, folder: &Path, names: &[&str]) -> anyhow::Result<()> {
        let existing = names.iter().filter(|name| folder.join(name).exists());
        let existing: Vec<_> = existing.map(|name| (*name).to_owned()).collect();
        match existing.is_empty() {
            true => Ok(()),
            false => self.add(folder, &existing),
        }
    }

    /// Writes it out and gives it its name. Returns its size.
    pub(super) fn finish(self) -> anyhow::Result<u64> {
        let file = OpenOptions::new().read(true).open(&self.partial)?;
        file.sync_all().context("writing the backup out")?;
        fs::rename(&self.partial, &self.file)?;
        Ok(file.metadata()?.len())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // Gone if it was finished.
        let _ = fs::remove_file(&self.partial);
    }
}

/// Checks that `tar` is the one that keeps holes and attributes.
pub(super) fn check_program() -> anyhow::Result<()> {
    let version = Command::new("tar").arg("--version").output();
    let version = version.context("starting tar, which this command needs")?;
    if !version.stdout.starts_with(b"tar (GNU tar)") {
        bail!("GNU tar is needed (apt-get install tar)");
    }
    Ok(())
}

/// Reads one of the first files of an archive.
pub(super) fn read(file: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--to-stdout", "--occurrence=1", "--file"])
        .arg(file)
        .arg(name);
    let output = tar.stdin(Stdio::null()).output().context("starting tar")?;
    if !output.status.success() {
        bail!("`{}` is not a backup", file.display());
    }
    Ok(output.stdout)
}

/// Unpacks an archive.
pub(super) fn unpack(file: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--same-owner", "--same-permissions", "--file"])
        .arg(file)
        .args(EXACT)
        .arg("--directory")
        .arg(folder);
    let status = tar.stdin(Stdio::null()).status().context("starting tar")?;
    if !status.success() {
        bail!("tar could not unpack `{}`", file.display());
    }
    Ok(())
}
