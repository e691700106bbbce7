//! The contract of providers, which run sandboxes, and what surrounds every one of them.
//!
//! - [`Provider`]: the contract, made of [`Instances`], [`Templates`], [`Volumes`] and [`UsageReports`]
//! - [`ProviderError`]: failures by kind and by whether a retry may help
//! - [`Call`], [`Answer`], [`Verb`]: calls as values, and [`Forward`] for providers that pass all of them on
//! - [`layers`]: tracing, retries, circuit breaker, limits and timeouts around a provider
//! - [`Pending`]: a provider that is connected later
//! - [`conformance`]: the test suite that every provider passes
//!
//! This crate knows nothing of HTTP dialects, stores or tenants. The in-memory provider for tests is `sandyard-provider-fake`.
#![forbid(unsafe_code)]

mod call;
pub mod conformance;
mod error;
mod forward;
mod instances;
pub mod layers;
mod pending;
mod provider;
mod templates;
mod usage;
mod volumes;

pub use call::{Answer, ArchiveOnce, Call, Verb, VerbError};
pub use error::{ProviderError, ProviderErrorKind, Retry};
pub use forward::Forward;
pub use instances::{AgentAddress, Change, ChangeKind, Instance, InstanceSpec, Instances};
pub use pending::Pending;
pub use provider::{Capabilities, Condition, Provider, ProviderInfo, Result};
pub use templates::{ArchiveReader, Ready, TemplateInfo, Templates};
pub use usage::{Usage, UsagePoint, UsageReports};
pub use volumes::{Mount, VOLUME_PATH, VolumeSpec, Volumes};

/// All traits of a provider, for code that calls a provider of a known type.
pub mod prelude {
    pub use crate::{Instances, Provider, Templates, UsageReports, Volumes};
}
