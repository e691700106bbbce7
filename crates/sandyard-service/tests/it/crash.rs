//! A server that dies in the middle, and the one that comes after it.

use sandyard_core::{Clock, SandboxId, SandboxStatus};
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, Verb};
use sandyard_service::{NodeSetup, Sandbox, Service};
use sandyard_store::model::{
    InsertOutcome, NewEvent, NewSandbox, Operation, SandboxPatch, TimerPlan,
};
use serde_json::json;

use crate::harness::{TestEnv, alice, policy};

/// The name of a node that is not there any more.
const DEAD: &str = "dead.node/1";

/// Remembers a sandbox the way a server does that dies before it can do more.
async fn half_made(env: &TestEnv) -> Sandbox {
    let model = env.create().await;
    let id = SandboxId::from_random([7; 20]);
    let row = Sandbox {
        id: id.clone(),
        provider_id: None,
        started_ms: None,
        ..model.clone()
    };
    let now_ms = env.clock.now_ms();
    let new = NewSandbox {
        sandbox: row.clone(),
        holder: DEAD.to_owned(),
        claimed_until_ms: now_ms + 30_000,
    };
    let event = NewEvent {
        sandbox_id: id,
        owner: "alice".to_owned(),
        at_ms: now_ms,
        kind: "created".to_owned(),
        actor: "alice".to_owned(),
        data: serde_json::json!({}),
    };
    let outcome = env
        .store
        .insert_sandbox(&new, None, None, &event, TimerPlan::Keep)
        .await
        .expect("the test environment works");
    assert_eq!(outcome, InsertOutcome::Inserted);
    env.service
        .delete(&alice(), model.id.as_str())
        .await
        .expect("the test environment works");
    row
}

async fn claim_by_the_dead(env: &TestEnv, id: &SandboxId, operation: Operation) {
    let now_ms = env.clock.now_ms();
    env.store
        .claim_sandbox(id, operation, DEAD, now_ms, now_ms + 30_000)
        .await
        .expect("the test environment works");
}

/// Another server, once the dead one's claims have ended.
async fn next_server(env: &TestEnv) -> Service {
    env.clock.advance_ms(31_000);
    let next = env.second_server().await;
    next.sweep().await.expect("the test environment works");
    next
}

#[tokio::test]
async fn died_before_the_instance_was_made() {
    let env = TestEnv::new().await;
    let row = half_made(&env).await;
    next_server(&env).await;
    assert_eq!(env.row(&row.id).await.status, SandboxStatus::Deleted);
    assert!(env.provider.instances().is_empty());
}

#[tokio::test]
async fn died_after_the_instance_was_made() {
    let env = TestEnv::new().await;
    let row = half_made(&env).await;
    let spec = InstanceSpec {
        sandbox_id: row.id.clone(),
        template: row.template.clone(),
        limits: row.limits.clone(),
        env: row.env.clone(),
        access_token: row.access_token.clone(),
        hostname: None,
        network: sandyard_core::NetworkPolicy::default(),
        mounts: Vec::new(),
        project: None,
        metadata: Default::default(),
        is_restricted: false,
    };
    let instance = env.provider.create(&spec).await.unwrap();
    next_server(&env).await;
    let found = env.row(&row.id).await;
    assert_eq!(found.status, SandboxStatus::Running);
    assert_eq!(found.provider_id, Some(instance.id));
}

#[tokio::test]
async fn died_while_pausing_before_and_after_the_freeze() {
    for is_frozen in [false, true] {
        let env = TestEnv::new().await;
        let sandbox = env.create().await;
        claim_by_the_dead(&env, &sandbox.id, Operation::Pause).await;
        if is_frozen {
            env.provider
                .pause(sandbox.provider_id.as_deref().unwrap())
                .await
                .unwrap();
        }
        let next = next_server(&env).await;
        // No caller got the answer that it is paused, so it runs.
        let live = next.live(&alice(), sandbox.id.as_str()).await.unwrap();
        assert_eq!(live.sandbox.status, SandboxStatus::Running);
        let state = env.provider.instances()[0].state;
        assert_eq!(state, sandyard_core::SandboxState::Running);
    }
}

#[tokio::test]
async fn died_while_waking_before_and_after_the_thaw() {
    for is_thawed in [false, true] {
        let env = TestEnv::new().await;
        let sandbox = env.create().await;
        let name = sandbox.id.as_str();
        env.service.pause(&alice(), name, None).await.unwrap();
        claim_by_the_dead(&env, &sandbox.id, Operation::Wake).await;
        if is_thawed {
            env.provider
                .resume(sandbox.provider_id.as_deref().unwrap())
                .await
                .unwrap();
        }
        let next = next_server(&env).await;
        assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
        let state = env.provider.instances()[0].state;
        assert_eq!(state, sandyard_core::SandboxState::Paused);
        next.live(&alice(), name).await.unwrap();
    }
}

#[tokio::test]
async fn died_while_deleting_before_and_after_the_resource_went() {
    for is_gone in [false, true] {
        let env = TestEnv::new().await;
        let sandbox = env.create().await;
        claim_by_the_dead(&env, &sandbox.id, Operation::Delete).await;
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Deleting),
            ..SandboxPatch::default()
        };
        env.store
            .commit_sandbox(&sandbox.id, DEAD, &patch, &[], TimerPlan::Keep, false)
            .await
            .unwrap()
            .unwrap();
        if is_gone {
            env.provider
                .delete(sandbox.provider_id.as_deref().unwrap())
                .await
                .unwrap();
        }
        next_server(&env).await;
        assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
        assert!(env.provider.instances().is_empty());
    }
}

#[tokio::test]
async fn died_between_writing_a_policy_and_pushing_it() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.grant(&sandbox).await;
    claim_by_the_dead(&env, &sandbox.id, Operation::Change).await;
    let closed = policy(json!({"allow_internet_access": false}));
    let patch = SandboxPatch {
        network: Some(Some(serde_json::to_value(&closed).unwrap())),
        ..SandboxPatch::default()
    };
    env.store
        .commit_sandbox(&sandbox.id, DEAD, &patch, &[], TimerPlan::Keep, false)
        .await
        .unwrap()
        .unwrap();
    // Not even the end of the claim is waited for.
    let next = env.second_server().await;
    next.sweep().await.unwrap();
    assert_eq!(env.grant(&sandbox).await.policy, closed);
}

#[tokio::test]
async fn died_between_creating_a_sandbox_and_opening_its_egress() {
    let env = TestEnv::new().await;
    let gate = env.provider.hold(Verb::SetNetwork);
    let sandbox = env.create().await;
    gate.reached_by(1).await;
    let next = env.second_server().await;
    let sweep = tokio::spawn(async move { next.sweep().await });
    // The first one's push never ends; the second's is its own.
    gate.reached_by(2).await;
    gate.release();
    sweep.await.unwrap().unwrap();
    env.grant(&sandbox).await;
}

#[tokio::test]
async fn a_claim_of_the_living_is_respected() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let holder = format!("{}/99", env.service.node_id());
    let now_ms = Clock::now_ms(&env.clock);
    env.store
        .claim_sandbox(
            &sandbox.id,
            Operation::Pause,
            &holder,
            now_ms,
            now_ms + 30_000,
        )
        .await
        .unwrap();
    env.second_server().await.sweep().await.unwrap();
    assert!(env.row(&sandbox.id).await.claim.is_some());
}

#[tokio::test]
async fn a_server_in_the_same_slot_need_not_wait_for_its_predecessors_claims() {
    let env = TestEnv::new().await;
    let folder = tempfile::tempdir().unwrap();
    let slot = || NodeSetup::in_slot(folder.path(), "here", None, None).unwrap();
    let first = env.second_server_as(slot()).await;
    let second = env.second_server_as(slot()).await;
    let sandboxes = [env.create().await, env.create().await];
    let now_ms = env.clock.now_ms();
    for (server, sandbox) in [&first, &second].into_iter().zip(&sandboxes) {
        let holder = format!("{}/1", server.node_id());
        env.store
            .claim_sandbox(
                &sandbox.id,
                Operation::Pause,
                &holder,
                now_ms,
                now_ms + 30_000,
            )
            .await
            .unwrap();
    }
    drop(first);
    let _third = env.second_server_as(slot()).await;
    assert_eq!(env.row(&sandboxes[0].id).await.claim, None);
    assert!(
        env.row(&sandboxes[1].id).await.claim.is_some(),
        "its holder lives"
    );
}

#[tokio::test]
async fn a_create_that_another_server_finished_is_not_undone() {
    let env = TestEnv::new().await;
    let gate = env.provider.hold_answer(sandyard_provider::Verb::Create);
    let service = env.service.clone();
    let slow = tokio::spawn(async move { service.create(&alice(), Default::default()).await });
    gate.reached_by(1).await;
    // Its claim ends as if its server had been asleep, and another adopts what it made.
    env.clock.advance_ms(31_000);
    let other = env.second_server().await;
    other.sweep().await.unwrap();
    gate.release();
    let sandbox = slow.await.unwrap().unwrap();
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    assert_eq!(env.provider.instances().len(), 1);
}
