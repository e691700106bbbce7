//! A failure at every step, and a kill at every step: nothing is left, and the next create works.

use sandyard_core::SandboxState::{Running, Stopped};
use sandyard_engine::{ErrorKind, Fault, FaultAction, FaultPlace};

use crate::yard::{Yard, leftovers, small, wait_for};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
/// More steps than any verb has.
const MOST_STEPS: u32 = 60;

/// Creates with a fault at step 1, 2, 3, … until one create succeeds because it has fewer steps. Returns how many failed.
async fn create_at_every_step(place: FaultPlace, action: FaultAction) -> u32 {
    let yard = Yard::new().await;
    // What the first create on a host makes once and keeps: the template's layer, the blank disk.
    let id = yard.create().await.id;
    yard.engine.delete(&id).await.expect("delete");
    for step in 1..MOST_STEPS {
        let fault = Fault {
            place,
            step,
            action,
        };
        let result = yard.engine.create_with_fault(&small(), fault).await;
        let killed = place == FaultPlace::Worker && action != FaultAction::Fail;
        let error = match result {
            Err(error) => error,
            Ok(info) => {
                yard.engine.delete(&info.id).await.expect("delete");
                yard.finish().await;
                return step - 1;
            }
        };
        assert_eq!(error.cleanup, Vec::<String>::new(), "step {step}");
        assert_eq!(
            error.kind == ErrorKind::Unavailable,
            killed,
            "step {step}: {error}"
        );
        yard.engine.sweep().await.expect("sweep");
        // A killed worker may have got far enough to put the sandbox on record: then it is a sandbox, not a leftover.
        for info in yard.engine.list().await.expect("list") {
            assert_eq!(info.state, Running, "step {step}");
            assert_eq!(
                yard.out(&info.id, "echo alive").await,
                "alive",
                "step {step}"
            );
            yard.engine.delete(&info.id).await.expect("delete");
        }
        yard.engine.sweep().await.expect("sweep");
        let left = wait_for(PATIENCE, || {
            let mut left = leftovers(&yard.data);
            left.retain(|item| !item.starts_with("process:"));
            left.is_empty().then_some(()).ok_or(left)
        });
        assert_eq!(left, Ok(()), "after step {step} of {place:?} {action:?}");
        let next = yard.create().await;
        assert_eq!(yard.out(&next.id, "echo works").await, "works");
        yard.engine.delete(&next.id).await.expect("delete");
    }
    panic!("never succeeded");
}

#[tokio::test]
async fn a_create_that_fails_at_any_step_leaves_nothing() {
    let steps = create_at_every_step(FaultPlace::Worker, FaultAction::Fail).await;
    assert!(steps >= 12, "only {steps} steps were tried");
}

#[tokio::test]
async fn a_create_whose_first_process_fails_at_any_step_leaves_nothing() {
    let steps = create_at_every_step(FaultPlace::Init, FaultAction::Fail).await;
    assert!(steps >= 8, "only {steps} steps were tried");
}

#[tokio::test]
async fn a_create_whose_first_process_dies_at_any_step_leaves_nothing() {
    create_at_every_step(FaultPlace::Init, FaultAction::KillBefore).await;
}

#[tokio::test]
async fn a_create_whose_launcher_is_killed_before_any_step_leaves_nothing() {
    create_at_every_step(FaultPlace::Worker, FaultAction::KillBefore).await;
}

#[tokio::test]
async fn a_create_whose_launcher_is_killed_after_any_step_leaves_nothing() {
    create_at_every_step(FaultPlace::Worker, FaultAction::KillAfter).await;
}

#[tokio::test]
async fn a_start_that_fails_at_any_step_leaves_a_stopped_sandbox_with_its_files() {
    for action in [
        FaultAction::Fail,
        FaultAction::KillBefore,
        FaultAction::KillAfter,
    ] {
        let yard = Yard::new().await;
        let id = yard.create().await.id;
        yard.sh(&id, "echo kept > ~/file; sync").await;
        for step in 1..MOST_STEPS {
            yard.engine.stop(&id).await.expect("stop");
            let fault = Fault {
                place: FaultPlace::Worker,
                step,
                action,
            };
            let started = yard.engine.start_with_fault(&id, fault).await;
            if started.is_ok() {
                break;
            }
            yard.engine.sweep().await.expect("sweep");
            if action == FaultAction::Fail {
                assert_eq!(
                    yard.engine.inspect(&id).await.expect("inspect").state,
                    Stopped,
                    "step {step}"
                );
            }
            yard.engine.start(&id).await.expect("start");
            assert_eq!(yard.out(&id, "cat ~/file").await, "kept", "step {step}");
        }
        yard.finish().await;
    }
}
