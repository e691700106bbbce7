//! Volumes when things end in the middle: kills of launchers and first processes, failures of every step, lost notes.

use std::fs;

use sandyard_core::SandboxState::Stopped;
use sandyard_engine::{ErrorKind, Fault, FaultAction, FaultProcess};

use super::{SIZE, create, devices, with};
use crate::test_env::{TestEnv, kill, wait_for};

const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

#[tokio::test]
async fn what_was_written_is_there_after_a_killed_launcher_and_a_killed_first_process() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    env.sh(&id, "echo kept > /data/file").await;
    env.kill_launcher().await;
    assert_eq!(env.out(&id, "cat /data/file").await, "kept");
    let other = create(&env, &["v1:/data"]).await;
    assert_eq!(devices(&env.data, "v1").len(), 1, "the old one is found");
    assert_eq!(env.out(&other, "cat /data/file").await, "kept");
    let init = env.engine.inspect(&id).await.expect("inspect").init;
    kill(init.expect("a first process").pid);
    assert_eq!(
        env.engine.inspect(&id).await.expect("inspect").state,
        Stopped
    );
    env.engine.start(&id).await.expect("start");
    assert_eq!(env.out(&id, "cat /data/file").await, "kept");
    env.finish().await;
}

#[tokio::test]
async fn a_device_whose_number_was_lost_is_found_all_the_same() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    let note = env.data.join("run/volume-v1.device.lock");
    let number: u32 = fs::read_to_string(&note)
        .expect("a note")
        .parse()
        .expect("a number");
    fs::remove_file(&note).expect("lose it");
    let other = create(&env, &["v1:/data"]).await;
    assert_eq!(devices(&env.data, "v1"), [format!("loop{number}")]);
    env.sh(&id, "echo one > /data/file").await;
    assert_eq!(env.out(&other, "cat /data/file").await, "one");
    // A number that is another's by now is no reason to touch that one.
    for id in [&id, &other] {
        env.engine.delete(id).await.expect("delete");
    }
    let detached = wait_for(TIMEOUT, || {
        let leftovers_ = devices(&env.data, "v1");
        leftovers_.is_empty().then_some(()).ok_or(leftovers_)
    });
    assert_eq!(detached, Ok(()));
    env.engine.create_volume("v2", SIZE).await.expect("make");
    let other = create(&env, &["v2:/data"]).await;
    let taken = fs::read_to_string(env.data.join("run/volume-v2.device.lock"));
    fs::write(&note, taken.expect("a note")).expect("a wrong note");
    let id = create(&env, &["v1:/data"]).await;
    assert_eq!(env.out(&id, "cat /data/file").await, "one");
    assert_eq!(env.out(&other, "ls -A /data").await, "");
    env.finish().await;
}

#[tokio::test]
async fn a_create_with_a_volume_that_fails_at_any_step_leaves_nothing_mounted() {
    let env = TestEnv::new().await;
    env.engine.create_volume("v1", SIZE).await.expect("make");
    let id = create(&env, &["v1:/data"]).await;
    env.sh(&id, "echo kept > /data/file; sync").await;
    env.engine.delete(&id).await.expect("delete");
    for (process, action) in [
        (FaultProcess::Worker, FaultAction::Fail),
        (FaultProcess::Worker, FaultAction::KillAfter),
        (FaultProcess::Init, FaultAction::Fail),
        (FaultProcess::Init, FaultAction::KillBefore),
    ] {
        let mut failed = 0;
        for step in 1..60 {
            let fault = Fault {
                process,
                step,
                action,
            };
            let made = env
                .engine
                .create_with_fault(&with(&["v1:/data"]), fault)
                .await;
            env.engine.sweep().await.expect("sweep");
            for info in env.engine.list().await.expect("list") {
                assert_eq!(env.out(&info.id, "cat /data/file").await, "kept");
                env.engine.delete(&info.id).await.expect("delete");
            }
            let detached = wait_for(TIMEOUT, || {
                let leftovers_ = devices(&env.data, "v1");
                leftovers_.is_empty().then_some(()).ok_or(leftovers_)
            });
            assert_eq!(detached, Ok(()), "step {step} of {process:?} {action:?}");
            if made.is_ok() {
                break;
            }
            failed += 1;
        }
        assert!(failed >= 8, "only {failed} steps of {process:?} {action:?}");
    }
    env.finish().await;
}

#[tokio::test]
async fn leftovers_of_an_unfinished_creation_are_swept_and_block_nothing() {
    let env = TestEnv::new().await;
    let leftovers_ = env.data.join("volumes/.new-v1");
    fs::create_dir(&leftovers_).expect("make");
    fs::write(leftovers_.join("disk.img"), "half").expect("write");
    let missing = env.engine.create(&with(&["v1:/data"])).await;
    assert_eq!(missing.expect_err("not there").kind, ErrorKind::NotFound);
    env.engine.create_volume("v1", SIZE).await.expect("make");
    assert!(!leftovers_.exists());
    let id = create(&env, &["v1:/data"]).await;
    assert_eq!(env.out(&id, "echo x > /data/x; ls /data").await, "x");
    fs::create_dir(env.data.join("volumes/.new-v2")).expect("make");
    env.engine.sweep().await.expect("sweep");
    assert!(!env.data.join("volumes/.new-v2").exists());
    assert_eq!(env.out(&id, "ls /data").await, "x");
    env.finish().await;
}
