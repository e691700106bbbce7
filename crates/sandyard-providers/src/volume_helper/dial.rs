//! The way to the agent of a volume.

use std::io;

use sandyard_agent_client::{Dial, Dialling};

use super::VolumeHelpers;

/// The way to the agent of a volume, whichever keeper that is by now.
pub(super) struct HelperDialler {
    pub(super) name: String,
    pub(super) volume: String,
    pub(super) keepers: VolumeHelpers,
}

impl Dial for HelperDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let reached = self.keepers.0.reach_in_time(&self.volume).await;
            reached.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))
        })
    }
}
