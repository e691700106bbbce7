//! A failure at every step, and a kill at every step: nothing is left, and the next create works.

use sandyard_core::SandboxState::{Running, Stopped};
use sandyard_engine::{ErrorKind, Fault, FaultAction, FaultProcess};

use crate::test_env::{TestEnv, leftovers, small, wait_for};

const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);
/// More steps than any verb has.
const MOST_STEPS: u32 = 60;

/// Creates with a fault at step 1, 2, 3, … until one create succeeds because it has fewer steps. Returns how many failed.
async fn create_at_every_step(process: FaultProcess, action: FaultAction) -> u32 {
    let env = TestEnv::new().await;
    // What the first create on a host makes once and keeps: the template's layer, the blank disk.
    let id = env.create().await.id;
    env.engine.delete(&id).await.expect("delete");
    for step in 1..MOST_STEPS {
        let fault = Fault {
            process,
            step,
            action,
        };
        let result = env.engine.create_with_fault(&small(), fault).await;
        let killed = process == FaultProcess::Worker && action != FaultAction::Fail;
        let error = match result {
            Err(error) => error,
            Ok(info) => {
                env.engine.delete(&info.id).await.expect("delete");
                env.finish().await;
                return step - 1;
            }
        };
        assert_eq!(error.cleanup, Vec::<String>::new(), "step {step}");
        assert_eq!(
            error.kind == ErrorKind::Unavailable,
            killed,
            "step {step}: {error}"
        );
        env.engine.sweep().await.expect("sweep");
        // A killed worker may have got far enough to put the sandbox on record: then it is a sandbox, not a leftover.
        for info in env.engine.list().await.expect("list") {
            assert_eq!(info.state, Running, "step {step}");
            assert_eq!(
                env.out(&info.id, "echo alive").await,
                "alive",
                "step {step}"
            );
            env.engine.delete(&info.id).await.expect("delete");
        }
        env.engine.sweep().await.expect("sweep");
        let leftover_items = wait_for(TIMEOUT, || {
            let mut leftover_items = leftovers(&env.data);
            leftover_items.retain(|item| !item.starts_with("process:"));
            leftover_items
                .is_empty()
                .then_some(())
                .ok_or(leftover_items)
        });
        assert_eq!(
            leftover_items,
            Ok(()),
            "after step {step} of {process:?} {action:?}"
        );
        let next = env.create().await;
        assert_eq!(env.out(&next.id, "echo works").await, "works");
        env.engine.delete(&next.id).await.expect("delete");
    }
    panic!("never succeeded");
}

#[tokio::test]
async fn a_create_that_fails_at_any_step_leaves_nothing() {
    let steps = create_at_every_step(FaultProcess::Worker, FaultAction::Fail).await;
    assert!(steps >= 12, "only {steps} steps were tried");
}

#[tokio::test]
async fn a_create_whose_first_process_fails_at_any_step_leaves_nothing() {
    let steps = create_at_every_step(FaultProcess::Init, FaultAction::Fail).await;
    assert!(steps >= 8, "only {steps} steps were tried");
}

#[tokio::test]
async fn a_create_whose_first_process_dies_at_any_step_leaves_nothing() {
    create_at_every_step(FaultProcess::Init, FaultAction::KillBefore).await;
}

#[tokio::test]
async fn a_create_whose_launcher_is_killed_before_any_step_leaves_nothing() {
    create_at_every_step(FaultProcess::Worker, FaultAction::KillBefore).await;
}

#[tokio::test]
async fn a_create_whose_launcher_is_killed_after_any_step_leaves_nothing() {
    create_at_every_step(FaultProcess::Worker, FaultAction::KillAfter).await;
}

#[tokio::test]
async fn a_start_that_fails_at_any_step_leaves_a_stopped_sandbox_with_its_files() {
    for action in [
        FaultAction::Fail,
        FaultAction::KillBefore,
        FaultAction::KillAfter,
    ] {
        let env = TestEnv::new().await;
        let id = env.create().await.id;
        env.sh(&id, "echo kept > ~/file; sync").await;
        for step in 1..MOST_STEPS {
            env.engine.stop(&id).await.expect("stop");
            let fault = Fault {
                process: FaultProcess::Worker,
                step,
                action,
            };
            let started = env.engine.start_with_fault(&id, fault).await;
            if started.is_ok() {
                break;
            }
            env.engine.sweep().await.expect("sweep");
            if action == FaultAction::Fail {
                assert_eq!(
                    env.engine.inspect(&id).await.expect("inspect").state,
                    Stopped,
                    "step {step}"
                );
            }
            env.engine.start(&id).await.expect("start");
            assert_eq!(env.out(&id, "cat ~/file").await, "kept", "step {step}");
        }
        env.finish().await;
    }
}
