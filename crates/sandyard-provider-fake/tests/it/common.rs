//! Helpers of several tests.

use std::collections::BTreeMap;

use sandyard_core::Limits;
use sandyard_provider::InstanceSpec;
use sandyard_provider_fake::TEMPLATE;

/// An instance of the default template.
pub(crate) fn spec(sandbox_id: &str) -> InstanceSpec {
    InstanceSpec {
        sandbox_id: sandbox_id.parse().expect("an id"),
        template: TEMPLATE.to_owned(),
        limits: Limits::default(),
        env: BTreeMap::new(),
        access_token: "token".to_owned(),
        hostname: None,
        network: sandyard_core::NetworkPolicy::default(),
        mounts: Vec::new(),
        project: None,
        metadata: Default::default(),
        is_restricted: false,
    }
}
