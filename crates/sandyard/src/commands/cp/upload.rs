//! From here to a sandbox.

use std::path::Path;

use anyhow::{Context as _, bail};
use sandyard_client::{Client, FileEntry};

use super::Copied;
use super::pack::pack;
use super::place::{Place, joined};
use super::progress::Progress;

/// Copies to a sandbox.
pub(super) async fn upload(
    client: &Client,
    progress: &Progress,
    from: Place,
    id: &str,
    path: &str,
) -> anyhow::Result<Copied> {
    let there = existing(client, id, path).await?;
    let is_folder = there.as_ref().is_some_and(FileEntry::is_folder);
    let to = match &from {
        Place::Here(source) if is_folder || path.ends_with('/') => joined(path, &own_name(source)?),
        Place::Standard if is_folder || path.ends_with('/') => {
            bail!("`{path}` is a folder: name a file in it")
        }
        _ => path.to_owned(),
    };
    match from {
        Place::Here(source) if is_dir(&source).await? => {
            if there.is_some() && !is_folder {
                bail!("`{path}` is a file, and a folder cannot take its place");
            }
            upload_folder(client, progress, &source, id, &to).await?;
        }
        Place::Here(source) => upload_file(client, progress, &source, id, &to).await?,
        Place::Standard | Place::Sandbox { .. } => {
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
    // A pipe has no length of its own.
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
    // A file that could not be read is the reason for an archive that could not be sent, not the other way round.
    match packed.await.context("packing")? {
        Err(error) if sent.is_ok() || !is_cut_off(&error) => Err(error),
        _ => Ok(sent?),
    }
}

/// Says whether packing ended because nobody took the archive any more.
fn is_cut_off(error: &anyhow::Error) -> bool {
    let mut kinds = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind);
    kinds.any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}

/// What is at the target already.
async fn existing(client: &Client, id: &str, path: &str) -> anyhow::Result<Option<FileEntry>> {
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

/// The name of a file or folder of this host, also of `.`.
fn own_name(path: &Path) -> anyhow::Result<String> {
    let whole =
        std::fs::canonicalize(path).with_context(|| format!("reading `{}`", path.display()))?;
    let name = path.file_name().or(whole.file_name());
    let name = name.and_then(|name| name.to_str());
    Ok(name
        .with_context(|| format!("`{}` has no name to go by", path.display()))?
        .to_owned())
}
