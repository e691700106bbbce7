//! How long the hot calls take on a SQLite file. Prints; judges nothing.

use std::time::Instant;

use sandyard_core::SandboxStatus;
use sandyard_store::model::{Operation, SandboxPatch, TimerPlan};

use crate::engines::Home;
use crate::sample::{event, insert_running, sandbox};

const CALLS: i64 = 2000;

#[tokio::test]
#[ignore = "a measurement: run it alone, with --nocapture"]
async fn duration_of_calls_on_a_file() {
    let home = Home::file();
    measure(home, "SQLite file").await;
}

#[tokio::test]
#[ignore = "a measurement: run it alone, with --nocapture"]
async fn duration_of_calls_on_postgres() {
    let home = Home::postgres().await;
    measure(home, "PostgreSQL on a socket, without fsync").await;
}

async fn measure(home: Home, engine: &str) {
    let store = home.open().await;
    let one = insert_running(&store, sandbox("one", "alice", 1)).await.id;
    let report = |what: &str, started_at: Instant| {
        let each = started_at.elapsed().as_secs_f64() * 1e6 / CALLS as f64;
        println!("{engine}: {what}: {each:.0} µs");
    };
    store.sandbox(&one).await.unwrap();
    let started_at = Instant::now();
    for _ in 0..CALLS {
        store.sandbox(&one).await.unwrap();
    }
    report("sandbox()", started_at);
    let patch = SandboxPatch {
        status: Some(SandboxStatus::Running),
        last_activity_ms: Some(5),
        ..SandboxPatch::default()
    };
    let started_at = Instant::now();
    for round in 0..CALLS {
        store
            .claim_sandbox(&one, Operation::Change, "n/1", round, round + 9)
            .await
            .unwrap();
        store
            .commit_sandbox(&one, "n/1", &patch, &[], TimerPlan::Keep, true)
            .await
            .unwrap();
    }
    report("claim + commit, no event", started_at);
    let events = [event("one", "alice", "paused", 1)];
    let started_at = Instant::now();
    for round in 0..CALLS {
        store
            .claim_sandbox(&one, Operation::Change, "n/1", round, round + 9)
            .await
            .unwrap();
        store
            .commit_sandbox(
                &one,
                "n/1",
                &patch,
                &events,
                TimerPlan::Set { due_ms: round },
                true,
            )
            .await
            .unwrap();
    }
    report("claim + commit with event and timer", started_at);
    let started_at = Instant::now();
    for round in 0..CALLS {
        let name = format!("s{round}");
        crate::sample::insert(&store, sandbox(&name, "alice", round)).await;
    }
    report("insert_sandbox()", started_at);
}
