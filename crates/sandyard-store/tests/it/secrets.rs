//! What is promised of secrets.

use sandyard_store::Store;
use sandyard_store::model::{SandboxFilter, Secret};

use crate::engines::Home;
use crate::sample::{insert, sandbox, user};

crate::on_every_engine![
    a_secret_is_read_back_whole_and_replaced,
    an_owner_gets_its_own_and_the_shared_ones,
    secrets_go_with_their_user,
    sandboxes_are_found_by_the_secrets_they_name,
];

fn secret(owner: &str, name: &str, is_shared: bool) -> Secret {
    Secret {
        owner: owner.to_owned(),
        name: name.to_owned(),
        sealed: format!("sealed:1:{owner}{name}"),
        hosts: ["api.example.com", "*.example.org:8443"]
            .map(|host| host.parse().unwrap())
            .to_vec(),
        placeholder: format!("placeholder-{name}"),
        is_shared,
        created_ms: 10,
        updated_ms: 10,
    }
}

/// Names with their owners, as an owner sees them.
async fn seen(store: &Store, owner: &str) -> Vec<String> {
    let secrets = store.secrets_for(owner).await.unwrap();
    secrets
        .into_iter()
        .map(|secret| format!("{} of {}", secret.name, secret.owner))
        .collect()
}

async fn a_secret_is_read_back_whole_and_replaced(home: Home) {
    let store = home.open().await;
    let first = secret("alice", "token", false);
    assert_eq!(store.put_secret(&first).await.unwrap(), first);
    let found = store.secrets_for("alice").await.unwrap();
    assert_eq!(found, std::slice::from_ref(&first));
    let changed = Secret {
        sealed: "sealed:1:other".to_owned(),
        hosts: vec!["api.example.net".parse().unwrap()],
        placeholder: "another-one".to_owned(),
        is_shared: true,
        created_ms: 20,
        updated_ms: 20,
        ..first
    };
    let expected = Secret {
        created_ms: 10,
        ..changed.clone()
    };
    assert_eq!(store.put_secret(&changed).await.unwrap(), expected);
    assert_eq!(store.all_secrets().await.unwrap(), [expected]);
    assert!(store.delete_secret("alice", "token").await.unwrap());
    assert!(!store.delete_secret("alice", "token").await.unwrap());
    assert_eq!(store.all_secrets().await.unwrap(), []);
}

async fn an_owner_gets_its_own_and_the_shared_ones(home: Home) {
    let store = home.open().await;
    for secret in [
        secret("root", "b", true),
        secret("bob", "a", false),
        secret("alice", "c", false),
        secret("alice", "b", false),
    ] {
        store.put_secret(&secret).await.unwrap();
    }
    assert_eq!(
        seen(&store, "alice").await,
        ["b of alice", "b of root", "c of alice"]
    );
    assert_eq!(seen(&store, "bob").await, ["a of bob", "b of root"]);
    assert_eq!(seen(&store, "nobody").await, ["b of root"]);
    assert!(!store.delete_secret("bob", "b").await.unwrap());
    assert_eq!(store.all_secrets().await.unwrap().len(), 4);
}

async fn secrets_go_with_their_user(home: Home) {
    let store = home.open().await;
    store.insert_user(&user("bob")).await.unwrap();
    for owner in ["bob", "alice"] {
        store
            .put_secret(&secret(owner, "token", false))
            .await
            .unwrap();
    }
    assert!(store.delete_user("bob").await.unwrap());
    assert_eq!(seen(&store, "bob").await, [""; 0]);
    // There is no user row of alice to delete, so her secrets stay.
    assert!(!store.delete_user("alice").await.unwrap());
    assert_eq!(seen(&store, "alice").await, ["token of alice"]);
}

async fn sandboxes_are_found_by_the_secrets_they_name(home: Home) {
    let store = home.open().await;
    for (name, owner, secret) in [
        ("one", "alice", "github"),
        ("two", "bob", "github"),
        ("three", "alice", "git"),
    ] {
        let mut row = sandbox(name, owner, 1000);
        row.secrets = [("VAR:\"git\"".to_owned(), secret.to_owned())].into();
        insert(&store, row).await;
    }
    let found = async |secret: &str, owner: Option<&str>| -> Vec<String> {
        let filter = SandboxFilter {
            secret: Some(secret.to_owned()),
            owner: owner.map(str::to_owned),
            ..SandboxFilter::default()
        };
        let page = store.list_sandboxes(&filter).await.unwrap();
        let mut names: Vec<_> = page
            .items
            .into_iter()
            .map(|row| row.id.to_string())
            .collect();
        names.sort();
        names
    };
    assert_eq!(found("github", None).await, ["one", "two"]);
    assert_eq!(found("github", Some("bob")).await, ["two"]);
    assert_eq!(found("git", None).await, ["three"]);
    assert_eq!(found("VAR", None).await, [""; 0]);
}
