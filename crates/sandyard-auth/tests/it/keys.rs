//! Keys of programs.

use std::time::Duration;

use sandyard_auth::{AuthError, Rejection, UserChange};
use sandyard_core::{Role, Scope};

use crate::{START_MS, TestAuth, rejection};

#[tokio::test]
async fn a_key_is_its_owner_with_its_scopes() {
    let auth = TestAuth::new().await;
    let new = auth
        .create_key("Alice", "ci", &[Scope::Use, Scope::Read, Scope::Use], None)
        .await
        .unwrap();
    assert!(new.secret.starts_with("e2b_") && new.secret.len() == 44);
    let caller = auth.authenticate(&new.secret).await.unwrap();
    assert_eq!(caller.name, "alice");
    assert_eq!(caller.scopes, [Scope::Read, Scope::Use]);
    assert_eq!(caller.via, format!("key:{}", new.key.id));
    assert!(!caller.has(Scope::Manage));
}

#[tokio::test]
async fn an_ordinary_users_key_never_administers() {
    let auth = TestAuth::new().await;
    let refused = auth.create_key("alice", "ci", &Scope::ALL, None).await;
    assert!(matches!(refused, Err(AuthError::AdminScope { .. })));
    auth.create_user("boss", None, Role::Admin, None)
        .await
        .unwrap();
    let new = auth
        .create_key("boss", "ops", &Scope::ALL, None)
        .await
        .unwrap();
    assert!(
        auth.authenticate(&new.secret)
            .await
            .unwrap()
            .has(Scope::Admin)
    );
    let demote = UserChange {
        role: Some(Role::User),
        ..UserChange::default()
    };
    auth.update_user("boss", &demote).await.unwrap();
    assert!(
        !auth
            .authenticate(&new.secret)
            .await
            .unwrap()
            .has(Scope::Admin)
    );
}

#[tokio::test]
async fn a_key_ends_at_its_time() {
    let auth = TestAuth::new().await;
    let end = Some(START_MS + 5000);
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], end)
        .await
        .unwrap();
    auth.advance(Duration::from_millis(4999));
    assert!(auth.authenticate(&new.secret).await.is_ok());
    auth.advance(Duration::from_millis(1));
    assert_eq!(
        auth.rejection(&new.secret).await,
        Rejection::Expired,
        "also when it was looked up just now"
    );
    let past = auth.create_key("alice", "ci", &[Scope::Read], end).await;
    assert!(matches!(
        past,
        Err(AuthError::Invalid {
            field: "expires",
            ..
        })
    ));
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_here_and_soon_elsewhere() {
    let auth = TestAuth::new().await;
    let other = auth.replica().await;
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    assert!(auth.authenticate(&new.secret).await.is_ok());
    assert!(other.authenticate(&new.secret).await.is_ok());
    auth.revoke_key(&new.key.id, Some("alice")).await.unwrap();
    assert_eq!(auth.rejection(&new.secret).await, Rejection::Revoked);
    auth.advance(Duration::from_secs(1));
    assert_eq!(
        rejection(other.authenticate(&new.secret).await),
        Rejection::Revoked
    );
}

#[tokio::test]
async fn only_ones_own_key_can_be_revoked() {
    let auth = TestAuth::new().await;
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    let refused = auth.revoke_key(&new.key.id, Some("root")).await;
    assert!(matches!(refused, Err(AuthError::KeyNotFound(_))));
    assert!(auth.authenticate(&new.secret).await.is_ok());
    assert!(auth.revoke_key("nothing", None).await.is_err());
    auth.revoke_key(&new.key.id, None).await.unwrap();
}

#[tokio::test]
async fn unknown_keys_are_refused() {
    let auth = TestAuth::new().await;
    let key = format!("e2b_{}", "0".repeat(40));
    assert_eq!(auth.rejection(&key).await, Rejection::Unknown);
}

#[tokio::test]
async fn a_disabled_users_key_rests() {
    let auth = TestAuth::new().await;
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    assert!(auth.authenticate(&new.secret).await.is_ok());
    let set_disabled = |is_disabled| UserChange {
        is_disabled: Some(is_disabled),
        ..UserChange::default()
    };
    auth.update_user("alice", &set_disabled(true))
        .await
        .unwrap();
    assert_eq!(auth.rejection(&new.secret).await, Rejection::Disabled);
    auth.update_user("alice", &set_disabled(false))
        .await
        .unwrap();
    assert!(auth.authenticate(&new.secret).await.is_ok());
}

#[tokio::test]
async fn a_deleted_users_key_does_not_come_back_with_the_name() {
    let auth = TestAuth::new().await;
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    assert!(auth.authenticate(&new.secret).await.is_ok());
    auth.delete_user("alice").await.unwrap();
    assert_eq!(auth.rejection(&new.secret).await, Rejection::Unknown);
    auth.create_user("alice", None, Role::User, None)
        .await
        .unwrap();
    assert_eq!(auth.rejection(&new.secret).await, Rejection::Unknown);
}

#[tokio::test]
async fn the_last_use_is_noted_to_the_minute() {
    let auth = TestAuth::new().await;
    let new = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        auth.authenticate(&new.secret).await.unwrap();
        seen.push(
            auth.list_keys(Some("alice")).await.unwrap()[0]
                .last_used_ms
                .unwrap()
                - START_MS,
        );
        auth.advance(Duration::from_secs(30));
    }
    assert_eq!(seen, [0, 0, 60_000, 60_000]);
}

#[tokio::test]
async fn lists_show_keys_without_the_key() {
    let auth = TestAuth::new().await;
    let alice_key = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    let root_key = auth
        .create_key("root", "ops", &[Scope::Read], None)
        .await
        .unwrap();
    assert_eq!(
        auth.list_keys(Some("alice")).await.unwrap(),
        std::slice::from_ref(&alice_key.key)
    );
    assert_eq!(auth.list_keys(None).await.unwrap().len(), 2);
    let output = format!(
        "{:?} {alice_key:?} {root_key:?}",
        auth.list_keys(None).await.unwrap()
    );
    assert!(!output.contains(&alice_key.secret) && !output.contains(&root_key.secret));
}

#[tokio::test]
async fn a_key_needs_an_owner_a_name_and_scopes() {
    let auth = TestAuth::new().await;
    let unknown_owner = auth.create_key("nobody", "ci", &[Scope::Read], None).await;
    assert!(matches!(unknown_owner, Err(AuthError::UserNotFound(_))));
    assert!(auth.create_key("alice", "ci", &[], None).await.is_err());
    assert!(
        auth.create_key("alice", " ", &[Scope::Read], None)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_user_has_a_hundred_good_keys_at_most() {
    let auth = TestAuth::new().await;
    let first = auth
        .create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
    for _ in 1..100 {
        auth.create_key("alice", "ci", &[Scope::Read], None)
            .await
            .unwrap();
    }
    let refused = auth.create_key("alice", "ci", &[Scope::Read], None).await;
    assert!(matches!(refused, Err(AuthError::TooManyKeys { .. })));
    auth.revoke_key(&first.key.id, None).await.unwrap();
    auth.create_key("alice", "ci", &[Scope::Read], None)
        .await
        .unwrap();
}
