//! Volume helpers as small hidden containers.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bollard::query_parameters::CreateContainerOptions;
use sandyard_agent_client::Endpoint;
use sandyard_core::Limits;
use sandyard_provider::{Result, VOLUME_PATH, Verb};

use super::body::{AGENT_FOLDER, Plan, plain_volume};
use super::config::DockerNetwork;
use super::daemon::Shared;
use super::error::DaemonResult;
use super::labels::{INSTALLATION, PRIVATE, SANDBOX, VOLUME_HELPER, labelled, random_text};
use super::link::Links;
use super::sealed::Private;
use super::volumes::volume_name;
use crate::volume_helper::{LIMITS, NewVolumeHelper, VolumeHelperBackend};

/// Creates volume helpers on a daemon.
pub(super) struct DockerVolumeHelpers {
    pub(super) shared: Arc<Shared>,
    pub(super) links: Links,
}

impl std::fmt::Debug for DockerVolumeHelpers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DockerVolumeHelpers")
    }
}

#[async_trait]
impl VolumeHelperBackend for DockerVolumeHelpers {
    async fn create(&self, volume: &str) -> Result<NewVolumeHelper> {
        let created = self.try_create(volume).await;
        let id = created.map_err(|fault| fault.into_error(Verb::OpenVolume))?;
        Ok(NewVolumeHelper {
            endpoint: Endpoint::Custom(self.links.dialler(&id)),
            id,
            lease: Box::new(()),
        })
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.links.forget(id);
        let removed = self.shared.remove_container(id).await;
        removed.map_err(|fault| fault.into_error(Verb::OpenVolume))
    }

    async fn list(&self, volume: &str) -> Result<Vec<String>> {
        let labels = [
            self.shared.installation_label(),
            labelled(VOLUME_HELPER, Some(volume)),
        ];
        let containers = self.shared.containers(&labels).await;
        let containers = containers.map_err(|fault| fault.into_error(Verb::OpenVolume))?;
        Ok(containers
            .into_iter()
            .filter_map(|container| container.id)
            .collect())
    }
}

impl DockerVolumeHelpers {
    async fn try_create(&self, volume: &str) -> DaemonResult<String> {
        let shared = &self.shared;
        shared.require_volume(volume).await?;
        let image = shared.image(&shared.config.image, false).await?;
        let agent = shared.agent_volume().await?;
        let name = format!("sandyard-volume-helper-{}", &random_text()[..12]);
        // Only this server connects to it, so its token is random and stored nowhere else.
        let private = Private {
            env: image.env.clone(),
            access_token: random_text(),
        };
        let labels = [
            (INSTALLATION, shared.config.installation.clone()),
            (VOLUME_HELPER, volume.to_owned()),
            (SANDBOX, name.clone()),
            (
                PRIVATE,
                shared.seal.seal(&name, &private).unwrap_or_default(),
            ),
        ];
        let labels: HashMap<_, _> = labels.map(|(key, value)| (key.to_owned(), value)).into();
        let limits: Limits = shared.config.limits.0.least_of(&LIMITS);
        let plan = Plan {
            image: &image.id,
            hostname: "volume",
            labels,
            limits: &limits,
            mounts: vec![
                plain_volume(&agent, AGENT_FOLDER, true),
                plain_volume(&volume_name(volume), VOLUME_PATH, false),
            ],
            options: vec!["--user".to_owned(), "root".to_owned()],
            // It has no egress, whatever the setting.
            network: &DockerNetwork::Gateway,
            runtime: shared.config.runtime.as_deref(),
            has_new_privileges: false,
            seccomp: shared.seccomp.as_deref(),
        };
        let body = plan.body(&shared.daemon_info);
        let options = CreateContainerOptions {
            name: Some(name),
            ..CreateContainerOptions::default()
        };
        let id = shared
            .daemon
            .create_container(Some(options), body)
            .await?
            .id;
        let started = shared.start_and_wait(&self.links, &id).await;
        if let Err(fault) = started {
            let _ = shared.remove_container(&id).await;
            return Err(fault);
        }
        Ok(id)
    }
}
