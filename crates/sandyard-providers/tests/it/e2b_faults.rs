//! E2B with faults: lost, late, incomplete and missing answers.

use std::time::{Duration, Instant};

use sandyard_core::SandboxState::{self, Paused, Running, Stopped};
use sandyard_core::network::NetworkGrant;
use sandyard_provider::ProviderErrorKind::{
    Invalid, NoCapacity, NotFound, TimedOut, Unavailable, Unsupported,
};
use sandyard_provider::prelude::*;
use sandyard_provider::{Instance, Retry};
use sandyard_providers::{CallTimeouts, E2b, E2bConfig};

use crate::agent_client;
use crate::e2b::{sh, spec};
use crate::e2b_fake_api::FakeApi;
use crate::faults::{Fault, Faults};

/// A provider whose API is behind a proxy that injects faults.
pub(crate) async fn with_faults(counterpart: &FakeApi, timeout: Duration) -> (Faults, E2b) {
    let faults = Faults::before(counterpart.e2b).await;
    let provider = behind(counterpart, &faults, timeout, CallTimeouts::default()).await;
    (faults, provider)
}

async fn behind(
    counterpart: &FakeApi,
    faults: &Faults,
    timeout: Duration,
    timeouts: CallTimeouts,
) -> E2b {
    let config = E2bConfig {
        api_url: Some(format!("http://{}", faults.address)),
        timeout,
        timeouts,
        ..counterpart.config("ours")
    };
    E2b::connect(config).await.expect("connect")
}

pub(crate) const LONG: Duration = Duration::from_secs(7200);
/// Bound on waits; not a measurement.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

#[tokio::test]
async fn every_failure_has_its_kind_and_the_provider_recovers() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = with_faults(&counterpart, LONG).await;
    // Short timeouts for requests without an answer; everything else has long ones, however busy the machine is.
    let short = CallTimeouts {
        quick: Duration::from_secs(6),
        ..CallTimeouts::default()
    };
    let hasty = behind(&counterpart, &faults, LONG, short).await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    for (fault, kind) in [
        (Fault::Refuse, Unavailable),
        (
            Fault::status(429, ("retry-after", "7"), "slow down"),
            NoCapacity,
        ),
        (
            Fault::status(429, ("should-retry", "false"), "no more"),
            NoCapacity,
        ),
        (Fault::status(500, ("", ""), "oh"), Unavailable),
        (
            Fault::status(429, ("ratelimit-reset", "7"), "slow down"),
            NoCapacity,
        ),
        (
            Fault::status(503, ("retry-after", "7"), "busy"),
            Unavailable,
        ),
        (Fault::status(504, ("", ""), "late"), TimedOut),
        (Fault::status(400, ("", ""), "what"), Invalid),
        (Fault::Hang, TimedOut),
        (Fault::Half, Unavailable),
        (Fault::Lose, Unavailable),
        (Fault::Slow(Duration::from_millis(50)), TimedOut),
    ] {
        let name = format!("{fault:?}");
        let request = if kind == TimedOut { &hasty } else { &provider };
        faults.set(fault);
        let error = request.list().await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        if name.contains("\"7\"") {
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{name}");
        }
        if name.contains("should-retry") {
            assert_eq!(error.retry, Retry::Never, "{name}");
        }
        let error = request.pause(&id).await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        faults.set(Fault::None);
        let found = provider.inspect(&id).await.expect("inspect");
        assert_eq!(found.expect("there").state, Running, "{name}");
    }
    // Connections to the sandbox do not use the API, and the cached facts are enough.
    faults.set(Fault::Refuse);
    assert_eq!(sh(&provider, &id, "echo still there").await, "still there");
    faults.set(Fault::None);
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}

/// All instances, as soon as a list succeeds.
async fn instances(provider: &E2b) -> Vec<Instance> {
    let give_up = Instant::now() + TIMEOUT;
    loop {
        match provider.list().await {
            Ok(instances) => return instances,
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The states of all instances, paused ones first.
async fn states(provider: &E2b) -> Vec<SandboxState> {
    let instances = provider.list().await.expect("list");
    let mut states: Vec<_> = instances
        .into_iter()
        .map(|instance| instance.state)
        .collect();
    states.sort_by_key(|state| *state != Paused);
    states
}

/// The inspection of a sandbox may fail: it is listed nevertheless, and so are the others.
#[tokio::test]
async fn a_failed_inspection_hides_no_sandbox() {
    let counterpart = FakeApi::start(&[]).await;
    let other = counterpart.provider("ours").await;
    for name in ["one", "two"] {
        let made = other.create(&spec(&other, name)).await.expect("create");
        other.stop(&made.id).await.expect("stop");
    }
    let invalid = Fault::Late(Duration::ZERO, "[]".to_owned());
    for fault in [
        Fault::status(500, ("", ""), "oh"),
        Fault::status(429, ("retry-after", "7"), "slow down"),
        Fault::Refuse,
        invalid,
    ] {
        let name = format!("{fault:?}");
        // A list waits a few seconds for each of them. On a busy machine others may be late, too.
        let give_up = Instant::now() + TIMEOUT;
        let (_faults, provider) = loop {
            // It has no cached facts yet.
            let (faults, provider) = with_faults(&counterpart, LONG).await;
            faults.next([Fault::None, fault.clone()]);
            let states = states(&provider).await;
            if states == [Paused, Stopped] {
                break (faults, provider);
            }
            assert_eq!(states, [Paused, Paused], "{name}");
            assert!(Instant::now() < give_up, "{name} hides another one");
        };
        while states(&provider).await != [Stopped, Stopped] {
            assert!(Instant::now() < give_up, "{name} lasts");
        }
    }
    for instance in other.list().await.expect("list") {
        other.delete(&instance.id).await.expect("delete");
    }
    counterpart.finish().await;
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_found_and_not_repeated() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = with_faults(&counterpart, LONG).await;
    for (number, fault) in [Fault::Lose, Fault::Half].into_iter().enumerate() {
        faults.next([fault]);
        let spec = spec(&provider, &format!("lost{number}"));
        let made = provider.create(&spec).await.expect("create");
        assert_eq!(made.sandbox_id.as_ref(), Some(&spec.sandbox_id));
        assert_eq!(provider.list().await.expect("list").len(), 1);
        assert_eq!(counterpart.sandboxes().await.len(), 1);
        assert_eq!(sh(&provider, &made.id, "echo in").await, "in");
        provider.delete(&made.id).await.expect("delete");
    }
    // The request never arrived: nothing is created, and the error says so.
    let busy = Fault::status(429, ("retry-after", "1"), "slow down");
    for (fault, kind) in [(Fault::Refuse, Unavailable), (busy, NoCapacity)] {
        faults.next([fault]);
        let failed = provider.create(&spec(&provider, "never")).await;
        let failed = failed.expect_err("fails");
        assert_eq!((failed.kind, failed.retry), (kind, Retry::Later));
        assert_eq!(counterpart.sandboxes().await.len(), 0);
    }
    counterpart.finish().await;
}

/// A refused call says nothing about the others.
#[tokio::test]
async fn a_plan_without_a_feature_supports_the_others() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = with_faults(&counterpart, LONG).await;
    let requested = spec(&provider, "one");
    let id = provider.create(&requested).await.expect("create").id;
    let grant = NetworkGrant {
        sandbox_id: requested.sandbox_id,
        owner: "alice".to_owned(),
        policy: requested.network,
        secrets: Vec::new(),
        is_leading: false,
    };
    faults.next([Fault::status(403, ("", ""), "not in your plan")]);
    let refused = provider.set_network(&id, &grant).await;
    let refused = refused.expect_err("refused");
    assert_eq!((refused.kind, refused.retry), (Unsupported, Retry::Never));
    provider.check_health().await.expect("well");
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}

/// A sandbox that another server deleted is forgotten with the next list, and requested again.
#[tokio::test]
async fn sandboxes_deleted_elsewhere_are_forgotten() {
    let counterpart = FakeApi::start(&[]).await;
    let (instance, other) = (
        counterpart.provider("ours").await,
        counterpart.provider("ours").await,
    );
    let id = instance
        .create(&spec(&instance, "one"))
        .await
        .expect("create")
        .id;
    other.delete(&id).await.expect("delete");
    assert_eq!(instance.list().await.expect("list"), []);
    let address = agent_client::address(&id);
    assert_eq!(
        instance.agent(&address).await.expect_err("gone").kind,
        NotFound
    );
    counterpart.finish().await;
}

#[tokio::test]
async fn the_maximum_timeout_of_a_plan_is_respected() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = with_faults(&counterpart, LONG).await;
    let complaint = "Timeout cannot be greater than 1 hours";
    faults.next([Fault::status(400, ("", ""), complaint)]);
    let made = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create");
    let instances = counterpart.sandboxes().await;
    let time = |name: &str| -> jiff::Timestamp {
        let text = instances[0][name].as_str().expect("a time");
        text.parse().expect("a time")
    };
    let seconds = time("endAt").as_second() - time("startedAt").as_second();
    assert!((3590..=3610).contains(&seconds), "{seconds}");
    provider.delete(&made.id).await.expect("delete");
    counterpart.finish().await;
}

#[tokio::test]
async fn nothing_is_lost_when_the_cloud_restarts() {
    let mut counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    sh(&provider, &id, "echo kept > ~/file").await;
    counterpart.kill();
    assert_eq!(provider.list().await.unwrap_err().kind, Unavailable);
    let failed = provider.create(&spec(&provider, "two")).await;
    assert_eq!(failed.unwrap_err().kind, Unavailable);
    counterpart.launch().await;
    let instances = self::instances(&provider).await;
    assert_eq!(
        (instances.len(), instances[0].id.as_str()),
        (1, id.as_str())
    );
    assert_eq!(sh(&provider, &id, "cat ~/file").await, "kept");
    // During a create: it exists once or not at all.
    let requested = spec(&provider, "three");
    let ((), made) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            counterpart.kill();
        },
        provider.create(&requested)
    );
    counterpart.launch().await;
    let instances = self::instances(&provider).await;
    let is_it = |instance: &&Instance| instance.sandbox_id.as_ref() == Some(&requested.sandbox_id);
    let found: Vec<_> = instances.iter().filter(is_it).collect();
    assert!(found.len() <= 1, "{found:?}");
    assert!(made.is_err() || found.len() == 1, "{made:?}");
    // A sandbox of an interrupted create may still appear.
    let started_at = Instant::now();
    while counterpart.has_any().await {
        for instance in provider.list().await.expect("list") {
            provider.delete(&instance.id).await.expect("delete");
        }
        assert!(
            started_at.elapsed() < Duration::from_secs(240),
            "something remains"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    counterpart.finish().await;
}
