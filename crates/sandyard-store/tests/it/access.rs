//! What is promised of users, keys and logins.

use sandyard_core::{Role, Scope};
use sandyard_store::model::{ApiKey, NewApiKey, Session, UserPatch};

use crate::engines::Home;
use crate::sample::user;

crate::on_every_engine![
    a_name_is_given_to_one_user,
    a_patch_changes_what_it_names_only,
    a_user_goes_with_its_keys_and_logins,
    failed_logins_lock_at_the_limit,
    a_key_is_found_with_its_owner,
    a_revoked_key_stays_revoked,
    a_refresh_token_is_good_once,
    logins_end,
];

fn key(id: &str, owner: &str, created_ms: i64) -> NewApiKey {
    NewApiKey {
        key: ApiKey {
            id: id.to_owned(),
            owner: owner.to_owned(),
            name: "laptop".to_owned(),
            mask: "sy_…ab".to_owned(),
            scopes: vec![Scope::Read, Scope::Manage],
            created_ms,
            expires_ms: Some(99),
            last_used_ms: None,
            revoked_ms: None,
        },
        hash: format!("hash of {id}"),
    }
}

fn session(id: &str, owner: &str) -> Session {
    Session {
        id: id.to_owned(),
        owner: owner.to_owned(),
        refresh_hash: "first".to_owned(),
        created_ms: 1,
        expires_ms: 100,
        revoked_ms: None,
    }
}

async fn a_name_is_given_to_one_user(home: Home) {
    let store = home.open().await;
    assert!(store.insert_user(&user("bob")).await.unwrap());
    assert!(store.insert_user(&user("alice")).await.unwrap());
    assert!(!store.insert_user(&user("bob")).await.unwrap());
    let names: Vec<_> = store
        .users()
        .await
        .unwrap()
        .into_iter()
        .map(|user| user.name)
        .collect();
    assert_eq!(names, ["alice", "bob"]);
    let found = store.user("bob").await.unwrap().unwrap();
    assert_eq!(found.password_hash.as_deref(), Some("$argon2id$hash"));
    assert_eq!(
        (found.role, found.is_disabled, found.max_sandboxes),
        (Role::User, false, Some(3))
    );
    assert_eq!(store.user("Bob").await.unwrap(), None);
    let output = format!("{found:?} {:?} {:?}", user("bob"), key("k", "bob", 1));
    assert!(
        !output.contains("argon2id") && !output.contains("hash of"),
        "{output}"
    );
}

async fn a_patch_changes_what_it_names_only(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    let mut expected = store.user("bob").await.unwrap().unwrap();
    assert!(
        store
            .update_user("bob", &UserPatch::default())
            .await
            .unwrap()
    );
    assert!(store.user("bob").await.unwrap().unwrap() == expected);
    let patch = UserPatch {
        password_hash: Some("new".to_owned()),
        role: Some(Role::Admin),
        is_disabled: Some(true),
        max_sandboxes: Some(None),
    };
    expected.password_hash = Some("new".to_owned());
    expected.role = Role::Admin;
    expected.is_disabled = true;
    expected.max_sandboxes = None;
    assert!(store.update_user("bob", &patch).await.unwrap());
    assert!(store.user("bob").await.unwrap().unwrap() == expected);
    assert!(!store.update_user("nobody", &patch).await.unwrap());
}

async fn a_user_goes_with_its_keys_and_logins(home: Home) {
    let store = home.open().await;
    for name in ["alice", "bob"] {
        store.insert_user(&user(name)).await.unwrap();
        store
            .insert_key(&key(&format!("key of {name}"), name, 1))
            .await
            .unwrap();
        store
            .insert_session(&session(&format!("login of {name}"), name))
            .await
            .unwrap();
    }
    assert!(store.delete_user("bob").await.unwrap());
    assert!(!store.delete_user("bob").await.unwrap());
    assert_eq!(store.keys(Some("bob")).await.unwrap(), []);
    assert!(
        store
            .key_by_hash("hash of key of bob")
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.session("login of bob").await.unwrap().is_none());
    assert!(store.session("login of alice").await.unwrap().is_some());
    assert_eq!(store.keys(None).await.unwrap().len(), 1);
}

async fn failed_logins_lock_at_the_limit(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    let fail = async || {
        let user = store
            .note_login_failure("bob", 3, 500)
            .await
            .unwrap()
            .unwrap();
        (user.failures, user.locked_until_ms)
    };
    assert_eq!(fail().await, (1, None));
    assert_eq!(fail().await, (2, None));
    assert_eq!(fail().await, (0, Some(500)));
    assert_eq!(fail().await, (1, Some(500)));
    store.clear_login_failures("bob").await.unwrap();
    let user = store.user("bob").await.unwrap().unwrap();
    assert_eq!((user.failures, user.locked_until_ms), (0, None));
    assert!(
        store
            .note_login_failure("nobody", 3, 500)
            .await
            .unwrap()
            .is_none()
    );
}

async fn a_key_is_found_with_its_owner(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    let one = key("one", "bob", 1);
    assert!(store.insert_key(&one).await.unwrap());
    assert!(!store.insert_key(&one).await.unwrap(), "same id");
    let mut same_hash = key("other", "bob", 1);
    same_hash.hash.clone_from(&one.hash);
    assert!(!store.insert_key(&same_hash).await.unwrap());
    assert!(store.insert_key(&key("two", "bob", 2)).await.unwrap());
    let (found, owner) = store.key_by_hash("hash of one").await.unwrap().unwrap();
    assert_eq!((found, owner.name.as_str()), (one.key, "bob"));
    let ids: Vec<_> = store
        .keys(None)
        .await
        .unwrap()
        .into_iter()
        .map(|key| key.id)
        .collect();
    assert_eq!(ids, ["two", "one"]);
    store
        .insert_key(&key("three", "nobody", 3))
        .await
        .unwrap_err();
}

async fn a_revoked_key_stays_revoked(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    store.insert_key(&key("one", "bob", 1)).await.unwrap();
    store.touch_key("one", 60).await.unwrap();
    store.touch_key("one", 50).await.unwrap();
    assert!(!store.revoke_key("one", Some("alice"), 70).await.unwrap());
    assert!(store.revoke_key("one", Some("bob"), 71).await.unwrap());
    assert!(store.revoke_key("one", None, 72).await.unwrap());
    assert!(!store.revoke_key("two", None, 72).await.unwrap());
    let (found, _) = store.key_by_hash("hash of one").await.unwrap().unwrap();
    assert_eq!((found.last_used_ms, found.revoked_ms), (Some(60), Some(71)));
}

async fn a_refresh_token_is_good_once(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    store.insert_session(&session("one", "bob")).await.unwrap();
    assert!(
        store
            .rotate_session("one", "first", "second", 200)
            .await
            .unwrap()
    );
    assert!(
        !store
            .rotate_session("one", "first", "third", 300)
            .await
            .unwrap()
    );
    let (found, user) = store.session("one").await.unwrap().unwrap();
    assert_eq!(
        (found.refresh_hash.as_str(), found.expires_ms),
        ("second", 200)
    );
    assert_eq!(user.name, "bob");
    store.revoke_session("one", 150).await.unwrap();
    assert!(
        !store
            .rotate_session("one", "second", "third", 300)
            .await
            .unwrap()
    );
}

async fn logins_end(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    for id in ["one", "two", "three"] {
        store.insert_session(&session(id, "bob")).await.unwrap();
    }
    assert!(store.revoke_session("one", 50).await.unwrap());
    assert!(!store.revoke_session("one", 51).await.unwrap());
    assert_eq!(store.revoke_sessions_of("bob", 52).await.unwrap(), 2);
    let (one, _) = store.session("one").await.unwrap().unwrap();
    assert_eq!(one.revoked_ms, Some(50));
    assert_eq!(store.purge_history(101).await.unwrap(), 3);
    assert!(store.session("one").await.unwrap().is_none());
}
