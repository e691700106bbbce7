//! Templates: images of this installation by their short names, and all others by their own names.

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
use super::error::{DaemonResult, Fault, fault, if_exists, invalid};
use super::labels::{BASE, IMAGE};
use super::names::{full_name, is_reserved, own_name, template_of};

/// Minimum size of an archive in bytes.
const MIN_ARCHIVE: usize = 16;

impl Shared {
    /// All images that have a name.
    pub(super) async fn templates(&self) -> DaemonResult<Vec<TemplateInfo>> {
        let images = self.daemon.list_images(None::<ListImagesOptions>).await?;
        let mut all: Vec<_> = images
            .iter()
            .flat_map(|image| self.templates_of(image))
            .collect();
        let default = &self.config.image;
        if !all.iter().any(|info| info.name == *default) {
            all.push(TemplateInfo {
                is_ours: true,
                name: default.clone(),
                created_ms: None,
                size_bytes: None,
                note: Some("pulled when it is first used".to_owned()),
            });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        Ok(all)
    }

    fn templates_of(&self, image: &ImageSummary) -> Vec<TemplateInfo> {
        let owner = image.labels.get(IMAGE).filter(|owner| !owner.is_empty());
        let is_owned = owner == Some(&self.config.installation);
        // The names by which containers can be created.
        let name = |tag: &String| -> Option<(String, bool)> {
            let own = template_of(tag).filter(|name| is_owned && check::is_template_name(name));
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
            note: origin(image.labels.get(BASE)),
        };
        tags.filter_map(name).map(info).collect()
    }

    /// Creates an image of the files in an archive.
    pub(super) async fn import(
        &self,
        name: &str,
        mut archive: ArchiveReader,
    ) -> DaemonResult<TemplateInfo> {
        self.require_free_name(name).await?;
        let mut head = vec![0; MIN_ARCHIVE];
        let read = archive.read_exact(&mut head).await;
        read.map_err(|_| invalid("the archive is empty or too short"))?;
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
            step.map_err(import_error)?;
        }
        let image_info = self.daemon.inspect_image(&own_name(name)).await?;
        Ok(template(name.to_owned(), &image_info))
    }

    /// Removes a template of this installation. Containers created from it keep what they need.
    pub(super) async fn remove_template(&self, name: &str) -> DaemonResult {
        let short: String = name.chars().take(80).collect();
        let short = short.escape_debug();
        if self.is_default(name) {
            return Err(invalid(format!(
                "the default template `{short}` cannot be removed"
            )));
        }
        if self.own_image(name).await?.is_none() {
            return Err(match self.foreign_image(name).await?.is_some() {
                true => invalid(format!(
                    "the image `{short}` was not created by this server: use `docker rmi`"
                )),
                false => fault(
                    ProviderErrorKind::NotFound,
                    format!("no template `{short}`"),
                ),
            });
        }
        let options = RemoveImageOptions {
            // Removes the name even while containers use the image.
            force: true,
            ..RemoveImageOptions::default()
        };
        let image = own_name(name);
        let removed = self.daemon.remove_image(&image, Some(options), None);
        if_exists(removed.await).map(drop)
    }
}

/// The description of a template.
pub(super) fn template(name: String, image: &ImageInspect) -> TemplateInfo {
    let config = image.config.as_ref();
    let labels = config.and_then(|config| config.labels.as_ref());
    TemplateInfo {
        is_ours: true,
        name,
        created_ms: image.created.as_deref().and_then(daemon_time_ms),
        size_bytes: image.size.and_then(|size| u64::try_from(size).ok()),
        note: origin(labels.and_then(|labels| labels.get(BASE))),
    }
}

fn origin(base: Option<&String>) -> Option<String> {
    let base = base.filter(|base| !base.is_empty())?;
    Some(format!("from a sandbox of `{base}`"))
}

/// The error of a failed import: is the archive the cause?
fn import_error(error: bollard::errors::Error) -> Fault {
    let fault = Fault::from(error);
    let text = fault.text();
    let is_bad = ["tar", "archive", "EOF", "compress", "header", "magic"];
    let is_full = text.contains("no space left");
    if !fault.is_lost() && !is_full && is_bad.iter().any(|word| text.contains(word)) {
        return invalid(format!("the archive cannot be read: {text}"));
    }
    fault
}
