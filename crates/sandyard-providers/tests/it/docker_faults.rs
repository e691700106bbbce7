//! Docker with faults: errors of a proxy, a busy daemon or one without containerd; lost, late and incomplete answers.

use std::path::Path;
use std::time::{Duration, Instant};

use sandyard_core::SandboxState::Running;
use sandyard_provider::ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
use sandyard_provider::Retry;
use sandyard_provider::prelude::*;
use sandyard_providers::CallTimeouts;
use sandyard_providers::docker::{Docker, DockerConfig};

use crate::agent_client;
use crate::docker::{make, sh};
use crate::env::spec;
use crate::fake_dockerd::Dockerd;
use crate::faults::{Fault, Faults};

/// Bound on waits; not a measurement.
const TIMEOUT: Duration = Duration::from_secs(180);
/// The error of dockerd while containerd restarts.
const NO_CONTAINERD: &str = "connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\": unavailable";

/// A daemon behind a proxy that injects faults.
async fn with_faults() -> (Dockerd, Faults) {
    let dockerd = Dockerd::start(true).await;
    let socket = dockerd.host();
    let socket = socket.strip_prefix("unix://").expect("a socket");
    let faults = Faults::before_socket(Path::new(socket)).await;
    (dockerd, faults)
}

async fn behind(dockerd: &Dockerd, faults: &Faults, timeouts: CallTimeouts) -> Docker {
    let config = DockerConfig {
        host: Some(format!("tcp://{}", faults.address)),
        timeouts,
        ..dockerd.config("ours")
    };
    Docker::connect(config).await.expect("connect")
}

fn fails_with(status: u16, message: &str) -> Fault {
    Fault::status(status, ("", ""), message)
}

fn lists(request: &str) -> bool {
    request.starts_with("GET ") && request.ends_with("/containers/json")
}

fn creates(request: &str) -> bool {
    request.starts_with("POST ") && request.ends_with("/containers/create")
}

fn uploads(request: &str) -> bool {
    request.starts_with("PUT ") && request.ends_with("/archive")
}

fn starts(request: &str) -> bool {
    request.starts_with("POST ") && request.contains("/containers/") && request.ends_with("/start")
}

/// The stream of a link starts.
fn links(request: &str) -> bool {
    request.starts_with("POST ") && request.contains("/exec/") && request.ends_with("/start")
}

async fn until_nothing_is_left(dockerd: &Dockerd, reason: &str) {
    let give_up = Instant::now() + TIMEOUT;
    while !dockerd.leftovers().is_empty() {
        let remaining = dockerd.leftovers();
        assert!(Instant::now() < give_up, "{reason}: {remaining:?} is left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn every_failure_has_its_kind_and_the_provider_recovers() {
    let (dockerd, faults) = with_faults().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    // Short timeouts for requests without an answer; everything else has long ones, however busy the machine is.
    let short = CallTimeouts {
        quick: Duration::from_secs(6),
        ..CallTimeouts::default()
    };
    let hasty = behind(&dockerd, &faults, short).await;
    let id = make(&provider, "one").await.id;
    for (fault, kind) in [
        (fails_with(429, "slow down"), NoCapacity),
        (fails_with(500, "oh"), Failed),
        (fails_with(500, NO_CONTAINERD), Unavailable),
        (fails_with(502, "<html>nobody there"), Unavailable),
        (fails_with(503, "busy"), Unavailable),
        (fails_with(504, "late"), TimedOut),
        (Fault::Refuse, Unavailable),
        (Fault::Half, Unavailable),
        (Fault::Lose, Unavailable),
        (Fault::Hang, TimedOut),
        (Fault::Slow(Duration::from_millis(50)), TimedOut),
    ] {
        let name = format!("{fault:?}");
        let request = if kind == TimedOut { &hasty } else { &provider };
        faults.set(fault);
        let error = request.list().await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        let is_later = error.retry == Retry::Later;
        assert_eq!(is_later, kind != Failed, "{name}: {error:?}");
        let error = request.pause(&id).await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        faults.set(Fault::None);
        let found = provider.inspect(&id).await.expect("inspect");
        assert_eq!(found.expect("there").state, Running, "{name}");
    }
    assert_eq!(sh(&provider, &id, "echo still there").await, "still there");
    provider.delete(&id).await.expect("delete");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_create_that_fails_at_any_step_leaves_nothing() {
    let (dockerd, faults) = with_faults().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    // The agent's program is uploaded from now on.
    let first = make(&provider, "first").await.id;
    provider.delete(&first).await.expect("delete");
    type Step = fn(&str) -> bool;
    for (step, fault, kind) in [
        (
            creates as Step,
            fails_with(429, "slow down"),
            Some(NoCapacity),
        ),
        (creates, fails_with(500, "oh"), Some(Failed)),
        (creates, fails_with(503, "busy"), Some(Unavailable)),
        // Created, but the answer does not arrive: it is found, and created once.
        (creates, Fault::Lose, None),
        (creates, Fault::Half, None),
        (uploads, fails_with(429, "slow down"), Some(NoCapacity)),
        (uploads, Fault::Lose, Some(Unavailable)),
        (starts, fails_with(500, NO_CONTAINERD), Some(Unavailable)),
        (starts, fails_with(504, "late"), Some(TimedOut)),
        (starts, Fault::Lose, None),
        (links, fails_with(500, "oh"), None),
        (links, Fault::Half, None),
        (links, Fault::Slow(Duration::from_millis(5)), None),
    ] {
        let name = format!("{fault:?}");
        faults.set(Fault::None);
        faults.some(step, 1, fault);
        match (provider.create(&spec(&provider, "one")).await, kind) {
            (Err(error), Some(kind)) => assert_eq!(error.kind, kind, "{name}: {error:?}"),
            (Ok(made), None) => {
                assert_eq!(provider.list().await.expect("list").len(), 1, "{name}");
                assert_eq!(sh(&provider, &made.id, "echo in").await, "in", "{name}");
                provider.delete(&made.id).await.expect("delete");
            }
            (other, _) => panic!("{name}: {other:?}"),
        }
        until_nothing_is_left(&dockerd, &name).await;
    }
}

/// `NoCapacity` means that nothing was created.
#[tokio::test]
async fn a_create_that_cannot_be_undone_is_not_no_capacity_and_is_undone_later() {
    let (dockerd, faults) = with_faults().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    faults.some(starts, 1, fails_with(429, "slow down"));
    faults.some(lists, usize::MAX, fails_with(429, "slow down"));
    let failed = provider.create(&spec(&provider, "one")).await;
    let failed = failed.expect_err("fails");
    assert_eq!((failed.kind, failed.retry), (Unavailable, Retry::Later));
    assert_ne!(dockerd.leftovers(), Vec::<String>::new());
    faults.set(Fault::None);
    until_nothing_is_left(&dockerd, "it is taken back").await;
}

#[tokio::test]
async fn a_create_that_times_out_while_it_is_undone_leaves_nothing() {
    let (dockerd, faults) = with_faults().await;
    let timeouts = CallTimeouts {
        create: Duration::from_secs(15),
        ..CallTimeouts::default()
    };
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    let first = make(&provider, "first").await.id;
    provider.delete(&first).await.expect("delete");
    let hasty = behind(&dockerd, &faults, timeouts).await;
    faults.some(starts, usize::MAX, fails_with(500, "oh"));
    faults.some(lists, usize::MAX, Fault::Hang);
    let failed = hasty.create(&spec(&hasty, "one")).await;
    assert_eq!(failed.expect_err("its time ends").kind, TimedOut);
    assert_ne!(dockerd.leftovers(), Vec::<String>::new());
    faults.set(Fault::None);
    until_nothing_is_left(&dockerd, "it is taken back").await;
}

#[tokio::test]
async fn slow_and_broken_links_are_tolerated() {
    let (dockerd, faults) = with_faults().await;
    let maker = behind(&dockerd, &faults, CallTimeouts::default()).await;
    let id = make(&maker, "one").await.id;
    let address = agent_client::address(&id);
    for fault in [
        Fault::Half,
        Fault::Lose,
        fails_with(429, "slow down"),
        fails_with(503, "busy"),
        Fault::Slow(Duration::from_millis(20)),
    ] {
        let name = format!("{fault:?}");
        // It has no link yet.
        let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
        faults.set(Fault::None);
        faults.some(links, 2, fault);
        let agent = provider.agent(&address).await.expect("agent");
        let give_up = Instant::now() + TIMEOUT;
        while agent.health().await.is_err() {
            assert!(Instant::now() < give_up, "{name} lasts");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(sh(&provider, &id, "echo well").await, "well", "{name}");
        provider.close().await;
    }
    maker.delete(&id).await.expect("delete");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}
