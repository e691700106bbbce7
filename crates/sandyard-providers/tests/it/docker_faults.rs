//! Docker on a bad day: what a proxy, a busy daemon or one without its containerd says, what gets lost, comes late or in part.

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

/// Nothing is measured by this.
const PATIENCE: Duration = Duration::from_secs(180);
/// What dockerd says while containerd starts again.
const NO_CONTAINERD: &str = "connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\": unavailable";

/// A daemon, and somebody before it who spoils what is said.
async fn spoilt() -> (Dockerd, Faults) {
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

fn says(status: u16, message: &str) -> Fault {
    Fault::status(status, ("", ""), message)
}

fn lists(asked: &str) -> bool {
    asked.starts_with("GET ") && asked.ends_with("/containers/json")
}

fn creates(asked: &str) -> bool {
    asked.starts_with("POST ") && asked.ends_with("/containers/create")
}

fn uploads(asked: &str) -> bool {
    asked.starts_with("PUT ") && asked.ends_with("/archive")
}

fn starts(asked: &str) -> bool {
    asked.starts_with("POST ") && asked.contains("/containers/") && asked.ends_with("/start")
}

/// The stream of a link begins.
fn links(asked: &str) -> bool {
    asked.starts_with("POST ") && asked.contains("/exec/") && asked.ends_with("/start")
}

async fn until_nothing_is_left(dockerd: &Dockerd, why: &str) {
    let give_up = Instant::now() + PATIENCE;
    while !dockerd.left().is_empty() {
        let left = dockerd.left();
        assert!(Instant::now() < give_up, "{why}: {left:?} is left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn every_failure_has_its_kind_and_nothing_stays_broken() {
    let (dockerd, faults) = spoilt().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    // With little patience, for what is never answered: all else has time, however busy the machine is.
    let short = CallTimeouts {
        quick: Duration::from_secs(6),
        ..CallTimeouts::default()
    };
    let hasty = behind(&dockerd, &faults, short).await;
    let id = make(&provider, "one").await.id;
    for (fault, kind) in [
        (says(429, "slow down"), NoCapacity),
        (says(500, "oh"), Failed),
        (says(500, NO_CONTAINERD), Unavailable),
        (says(502, "<html>nobody there"), Unavailable),
        (says(503, "busy"), Unavailable),
        (says(504, "late"), TimedOut),
        (Fault::Refuse, Unavailable),
        (Fault::Half, Unavailable),
        (Fault::Lose, Unavailable),
        (Fault::Hang, TimedOut),
        (Fault::Slow(Duration::from_millis(50)), TimedOut),
    ] {
        let name = format!("{fault:?}");
        let asked = if kind == TimedOut { &hasty } else { &provider };
        faults.set(fault);
        let error = asked.list().await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        let is_later = error.retry == Retry::Later;
        assert_eq!(is_later, kind != Failed, "{name}: {error:?}");
        let error = asked.pause(&id).await.expect_err(&name);
        assert_eq!(error.kind, kind, "{name}: {error:?}");
        faults.set(Fault::None);
        let found = provider.inspect(&id).await.expect("inspect");
        assert_eq!(found.expect("there").state, Running, "{name}");
    }
    assert_eq!(sh(&provider, &id, "echo still there").await, "still there");
    provider.delete(&id).await.expect("delete");
    assert_eq!(dockerd.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_create_that_fails_on_its_way_leaves_nothing() {
    let (dockerd, faults) = spoilt().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    // The agent's program is there from now on.
    let first = make(&provider, "first").await.id;
    provider.delete(&first).await.expect("delete");
    type Step = fn(&str) -> bool;
    for (step, fault, kind) in [
        (creates as Step, says(429, "slow down"), Some(NoCapacity)),
        (creates, says(500, "oh"), Some(Failed)),
        (creates, says(503, "busy"), Some(Unavailable)),
        // NewVolumeHelper, and the answer does not arrive: found, and made once.
        (creates, Fault::Lose, None),
        (creates, Fault::Half, None),
        (uploads, says(429, "slow down"), Some(NoCapacity)),
        (uploads, Fault::Lose, Some(Unavailable)),
        (starts, says(500, NO_CONTAINERD), Some(Unavailable)),
        (starts, says(504, "late"), Some(TimedOut)),
        (starts, Fault::Lose, None),
        (links, says(500, "oh"), None),
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

/// Whoever is told of want of room believes that nothing is there.
#[tokio::test]
async fn what_cannot_be_taken_back_is_no_want_of_room_and_goes_later() {
    let (dockerd, faults) = spoilt().await;
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    faults.some(starts, 1, says(429, "slow down"));
    faults.some(lists, usize::MAX, says(429, "slow down"));
    let failed = provider.create(&spec(&provider, "one")).await;
    let failed = failed.expect_err("fails");
    assert_eq!((failed.kind, failed.retry), (Unavailable, Retry::Later));
    assert_ne!(dockerd.left(), Vec::<String>::new());
    faults.set(Fault::None);
    until_nothing_is_left(&dockerd, "it is taken back").await;
}

#[tokio::test]
async fn a_create_whose_time_ends_while_it_is_taken_back_leaves_nothing() {
    let (dockerd, faults) = spoilt().await;
    let timeouts = CallTimeouts {
        create: Duration::from_secs(15),
        ..CallTimeouts::default()
    };
    let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
    let first = make(&provider, "first").await.id;
    provider.delete(&first).await.expect("delete");
    let hasty = behind(&dockerd, &faults, timeouts).await;
    faults.some(starts, usize::MAX, says(500, "oh"));
    faults.some(lists, usize::MAX, Fault::Hang);
    let failed = hasty.create(&spec(&hasty, "one")).await;
    assert_eq!(failed.expect_err("its time ends").kind, TimedOut);
    assert_ne!(dockerd.left(), Vec::<String>::new());
    faults.set(Fault::None);
    until_nothing_is_left(&dockerd, "it is taken back").await;
}

#[tokio::test]
async fn links_that_are_slow_or_break_are_borne() {
    let (dockerd, faults) = spoilt().await;
    let maker = behind(&dockerd, &faults, CallTimeouts::default()).await;
    let id = make(&maker, "one").await.id;
    let address = agent_client::address(&id);
    for fault in [
        Fault::Half,
        Fault::Lose,
        says(429, "slow down"),
        says(503, "busy"),
        Fault::Slow(Duration::from_millis(20)),
    ] {
        let name = format!("{fault:?}");
        // It has no link yet.
        let provider = behind(&dockerd, &faults, CallTimeouts::default()).await;
        faults.set(Fault::None);
        faults.some(links, 2, fault);
        let agent = provider.agent(&address).await.expect("agent");
        let give_up = Instant::now() + PATIENCE;
        while agent.health().await.is_err() {
            assert!(Instant::now() < give_up, "{name} lasts");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(sh(&provider, &id, "echo well").await, "well", "{name}");
        provider.close().await;
    }
    maker.delete(&id).await.expect("delete");
    assert_eq!(dockerd.left(), Vec::<String>::new());
}
