//! Access and refresh tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sandyard_auth::{AuthConfig, AuthError, Rejection, UserChange};
use sandyard_core::{Caller, ErrorKind, Role, Scope};

use crate::{PASSWORD, TestAuth, config, rejection, session_id};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn a_token_ends_after_24_hours() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    auth.advance(DAY - Duration::from_millis(1));
    assert!(auth.authenticate(&tokens.access_token).await.is_ok());
    auth.advance(Duration::from_millis(1));
    assert_eq!(
        auth.rejection(&tokens.access_token).await,
        Rejection::Expired
    );
    let next = auth.refresh(&tokens.refresh_token).await.unwrap();
    assert!(auth.authenticate(&next.access_token).await.is_ok());
}

#[tokio::test]
async fn a_token_holds_what_the_contract_names_and_no_secret() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    let payload = tokens.access_token.split('.').nth(1).unwrap();
    let claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    let mut names: Vec<_> = claims.as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["exp", "iat", "jti", "role", "sid", "sub"]);
    assert!(!format!("{tokens:?}").contains(&tokens.refresh_token));
}

#[tokio::test]
async fn forged_and_unsigned_tokens_are_refused() {
    let auth = TestAuth::new().await;
    let token = auth.login("alice", PASSWORD).await.unwrap().access_token;
    let parts: Vec<_> = token.split('.').collect();
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    assert_eq!(
        auth.rejection(&format!("{none}.{}.", parts[1])).await,
        Rejection::Forged
    );
    assert_eq!(
        auth.rejection(&format!("{none}.{}.{}", parts[1], parts[2]))
            .await,
        Rejection::Forged
    );
    assert_eq!(
        auth.rejection(&format!("{}.{}.", parts[0], parts[1])).await,
        Rejection::Forged
    );
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let root = URL_SAFE_NO_PAD.encode(claims.replace("alice", "root"));
    assert_eq!(
        auth.rejection(&format!("{}.{root}.{}", parts[0], parts[2]))
            .await,
        Rejection::Forged
    );
}

#[tokio::test]
async fn a_token_of_another_secret_is_refused() {
    let auth = TestAuth::new().await;
    let other = auth
        .replica_with(AuthConfig {
            jwt_secret: Some("a secret from the settings".to_owned()),
            ..config()
        })
        .await;
    let own_tokens = auth.login("alice", PASSWORD).await.unwrap();
    let other_tokens = other.login("alice", PASSWORD).await.unwrap();
    assert_eq!(
        rejection(other.authenticate(&own_tokens.access_token).await),
        Rejection::Forged
    );
    assert_eq!(
        auth.rejection(&other_tokens.access_token).await,
        Rejection::Forged
    );
    assert!(other.authenticate(&other_tokens.access_token).await.is_ok());
}

#[tokio::test]
async fn a_token_is_good_at_every_server_of_the_store() {
    let auth = TestAuth::new().await;
    let other = auth.replica().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    let caller = other.authenticate(&tokens.access_token).await.unwrap();
    other.logout(&caller).await.unwrap();
    assert_eq!(
        auth.rejection(&tokens.access_token).await,
        Rejection::Revoked
    );
}

#[tokio::test]
async fn a_token_of_another_installation_is_refused() {
    let (here, there) = (TestAuth::new().await, TestAuth::new().await);
    let tokens = there.login("alice", PASSWORD).await.unwrap();
    assert_eq!(
        here.rejection(&tokens.access_token).await,
        Rejection::Forged
    );
    assert_eq!(
        rejection(here.refresh(&tokens.refresh_token).await),
        Rejection::Forged
    );
}

#[tokio::test]
async fn a_missing_and_a_malformed_credential_have_different_reasons() {
    let auth = TestAuth::new().await;
    assert_eq!(auth.rejection("").await, Rejection::Missing);
    assert_eq!(auth.rejection("  ").await, Rejection::Missing);
    let long = "x.".repeat(100_000);
    for text in ["hello", "e2b_", "a.b", &*long, "Bearer a.b.c d", "\u{0}"] {
        let error = auth.authenticate(text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn logging_out_ends_one_session() {
    let auth = TestAuth::new().await;
    let first = auth.login("alice", PASSWORD).await.unwrap();
    let second = auth.login("alice", PASSWORD).await.unwrap();
    let caller = auth.authenticate(&first.access_token).await.unwrap();
    auth.logout(&caller).await.unwrap();
    assert_eq!(
        auth.rejection(&first.access_token).await,
        Rejection::Revoked
    );
    assert_eq!(
        rejection(auth.refresh(&first.refresh_token).await),
        Rejection::Revoked
    );
    assert!(auth.authenticate(&second.access_token).await.is_ok());
    assert_eq!(auth.logout_everywhere("alice").await.unwrap(), 1);
    assert_eq!(
        auth.rejection(&second.access_token).await,
        Rejection::Revoked
    );
}

#[tokio::test]
async fn only_a_session_can_log_out() {
    let auth = TestAuth::new().await;
    let error = auth.logout(&Caller::local()).await.unwrap_err();
    assert!(matches!(error, AuthError::NoSession));
}

#[tokio::test]
async fn a_refresh_keeps_the_session_and_changes_both_tokens() {
    let auth = TestAuth::new().await;
    let first = auth.login("alice", PASSWORD).await.unwrap();
    let next = auth.refresh(&first.refresh_token).await.unwrap();
    assert_ne!(first.access_token, next.access_token);
    assert_ne!(first.refresh_token, next.refresh_token);
    let before = auth.authenticate(&first.access_token).await.unwrap();
    let after = auth.authenticate(&next.access_token).await.unwrap();
    assert_eq!(session_id(&before), session_id(&after));
}

#[tokio::test]
async fn an_old_refresh_token_ends_the_session() {
    let auth = TestAuth::new().await;
    let first = auth.login("alice", PASSWORD).await.unwrap();
    let next = auth.refresh(&first.refresh_token).await.unwrap();
    assert_eq!(
        rejection(auth.refresh(&first.refresh_token).await),
        Rejection::Revoked
    );
    assert_eq!(
        rejection(auth.refresh(&next.refresh_token).await),
        Rejection::Revoked
    );
    assert_eq!(auth.rejection(&next.access_token).await, Rejection::Revoked);
    assert!(auth.login("alice", PASSWORD).await.is_ok());
}

#[tokio::test]
async fn of_two_refreshes_at_once_one_wins() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    let (one, two) = tokio::join!(
        auth.refresh(&tokens.refresh_token),
        auth.refresh(&tokens.refresh_token)
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
}

#[tokio::test]
async fn a_forged_refresh_token_ends_nothing() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    let caller = auth.authenticate(&tokens.access_token).await.unwrap();
    let forged = format!("sr_{}_{}_AAAA", session_id(&caller), "0".repeat(40));
    assert_eq!(rejection(auth.refresh(&forged).await), Rejection::Forged);
    assert_eq!(
        rejection(auth.refresh(&tokens.access_token).await),
        Rejection::Malformed
    );
    assert!(auth.refresh(&tokens.refresh_token).await.is_ok());
}

#[tokio::test]
async fn a_refresh_token_is_no_access_token() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    assert_eq!(
        auth.rejection(&tokens.refresh_token).await,
        Rejection::Malformed
    );
}

#[tokio::test]
async fn a_session_without_a_refresh_ends_after_30_days() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    auth.advance(DAY * 29);
    let next = auth.refresh(&tokens.refresh_token).await.unwrap();
    auth.advance(DAY * 30);
    assert_eq!(
        rejection(auth.refresh(&next.refresh_token).await),
        Rejection::Expired
    );
}

#[tokio::test]
async fn what_a_user_is_now_counts() {
    let auth = TestAuth::new().await;
    auth.create_user("boss", Some(PASSWORD), Role::Admin, None)
        .await
        .unwrap();
    let tokens = auth.login("boss", PASSWORD).await.unwrap();
    let demote = UserChange {
        role: Some(Role::User),
        ..UserChange::default()
    };
    auth.update_user("boss", &demote).await.unwrap();
    let caller = auth.authenticate(&tokens.access_token).await.unwrap();
    assert!(!caller.is_admin() && !caller.has(Scope::Admin));
}

#[tokio::test]
async fn disabling_and_deleting_a_user_end_its_tokens_at_once() {
    let auth = TestAuth::new().await;
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    let set_disabled = |is_disabled| UserChange {
        is_disabled: Some(is_disabled),
        ..UserChange::default()
    };
    auth.update_user("alice", &set_disabled(true))
        .await
        .unwrap();
    assert!(auth.authenticate(&tokens.access_token).await.is_err());
    auth.update_user("alice", &set_disabled(false))
        .await
        .unwrap();
    assert_eq!(
        auth.rejection(&tokens.access_token).await,
        Rejection::Revoked,
        "it does not come back"
    );
    let tokens = auth.login("alice", PASSWORD).await.unwrap();
    auth.delete_user("alice").await.unwrap();
    assert_eq!(
        auth.rejection(&tokens.access_token).await,
        Rejection::Unknown
    );
    assert_eq!(
        rejection(auth.refresh(&tokens.refresh_token).await),
        Rejection::Unknown
    );
}
