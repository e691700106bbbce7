//! Rows to store.

use std::collections::BTreeMap;

use sandyard_core::{Limits, Role, SandboxId, SandboxStatus};
use sandyard_store::Store;
use sandyard_store::model::{
    ClaimOutcome, Expiry, InsertOutcome, NewEvent, NewSandbox, NewUser, Operation, Sandbox,
    SandboxPatch, TimeoutAction, TimerPlan,
};
use serde_json::json;

pub(crate) const MAKER: &str = "node-a/1";

pub(crate) fn id(name: &str) -> SandboxId {
    name.parse().unwrap()
}

/// A sandbox with something in every field.
pub(crate) fn sandbox(name: &str, owner: &str, created_ms: i64) -> Sandbox {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    Sandbox {
        id: id(name),
        owner: owner.to_owned(),
        alias: None,
        project: Some("proj'ekt \"1\" ü".to_owned()),
        provider: "embedded".to_owned(),
        location: "here".to_owned(),
        provider_id: Some(format!("p{name}")),
        template: "base".to_owned(),
        status: SandboxStatus::Creating,
        reason: Some("new; DROP TABLE sandboxes; --".to_owned()),
        limits: Limits::default(),
        metadata: map(&[("team", "red"), ("q\"uote", "va\\l:\"ue")]),
        env: map(&[("SECRET", "line\nbreak\u{0}nul")]),
        network: Some(json!({"allow": ["10.0.0.0/8"], "deny": []})),
        secrets: map(&[("TOKEN", "github"), ("odd:\"name", "deploy-key")]),
        ports: map(&[("80", "8080")]),
        public_ports: vec![80, 443],
        mounts: Vec::new(),
        access_token: "token-of-agent".to_owned(),
        timeout_s: 300,
        timeout_action: TimeoutAction::Pause,
        expiry: Expiry::Idle,
        is_auto_resumed: true,
        limitations: vec!["gpu".to_owned()],
        created_ms,
        started_ms: Some(created_ms + 1),
        stopped_ms: None,
        last_activity_ms: created_ms,
        fixed_end_ms: None,
        deleted_ms: None,
        version: 1,
        claim: Some((Operation::Create, MAKER.to_owned(), created_ms + 1000)),
    }
}

pub(crate) fn new(sandbox: Sandbox) -> NewSandbox {
    NewSandbox {
        claimed_until_ms: sandbox.created_ms + 1000,
        sandbox,
        holder: MAKER.to_owned(),
    }
}

pub(crate) fn event(name: &str, owner: &str, kind: &str, at_ms: i64) -> NewEvent {
    NewEvent {
        sandbox_id: id(name),
        owner: owner.to_owned(),
        at_ms,
        kind: kind.to_owned(),
        actor: owner.to_owned(),
        data: json!({"n": 1, "text": "ü\"'\u{0}"}),
    }
}

/// Inserts a sandbox and expects nothing in its way.
pub(crate) async fn insert(store: &Store, sandbox: Sandbox) {
    let created = event(
        sandbox.id.as_str(),
        &sandbox.owner,
        "created",
        sandbox.created_ms,
    );
    let outcome = store
        .insert_sandbox(&new(sandbox), None, None, &created, TimerPlan::Keep)
        .await
        .unwrap();
    assert_eq!(outcome, InsertOutcome::Inserted);
}

/// Inserts a running, unclaimed sandbox.
pub(crate) async fn insert_running(store: &Store, sandbox: Sandbox) -> Sandbox {
    let id = sandbox.id.clone();
    insert(store, sandbox).await;
    finish(store, &id, SandboxStatus::Running).await
}

/// Commits a status for the maker and ends its claim.
pub(crate) async fn finish(store: &Store, id: &SandboxId, status: SandboxStatus) -> Sandbox {
    let patch = SandboxPatch {
        status: Some(status),
        deleted_ms: (status == SandboxStatus::Deleted).then_some(5000),
        ..SandboxPatch::default()
    };
    store
        .commit_sandbox(id, MAKER, &patch, &[], TimerPlan::Keep, true)
        .await
        .unwrap()
        .expect("the maker holds it")
}

/// Deletes a sandbox that nobody holds.
pub(crate) async fn delete(store: &Store, id: &SandboxId) {
    let claim = store
        .claim_sandbox(id, Operation::Delete, MAKER, 0, 1000)
        .await
        .unwrap();
    assert!(matches!(claim, ClaimOutcome::Claimed(_)));
    finish(store, id, SandboxStatus::Deleted).await;
}

pub(crate) fn user(name: &str) -> NewUser {
    NewUser {
        name: name.to_owned(),
        password_hash: Some("$argon2id$hash".to_owned()),
        role: Role::User,
        max_sandboxes: Some(3),
        created_ms: 1,
    }
}
