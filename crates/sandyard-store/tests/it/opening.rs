//! What is promised of opening a store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandyard_store::{Store, StoreError};
use sqlx::{AnyConnection, Connection};

use crate::engines::Home;
use crate::sample::{id, insert, sandbox};
use crate::servers::Postgres;

crate::on_every_engine![
    many_open_a_new_database_at_once,
    what_was_stored_is_there_after_closing,
    a_newer_database_is_refused,
    it_says_what_it_is,
];

async fn many_open_a_new_database_at_once(home: Home) {
    let opens: Vec<_> = (0..6)
        .map(|_| {
            let url = home.url.clone();
            tokio::spawn(async move { Store::open(&url).await })
        })
        .collect();
    for open in opens {
        let store = open.await.unwrap().unwrap();
        store.add_events(&[]).await.unwrap();
        store.ping().await.unwrap();
    }
}

async fn what_was_stored_is_there_after_closing(home: Home) {
    let store = home.open().await;
    insert(&store, sandbox("one", "alice", 1)).await;
    store.close().await;
    let closed = store.ping().await.unwrap_err();
    assert!(matches!(closed, StoreError::Unavailable { .. }), "{closed}");
    let found = home.open().await.sandbox(&id("one")).await.unwrap();
    assert_eq!(found.is_some(), home.is_shared());
}

async fn a_newer_database_is_refused(home: Home) {
    if !home.is_shared() {
        return;
    }
    home.open().await.close().await;
    sqlx::any::install_default_drivers();
    let url = home.url.replace("postgresql+asyncpg", "postgres");
    let mut connection = AnyConnection::connect(&url).await.unwrap();
    sqlx::query("INSERT INTO schema_version (version, applied_ms) VALUES (999, 0)")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let refused = Store::open(&home.url).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::TooNew { version: 999, .. }),
        "{refused}"
    );
}

async fn it_says_what_it_is(home: Home) {
    let store = home.open().await;
    let kind = if home.postgres.is_some() {
        "postgres"
    } else {
        "sqlite"
    };
    assert_eq!(store.kind(), kind);
    assert_eq!(
        format!("{store:?}"),
        format!("Store {{ kind: {kind:?}, .. }}")
    );
}

#[tokio::test]
async fn a_file_is_its_owners_alone() {
    let home = Home::file();
    let store = home.open().await;
    insert(&store, sandbox("one", "alice", 1)).await;
    let path = home.url.strip_prefix("sqlite://").unwrap();
    let path = path.replace("%25", "%");
    for suffix in ["", "-wal"] {
        let mode = Path::new(&format!("{path}{suffix}"))
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
    store.close().await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    home.open().await;
    let mode = Path::new(&path).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a file that was open to all is closed");
}

#[tokio::test]
async fn no_error_tells_a_password() {
    let server = Postgres::shared().await;
    let wrong = server
        .url("nowhere")
        .replace("sandyard@", "sandyard:hunter2@");
    for url in [
        wrong.as_str(),
        "postgres://u:hunter2@localhost:1/x",
        "postgres://u:hunter2@[bad/x",
        "mysql://u:hunter2@localhost/x",
        "sqlite:///nowhere/at/all.db",
        "sqlite:",
        "",
    ] {
        let error = Store::open(url).await.unwrap_err();
        let mut output = format!("{error:?}");
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            output.push_str(&error.to_string());
            cause = error.source();
        }
        assert!(!output.contains("hunter2"), "{output}");
    }
}
