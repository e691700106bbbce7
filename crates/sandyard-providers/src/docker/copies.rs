//! Snapshots and forks: images of containers.
//!
//! A commit saves the container's own layer, but not the volume of `/workspace`. Its files are copied into a container of the new
//! image, which is never started and committed in turn. A new volume is then filled from the image:
//!
//! ```text
//! container ──commit──▶ image 1 ──create──▶ helper ──commit──▶ image 2
//!     └── volume /workspace ──read──▶ write ───┘
//! ```

use std::io;
use std::sync::Arc;

use bollard::body_try_stream;
use bollard::models::ContainerConfig;
use bollard::query_parameters::{
    CommitContainerOptions, DownloadFromContainerOptions, UploadToContainerOptions,
};
use futures_util::StreamExt;
use sandyard_core::SandboxState;
use sandyard_provider::{InstanceSpec, ProviderErrorKind, TemplateInfo};

use super::body::WORKSPACE_PATH;
use super::check;
use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, fault, if_exists, invalid};
use super::image::Image;
use super::labels::{self, BASE, COPIER, IMAGE, INSTALLATION, random_text};
use super::link::Links;
use super::templates::template;

/// Unpauses a container that was paused for a copy, also after an error.
struct Thaw {
    shared: Arc<Shared>,
    id: Option<String>,
}

impl Thaw {
    async fn now(mut self) -> DaemonResult {
        match self.id.take() {
            Some(id) => self.shared.thaw(&id).await,
            None => Ok(()),
        }
    }
}

impl Drop for Thaw {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let shared = self.shared.clone();
            tokio::spawn(async move {
                if let Err(fault) = shared.thaw(&id).await {
                    tracing::error!(
                        container.id = id,
                        "Failed to thaw a container: {}",
                        fault.text()
                    );
                }
            });
        }
    }
}

/// A container or an image that exists during a copy only.
struct Temporary {
    shared: Arc<Shared>,
    container: Option<String>,
    image: Option<String>,
}

impl Temporary {
    async fn clear(&mut self) -> DaemonResult {
        let (container, image) = (self.container.take(), self.image.take());
        self.shared.remove_temporary(container, image).await
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let (container, image) = (self.container.take(), self.image.take());
        if container.is_some() || image.is_some() {
            let shared = self.shared.clone();
            // The next sweep finds what could not be removed.
            tokio::spawn(async move { shared.remove_temporary(container, image).await.is_ok() });
        }
    }
}

impl Shared {
    /// Saves a container's files as a template.
    pub(super) async fn snapshot(
        self: &Arc<Self>,
        id: &str,
        name: &str,
    ) -> DaemonResult<TemplateInfo> {
        let source = self.get(id).await?;
        self.require_free_name(name).await?;
        let image = self.copy(&source, Some(name)).await?;
        let image_info = self.daemon.inspect_image(&image).await?;
        Ok(template(name.to_owned(), &image_info))
    }

    /// Creates a container from the files of another, with its limits and volumes. `guard` keeps links from being opened until the
    /// source is copied.
    pub(super) async fn fork<C>(
        self: &Arc<Self>,
        links: &Links,
        id: &str,
        spec: &InstanceSpec,
        guard: C,
    ) -> DaemonResult<Container> {
        let source = self.get(id).await?;
        let spec = InstanceSpec {
            template: source.instance.template.clone(),
            limits: source.instance.limits.clone(),
            mounts: source.mounts.clone(),
            project: source.project.clone(),
            ..spec.clone()
        };
        check::spec(&spec, &self.config.limits.1)?;
        let image = self.copy(&source, None).await?;
        drop(guard);
        // The new container keeps the image, which is removed with it.
        let mut temporary = Temporary {
            shared: self.clone(),
            container: None,
            image: Some(image.clone()),
        };
        let image_info = self.daemon.inspect_image(&image).await?;
        let created = self
            .create_container(links, &spec, &Image::from(image_info))
            .await;
        if created.is_ok() {
            temporary.image = None;
        } else {
            let _ = temporary.clear().await;
        }
        created
    }

    /// Refuses an invalid name, and one that is in use.
    pub(super) async fn require_free_name(&self, name: &str) -> DaemonResult {
        if !check::is_template_name(name) {
            let short: String = name.chars().take(80).collect();
            let short = short.escape_debug();
            return Err(invalid(format!(
                "`{short}` is not a valid template name: use lower-case letters and digits, with `.`, `_` or `-` between them"
            )));
        }
        let image = super::names::own_name(name);
        // A create from the default template must not use a user's snapshot.
        let is_in_use = self.is_default(name);
        if is_in_use || if_exists(self.daemon.inspect_image(&image).await)?.is_some() {
            let message = format!("template `{name}` already exists");
            return Err(fault(ProviderErrorKind::Conflict, message));
        }
        Ok(())
    }

    /// Creates an image of a container's files as they are now, with a name or without.
    async fn copy(
        self: &Arc<Self>,
        source: &Container,
        name: Option<&str>,
    ) -> DaemonResult<String> {
        let id = &source.instance.id;
        let base = if_exists(self.daemon.inspect_image(&source.image).await)?;
        let base = base.map(Image::from);
        // Paused meanwhile, so that the files are consistent.
        let thaw = self.freeze(source).await?;
        let Some(_volume) = &source.workspace else {
            let image = self.commit(id, source, base.as_ref(), name).await?;
            thaw.now().await?;
            return Ok(image);
        };
        let first = self.commit(id, source, base.as_ref(), None).await?;
        let mut temporary = Temporary {
            shared: self.clone(),
            container: None,
            image: Some(first.clone()),
        };
        let copier = self.create_copier(&first).await?;
        temporary.container = Some(copier.clone());
        self.copy_workspace(id, &copier).await?;
        thaw.now().await?;
        let image = self.commit(&copier, source, base.as_ref(), name).await?;
        temporary.clear().await?;
        Ok(image)
    }

    async fn remove_temporary(
        &self,
        container: Option<String>,
        image: Option<String>,
    ) -> DaemonResult {
        if let Some(id) = container {
            self.remove_container(&id).await?;
        }
        match image {
            Some(id) => self.remove_unnamed_image(&id).await,
            None => Ok(()),
        }
    }

    async fn freeze(self: &Arc<Self>, source: &Container) -> DaemonResult<Thaw> {
        let mut thaw = Thaw {
            shared: self.clone(),
            id: None,
        };
        if source.instance.state == SandboxState::Running {
            let id = &source.instance.id;
            self.pause_with_retries(id).await?;
            thaw.id = Some(id.clone());
        }
        Ok(thaw)
    }

    async fn thaw(&self, id: &str) -> DaemonResult {
        let thaw = || async { Ok::<_, Fault>(self.daemon.unpause_container(id).await?) };
        match self.retry_once(thaw).await {
            // It is not paused any more, or does not exist.
            Err(fault) if matches!(fault.status(), Some(404 | 409 | 500)) => {
                match self
                    .find(id)
                    .await?
                    .map(|container| container.instance.state)
                {
                    Some(SandboxState::Paused) => Err(fault),
                    _ => Ok(()),
                }
            }
            other => other,
        }
    }

    /// Creates an image of a container's own layer, with the settings of the container's image.
    async fn commit(
        &self,
        id: &str,
        source: &Container,
        base: Option<&Image>,
        name: Option<&str>,
    ) -> DaemonResult<String> {
        let labels = labels::all([
            (IMAGE, self.config.installation.as_str()),
            (BASE, source.instance.template.as_str()),
        ]);
        let base = base.map(|image| image.config.clone()).unwrap_or_default();
        let config = ContainerConfig {
            labels: Some(labels),
            user: base.user,
            env: base.env,
            cmd: base.cmd.or_else(|| Some(vec!["/bin/sh".to_owned()])),
            // An empty one would be replaced by the container's.
            entrypoint: base.entrypoint.or_else(|| Some(vec![String::new()])),
            working_dir: base.working_dir,
            exposed_ports: base.exposed_ports,
            ..ContainerConfig::default()
        };
        let options = CommitContainerOptions {
            container: Some(id.to_owned()),
            repo: name.map(|name| format!("sandyard/{name}")),
            tag: name.map(|_| "latest".to_owned()),
            comment: Some(format!("from a sandbox of {}", source.instance.template)),
            // It is paused already if it runs.
            pause: false,
            ..CommitContainerOptions::default()
        };
        Ok(self.daemon.commit_container(options, config).await?.id)
    }

    /// Creates a container that is never started, to copy files into an image.
    async fn create_copier(&self, image: &str) -> DaemonResult<String> {
        let labels = labels::all([
            (INSTALLATION, self.config.installation.as_str()),
            (COPIER, "copy"),
        ]);
        let name = format!("sandyard-copy-{}", &random_text()[..12]);
        self.create_unstarted(&name, image, labels, Vec::new())
            .await
    }

    /// Streams the files of `/workspace` from one container to another.
    async fn copy_workspace(&self, from: &str, to: &str) -> DaemonResult {
        let options = DownloadFromContainerOptions {
            path: WORKSPACE_PATH.to_owned(),
        };
        let archive = self.daemon.download_from_container(from, Some(options));
        let archive = archive.map(|piece| piece.map_err(io::Error::other));
        let options = UploadToContainerOptions {
            path: "/".to_owned(),
            ..UploadToContainerOptions::default()
        };
        let body = body_try_stream(archive);
        Ok(self
            .daemon
            .upload_to_container(to, Some(options), body)
            .await?)
    }
}
