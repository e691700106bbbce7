//! Copies from one sandbox to another. The content passes through this program and is not stored.

use anyhow::bail;
use sandyard_client::{Client, FileEntry};

use super::Copied;
use super::location::{join, last_name};
use super::progress::Progress;
use super::upload::existing;

/// Copies a path of one sandbox to a path of another. Each is an ID and a path.
pub(super) async fn transfer(
    client: &Client,
    progress: &Progress,
    (from_id, from): (&str, &str),
    (to_id, to): (&str, &str),
) -> anyhow::Result<Copied> {
    let source = client.stat(from_id, from).await?;
    let target = existing(client, to_id, to).await?;
    let is_folder = target.as_ref().is_some_and(FileEntry::is_folder);
    let to = match last_name(from) {
        Some(name) if is_folder || to.ends_with('/') => join(to, name),
        _ => to.to_owned(),
    };
    if source.is_folder() {
        if target.is_some() && !is_folder {
            bail!("cannot replace the file `{to}` with a directory");
        }
        // The archive of `a/.` holds the content of `a` without its name.
        let archive = client.download_folder(from_id, &join(from, ".")).await?;
        progress.begin(from, None);
        let archive = progress.counting(archive.into_reader());
        client.upload_folder(to_id, &to, archive).await?;
    } else {
        let content = client.download(from_id, from).await?;
        let size = content.size_bytes();
        progress.begin(from, size);
        let content = progress.counting(content.into_reader());
        client.upload(to_id, &to, content, size).await?;
    }
    Ok(Copied {
        to: format!("{to_id}:{to}"),
        bytes: progress.bytes(),
    })
}
