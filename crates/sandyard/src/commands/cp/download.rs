//! Copies from a sandbox to this host.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sandyard_client::{Client, Download};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::Copied;
use super::location::{Location, last_name};
use super::pack::unpack;
use super::progress::Progress;

/// Copies from a sandbox.
pub(super) async fn download(
    client: &Client,
    progress: &Progress,
    id: &str,
    path: &str,
    to: Location,
) -> anyhow::Result<Copied> {
    let entry = client.stat(id, path).await?;
    let to = match to {
        Location::Host(to) => to,
        Location::Stdio | Location::Sandbox { .. } => {
            if entry.is_folder() {
                bail!("`{path}` is a directory: copy it to a directory");
            }
            let content = client.download(id, path).await?;
            progress.begin(path, content.size_bytes());
            copy(content, progress, tokio::io::stdout()).await?;
            return Ok(copied("-", progress));
        }
    };
    let target = target(&to, path);
    if entry.is_folder() {
        let archive = client.download_folder(id, path).await?;
        progress.begin(path, None);
        let archive = progress.counting(archive.into_reader());
        unpack_as(archive, last_name(path), &target).await?;
    } else {
        let content = client.download(id, path).await?;
        progress.begin(path, content.size_bytes());
        write_file(content, progress, &target).await?;
    }
    Ok(copied(&target.display().to_string(), progress))
}

fn copied(to: &str, progress: &Progress) -> Copied {
    Copied {
        to: to.to_owned(),
        bytes: progress.bytes(),
    }
}

/// The path of the copy: in the target if that is a directory, otherwise the target itself.
fn target(to: &Path, path: &str) -> PathBuf {
    let is_folder = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    match last_name(path) {
        Some(name) if is_folder => to.join(name),
        _ => to.to_owned(),
    }
}

/// Unpacks a directory as `target`. The archive contains it under its own name.
async fn unpack_as(
    archive: impl AsyncRead + Send + Unpin + 'static,
    name: Option<&str>,
    target: &Path,
) -> anyhow::Result<()> {
    let Some(name) = name else {
        return unpack(archive, target.to_owned(), None).await;
    };
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let expected = Some(name.to_owned());
    if target.file_name().is_some_and(|own| own == name) {
        return unpack(archive, folder.to_owned(), expected).await;
    }
    // The copy gets another name, so unpack it next to the target first.
    let staging = folder.join(format!(".sandyard-cp-{}", std::process::id()));
    let mut outcome = unpack(archive, staging.clone(), expected).await;
    if outcome.is_ok() {
        let moved = tokio::fs::rename(staging.join(name), target).await;
        outcome = moved.with_context(|| format!("writing `{}`", target.display()));
    }
    let _ = tokio::fs::remove_dir_all(&staging).await;
    outcome
}

/// Writes a file completely or not at all, unless the target is a device or a pipe.
async fn write_file(content: Download, progress: &Progress, target: &Path) -> anyhow::Result<()> {
    let writing = || format!("writing `{}`", target.display());
    let is_special = std::fs::metadata(target).is_ok_and(|metadata| !metadata.is_file());
    if is_special {
        let file = tokio::fs::OpenOptions::new().write(true).open(target).await;
        return copy(content, progress, file.with_context(writing)?).await;
    }
    let name = target.file_name().with_context(writing)?.to_string_lossy();
    let partial = target.with_file_name(format!(".{name}.part-{}", std::process::id()));
    let file = tokio::fs::File::create_new(&partial)
        .await
        .with_context(writing)?;
    let mut outcome = copy(content, progress, file).await;
    if outcome.is_ok() {
        outcome = tokio::fs::rename(&partial, target)
            .await
            .with_context(writing);
    }
    if outcome.is_err() {
        let _ = tokio::fs::remove_file(&partial).await;
    }
    outcome
}

async fn copy(
    mut content: Download,
    progress: &Progress,
    mut to: impl AsyncWrite + Unpin,
) -> anyhow::Result<()> {
    while let Some(chunk) = content.next().await? {
        progress.add(chunk.len());
        to.write_all(&chunk).await.context("writing the copy")?;
    }
    to.flush().await.context("writing the copy")
}
