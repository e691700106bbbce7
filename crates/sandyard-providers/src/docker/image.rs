//! Images: which one a template is, fetched where that may be.

use std::collections::{BTreeMap, HashMap};

use bollard::body_full;
use bollard::models::ImageInspect;
use bollard::query_parameters::{CreateImageOptions, RemoveImageOptions};
use bytes::Bytes;
use futures_util::StreamExt;
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

use super::check;
use super::config::Pull;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, cut, if_there, timed_out};
use super::labels::{BASE, IMAGE, said};
use super::names::{EMPTY, full_name, is_called, is_reserved, own_name};
use super::tar;

/// An image as a container needs it.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Its digest: what it is, whatever is called so later.
    pub(super) id: String,
    /// Its own user, unless that is root.
    pub(super) user: Option<String>,
    /// Its own variables.
    pub(super) env: BTreeMap<String, String>,
    /// How it was before a container of ours was made of it, for those made of that.
    pub(super) config: bollard::models::ImageConfig,
    /// Whether it was a sandbox once.
    pub(super) is_snapshot: bool,
}

impl From<ImageInspect> for Image {
    fn from(found: ImageInspect) -> Self {
        let config = found.config.unwrap_or_default();
        let is_root = |user: &&String| {
            let name = user.split(':').next().unwrap_or_default();
            matches!(name, "" | "0" | "root")
        };
        let variable = |text: &String| {
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let env = config.env.iter().flatten().filter_map(variable).collect();
        let is_snapshot = config
            .labels
            .as_ref()
            .is_some_and(|labels| [IMAGE, BASE].iter().all(|key| said(labels, key).is_some()));
        Self {
            id: found.id.unwrap_or_default(),
            user: config.user.as_ref().filter(|user| !is_root(user)).cloned(),
            env,
            is_snapshot,
            config,
        }
    }
}

impl Shared {
    /// Bounds what is only looked up: what is fetched may take far longer.
    async fn soon<T>(&self, look: impl Future<Output = DaemonResult<T>>) -> DaemonResult<T> {
        let most = self.config.timeouts.quick;
        let found = tokio::time::timeout(most, look).await;
        found.unwrap_or_else(|_| Err(timed_out(Verb::Create, most).into()))
    }

    /// The image of a template: one of ours by that name, or any that is not ours by its own. Bounded in time by itself.
    pub(super) async fn image(&self, template: &str, is_restricted: bool) -> DaemonResult<Image> {
        let is_default = self.is_default(template);
        // A template of that name would be somebody's; the default is whoever manages this place's.
        if !is_default && let Some(own) = self.soon(self.own_image(template)).await? {
            return Ok(own.into());
        }
        if is_restricted && !is_default {
            return Err(not_for_all(template));
        }
        if !self.is_fetchable(template) {
            return Err(no_image(template, None));
        }
        if self.config.pull == Pull::Always {
            self.pull(template).await?;
        }
        if let Some(found) = self.soon(self.foreign_image(template)).await? {
            return Ok(found.into());
        }
        if self.config.pull == Pull::Never {
            return Err(no_image(template, None));
        }
        self.pull(template).await?;
        let found = self.soon(self.foreign_image(template)).await?;
        found
            .map(Image::from)
            .ok_or_else(|| no_image(template, None))
    }

    /// An image that is not ours; none: there is none of that name. Whose a template of ours is only the service knows, so
    /// those are not to be had by another name than theirs, whichever installation they are of.
    pub(super) async fn foreign_image(&self, name: &str) -> DaemonResult<Option<ImageInspect>> {
        if !self.is_fetchable(name) {
            return Ok(None);
        }
        let found = if_there(self.daemon.inspect_image(&full_name(name)).await)?;
        let is_offered = |found: &ImageInspect| {
            is_called(found, name) && (owner(found).is_none() || self.is_default(name))
        };
        Ok(found.filter(is_offered))
    }

    /// Says whether something is the name of an image that may be somebody else's.
    fn is_fetchable(&self, name: &str) -> bool {
        let is_free = !is_reserved(&full_name(name)) || self.is_default(name);
        check::is_image_name(name) && is_free
    }

    /// Says whether a name is the default image's, which is for everybody whatever it was made from.
    pub(super) fn is_default(&self, name: &str) -> bool {
        full_name(name) == full_name(&self.config.image)
    }

    /// A template of ours; none: there is none of that name.
    pub(super) async fn own_image(&self, template: &str) -> DaemonResult<Option<ImageInspect>> {
        if !check::is_template_name(template) {
            return Ok(None);
        }
        let found = if_there(self.daemon.inspect_image(&own_name(template)).await)?;
        Ok(found.filter(|found| self.is_own(found)))
    }

    /// Says whether an image is one that this installation made.
    pub(super) fn is_own(&self, image: &ImageInspect) -> bool {
        owner(image) == Some(&self.config.installation)
    }

    /// The image with nothing in it, made when it is not there.
    pub(super) async fn empty_image(&self) -> DaemonResult<String> {
        if if_there(self.daemon.inspect_image(EMPTY).await)?.is_some() {
            return Ok(EMPTY.to_owned());
        }
        let archive = [tar::folder("tmp/", 0o1777), tar::END.to_vec()].concat();
        let (repo, tag) = EMPTY.split_once(':').unwrap_or((EMPTY, "latest"));
        let options = CreateImageOptions {
            from_src: Some("-".to_owned()),
            repo: Some(repo.to_owned()),
            tag: Some(tag.to_owned()),
            changes: vec![format!("LABEL {IMAGE}=")],
            ..CreateImageOptions::default()
        };
        let body = Some(body_full(Bytes::from(archive)));
        let mut steps = Box::pin(self.daemon.create_image(Some(options), body, None));
        while let Some(step) = steps.next().await {
            step?;
        }
        Ok(EMPTY.to_owned())
    }

    /// Removes an image of ours that has no name any more; one that is still used stays.
    pub(super) async fn drop_image(&self, id: &str) -> DaemonResult {
        let Some(found) = if_there(self.daemon.inspect_image(id).await)? else {
            return Ok(());
        };
        let has_name = found
            .repo_tags
            .as_ref()
            .is_some_and(|tags| !tags.is_empty());
        if has_name || !self.is_own(&found) {
            return Ok(());
        }
        let options = None::<RemoveImageOptions>;
        match if_there(self.daemon.remove_image(id, options, None).await) {
            Err(fault) if fault.status() != Some(409) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Everything that is written on a container.
    pub(super) async fn labels_of(&self, id: &str) -> DaemonResult<HashMap<String, String>> {
        let options = None::<bollard::query_parameters::InspectContainerOptions>;
        let found = if_there(self.daemon.inspect_container(id, options).await)?;
        let labels = found.and_then(|found| found.config?.labels);
        labels.ok_or_else(|| super::error::no_instance(id).into())
    }
}

/// The installation that made an image; none: it is nobody's of ours.
pub(super) fn owner(image: &ImageInspect) -> Option<&String> {
    said(image.config.as_ref()?.labels.as_ref()?, IMAGE)
}

pub(super) fn no_image(name: &str, why: Option<&str>) -> Fault {
    let short = short(name);
    let message = format!("there is no template or image `{short}`");
    let hint = format!("`docker pull {short}` on the daemon's host, or import a template");
    let error = ProviderError::new(ProviderErrorKind::NotFound, message).hint(Some(hint));
    let why = why.map_or_else(|| "not there".to_owned(), cut);
    error.source(why).into()
}

fn not_for_all(name: &str) -> Fault {
    let message = format!("there is no template `{}`", short(name));
    let hint = "only an admin may name other images; `sandbox.user_templates` lists what users may";
    let error = ProviderError::new(ProviderErrorKind::NotFound, message);
    error.hint(Some(hint.to_owned())).into()
}

pub(super) fn short(name: &str) -> String {
    let short: String = name.chars().take(100).collect();
    short.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_user_is_none() {
        let with = |user: &str| {
            Image::from(ImageInspect {
                config: Some(bollard::models::ImageConfig {
                    user: Some(user.to_owned()),
                    ..Default::default()
                }),
                ..ImageInspect::default()
            })
            .user
        };
        for user in ["", "0", "root", "0:0", "root:root"] {
            assert_eq!(with(user), None, "{user}");
        }
        assert_eq!(with("node").as_deref(), Some("node"));
    }
}
