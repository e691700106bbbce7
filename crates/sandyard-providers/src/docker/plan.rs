//! The plan of a container from a spec.

use std::sync::Arc;

use bollard::models::{MountVolumeOptions, MountVolumeOptionsDriverConfig};
use sandyard_core::Limits;
use sandyard_provider::{InstanceSpec, ProviderErrorKind};

use super::body::{AGENT_FOLDER, Plan, WORKSPACE_PATH, folder, plain_volume, volume};
use super::check;
use super::config::{DockerNetwork, Workspace};
use super::daemon::Shared;
use super::error::{DaemonResult, fault, if_exists, invalid};
use super::image::Image;
use super::labels::{INSTALLATION, InstanceLabels, LabelValues, SANDBOX, WORKSPACE};
use super::sealed::Private;
use super::volumes::{DRIVER, volume_name};

/// User of commands if neither the image nor the settings name one.
const USER: &str = "user";

impl Shared {
    /// What a container is made of.
    pub(super) async fn plan<'a>(
        self: &'a Arc<Self>,
        spec: &'a InstanceSpec,
        image: &'a Image,
        instance_labels: &InstanceLabels,
    ) -> DaemonResult<Plan<'a>> {
        check::spec(spec, &self.config.limits.1)?;
        let hostname = spec.hostname.as_deref().unwrap_or(spec.sandbox_id.as_str());
        if hostname.is_empty() || hostname.len() > 63 || hostname.contains(char::is_control) {
            return Err(invalid("a host name must have 1 to 63 characters"));
        }
        let project = check::project_folder(&self.config, spec.project.as_deref())?;
        for mount in &spec.mounts {
            self.require_volume(&mount.volume).await?;
        }
        let agent = self.agent_volume().await?;
        let mut mounts = vec![plain_volume(&agent, AGENT_FOLDER, true)];
        let mut workspace = None;
        match (&project, self.config.workspace) {
            (Some(source), _) => mounts.push(folder(source, WORKSPACE_PATH)),
            (None, Workspace::Layer) => {}
            (None, Workspace::Volume) => {
                let name = instance_labels.workspace();
                mounts.push(volume(
                    &name,
                    WORKSPACE_PATH,
                    self.workspace_options(instance_labels, &spec.limits),
                    false,
                ));
                workspace = Some(name);
            }
        }
        let volumes = spec.mounts.iter();
        mounts.extend(
            volumes.map(|mount| plain_volume(&volume_name(&mount.volume), &mount.path, false)),
        );
        let mut env = image.env.clone();
        env.extend(spec.env.clone());
        let private = Private {
            env,
            access_token: spec.access_token.clone(),
        };
        let private = self.seal.seal(spec.sandbox_id.as_str(), &private);
        let private = private.ok_or_else(|| invalid("the variables cannot be encrypted"))?;
        let mut limitations = self.daemon_info.limitations(self.config.workspace);
        if project.is_some() {
            limitations.push("the size of the project's folder is not limited".to_owned());
        }
        let labels = instance_labels.labels(&LabelValues {
            template: &spec.template,
            limits: &spec.limits,
            mounts: &spec.mounts,
            project: spec.project.as_deref(),
            workspace: workspace.as_deref(),
            limitations: &limitations,
            private: &private,
        });
        let user = self.config.user.as_deref().or(image.user.as_deref());
        let mut options = vec!["--user".to_owned(), user.unwrap_or(USER).to_owned()];
        if self.config.network == DockerNetwork::Gateway {
            options.push("--egress".to_owned());
        }
        options.push(format!("--tools-port={}", self.config.tools_port));
        Ok(Plan {
            image: &image.id,
            hostname,
            labels,
            limits: &spec.limits,
            mounts,
            options,
            network: &self.config.network,
            runtime: self.config.runtime.as_deref(),
            has_new_privileges: self.config.has_new_privileges,
            seccomp: self.seccomp.as_deref(),
        })
    }

    fn workspace_options(
        &self,
        instance_labels: &InstanceLabels,
        limits: &Limits,
    ) -> MountVolumeOptions {
        let labels = [
            (INSTALLATION, self.config.installation.clone()),
            (SANDBOX, instance_labels.sandbox_id.to_string()),
            (WORKSPACE, instance_labels.name.clone()),
        ];
        MountVolumeOptions {
            // A new volume gets the files of the image, in particular those of a snapshot.
            no_copy: Some(false),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            driver_config: self.size_limit(limits.disk_bytes).map(|options| {
                MountVolumeOptionsDriverConfig {
                    name: Some(DRIVER.to_owned()),
                    options: Some(options),
                }
            }),
            ..MountVolumeOptions::default()
        }
    }

    /// Refuses a missing volume, because the daemon would create it.
    pub(super) async fn require_volume(&self, id: &str) -> DaemonResult {
        let short: String = id.chars().take(64).collect();
        let absent = || fault(ProviderErrorKind::NotFound, format!("no volume `{short}`"));
        if !check::is_volume_id(id) {
            return Err(absent());
        }
        let volume_info = if_exists(self.daemon.inspect_volume(&volume_name(id)).await)?;
        let owner =
            volume_info.and_then(|volume_info| volume_info.labels.get(INSTALLATION).cloned());
        match owner.is_some_and(|owner| owner == self.config.installation) {
            true => Ok(()),
            false => Err(absent()),
        }
    }
}
