//! Users, and the last admin.

use sandyard_auth::{AuthError, UserChange};
use sandyard_core::{ErrorKind, Role};

use crate::{PASSWORD, TestAuth};

fn demote() -> UserChange {
    UserChange {
        role: Some(Role::User),
        ..UserChange::default()
    }
}

fn disable() -> UserChange {
    UserChange {
        is_disabled: Some(true),
        ..UserChange::default()
    }
}

#[tokio::test]
async fn users_are_made_shown_changed_and_deleted() {
    let auth = TestAuth::new().await;
    let bob = auth
        .create_user("Bob", None, Role::User, Some(3))
        .await
        .unwrap();
    assert_eq!(
        (bob.name.as_str(), bob.has_password, bob.max_sandboxes),
        ("bob", false, Some(3))
    );
    let change = UserChange {
        max_sandboxes: Some(None),
        ..UserChange::default()
    };
    assert_eq!(
        auth.update_user("BOB", &change)
            .await
            .unwrap()
            .max_sandboxes,
        None
    );
    let names: Vec<_> = auth
        .list_users()
        .await
        .unwrap()
        .into_iter()
        .map(|user| user.name)
        .collect();
    assert_eq!(names, ["alice", "bob", "root"]);
    auth.delete_user("bob").await.unwrap();
    let error = auth.user("bob").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(auth.delete_user("bob").await.is_err());
}

#[tokio::test]
async fn a_name_is_taken_once_whatever_its_case() {
    let auth = TestAuth::new().await;
    let taken = auth.create_user("ALICE", None, Role::Admin, None).await;
    assert!(matches!(taken, Err(AuthError::UserExists(_))));
    assert_eq!(auth.user("alice").await.unwrap().role, Role::User);
}

#[tokio::test]
async fn bad_names_passwords_and_quotas_are_refused() {
    let auth = TestAuth::new().await;
    for name in ["", "a b", "../x", "local", "system"] {
        assert!(
            auth.create_user(name, None, Role::User, None)
                .await
                .is_err(),
            "{name}"
        );
    }
    assert!(
        auth.create_user("bob", Some("short"), Role::User, None)
            .await
            .is_err()
    );
    assert!(
        auth.create_user("bob", None, Role::User, Some(-1))
            .await
            .is_err()
    );
    assert!(auth.set_password("alice", "short").await.is_err());
    assert!(auth.set_password("nobody", PASSWORD).await.is_err());
    assert!(auth.login("alice", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn the_last_enabled_admin_stays() {
    let auth = TestAuth::new().await;
    auth.create_user("sleeper", None, Role::Admin, None)
        .await
        .unwrap();
    auth.update_user("sleeper", &disable()).await.unwrap();
    let is_last = |result| matches!(result, Err(AuthError::LastAdmin(_)));
    assert!(is_last(auth.update_user("root", &demote()).await.map(drop)));
    assert!(is_last(
        auth.update_user("root", &disable()).await.map(drop)
    ));
    assert!(is_last(auth.delete_user("root").await));
    auth.delete_user("sleeper").await.unwrap();
    auth.create_user("second", None, Role::Admin, None)
        .await
        .unwrap();
    auth.delete_user("root").await.unwrap();
    assert!(is_last(auth.delete_user("second").await));
}

#[tokio::test]
async fn ordinary_users_are_no_matter_for_the_last_admin() {
    let auth = TestAuth::new().await;
    auth.update_user("alice", &disable()).await.unwrap();
    auth.update_user("alice", &demote()).await.unwrap();
    auth.delete_user("alice").await.unwrap();
}

#[tokio::test]
async fn admins_that_demote_each_other_at_once_leave_one() {
    let auth = TestAuth::new().await;
    let other = auth.replica().await;
    for _ in 0..5 {
        auth.create_user("second", None, Role::Admin, None)
            .await
            .unwrap();
        let here = auth.auth.clone();
        let there = other.clone();
        let tasks = [
            tokio::spawn(async move { here.update_user("root", &demote()).await }),
            tokio::spawn(async move { there.update_user("second", &disable()).await }),
        ];
        let mut refused = 0;
        for task in tasks {
            refused += usize::from(matches!(task.await.unwrap(), Err(AuthError::LastAdmin(_))));
        }
        assert_eq!(refused, 1);
        let restore = UserChange {
            role: Some(Role::Admin),
            is_disabled: Some(false),
            ..UserChange::default()
        };
        auth.update_user("root", &restore).await.unwrap();
        auth.delete_user("second").await.unwrap();
    }
}
