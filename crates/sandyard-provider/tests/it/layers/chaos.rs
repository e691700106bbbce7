//! Injected faults.

use std::time::Duration;

use sandyard_provider::layers::{ChaosSettings, Fault};
use sandyard_provider::{ProviderErrorKind, Verb};
use tokio::time::Instant;

use crate::common::{layered, spec};

fn sequence(faults: Vec<(Verb, Option<Fault>)>) -> ChaosSettings {
    ChaosSettings {
        sequence: faults,
        ..ChaosSettings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_has_its_effect() {
    let slow = Duration::from_secs(7);
    let chaos = sequence(vec![
        (Verb::Create, Some(Fault::Refused)),
        (Verb::Create, Some(Fault::NoCapacity)),
        (Verb::Create, Some(Fault::Failed)),
        (Verb::Create, None),
        (Verb::Create, Some(Fault::AnswerLost)),
        (Verb::List, Some(Fault::Slow(slow))),
        (Verb::List, Some(Fault::Hang)),
    ]);
    let (fake, stack) = layered(|layers| layers.chaos = Some(chaos));
    for (kind, made) in [
        (Some(ProviderErrorKind::Unavailable), 0),
        (Some(ProviderErrorKind::NoCapacity), 0),
        (Some(ProviderErrorKind::Failed), 0),
        (None, 1),
        (Some(ProviderErrorKind::TimedOut), 2),
        (None, 3),
    ] {
        let answer = stack.create(&spec("one")).await;
        assert_eq!(answer.err().map(|error| error.kind), kind);
        assert_eq!(fake.instances().len(), made);
    }
    let started = Instant::now();
    stack.list().await.expect("slow");
    assert_eq!(started.elapsed(), slow);
    let hangs = tokio::time::timeout(Duration::from_secs(86_400), stack.list());
    assert!(hangs.await.is_err());
    assert_eq!(fake.count(Verb::List), 1, "a hanging call is not sent");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_fails_the_same_calls() {
    async fn outcomes(seed: u64) -> Vec<bool> {
        let mut chaos: ChaosSettings = "list:refused=0.3".parse().expect("fine");
        chaos.seed = seed;
        let (_, stack) = layered(|layers| layers.chaos = Some(chaos));
        let mut outcomes = Vec::new();
        for _ in 0..200 {
            outcomes.push(stack.list().await.is_err());
            stack.check_health().await.expect("no fault is set for it");
        }
        outcomes
    }
    let first = outcomes(1).await;
    assert_eq!(first, outcomes(1).await);
    assert_ne!(first, outcomes(2).await);
    let count = first.iter().filter(|outcomes| **outcomes).count();
    assert!((30..90).contains(&count), "{count}");
}
