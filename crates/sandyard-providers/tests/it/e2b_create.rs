//! Creating sandboxes at E2B: nothing that costs is forgotten, changed limits are reported, and rate limits are respected.

use std::time::{Duration, Instant};

use sandyard_core::Limits;
use sandyard_provider::ProviderErrorKind::{NoCapacity, Unavailable};
use sandyard_provider::Retry;
use sandyard_provider::prelude::*;
use sandyard_providers::{CallTimeouts, E2b, E2bConfig};
use serde_json::{Value, json};

use crate::e2b::spec;
use crate::e2b_fake_api::FakeApi;
use crate::e2b_faults::{LONG, TIMEOUT, with_faults};
use crate::faults::{Fault, Faults};

/// A new sandbox is inspected before it is reported. If that fails, it is deleted, because it would cost without being known.
#[tokio::test]
async fn a_create_that_cannot_be_reported_is_undone() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = with_faults(&counterpart, LONG).await;
    let busy = || Fault::status(429, ("", ""), "slow down");
    let inspections = |request: &str| request.starts_with("GET /sandboxes/");
    for fault in [busy(), Fault::status(500, ("", ""), "oh"), Fault::Half] {
        let name = format!("{fault:?}");
        faults.some(inspections, 2, fault);
        let made = provider.create(&spec(&provider, "one")).await;
        let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(counterpart.sandboxes().await.len(), 1, "{name}");
        provider.delete(&made.id).await.expect("delete");
    }
    // The error stays: the sandbox is deleted, and the caller may use another provider.
    faults.some(inspections, usize::MAX, busy());
    let failed = provider.create(&spec(&provider, "two")).await;
    assert_eq!(failed.expect_err("busy").kind, NoCapacity);
    assert_eq!(counterpart.sandboxes().await.len(), 0);
    // It cannot be deleted either: then the error must not mean that nothing exists.
    faults.set(busy());
    faults.next([Fault::None]);
    let failed = provider.create(&spec(&provider, "three")).await;
    let failed = failed.expect_err("busy");
    assert_eq!((failed.kind, failed.retry), (Unavailable, Retry::Later));
    assert_eq!(counterpart.sandboxes().await.len(), 1);
    faults.set(Fault::None);
    let remaining = provider.list().await.expect("list");
    assert_eq!(remaining.len(), 1, "it is found");
    provider.delete(&remaining[0].id).await.expect("delete");
    counterpart.finish().await;
}

/// After a rate limit, the rest of a batch is not sent.
#[tokio::test]
async fn extending_timeouts_stops_at_a_rate_limit() {
    // The server does not exist; the proxy in front of it gives all answers.
    let faults = Faults::before(([127, 0, 0, 1], 9).into()).await;
    let sandbox = |number: usize| {
        let text =
            json!({"sandyard.installation": "ours", "sandyard.sandbox": format!("s{number}")});
        json!({"sandboxID": format!("id{number}"), "state": "running", "endAt": "2026-01-01T00:00:00Z", "metadata": text})
    };
    let all: Vec<_> = (0..100).map(sandbox).collect();
    let instances = Value::from(all).to_string();
    let lists = |request: &str| request.starts_with("GET /v2/sandboxes");
    let ends = |request: &str| request.ends_with("/timeout");
    faults.some(lists, usize::MAX, Fault::Late(Duration::ZERO, instances));
    let busy = Fault::status(429, ("retry-after", "200"), "slow down");
    faults.some(ends, usize::MAX, busy);
    let config = E2bConfig {
        api_key: "e2b_key".to_owned(),
        domain: "e2b.test".to_owned(),
        api_url: Some(format!("http://{}", faults.address)),
        sandbox_url: None,
        trusted_ca: None,
        resolve_to: None,
        template: "base".to_owned(),
        program: None,
        tools_port: 6060,
        installation: "ours".to_owned(),
        timeout: LONG,
        limits: (Limits::default(), Limits::DEFAULT_MAX),
        timeouts: CallTimeouts::default(),
    };
    let provider = E2b::connect(config).await.expect("connect");
    assert_eq!(provider.list().await.expect("list").len(), 100);
    let give_up = Instant::now() + TIMEOUT;
    while faults.count(ends) == 0 {
        assert!(Instant::now() < give_up, "nobody tries");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        provider.list().await.expect("list");
    }
    // The requests that were in progress at the first refusal.
    let count = faults.count(ends);
    assert!(count <= 16, "{count} requests");
}

/// A template decides the limits; differences to the request are reported.
#[tokio::test]
async fn differing_limits_are_reported() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let mut requested = spec(&provider, "one");
    let default_instance = provider.create(&requested).await.expect("create");
    assert_eq!(default_instance.limitations, Vec::<String>::new());
    provider.delete(&default_instance.id).await.expect("delete");
    requested.limits.memory_bytes *= 2;
    let made = provider.create(&requested).await.expect("create");
    assert_eq!(made.limits, default_instance.limits);
    assert_eq!(made.limitations.len(), 1, "{:?}", made.limitations);
    assert!(
        made.limitations[0].starts_with("memory is"),
        "{:?}",
        made.limitations
    );
    let instances = provider.list().await.expect("list");
    assert_eq!(instances[0].limitations, made.limitations);
    provider.delete(&made.id).await.expect("delete");
    counterpart.finish().await;
}
