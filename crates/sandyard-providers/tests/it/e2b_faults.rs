//! E2B on a bad day: what gets lost, comes late, comes in part or not at all.

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

/// A provider whose API is behind somebody who spoils what is said.
pub(crate) async fn spoilt(counterpart: &FakeApi, timeout: Duration) -> (Faults, E2b) {
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
/// Nothing is measured by this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test]
async fn every_failure_has_its_kind_and_nothing_stays_broken() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = spoilt(&counterpart, LONG).await;
    // With little patience, for what is never answered: all else has time, however busy the machine is.
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
        let asked = if kind == TimedOut { &hasty } else { &provider };
        faults.set(fault);
        let error = asked.list().await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        if name.contains("\"7\"") {
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{name}");
        }
        if name.contains("should-retry") {
            assert_eq!(error.retry, Retry::Never, "{name}");
        }
        let error = asked.pause(&id).await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        faults.set(Fault::None);
        let found = provider.inspect(&id).await.expect("inspect");
        assert_eq!(found.expect("there").state, Running, "{name}");
    }
    // The way to the sandbox is another one, and what is known is enough to go it.
    faults.set(Fault::Refuse);
    assert_eq!(sh(&provider, &id, "echo still there").await, "still there");
    faults.set(Fault::None);
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}

/// All of them, as soon as anybody answers.
async fn listed(provider: &E2b) -> Vec<Instance> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match provider.list().await {
            Ok(listed) => return listed,
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The states of all, those that are paused first.
async fn states(provider: &E2b) -> Vec<SandboxState> {
    let listed = provider.list().await.expect("list");
    let mut states: Vec<_> = listed.into_iter().map(|one| one.state).collect();
    states.sort_by_key(|state| *state != Paused);
    states
}

/// What one of them rests as may not be told: it is there all the same, and so are the others.
#[tokio::test]
async fn one_that_cannot_be_looked_at_hides_nobody() {
    let counterpart = FakeApi::start(&[]).await;
    let other = counterpart.provider("ours").await;
    for name in ["one", "two"] {
        let made = other.create(&spec(&other, name)).await.expect("create");
        other.stop(&made.id).await.expect("stop");
    }
    let odd = Fault::Late(Duration::ZERO, "[]".to_owned());
    for fault in [
        Fault::status(500, ("", ""), "oh"),
        Fault::status(429, ("retry-after", "7"), "slow down"),
        Fault::Refuse,
        odd,
    ] {
        let name = format!("{fault:?}");
        // A list waits for each of them for a few seconds only. On a busy machine another one may not be told in time, either.
        let give_up = Instant::now() + PATIENCE;
        let (_faults, provider) = loop {
            // It knows nothing of them yet.
            let (faults, provider) = spoilt(&counterpart, LONG).await;
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
    for one in other.list().await.expect("list") {
        other.delete(&one.id).await.expect("delete");
    }
    counterpart.finish().await;
}

#[tokio::test]
async fn a_create_whose_answer_gets_lost_is_found_and_made_once() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = spoilt(&counterpart, LONG).await;
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
    // Never got there: nothing is made, and it is said so.
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

/// What one call is refused says nothing about the others.
#[tokio::test]
async fn a_plan_that_lacks_something_does_everything_else() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = spoilt(&counterpart, LONG).await;
    let wanted = spec(&provider, "one");
    let id = provider.create(&wanted).await.expect("create").id;
    let grant = NetworkGrant {
        sandbox_id: wanted.sandbox_id,
        owner: "alice".to_owned(),
        policy: wanted.network,
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

/// Deleted by another server, it is forgotten with the next list and asked for again.
#[tokio::test]
async fn what_others_deleted_is_forgotten() {
    let counterpart = FakeApi::start(&[]).await;
    let (one, other) = (
        counterpart.provider("ours").await,
        counterpart.provider("ours").await,
    );
    let id = one.create(&spec(&one, "one")).await.expect("create").id;
    other.delete(&id).await.expect("delete");
    assert_eq!(one.list().await.expect("list"), []);
    let address = agent_client::address(&id);
    assert_eq!(one.agent(&address).await.expect_err("gone").kind, NotFound);
    counterpart.finish().await;
}

#[tokio::test]
async fn a_plan_with_less_time_is_kept_to() {
    let counterpart = FakeApi::start(&[]).await;
    let (faults, provider) = spoilt(&counterpart, LONG).await;
    let complaint = "Timeout cannot be greater than 1 hours";
    faults.next([Fault::status(400, ("", ""), complaint)]);
    let made = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create");
    let listed = counterpart.sandboxes().await;
    let time = |name: &str| -> jiff::Timestamp {
        let text = listed[0][name].as_str().expect("a time");
        text.parse().expect("a time")
    };
    let seconds = time("endAt").as_second() - time("startedAt").as_second();
    assert!((3590..=3610).contains(&seconds), "{seconds}");
    provider.delete(&made.id).await.expect("delete");
    counterpart.finish().await;
}

#[tokio::test]
async fn nothing_is_lost_when_their_server_dies_and_comes_back() {
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
    let listed = self::listed(&provider).await;
    assert_eq!((listed.len(), listed[0].id.as_str()), (1, id.as_str()));
    assert_eq!(sh(&provider, &id, "cat ~/file").await, "kept");
    // In the middle of a create: it is there once or not at all.
    let wanted = spec(&provider, "three");
    let ((), made) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            counterpart.kill();
        },
        provider.create(&wanted)
    );
    counterpart.launch().await;
    let listed = self::listed(&provider).await;
    let is_it = |one: &&Instance| one.sandbox_id.as_ref() == Some(&wanted.sandbox_id);
    let found: Vec<_> = listed.iter().filter(is_it).collect();
    assert!(found.len() <= 1, "{found:?}");
    assert!(made.is_err() || found.len() == 1, "{made:?}");
    // What was being made may still come to light there.
    let began = Instant::now();
    while counterpart.has_any().await {
        for one in provider.list().await.expect("list") {
            provider.delete(&one.id).await.expect("delete");
        }
        assert!(
            began.elapsed() < Duration::from_secs(240),
            "something is left there"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    counterpart.finish().await;
}
