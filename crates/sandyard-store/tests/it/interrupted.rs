//! Whatever is interrupted leaves all or nothing.

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::task::Poll;

use sandyard_core::SandboxStatus;
use sandyard_store::Store;
use sandyard_store::model::{
    EventFilter, Idempotency, InsertOutcome, SandboxFilter, SandboxPatch, TimerPlan,
};

use crate::engines::Home;
use crate::sample::{MAKER, event, id, insert, new, sandbox};

crate::on_every_engine![
    a_create_dropped_at_any_point_leaves_all_or_nothing,
    a_commit_dropped_at_any_point_leaves_all_or_nothing,
];

/// Polls a future so often, then drops it; true: it was through before.
async fn drop_after(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut remaining = polls;
    poll_fn(|context| {
        if remaining == 0 {
            return Poll::Ready(false);
        }
        remaining -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            // Not only when something has happened: the point is to stop everywhere.
            Poll::Pending => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

async fn kinds_of(store: &Store, name: &str) -> Vec<String> {
    let filter = EventFilter {
        sandbox_id: Some(id(name)),
        ..EventFilter::default()
    };
    let events = store.events(&filter).await.unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

async fn a_create_dropped_at_any_point_leaves_all_or_nothing(home: Home) {
    let store = home.open().await;
    let mut completed = 0;
    for round in 0..60 {
        let name = format!("s{round}");
        let row = new(sandbox(&name, "alice", 1));
        let created = event(&name, "alice", "created", 1);
        let idempotency = Idempotency {
            key: name.clone(),
            fingerprint: "f".to_owned(),
        };
        let create = async || {
            let timer = TimerPlan::Set { due_ms: 1 };
            store
                .insert_sandbox(&row, Some(&idempotency), None, &created, timer)
                .await
                .unwrap()
        };
        completed += usize::from(drop_after(round * round / 4, create()).await);
        // What is there now is all there will ever be: the next create comes after whatever was left behind.
        let outcome = create().await;
        assert!(matches!(
            outcome,
            InsertOutcome::Inserted | InsertOutcome::Repeated(_)
        ));
        assert!(store.sandbox(&id(&name)).await.unwrap().is_some());
        assert_eq!(kinds_of(&store, &name).await, ["created"]);
    }
    assert!(completed < 60, "none was interrupted");
}

async fn a_commit_dropped_at_any_point_leaves_all_or_nothing(home: Home) {
    let store = home.open().await;
    for round in 0..60 {
        let name = format!("s{round}");
        insert(&store, sandbox(&name, "alice", 1)).await;
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Running),
            ..SandboxPatch::default()
        };
        let events = [event(&name, "alice", "running", 2)];
        let one = id(&name);
        let commit = store.commit_sandbox(
            &one,
            MAKER,
            &patch,
            &events,
            TimerPlan::Set { due_ms: 1 },
            false,
        );
        drop_after(round * round / 4, commit).await;
        // A write that comes after it, so that it is over.
        store.extend_claim(&one, MAKER, 9000).await.unwrap();
        let is_running =
            store.sandbox(&one).await.unwrap().unwrap().status == SandboxStatus::Running;
        let expected: &[&str] = if is_running {
            &["created", "running"]
        } else {
            &["created"]
        };
        assert_eq!(kinds_of(&store, &name).await, expected);
    }
}

const FILE: &str = "SANDYARD_STORE_TEST_FILE";

#[test]
#[ignore = "the process another test kills"]
fn writer_that_is_killed() {
    let Ok(url) = std::env::var(FILE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(&url).await.unwrap();
        for number in 0..100_000 {
            insert(&store, sandbox(&format!("s{number}"), "alice", number)).await;
            println!("\nkept {number}");
        }
    });
}

#[tokio::test]
async fn a_killed_server_keeps_what_it_committed() {
    let home = Home::file();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "interrupted::writer_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, &home.url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let last_committed = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("kept ")?.parse::<i64>().ok())
        .find(|number| *number >= 100)
        .expect("it writes");
    child.kill().unwrap();
    child.wait().unwrap();
    let store = home.open().await;
    let filter = SandboxFilter {
        limit: 1,
        ..SandboxFilter::default()
    };
    let newest = store
        .list_sandboxes(&filter)
        .await
        .unwrap()
        .items
        .remove(0)
        .created_ms;
    assert!(
        newest >= last_committed,
        "{last_committed} was committed, {newest} is there"
    );
    for number in 0..=newest {
        assert_eq!(kinds_of(&store, &format!("s{number}")).await, ["created"]);
    }
    assert!(
        kinds_of(&store, &format!("s{}", newest + 1))
            .await
            .is_empty()
    );
    insert(&store, sandbox("next", "alice", newest + 1)).await;
}
