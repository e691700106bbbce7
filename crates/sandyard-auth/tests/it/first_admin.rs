//! The first start.

use sandyard_core::{Role, Scope};

use crate::TestAuth;

#[tokio::test]
async fn the_first_start_gives_an_admin_key_once() {
    let auth = TestAuth::empty().await;
    let new = auth.ensure_admin().await.unwrap().unwrap();
    let caller = auth.authenticate(&new.secret).await.unwrap();
    assert_eq!(caller.name, "admin");
    assert!(Scope::ALL.into_iter().all(|scope| caller.has(scope)));
    assert!(!auth.user("admin").await.unwrap().has_password);
    assert!(auth.ensure_admin().await.unwrap().is_none());
    assert!(auth.replica().await.ensure_admin().await.unwrap().is_none());
    assert!(auth.authenticate(&new.secret).await.is_ok());
}

#[tokio::test]
async fn of_many_servers_at_once_one_gets_the_key() {
    let auth = TestAuth::empty().await;
    let mut starts = Vec::new();
    for _ in 0..8 {
        let server = auth.replica().await;
        starts.push(tokio::spawn(
            async move { server.ensure_admin().await.unwrap() },
        ));
    }
    let mut keys = Vec::new();
    for start in starts {
        keys.extend(start.await.unwrap());
    }
    assert_eq!(keys.len(), 1);
    assert!(auth.authenticate(&keys[0].secret).await.is_ok());
    assert_eq!(auth.list_keys(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_deleted_first_admin_does_not_come_back() {
    let auth = TestAuth::empty().await;
    auth.ensure_admin().await.unwrap().unwrap();
    auth.create_user("root", None, Role::Admin, None)
        .await
        .unwrap();
    auth.delete_user("admin").await.unwrap();
    assert!(auth.ensure_admin().await.unwrap().is_none());
    assert!(auth.user("admin").await.is_err());
}
