//! What the two halves say to each other, besides the contract's own types.

use std::borrow::Cow;

use sandyard_core::SandboxId;
use sandyard_provider::{InstanceSpec, Ready};
use serde::{Deserialize, Serialize};

/// Nothing but the call itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Nothing {}

/// A call about one instance.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ById<'a> {
    pub(super) id: Cow<'a, str>,
}

/// A call about one template.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ByName<'a> {
    pub(super) name: Cow<'a, str>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SnapshotRequest<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ForkRequest<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) spec: Cow<'a, InstanceSpec>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeepReadyRequest {
    pub(super) wanted: Vec<Ready>,
}

/// A call about what one instance used between two moments.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UsageHistoryRequest<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

/// Asks to look up again what an instance may reach.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetNetworkRequest<'a> {
    /// The instance.
    pub id: Cow<'a, str>,
    /// The sandbox it is for.
    pub sandbox_id: SandboxId,
}
