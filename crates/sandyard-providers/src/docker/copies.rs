//! Snapshots and forks: images made of containers.
//!
//! A commit keeps the container's own layer. What is in the volume of `/workspace` is not in it, so that is copied into a
//! container of the new image which is never started, and that is committed in turn; a new volume is then filled from the image:
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
use super::error::{DaemonResult, Fault, if_there, invalid, known};
use super::image::Image;
use super::labels::{self, BASE, HELPER, IMAGE, INSTALLATION, random_text};
use super::link::Links;
use super::templates::template;

/// Thaws a container that was frozen for a copy, whatever becomes of that.
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

/// A container or an image that is only needed on the way.
struct Scrap {
    shared: Arc<Shared>,
    container: Option<String>,
    image: Option<String>,
}

impl Scrap {
    async fn clear(&mut self) -> DaemonResult {
        let (container, image) = (self.container.take(), self.image.take());
        self.shared.scrap(container, image).await
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        let (container, image) = (self.container.take(), self.image.take());
        if container.is_some() || image.is_some() {
            let shared = self.shared.clone();
            // What this cannot remove is found by the next sweep.
            tokio::spawn(async move { shared.scrap(container, image).await.is_ok() });
        }
    }
}

impl Shared {
    /// Keeps a container's files as a template.
    pub(super) async fn snapshot(
        self: &Arc<Self>,
        id: &str,
        name: &str,
    ) -> DaemonResult<TemplateInfo> {
        let source = self.get(id).await?;
        self.need_free_name(name).await?;
        let image = self.copy(&source, Some(name)).await?;
        let found = self.daemon.inspect_image(&image).await?;
        Ok(template(name.to_owned(), &found))
    }

    /// Makes a container from another's files, with the other's limits and volumes. The other is kept calm until it is copied.
    pub(super) async fn fork<C>(
        self: &Arc<Self>,
        links: &Links,
        id: &str,
        spec: &InstanceSpec,
        calm: C,
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
        drop(calm);
        // The new container holds the image; with it that goes.
        let mut scrap = Scrap {
            shared: self.clone(),
            container: None,
            image: Some(image.clone()),
        };
        let found = self.daemon.inspect_image(&image).await?;
        let made = self.make(links, &spec, &Image::from(found)).await;
        if made.is_ok() {
            scrap.image = None;
        } else {
            let _ = scrap.clear().await;
        }
        made
    }

    /// Refuses a name that no template can have, or that one has.
    pub(super) async fn need_free_name(&self, name: &str) -> DaemonResult {
        if !check::is_template_name(name) {
            let short: String = name.chars().take(80).collect();
            let short = short.escape_debug();
            return Err(invalid(format!(
                "`{short}` cannot be the name of a template: lower-case letters and digits, with `.`, `_` or `-` between"
            )));
        }
        let image = super::names::own_name(name);
        // Whoever starts from the default must not be given somebody's snapshot.
        let is_taken = self.is_default(name);
        if is_taken || if_there(self.daemon.inspect_image(&image).await)?.is_some() {
            let message = format!("there is a template `{name}` already");
            return Err(known(ProviderErrorKind::Conflict, message));
        }
        Ok(())
    }

    /// Makes an image of a container's files as they are now, under that name or under none.
    async fn copy(
        self: &Arc<Self>,
        source: &Container,
        name: Option<&str>,
    ) -> DaemonResult<String> {
        let id = &source.instance.id;
        let before = if_there(self.daemon.inspect_image(&source.image).await)?;
        let before = before.map(Image::from);
        // Frozen all the while, so that the files fit each other.
        let thaw = self.freeze(source).await?;
        let Some(_volume) = &source.workspace else {
            let image = self.commit(id, source, before.as_ref(), name).await?;
            thaw.now().await?;
            return Ok(image);
        };
        let first = self.commit(id, source, before.as_ref(), None).await?;
        let mut scrap = Scrap {
            shared: self.clone(),
            container: None,
            image: Some(first.clone()),
        };
        let helper = self.helper(&first).await?;
        scrap.container = Some(helper.clone());
        self.carry(id, &helper).await?;
        thaw.now().await?;
        let image = self.commit(&helper, source, before.as_ref(), name).await?;
        scrap.clear().await?;
        Ok(image)
    }

    async fn scrap(&self, container: Option<String>, image: Option<String>) -> DaemonResult {
        if let Some(id) = container {
            self.remove_container(&id).await?;
        }
        match image {
            Some(id) => self.drop_image(&id).await,
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
            self.freeze_now(id).await?;
            thaw.id = Some(id.clone());
        }
        Ok(thaw)
    }

    async fn thaw(&self, id: &str) -> DaemonResult {
        let thaw = || async { Ok::<_, Fault>(self.daemon.unpause_container(id).await?) };
        match self.again(thaw).await {
            // It is not frozen any more, or not there.
            Err(fault) if matches!(fault.status(), Some(404 | 409 | 500)) => {
                match self.find(id).await?.map(|one| one.instance.state) {
                    Some(SandboxState::Paused) => Err(fault),
                    _ => Ok(()),
                }
            }
            other => other,
        }
    }

    /// Makes an image of a container: of its own layer, with the settings of the image it was made from.
    async fn commit(
        &self,
        id: &str,
        source: &Container,
        before: Option<&Image>,
        name: Option<&str>,
    ) -> DaemonResult<String> {
        let labels = labels::all([
            (IMAGE, self.config.installation.as_str()),
            (BASE, source.instance.template.as_str()),
        ]);
        let before = before.map(|image| image.config.clone()).unwrap_or_default();
        let config = ContainerConfig {
            labels: Some(labels),
            user: before.user,
            env: before.env,
            cmd: before.cmd.or_else(|| Some(vec!["/bin/sh".to_owned()])),
            // One that is empty would be taken from the container.
            entrypoint: before.entrypoint.or_else(|| Some(vec![String::new()])),
            working_dir: before.working_dir,
            exposed_ports: before.exposed_ports,
            ..ContainerConfig::default()
        };
        let options = CommitContainerOptions {
            container: Some(id.to_owned()),
            repo: name.map(|name| format!("sandyard/{name}")),
            tag: name.map(|_| "latest".to_owned()),
            comment: Some(format!("from a sandbox of {}", source.instance.template)),
            // It is frozen already, where it runs.
            pause: false,
            ..CommitContainerOptions::default()
        };
        Ok(self.daemon.commit_container(options, config).await?.id)
    }

    /// A container that is never started, to put files into an image.
    async fn helper(&self, image: &str) -> DaemonResult<String> {
        let labels = labels::all([
            (INSTALLATION, self.config.installation.as_str()),
            (HELPER, "copy"),
        ]);
        let name = format!("sandyard-copy-{}", &random_text()[..12]);
        self.never_started(&name, image, labels, Vec::new()).await
    }

    /// Carries the files of `/workspace` from one container to another, as they come.
    async fn carry(&self, from: &str, to: &str) -> DaemonResult {
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
