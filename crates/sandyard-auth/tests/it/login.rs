//! Passwords and the lock-out.

use std::time::Duration;

use sandyard_auth::{AuthError, Rejection, Tokens, UserChange};
use sandyard_core::{ErrorKind, Role, Scope};

use crate::{PASSWORD, START_MS, TestAuth, rejection};

fn is_wrong(result: &Result<Tokens, AuthError>) -> bool {
    matches!(result, Err(AuthError::WrongPassword))
}

fn locked_for_s(result: &Result<Tokens, AuthError>) -> Option<u64> {
    match result {
        Err(error @ AuthError::Locked { retry_after_s }) => {
            assert_eq!(error.kind(), ErrorKind::RateLimited);
            Some(*retry_after_s)
        }
        _ => None,
    }
}

#[tokio::test]
async fn a_login_gives_a_token_for_24_hours() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("Alice", PASSWORD).await.unwrap();
    assert_eq!(tokens.expires_ms, START_MS + 24 * 60 * 60 * 1000);
    assert_eq!(tokens.user.name, "alice");
    let caller = auth.authenticate(&tokens.access_token).await.unwrap();
    assert_eq!((caller.name.as_str(), caller.role), ("alice", Role::User));
    assert_eq!(caller.scopes, [Scope::Read, Scope::Use, Scope::Manage]);
    let root = auth.login("root", PASSWORD).await.unwrap();
    let root = auth.authenticate(&root.access_token).await.unwrap();
    assert!(root.has(Scope::Admin));
}

#[tokio::test]
async fn five_failures_lock_for_300_seconds() {
    let auth = TestAuth::new().await;
    for _ in 0..5 {
        assert!(is_wrong(&auth.login("alice", "wrong guess").await));
    }
    let locked = auth.login("alice", PASSWORD).await;
    assert_eq!(locked_for_s(&locked), Some(300), "also for the right one");
    auth.advance(Duration::from_millis(299_999));
    assert_eq!(locked_for_s(&auth.login("ALICE", PASSWORD).await), Some(1));
    auth.advance(Duration::from_millis(1));
    auth.login("alice", PASSWORD).await.unwrap();
    assert!(
        auth.login("root", PASSWORD).await.is_ok(),
        "others are not locked"
    );
}

#[tokio::test]
async fn a_good_login_forgets_failures() {
    let auth = TestAuth::new().await;
    for _ in 0..3 {
        for _ in 0..4 {
            assert!(is_wrong(&auth.login("alice", "wrong guess").await));
        }
        auth.login("alice", PASSWORD).await.unwrap();
    }
}

#[tokio::test]
async fn parallel_guesses_are_counted_one_by_one() {
    let auth = TestAuth::new().await;
    let guesses: Vec<_> = (0..40)
        .map(|number| {
            let auth = auth.auth.clone();
            tokio::spawn(async move { auth.login("alice", &format!("guess no {number}")).await })
        })
        .collect();
    let (mut wrong, mut locked) = (0, 0);
    for guess in guesses {
        let result = guess.await.unwrap();
        wrong += usize::from(is_wrong(&result));
        locked += usize::from(locked_for_s(&result).is_some());
    }
    assert_eq!((wrong, locked), (5, 35));
    assert_eq!(
        auth.password_checks(),
        5,
        "the others were not even looked at"
    );
}

#[tokio::test]
async fn the_lock_holds_on_every_server() {
    let auth = TestAuth::new().await;
    let other = auth.replica().await;
    for server in [&auth.auth, &other, &auth.auth, &other, &auth.auth] {
        assert!(is_wrong(&server.login("alice", "wrong guess").await));
    }
    assert!(locked_for_s(&other.login("alice", PASSWORD).await).is_some());
}

#[tokio::test]
async fn guesses_at_two_servers_at_once_gain_one_at_most() {
    let auth = TestAuth::new().await;
    let other = auth.replica().await;
    let guesses: Vec<_> = (0..40)
        .map(|number| {
            let server = if number % 2 == 0 { &auth.auth } else { &other };
            let server = server.clone();
            tokio::spawn(async move { server.login("alice", "wrong guess").await })
        })
        .collect();
    for guess in guesses {
        assert!(guess.await.unwrap().is_err());
    }
    let checks = auth.password_checks() + other.password_checks();
    assert!((5..=6).contains(&checks), "{checks}");
}

#[tokio::test]
async fn an_unknown_name_is_checked_and_locks_like_any_other() {
    let auth = TestAuth::new().await;
    for count in 1..=5 {
        assert!(is_wrong(&auth.login("ghost", "wrong guess").await));
        assert_eq!(auth.password_checks(), count);
    }
    assert_eq!(
        locked_for_s(&auth.login("ghost", "wrong guess").await),
        Some(300)
    );
    auth.create_user("ghost", Some(PASSWORD), Role::User, None)
        .await
        .unwrap();
    assert!(auth.login("ghost", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn what_cannot_be_a_name_or_password_is_just_wrong() {
    let auth = TestAuth::new().await;
    let long = "a".repeat(100_000);
    for (name, password) in [
        ("", ""),
        ("a b", "x"),
        ("alice", ""),
        (&*long, "x"),
        ("alice", &*long),
    ] {
        assert!(is_wrong(&auth.login(name, password).await));
    }
}

#[tokio::test]
async fn a_user_without_a_password_cannot_log_in() {
    let auth = TestAuth::new().await;
    auth.create_user("robot", None, Role::User, None)
        .await
        .unwrap();
    assert!(is_wrong(&auth.login("robot", "").await));
    assert!(is_wrong(
        &auth.login("robot", "nobody has this password").await
    ));
}

#[tokio::test]
async fn a_disabled_user_cannot_log_in_and_a_guess_does_not_learn_that() {
    let auth = TestAuth::new().await;
    let change = UserChange {
        is_disabled: Some(true),
        ..UserChange::default()
    };
    auth.update_user("alice", &change).await.unwrap();
    assert!(is_wrong(&auth.login("alice", "wrong guess").await));
    assert_eq!(
        rejection(auth.login("alice", PASSWORD).await),
        Rejection::Disabled
    );
}

#[tokio::test]
async fn a_new_password_unlocks_and_ends_sessions() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    for _ in 0..5 {
        assert!(is_wrong(&auth.login("alice", "wrong guess").await));
    }
    auth.set_password("alice", "another password")
        .await
        .unwrap();
    assert!(is_wrong(&auth.login("alice", PASSWORD).await));
    auth.login("alice", "another password").await.unwrap();
    assert_eq!(
        auth.rejection(&tokens.access_token).await,
        Rejection::Revoked
    );
    assert_eq!(
        rejection(auth.refresh(&tokens.refresh_token).await),
        Rejection::Revoked
    );
}

#[tokio::test]
async fn a_password_check_counts_like_a_login() {
    let auth = TestAuth::new().await;
    assert_eq!(
        auth.check_password("alice", PASSWORD).await.unwrap().name,
        "alice"
    );
    for _ in 0..5 {
        assert!(auth.check_password("alice", "wrong guess").await.is_err());
    }
    assert!(locked_for_s(&auth.login("alice", PASSWORD).await).is_some());
}
