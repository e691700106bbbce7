//! Many at once, on two servers: one wins.

use std::future::Future;

use sandyard_store::Store;
use sandyard_store::model::{
    ClaimOutcome, EventFilter, Idempotency, InsertOutcome, Operation, SandboxFilter, Session,
    TimerPlan,
};
use tokio::task::JoinSet;

use crate::engines::{Home, patiently};
use crate::sample::{event, id, insert_running, new, sandbox, user};

const TASKS: usize = 20;

crate::on_every_engine![
    one_of_many_gets_the_claim,
    the_last_place_of_a_quota_goes_to_one,
    a_key_makes_one_sandbox,
    an_alias_goes_to_one,
    a_refresh_token_is_exchanged_by_one,
    a_shared_secret_is_the_same_for_all,
    each_failed_login_counts,
    events_appear_in_the_order_of_their_numbers,
    touching_and_breaking_claims_do_not_get_stuck,
];

/// Runs many at once, half of them on each of two stores.
async fn run_concurrently<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    home: &Home,
    run: impl Fn(Store, usize) -> F,
) -> Vec<T> {
    let (one, other) = home.open_two().await;
    // Each has its connection from the start: those that many need at once take a while to make.
    for store in [&one, &other] {
        let mut all = JoinSet::new();
        for _ in 0..TASKS {
            let store = store.clone();
            all.spawn(async move { patiently(|| store.ping()).await });
        }
        all.join_all().await;
    }
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let store = if number % 2 == 0 { &one } else { &other };
            tokio::spawn(run(store.clone(), number))
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

async fn one_of_many_gets_the_claim(home: Home) {
    if home.is_shared() {
        insert_running(&home.open().await, sandbox("one", "alice", 1)).await;
    }
    let claims = run_concurrently(&home, |store, number| async move {
        if number == 0 && store.sandbox(&id("one")).await.unwrap().is_none() {
            insert_running(&store, sandbox("one", "alice", 1)).await;
        }
        while store
            .sandbox(&id("one"))
            .await
            .unwrap()
            .is_none_or(|one| one.version < 2)
        {
            tokio::task::yield_now().await;
        }
        let holder = format!("node/{number}");
        store
            .claim_sandbox(&id("one"), Operation::Wake, &holder, 1, 100)
            .await
            .unwrap()
    })
    .await;
    let won = claims
        .iter()
        .filter(|claim| matches!(claim, ClaimOutcome::Claimed(_)));
    assert_eq!(won.count(), 1);
    assert!(!claims.contains(&ClaimOutcome::Missing));
}

/// Creates sandboxes at once and tells how many were made.
async fn creates(
    home: &Home,
    arrange: impl Fn(usize) -> (Option<String>, Option<Idempotency>, Option<i64>),
) -> Vec<InsertOutcome> {
    run_concurrently(home, |store, number| {
        let (alias, idempotency, quota) = arrange(number);
        async move {
            let name = format!("s{number}");
            let mut row = sandbox(&name, "alice", 1);
            row.alias = alias;
            let created = event(&name, "alice", "created", 1);
            let timer = TimerPlan::Set { due_ms: 1 };
            store
                .insert_sandbox(&new(row), idempotency.as_ref(), quota, &created, timer)
                .await
                .unwrap()
        }
    })
    .await
}

fn inserted_count(outcomes: &[InsertOutcome]) -> usize {
    outcomes
        .iter()
        .filter(|outcome| **outcome == InsertOutcome::Inserted)
        .count()
}

async fn the_last_place_of_a_quota_goes_to_one(home: Home) {
    let outcomes = creates(&home, |_| (None, None, Some(3))).await;
    assert_eq!(inserted_count(&outcomes), 3);
    let refused = outcomes
        .iter()
        .filter(|outcome| **outcome == InsertOutcome::OverQuota { count: 3 });
    assert_eq!(refused.count(), TASKS - 3);
    if home.is_shared() {
        let store = home.open().await;
        let page = store
            .list_sandboxes(&SandboxFilter::default())
            .await
            .unwrap();
        assert_eq!(page.items.len(), 3);
    }
}

async fn a_key_makes_one_sandbox(home: Home) {
    let idempotency = Idempotency {
        key: "key".to_owned(),
        fingerprint: "f".to_owned(),
    };
    let outcomes = creates(&home, |_| (None, Some(idempotency.clone()), None)).await;
    assert_eq!(inserted_count(&outcomes), 1);
    let winner = outcomes
        .iter()
        .position(|outcome| *outcome == InsertOutcome::Inserted)
        .unwrap();
    let repeated = InsertOutcome::Repeated(id(&format!("s{winner}")));
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == repeated)
            .count(),
        TASKS - 1
    );
}

async fn an_alias_goes_to_one(home: Home) {
    let outcomes = creates(&home, |_| (Some("web".to_owned()), None, None)).await;
    assert_eq!(inserted_count(&outcomes), 1);
    let taken = outcomes
        .iter()
        .filter(|outcome| **outcome == InsertOutcome::AliasTaken);
    assert_eq!(taken.count(), TASKS - 1);
}

async fn a_refresh_token_is_exchanged_by_one(home: Home) {
    let rotated = run_concurrently(&home, |store, number| async move {
        store.insert_user(&user("bob")).await.unwrap();
        let session = Session {
            id: "login".to_owned(),
            owner: "bob".to_owned(),
            refresh_hash: "old".to_owned(),
            created_ms: 1,
            expires_ms: 100,
            revoked_ms: None,
        };
        // Only one of these is first as well.
        let _ = store.insert_session(&session).await;
        store
            .rotate_session("login", "old", &format!("new {number}"), 200)
            .await
            .unwrap()
    })
    .await;
    assert_eq!(
        rotated.into_iter().filter(|is_rotated| *is_rotated).count(),
        1
    );
}

async fn a_shared_secret_is_the_same_for_all(home: Home) {
    let secrets = run_concurrently(&home, |store, number| async move {
        store
            .meta_or_insert("secret", &number.to_string())
            .await
            .unwrap()
    })
    .await;
    assert!(
        secrets.iter().all(|secret| *secret == secrets[0]),
        "{secrets:?}"
    );
}

async fn each_failed_login_counts(home: Home) {
    let mut counts = run_concurrently(&home, |store, _| async move {
        store.insert_user(&user("bob")).await.unwrap();
        store
            .note_login_failure("bob", 1000, 1)
            .await
            .unwrap()
            .unwrap()
            .failures
    })
    .await;
    counts.sort_unstable();
    assert_eq!(counts, (1..=TASKS as i64).collect::<Vec<_>>());
}

async fn events_appear_in_the_order_of_their_numbers(home: Home) {
    let seen = run_concurrently(&home, |store, number| async move {
        if number > 1 {
            let events = [event("one", "alice", "a", 1), event("one", "alice", "b", 2)];
            for _ in 0..5 {
                store.add_events(&events).await.unwrap();
            }
            return Vec::new();
        }
        // Two readers follow along: nothing may appear behind them.
        let mut seen = Vec::new();
        while seen.len() < (TASKS - 2) * 10 {
            let filter = EventFilter {
                after_seq: seen.last().copied(),
                limit: 7,
                ..EventFilter::default()
            };
            let events = store.events(&filter).await.unwrap();
            seen.extend(events.iter().map(|event| event.seq));
            tokio::task::yield_now().await;
        }
        seen
    })
    .await;
    let all: Vec<i64> = (1..=(TASKS as i64 - 2) * 10).collect();
    assert_eq!(seen[0], all);
    assert_eq!(seen[1], all);
}

async fn touching_and_breaking_claims_do_not_get_stuck(home: Home) {
    run_concurrently(&home, |store, number| async move {
        let name = format!("s{number}");
        let row = sandbox(&name, "alice", 1);
        insert_running(&store, row).await;
        let mut used: Vec<_> = (0..TASKS)
            .map(|other| (id(&format!("s{other}")), number as i64 + 2))
            .collect();
        if number % 3 == 0 {
            used.reverse();
        }
        for round in 0..10 {
            store.touch_sandboxes(&used).await.unwrap();
            store
                .claim_sandbox(&id(&name), Operation::Wake, "dead/1", round, 9999)
                .await
                .unwrap();
            store.break_claims(&["dead".to_owned()]).await.unwrap();
        }
    })
    .await;
}
