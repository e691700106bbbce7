//! PostgreSQL goes away and comes back.

use sandyard_store::model::{Operation, SandboxPatch, TimerPlan};
use sandyard_store::{Store, StoreError};

use crate::engines::{Home, patiently};
use crate::sample::{MAKER, event, id, insert, insert_running, new, sandbox};
use crate::servers::Postgres;

/// Uses many connections at once, so that many are open.
async fn fill_pool(store: &Store) {
    let reads: Vec<_> = (0..12)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let one = id("one");
                patiently(|| store.sandbox(&one)).await
            })
        })
        .collect();
    for read in reads {
        assert!(read.await.unwrap().is_some());
    }
}

/// Ends every connection to this database, and returns when they are gone.
fn break_connections(home: &Home) {
    let (_, database) = home.url.rsplit_once("localhost/").unwrap();
    let (database, _) = database.split_once('?').unwrap();
    let end = format!(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{database}'"
    );
    home.postgres.as_ref().unwrap().sql("postgres", &end);
}

#[tokio::test]
async fn reads_and_transactions_survive_broken_connections() {
    let home = Home::postgres().await;
    let store = home.open().await;
    insert(&store, sandbox("one", "alice", 1)).await;
    for round in 0..3 {
        fill_pool(&store).await;
        break_connections(&home);
        assert!(store.sandbox(&id("one")).await.unwrap().is_some());
        fill_pool(&store).await;
        break_connections(&home);
        let events = [event("one", "alice", "command", round)];
        let committed = store
            .commit_sandbox(
                &id("one"),
                MAKER,
                &SandboxPatch::default(),
                &events,
                TimerPlan::Keep,
                false,
            )
            .await
            .unwrap();
        assert_eq!(committed.unwrap().version, round + 2);
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_unavailable_and_comes_back() {
    let server = std::sync::Arc::new(tokio::task::spawn_blocking(Postgres::start).await.unwrap());
    let store = Store::open(&server.new_database().await).await.unwrap();
    insert_running(&store, sandbox("one", "alice", 1)).await;
    server.crash();
    for error in [
        store.ping().await.unwrap_err(),
        store.sandbox(&id("one")).await.map(drop).unwrap_err(),
        store
            .claim_sandbox(&id("one"), Operation::Wake, MAKER, 1, 2)
            .await
            .map(drop)
            .unwrap_err(),
        store
            .insert_sandbox(
                &new(sandbox("two", "alice", 1)),
                None,
                None,
                &event("two", "alice", "created", 1),
                TimerPlan::Keep,
            )
            .await
            .map(drop)
            .unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    server.begin();
    assert!(store.sandbox(&id("one")).await.unwrap().is_some());
    insert(&store, sandbox("two", "alice", 1)).await;
    store.close().await;
}
