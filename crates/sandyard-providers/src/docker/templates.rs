//! Templates: images of ours by their short names, and all others by their own.

use std::io;

use bollard::body_try_stream;
use bollard::models::{ImageInspect, ImageSummary};
use bollard::query_parameters::{CreateImageOptions, ListImagesOptions, RemoveImageOptions};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use sandyard_provider::{ArchiveReader, ProviderErrorKind, TemplateInfo};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::check;
use super::convert::daemon_time_ms;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, if_there, invalid, known};
use super::labels::{BASE, IMAGE};
use super::names::{full_name, is_reserved, own_name, template_of};

/// What an archive must have at least to be one.
const LEAST: usize = 16;

impl Shared {
    /// All images that have a name.
    pub(super) async fn templates(&self) -> DaemonResult<Vec<TemplateInfo>> {
        let images = self.daemon.list_images(None::<ListImagesOptions>).await?;
        let mut all: Vec<_> = images.iter().flat_map(|image| self.named(image)).collect();
        let default = &self.config.image;
        if !all.iter().any(|one| one.name == *default) {
            all.push(TemplateInfo {
                is_ours: true,
                name: default.clone(),
                created_ms: None,
                size_bytes: None,
                note: Some("not there yet: fetched when it is first used".to_owned()),
            });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        Ok(all)
    }

    fn named(&self, image: &ImageSummary) -> Vec<TemplateInfo> {
        let owner = image.labels.get(IMAGE).filter(|owner| !owner.is_empty());
        let is_own = owner == Some(&self.config.installation);
        // What a container can be made from, and no more.
        let name = |tag: &String| -> Option<(String, bool)> {
            let own = template_of(tag).filter(|name| is_own && check::is_template_name(name));
            match own {
                _ if self.is_default(tag) => Some((self.config.image.clone(), true)),
                Some(name) => Some((name.to_owned(), true)),
                None if owner.is_some() || is_reserved(&full_name(tag)) => None,
                None => Some((tag.clone(), false)),
            }
        };
        let tags = image.repo_tags.iter().filter(|tag| *tag != "<none>:<none>");
        let info = |(name, is_ours)| TemplateInfo {
            is_ours,
            name,
            created_ms: Some(image.created.saturating_mul(1000)),
            size_bytes: u64::try_from(image.size).ok(),
            note: note(image.labels.get(BASE)),
        };
        tags.filter_map(name).map(info).collect()
    }

    /// Makes an image of the files in an archive.
    pub(super) async fn import(
        &self,
        name: &str,
        mut archive: ArchiveReader,
    ) -> DaemonResult<TemplateInfo> {
        self.need_free_name(name).await?;
        let mut head = vec![0; LEAST];
        let read = archive.read_exact(&mut head).await;
        read.map_err(|_| invalid("the archive is empty, or ends at once"))?;
        let head = stream::iter([Ok::<_, io::Error>(Bytes::from(head))]);
        let body = head.chain(ReaderStream::with_capacity(archive, 256 << 10));
        let options = CreateImageOptions {
            from_src: Some("-".to_owned()),
            repo: Some(format!("sandyard/{name}")),
            tag: Some("latest".to_owned()),
            changes: vec![format!("LABEL {IMAGE}={}", self.config.installation)],
            ..CreateImageOptions::default()
        };
        let body = Some(body_try_stream(body));
        let mut steps = Box::pin(self.daemon.create_image(Some(options), body, None));
        while let Some(step) = steps.next().await {
            step.map_err(not_imported)?;
        }
        let found = self.daemon.inspect_image(&own_name(name)).await?;
        Ok(template(name.to_owned(), &found))
    }

    /// Removes a template of ours. Containers made from it keep what they need.
    pub(super) async fn remove_template(&self, name: &str) -> DaemonResult {
        let short: String = name.chars().take(80).collect();
        let short = short.escape_debug();
        if self.is_default(name) {
            return Err(invalid(format!(
                "`{short}` is the default template, which stays"
            )));
        }
        if self.own_image(name).await?.is_none() {
            return Err(match self.foreign_image(name).await?.is_some() {
                true => invalid(format!(
                    "the image `{short}` is not one that was made here: use `docker rmi`"
                )),
                false => known(
                    ProviderErrorKind::NotFound,
                    format!("no template `{short}`"),
                ),
            });
        }
        let options = RemoveImageOptions {
            // The name goes even while there are containers of it.
            force: true,
            ..RemoveImageOptions::default()
        };
        let image = own_name(name);
        let removed = self.daemon.remove_image(&image, Some(options), None);
        if_there(removed.await).map(drop)
    }
}

/// What can be told of a template.
pub(super) fn template(name: String, image: &ImageInspect) -> TemplateInfo {
    let config = image.config.as_ref();
    let labels = config.and_then(|config| config.labels.as_ref());
    TemplateInfo {
        is_ours: true,
        name,
        created_ms: image.created.as_deref().and_then(daemon_time_ms),
        size_bytes: image.size.and_then(|size| u64::try_from(size).ok()),
        note: note(labels.and_then(|labels| labels.get(BASE))),
    }
}

fn note(base: Option<&String>) -> Option<String> {
    let base = base.filter(|base| !base.is_empty())?;
    Some(format!("from a sandbox of `{base}`"))
}

/// Says what is wrong with an archive, where that is what is wrong.
fn not_imported(error: bollard::errors::Error) -> Fault {
    let fault = Fault::from(error);
    let text = fault.text();
    let is_bad = ["tar", "archive", "EOF", "compress", "header", "magic"];
    let is_full = text.contains("no space left");
    if !fault.is_lost() && !is_full && is_bad.iter().any(|word| text.contains(word)) {
        return invalid(format!("the archive cannot be read: {text}"));
    }
    fault
}
