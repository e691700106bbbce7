//! VolumeHelpers of volumes as sandboxes of the engine that belong to this process and go with it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sandyard_core::Limits;
use sandyard_engine::{DEFAULT_TEMPLATE, Engine, EngineError, ErrorKind, MountSpec, SandboxSpec};
use sandyard_provider::{ProviderError, Result, VOLUME_PATH, Verb};

use super::error::provider_error;
use crate::volume_helper::{LIMITS, NewVolumeHelper, VolumeHelperBackend};

/// Label: the volume a keeper is for.
const KEEPER: &str = "sandyard.keeper";

/// Makes keepers in an engine.
#[derive(Debug)]
pub(super) struct EngineVolumeHelpers {
    engine: Engine,
    limits: Limits,
}

impl EngineVolumeHelpers {
    /// Each will have a small part of what sandboxes have by default.
    pub(super) fn new(engine: &Engine, default: &Limits) -> Self {
        Self {
            engine: engine.clone(),
            limits: default.least_of(&LIMITS),
        }
    }
}

#[async_trait]
impl VolumeHelperBackend for EngineVolumeHelpers {
    async fn make(&self, volume: &str) -> Result<NewVolumeHelper> {
        let spec = SandboxSpec {
            template: DEFAULT_TEMPLATE.to_owned(),
            limits: self.limits.clone(),
            hostname: Some("volume".to_owned()),
            labels: BTreeMap::from([(KEEPER.to_owned(), volume.to_owned())]),
            mounts: vec![MountSpec {
                volume: volume.to_owned(),
                path: VOLUME_PATH.to_owned(),
            }],
            ..SandboxSpec::default()
        };
        let made = match self.engine.create_ephemeral(&spec).await {
            // The launcher died. What it was making goes with the connection, so nothing is made twice.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                self.engine.create_ephemeral(&spec).await
            }
            other => other,
        };
        let (info, lease) = made.map_err(opening)?;
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
        self.engine.delete(&id).await.map_err(opening)
    }

    async fn all_of(&self, volume: &str) -> Result<Vec<String>> {
        let all = self.engine.list().await.map_err(opening)?;
        let is_its = |label: Option<&String>| label.is_some_and(|of| of == volume);
        let its = all.iter().filter(|info| is_its(info.labels.get(KEEPER)));
        Ok(its.map(|info| info.id.to_string()).collect())
    }
}

fn opening(error: EngineError) -> ProviderError {
    provider_error(Verb::OpenVolume, error)
}
