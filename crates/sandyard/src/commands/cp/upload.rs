//! Copies from this host to a sandbox.

use std::path::Path;

use anyhow::{Context as _, bail};
use sandyard_client::{Client, FileEntry};

use super::Copied;
use super::location::{Location, join};
use super::pack::pack;
use super::progress::Progress;

/// Copies to a sandbox.
pub(super) async fn upload(
    client: &Client,
    progress: &Progress,
    from: Location,
    id: &str,
    path: &str,
) -> anyhow::Result<Copied> {
    let existing_entry = existing(client, id, path).await?;
    let is_folder = existing_entry.as_ref().is_some_and(FileEntry::is_folder);
    let to = match &from {
        Location::Host(source) if is_folder || path.ends_with('/') => {
            join(path, &own_name(source)?)
        }
        Location::Stdio if is_folder || path.ends_with('/') => {
            bail!("`{path}` is a directory: give the path of a file in it")
        }
        _ => path.to_owned(),
    };
    match from {
        Location::Host(source) if is_dir(&source).await? => {
            if existing_entry.is_some() && !is_folder {
                bail!("cannot replace the file `{path}` with a directory");
            }
            upload_folder(client, progress, &source, id, &to).await?;
        }
        Location::Host(source) => upload_file(client, progress, &source, id, &to).await?,
        Location::Stdio | Location::Sandbox { .. } => {
            progress.begin(&to, None);
            let input = progress.counting(tokio::io::stdin());
            client.upload(id, &to, input, None).await?;
        }
    }
    Ok(Copied {
        to: format!("{id}:{to}"),
        bytes: progress.bytes(),
    })
}

async fn upload_file(
    client: &Client,
    progress: &Progress,
    source: &Path,
    id: &str,
    to: &str,
) -> anyhow::Result<()> {
    let reading = || format!("reading `{}`", source.display());
    let file = tokio::fs::File::open(source).await.with_context(reading)?;
    let metadata = file.metadata().await.with_context(reading)?;
    // The length of a pipe is not known.
    let size = metadata.is_file().then_some(metadata.len());
    progress.begin(to, size);
    Ok(client.upload(id, to, progress.counting(file), size).await?)
}

async fn upload_folder(
    client: &Client,
    progress: &Progress,
    source: &Path,
    id: &str,
    to: &str,
) -> anyhow::Result<()> {
    progress.begin(to, None);
    let (archive, packed) = pack(source.to_owned());
    let sent = client
        .upload_folder(id, to, progress.counting(archive))
        .await;
    // If both fail, report the file that could not be read: it is the cause of the failed request.
    match packed.await.context("packing")? {
        Err(error) if sent.is_ok() || !is_broken_pipe(&error) => Err(error),
        _ => Ok(sent?),
    }
}

/// Returns whether packing failed because the request ended.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut kinds = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind);
    kinds.any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}

/// The file or directory at the target, if there is one.
pub(super) async fn existing(
    client: &Client,
    id: &str,
    path: &str,
) -> anyhow::Result<Option<FileEntry>> {
    match client.stat(id, path).await {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.code() == Some("file_not_found") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn is_dir(path: &Path) -> anyhow::Result<bool> {
    let metadata = tokio::fs::metadata(path).await;
    Ok(metadata
        .with_context(|| format!("reading `{}`", path.display()))?
        .is_dir())
}

/// The name of a file or directory on this host, also for `.`.
fn own_name(path: &Path) -> anyhow::Result<String> {
    let absolute =
        std::fs::canonicalize(path).with_context(|| format!("reading `{}`", path.display()))?;
    let name = path.file_name().or(absolute.file_name());
    let name = name.and_then(|name| name.to_str());
    Ok(name
        .with_context(|| {
            format!(
                "`{}` has no file name: give the full target path",
                path.display()
            )
        })?
        .to_owned())
}
