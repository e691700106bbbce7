//! Where sandboxes run: the trait, its errors, a fake, and the suite every provider passes.
//!
//! - [`Provider`]: the contract
//! - [`Instance`], [`InstanceSpec`]: one sandbox as its provider knows it
//! - [`ProviderError`]: failures by kind and by whether trying again may help
//! - [`Verb`]: the calls by name
//! - [`layers`]: what lies around a provider: traces, limits, retries, a breaker
//! - [`Pending`]: a provider that is reached later
//! - [`fake`]: a provider in memory that fails on demand
//! - [`conformance`]: what must be true of every one of them
//!
//! This crate knows nothing of HTTP dialects, stores or tenants.
#![forbid(unsafe_code)]

pub mod conformance;
mod error;
pub mod fake;
mod instance;
pub mod layers;
mod pending;
mod provider;
mod verb;

pub use error::{ProviderError, ProviderErrorKind, Retry};
pub use instance::{
    Change, ChangeKind, Instance, InstanceSpec, Mount, Ready, Usage, UsagePoint, VolumeSpec,
};
pub use pending::Pending;
pub use provider::{
    AgentAddress, ArchiveReader, Capabilities, Condition, Provider, ProviderInfo, Result,
    TemplateInfo, VOLUME_PATH,
};
pub use verb::{Verb, VerbError};
