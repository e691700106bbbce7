//! Disk images: formatting and copying them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek};

use crate::error::{EngineError, ErrorKind, Result};
use crate::sys::OperationExt;

/// Parts whose folders are on an empty image from the start: the first files on an empty file system take the longest.
pub(super) const USUAL_PARTS: [&str; 3] = ["root", "usr", "opt"];

/// Formats an image of `size_bytes` at `image`, with the folders that the overlays of `parts` need.
pub(crate) fn format(image: &Path, size_bytes: u64, parts: &[&str]) -> Result<()> {
    let temporary = PathBuf::from(format!("{}.{}", image.display(), std::process::id()));
    let content = PathBuf::from(format!("{}.d", temporary.display()));
    let prepare = || -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.set_len(size_bytes)?;
        fs::create_dir_all(&content)?;
        for part in parts {
            fs::create_dir_all(content.join(part).join("upper"))?;
            fs::create_dir_all(content.join(part).join("work"))?;
        }
        Ok(())
    };
    let formatted = prepare()
        .operation("make", temporary.display())
        .map_err(EngineError::from)
        .and_then(|()| run_mkfs(&temporary, &content));
    let _ = fs::remove_dir_all(&content);
    if formatted.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    formatted?;
    Ok(fs::rename(&temporary, image).operation("keep", image.display())?)
}

fn run_mkfs(image: &Path, content: &Path) -> Result<()> {
    let output = Command::new("mkfs.ext4")
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .args(["-q", "-F", "-m0", "-b", "4096", "-I", "256", "-i", "16384"])
        // A small journal and no space reserved for resizing: an empty image is then 200 KiB, quick to copy.
        .args(["-O", "^resize_inode", "-J", "size=4"])
        .args([
            "-E",
            "nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0",
        ])
        .arg("-d")
        .arg(content)
        .arg(image)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let message = format!("mkfs.ext4 failed: {}", stderr.trim());
            Err(EngineError::new(ErrorKind::Failed, message))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(EngineError::new(
            ErrorKind::Unsupported,
            "mkfs.ext4 is not installed",
        )
        .hint("install the package e2fsprogs")),
        Err(error) => Err(EngineError::failed("running mkfs.ext4", &error)),
    }
}

/// Copies a sparse file. Shares its blocks where the file system can.
pub(crate) fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let source = File::open(from)?;
    let target = OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(to)?;
    if ioctl_ficlone(&target, &source).is_ok() {
        return Ok(());
    }
    let length = source.metadata()?.len();
    target.set_len(length)?;
    let mut at = 0;
    while at < length {
        let start = match seek(&source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // ENXIO: only a hole follows.
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(&source, SeekFrom::Hole(start))?;
        copy_range(&source, &target, start, end)?;
        at = end;
    }
    Ok(())
}

fn copy_range(source: &File, target: &File, start: u64, end: u64) -> io::Result<()> {
    let (mut read_at, mut write_at) = (start, start);
    while read_at < end {
        let length = (end - read_at) as usize;
        if copy_file_range(
            source,
            Some(&mut read_at),
            target,
            Some(&mut write_at),
            length,
        )? == 0
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_copy_has_the_same_content_and_holes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let file = File::create(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(&[7; 3 << 20], 10 << 20).unwrap();
        file.write_all_at(b"late", (64 << 20) - 4).unwrap();
        copy_sparse(&from, &to).unwrap();
        assert!(fs::read(&from).unwrap() == fs::read(&to).unwrap());
        assert!(fs::metadata(&to).unwrap().blocks() * 512 < 8 << 20);
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o600);
    }
}
