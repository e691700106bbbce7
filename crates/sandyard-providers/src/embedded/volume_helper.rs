//! Volume helpers as sandboxes of the engine that belong to this process and end with it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sandyard_core::Limits;
use sandyard_engine::{DEFAULT_TEMPLATE, Engine, EngineError, ErrorKind, MountSpec, SandboxSpec};
use sandyard_provider::{ProviderError, Result, VOLUME_PATH, Verb};

use super::error::provider_error;
use crate::volume_helper::{LIMITS, NewVolumeHelper, VolumeHelperBackend};

/// Label: the volume that a helper serves.
const VOLUME_LABEL: &str = "sandyard.keeper";

/// Creates volume helpers in an engine.
#[derive(Debug)]
pub(super) struct EngineVolumeHelpers {
    engine: Engine,
    limits: Limits,
}

impl EngineVolumeHelpers {
    /// Each helper has a small part of the default limits.
    pub(super) fn new(engine: &Engine, default: &Limits) -> Self {
        Self {
            engine: engine.clone(),
            limits: default.least_of(&LIMITS),
        }
    }
}

#[async_trait]
impl VolumeHelperBackend for EngineVolumeHelpers {
    async fn create(&self, volume: &str) -> Result<NewVolumeHelper> {
        let spec = SandboxSpec {
            template: DEFAULT_TEMPLATE.to_owned(),
            limits: self.limits.clone(),
            hostname: Some("volume".to_owned()),
            labels: BTreeMap::from([(VOLUME_LABEL.to_owned(), volume.to_owned())]),
            mounts: vec![MountSpec {
                volume: volume.to_owned(),
                path: VOLUME_PATH.to_owned(),
            }],
            ..SandboxSpec::default()
        };
        let created = match self.engine.create_ephemeral(&spec).await {
            // The launcher died. The sandbox that it was creating ended with the connection, so none exists twice.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                self.engine.create_ephemeral(&spec).await
            }
            other => other,
        };
        let (info, lease) = created.map_err(to_provider_error)?;
        Ok(NewVolumeHelper {
            endpoint: self.engine.agent(&info.id).endpoint().clone(),
            id: info.id.to_string(),
            lease: Box::new(lease),
        })
    }

    async fn remove(&self, id: &str) -> Result<()> {
        let Ok(id) = id.parse() else {
            return Ok(());
        };
        self.engine.delete(&id).await.map_err(to_provider_error)
    }

    async fn list(&self, volume: &str) -> Result<Vec<String>> {
        let all = self.engine.list().await.map_err(to_provider_error)?;
        let is_own =
            |label: Option<&String>| label.is_some_and(|label_volume| label_volume == volume);
        let own = all
            .iter()
            .filter(|info| is_own(info.labels.get(VOLUME_LABEL)));
        Ok(own.map(|info| info.id.to_string()).collect())
    }
}

fn to_provider_error(error: EngineError) -> ProviderError {
    provider_error(Verb::OpenVolume, error)
}
