//! VolumeHelpers of volumes as small containers that nobody sees.

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
use super::labels::{INSTALLATION, KEEPER, PRIVATE, SANDBOX, labelled, random_text};
use super::link::Links;
use super::sealed::Private;
use super::volumes::volume_name;
use crate::volume_helper::{LIMITS, NewVolumeHelper, VolumeHelperBackend};

/// Makes keepers on a daemon.
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
    async fn make(&self, volume: &str) -> Result<NewVolumeHelper> {
        let made = self.try_make(volume).await;
        let id = made.map_err(|fault| fault.into_error(Verb::OpenVolume))?;
        Ok(NewVolumeHelper {
            endpoint: Endpoint::Custom(self.links.way(&id)),
            id,
            lease: Box::new(()),
        })
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.links.forget(id);
        let removed = self.shared.remove_container(id).await;
        removed.map_err(|fault| fault.into_error(Verb::OpenVolume))
    }

    async fn all_of(&self, volume: &str) -> Result<Vec<String>> {
        let labels = [self.shared.ours(), labelled(KEEPER, Some(volume))];
        let found = self.shared.containers(&labels).await;
        let found = found.map_err(|fault| fault.into_error(Verb::OpenVolume))?;
        Ok(found.into_iter().filter_map(|one| one.id).collect())
    }
}

impl DockerVolumeHelpers {
    async fn try_make(&self, volume: &str) -> DaemonResult<String> {
        let shared = &self.shared;
        shared.need_volume(volume).await?;
        let image = shared.image(&shared.config.image, false).await?;
        let agent = shared.agent_volume().await?;
        let name = format!("sandyard-keeper-{}", &random_text()[..12]);
        // Nobody but this server comes to it, so its token is one that nobody knows.
        let private = Private {
            env: image.env.clone(),
            access_token: random_text(),
        };
        let labels = [
            (INSTALLATION, shared.config.installation.clone()),
            (KEEPER, volume.to_owned()),
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
            // It has no way out, whatever others have.
            network: &DockerNetwork::Gateway,
            runtime: shared.config.runtime.as_deref(),
            has_new_privileges: false,
            seccomp: shared.seccomp.as_deref(),
        };
        let body = plan.body(&shared.place);
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
