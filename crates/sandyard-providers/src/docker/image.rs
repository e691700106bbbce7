//! Images: which one belongs to a template, pulled if that is allowed.

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
use super::error::{DaemonResult, Fault, if_exists, shorten, timed_out};
use super::labels::{BASE, IMAGE, label_value};
use super::names::{EMPTY, full_name, has_name, is_reserved, own_name};
use super::tar;

/// An image, as far as containers need it.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Its digest, which stays the same when its name is reused.
    pub(super) id: String,
    /// Its user, unless that is root.
    pub(super) user: Option<String>,
    /// Its variables.
    pub(super) env: BTreeMap<String, String>,
    /// Its configuration, which snapshots of its containers inherit.
    pub(super) config: bollard::models::ImageConfig,
    /// Whether it is a snapshot of a sandbox.
    pub(super) is_snapshot: bool,
}

impl From<ImageInspect> for Image {
    fn from(image: ImageInspect) -> Self {
        let config = image.config.unwrap_or_default();
        let is_root = |user: &&String| {
            let name = user.split(':').next().unwrap_or_default();
            matches!(name, "" | "0" | "root")
        };
        let variable = |text: &String| {
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let env = config.env.iter().flatten().filter_map(variable).collect();
        let is_snapshot = config.labels.as_ref().is_some_and(|labels| {
            [IMAGE, BASE]
                .iter()
                .all(|key| label_value(labels, key).is_some())
        });
        Self {
            id: image.id.unwrap_or_default(),
            user: config.user.as_ref().filter(|user| !is_root(user)).cloned(),
            env,
            is_snapshot,
            config,
        }
    }
}

impl Shared {
    /// Bounds requests that transfer nothing, because a pull may take far longer.
    async fn with_quick_timeout<T>(
        &self,
        request: impl Future<Output = DaemonResult<T>>,
    ) -> DaemonResult<T> {
        let timeout = self.config.timeouts.quick;
        let result = tokio::time::timeout(timeout, request).await;
        result.unwrap_or_else(|_| Err(timed_out(Verb::Create, timeout).into()))
    }

    /// The image of a template: one of this installation by that name, or another image by its own name. Has its own timeouts.
    pub(super) async fn image(&self, template: &str, is_restricted: bool) -> DaemonResult<Image> {
        let is_default = self.is_default(template);
        // The default image is the operator's, and precedes templates of users with the same name.
        if !is_default
            && let Some(image) = self.with_quick_timeout(self.own_image(template)).await?
        {
            return Ok(image.into());
        }
        if is_restricted && !is_default {
            return Err(not_for_users(template));
        }
        if !self.is_fetchable(template) {
            return Err(no_image(template, None));
        }
        if self.config.pull == Pull::Always {
            self.pull(template).await?;
        }
        if let Some(foreign) = self
            .with_quick_timeout(self.foreign_image(template))
            .await?
        {
            return Ok(foreign.into());
        }
        if self.config.pull == Pull::Never {
            return Err(no_image(template, None));
        }
        self.pull(template).await?;
        let foreign = self
            .with_quick_timeout(self.foreign_image(template))
            .await?;
        foreign
            .map(Image::from)
            .ok_or_else(|| no_image(template, None))
    }

    /// An image that is not a template. Templates of any installation are not found by their image names, because only the service
    /// knows their owners.
    pub(super) async fn foreign_image(&self, name: &str) -> DaemonResult<Option<ImageInspect>> {
        if !self.is_fetchable(name) {
            return Ok(None);
        }
        let image = if_exists(self.daemon.inspect_image(&full_name(name)).await)?;
        let is_usable = |image: &ImageInspect| {
            has_name(image, name) && (owner(image).is_none() || self.is_default(name))
        };
        Ok(image.filter(is_usable))
    }

    /// Whether a name can be that of an image that is not a template.
    fn is_fetchable(&self, name: &str) -> bool {
        let is_free = !is_reserved(&full_name(name)) || self.is_default(name);
        check::is_image_name(name) && is_free
    }

    /// Whether a name is that of the default image, which is for all users.
    pub(super) fn is_default(&self, name: &str) -> bool {
        full_name(name) == full_name(&self.config.image)
    }

    /// A template of this installation; `None` if there is none of that name.
    pub(super) async fn own_image(&self, template: &str) -> DaemonResult<Option<ImageInspect>> {
        if !check::is_template_name(template) {
            return Ok(None);
        }
        let image = if_exists(self.daemon.inspect_image(&own_name(template)).await)?;
        Ok(image.filter(|image| self.is_own(image)))
    }

    /// Whether this installation created an image.
    pub(super) fn is_own(&self, image: &ImageInspect) -> bool {
        owner(image) == Some(&self.config.installation)
    }

    /// The empty image, which is created if it is missing.
    pub(super) async fn empty_image(&self) -> DaemonResult<String> {
        if if_exists(self.daemon.inspect_image(EMPTY).await)?.is_some() {
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

    /// Removes an image of this installation that has no name any more; one that is in use stays.
    pub(super) async fn remove_unnamed_image(&self, id: &str) -> DaemonResult {
        let Some(image) = if_exists(self.daemon.inspect_image(id).await)? else {
            return Ok(());
        };
        let has_name = image
            .repo_tags
            .as_ref()
            .is_some_and(|tags| !tags.is_empty());
        if has_name || !self.is_own(&image) {
            return Ok(());
        }
        let options = None::<RemoveImageOptions>;
        match if_exists(self.daemon.remove_image(id, options, None).await) {
            Err(fault) if fault.status() != Some(409) => Err(fault),
            _ => Ok(()),
        }
    }

    /// All labels of a container.
    pub(super) async fn labels_of(&self, id: &str) -> DaemonResult<HashMap<String, String>> {
        let options = None::<bollard::query_parameters::InspectContainerOptions>;
        let container = if_exists(self.daemon.inspect_container(id, options).await)?;
        let labels = container.and_then(|container| container.config?.labels);
        labels.ok_or_else(|| super::error::no_instance(id).into())
    }
}

/// The installation that created an image; `None` if none did.
pub(super) fn owner(image: &ImageInspect) -> Option<&String> {
    label_value(image.config.as_ref()?.labels.as_ref()?, IMAGE)
}

pub(super) fn no_image(name: &str, reason: Option<&str>) -> Fault {
    let shortened = shortened(name);
    let message = format!("there is no template or image `{shortened}`");
    let hint = format!("`docker pull {shortened}` on the daemon's host, or import a template");
    let error = ProviderError::new(ProviderErrorKind::NotFound, message).hint(Some(hint));
    let reason = reason.map_or_else(|| "not found".to_owned(), shorten);
    error.source(reason).into()
}

fn not_for_users(name: &str) -> Fault {
    let message = format!("there is no template `{}`", shortened(name));
    let hint = "only an admin may use other images; `sandbox.user_templates` lists those for users";
    let error = ProviderError::new(ProviderErrorKind::NotFound, message);
    error.hint(Some(hint.to_owned())).into()
}

pub(super) fn shortened(name: &str) -> String {
    let shortened: String = name.chars().take(100).collect();
    shortened.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_a_user_of_its_own() {
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
