//! What a sandbox may reach: its policy, the operator's rules, and the record of each flow.
//!
//! - [`policy`]: the policy of a sandbox; E2B's `network` object is this one
//! - [`target`]: `*.example.com:443`, `10.0.0.0/8`, `203.0.113.7`
//! - [`pattern`]: names with wildcards
//! - [`address`]: addresses that are closed to sandboxes
//! - [`operator_rules`]: the operator's rules for every sandbox
//! - [`judge`]: the verdict of policy and operator's rules
//! - [`check`]: the bounds of a policy, and which headers it may set
//! - [`grant`]: what the gateway is given for one sandbox, secrets included
//! - [`flow`]: the record of a flow
//!
//! The same policy travels to every provider. Names are lower-case ASCII without a dot at their end, everywhere.

pub mod address;
pub mod check;
pub mod flow;
pub mod grant;
pub mod judge;
pub mod operator_rules;
pub mod pattern;
pub mod policy;
mod read;
pub mod target;

#[cfg(test)]
mod properties;

pub use flow::{Denial, Flow, FlowVerdict, Protocol};
pub use grant::{BoundHost, BoundHostError, NetworkGrant, SecretGrant, SecretText};
pub use operator_rules::OperatorRules;
pub use pattern::{HostPattern, PatternError};
pub use policy::{HostRule, NetworkPolicy, PolicyError, Transform};
pub use target::{Target, TargetError, TargetHost};
