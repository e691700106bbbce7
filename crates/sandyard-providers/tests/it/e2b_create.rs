//! Making sandboxes at E2B and keeping them: what costs is known of, what is not given is told, and nobody asks too often.

use std::time::{Duration, Instant};

use sandyard_core::Limits;
use sandyard_provider::ProviderErrorKind::{NoCapacity, Unavailable};
use sandyard_provider::Retry;
use sandyard_provider::prelude::*;
use sandyard_providers::{CallTimeouts, E2b, E2bConfig};
use serde_json::{Value, json};

use crate::e2b::spec;
use crate::e2b_fake_api::FakeApi;
use crate::e2b_faults::{LONG, PATIENCE, spoilt};
use crate::faults::{Fault, Faults};

/// What was made is looked at before it is told of. Nobody would know of it if that fails, and it would cost.
#[tokio::test]
async fn a_create_that_cannot_be_told_of_is_taken_back() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = spoilt(&counterpart, LONG).await;
    let busy = || Fault::status(429, ("", ""), "slow down");
    let looks = |asked: &str| asked.starts_with("GET /sandboxes/");
    for fault in [busy(), Fault::status(500, ("", ""), "oh"), Fault::Half] {
        let name = format!("{fault:?}");
        faults.some(looks, 2, fault);
        let made = provider.create(&spec(&provider, "one")).await;
        let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(counterpart.sandboxes().await.len(), 1, "{name}");
        provider.delete(&made.id).await.expect("delete");
    }
    // It stays so: what was made is deleted, and whoever asked may ask another provider.
    faults.some(looks, usize::MAX, busy());
    let failed = provider.create(&spec(&provider, "two")).await;
    assert_eq!(failed.expect_err("busy").kind, NoCapacity);
    assert_eq!(counterpart.sandboxes().await.len(), 0);
    // It cannot be deleted either: then nobody may believe that there is nothing.
    faults.set(busy());
    faults.next([Fault::None]);
    let failed = provider.create(&spec(&provider, "three")).await;
    let failed = failed.expect_err("busy");
    assert_eq!((failed.kind, failed.retry), (Unavailable, Retry::Later));
    assert_eq!(counterpart.sandboxes().await.len(), 1);
    faults.set(Fault::None);
    let left = provider.list().await.expect("list");
    assert_eq!(left.len(), 1, "it is found");
    provider.delete(&left[0].id).await.expect("delete");
    counterpart.finish().await;
}

/// Whoever has had enough is not asked for each of a hundred.
#[tokio::test]
async fn ends_are_not_put_off_while_that_is_too_much() {
    // Nobody is there: all of it is told by who stands before.
    let faults = Faults::before(([127, 0, 0, 1], 9).into()).await;
    let sandbox = |number: usize| {
        let words =
            json!({"sandyard.installation": "ours", "sandyard.sandbox": format!("s{number}")});
        json!({"sandboxID": format!("id{number}"), "state": "running", "endAt": "2026-01-01T00:00:00Z", "metadata": words})
    };
    let all: Vec<_> = (0..100).map(sandbox).collect();
    let listed = Value::from(all).to_string();
    let lists = |asked: &str| asked.starts_with("GET /v2/sandboxes");
    let ends = |asked: &str| asked.ends_with("/timeout");
    faults.some(lists, usize::MAX, Fault::Late(Duration::ZERO, listed));
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
    let give_up = Instant::now() + PATIENCE;
    while faults.count(ends) == 0 {
        assert!(Instant::now() < give_up, "nobody tries");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        provider.list().await.expect("list");
    }
    // As many as were under way when the first was refused.
    let count = faults.count(ends);
    assert!(count <= 16, "{count} were asked for");
}

/// A template decides about limits; whoever asked for others is told.
#[tokio::test]
async fn limits_that_are_not_given_are_told() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let mut wanted = spec(&provider, "one");
    let usual = provider.create(&wanted).await.expect("create");
    assert_eq!(usual.limitations, Vec::<String>::new());
    provider.delete(&usual.id).await.expect("delete");
    wanted.limits.memory_bytes *= 2;
    let made = provider.create(&wanted).await.expect("create");
    assert_eq!(made.limits, usual.limits);
    assert_eq!(made.limitations.len(), 1, "{:?}", made.limitations);
    assert!(
        made.limitations[0].starts_with("memory is"),
        "{:?}",
        made.limitations
    );
    let listed = provider.list().await.expect("list");
    assert_eq!(listed[0].limitations, made.limitations);
    provider.delete(&made.id).await.expect("delete");
    counterpart.finish().await;
}
