//! Containers that are never started: they are used to copy files into volumes and images.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, Mount};
use bollard::query_parameters::CreateContainerOptions;

use super::daemon::Shared;
use super::error::DaemonResult;

impl Shared {
    /// Creates one and returns its id.
    pub(super) async fn create_unstarted(
        &self,
        name: &str,
        image: &str,
        labels: HashMap<String, String>,
        mounts: Vec<Mount>,
    ) -> DaemonResult<String> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            // The daemon requires a program.
            entrypoint: Some(vec!["never-started".to_owned()]),
            labels: Some(labels),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(mounts),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptions {
            name: Some(name.to_owned()),
            ..CreateContainerOptions::default()
        };
        Ok(self.daemon.create_container(Some(options), body).await?.id)
    }
}
