//! Helpers of several tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandyard_core::network::{Flow, FlowVerdict, Protocol};
use sandyard_core::{Clock, Limits};
use sandyard_provider::InstanceSpec;
use sandyard_provider::layers::{self, LayerSettings};
use sandyard_provider::prelude::*;
use sandyard_provider_fake::{FakeProvider, TEMPLATE};

/// The spec of an instance.
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

/// A fake, and the same fake with the layers that `choose` adds.
pub(crate) fn layered(
    choose: impl FnOnce(&mut LayerSettings),
) -> (FakeProvider, Arc<dyn Provider>) {
    let fake = FakeProvider::new();
    let mut settings = LayerSettings::none();
    choose(&mut settings);
    let stack = layers::stack(Arc::new(fake.clone()), settings, Clock::manual(7));
    (fake, stack)
}

/// A connection attempt.
pub(crate) fn flow() -> Flow {
    Flow {
        sandbox_id: "one".parse().expect("an id"),
        owner: "alice".to_owned(),
        at_ms: 1,
        duration_ms: 1,
        protocol: Protocol::Tcp,
        name: None,
        address: None,
        port: Some(80),
        verdict: FlowVerdict::Failed,
        denial: None,
        failure: None,
        sent_bytes: 0,
        received_bytes: 0,
        count: 1,
    }
}
