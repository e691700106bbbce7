//! Dials the agent of a volume.

use std::io;

use sandyard_agent_client::{Dial, Dialling};

use super::VolumeHelpers;

/// Dials the agent of a volume through its current helper.
pub(super) struct HelperDialler {
    pub(super) name: String,
    pub(super) volume: String,
    pub(super) helpers: VolumeHelpers,
}

impl Dial for HelperDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            let connection = self.helpers.0.connect_in_time(&self.volume).await;
            connection.map_err(|error| io::Error::new(io::ErrorKind::ConnectionRefused, error))
        })
    }
}
