//! Volumes: folders that outlive instances.

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use serde::{Deserialize, Serialize};

use crate::provider::{Result, unsupported};

/// Where the agent of [`Volumes::open_volume`] sees the volume.
pub const VOLUME_PATH: &str = "/volume";

/// Volumes of a provider. All calls require [`can_mount`](crate::Capabilities::can_mount); a provider without it keeps the
/// default methods.
#[async_trait]
pub trait Volumes: Send + Sync + 'static {
    /// Creates an empty volume. A volume that exists already stays as it is.
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let _ = volume;
        Err(unsupported("keep volumes"))
    }

    /// Removes a volume with its files; removing a missing one succeeds. No instance mounts it any more.
    async fn delete_volume(&self, id: &str) -> Result<()> {
        let _ = id;
        Err(unsupported("keep volumes"))
    }

    /// Returns an agent that sees the volume at [`VOLUME_PATH`] and runs commands and accesses files as root. It belongs to no
    /// sandbox.
    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let _ = id;
        Err(unsupported("keep volumes"))
    }
}

/// A volume to create. Several instances may mount it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Its id: letters and digits.
    pub id: String,
    /// Its capacity in bytes, where the provider can enforce one.
    pub size_bytes: u64,
}

/// A volume mounted in an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The volume's id.
    pub volume: String,
    /// Absolute path inside the instance.
    pub path: String,
}
