//! What is promised of sandboxes and snapshots in several places.

use std::time::Duration;

use sandyard_core::{Clock, SandboxStatus};
use sandyard_store::Timers;
use sandyard_store::model::{SandboxPatch, Snapshot, TimerPlan};

use crate::engines::Home;
use crate::sample::{MAKER, id, insert, insert_running, sandbox};

crate::on_every_engine![
    a_sandbox_that_moves_takes_its_timer_along,
    sandboxes_are_counted_by_provider,
    snapshots_are_found_wherever_their_owner_has_them,
    what_is_kept_in_a_place_goes_with_its_name,
];

async fn a_sandbox_that_moves_takes_its_timer_along(home: Home) {
    let store = home.open().await;
    let clock = Clock::manual(1000);
    let timers = Timers::open(store.clone(), None, clock.clone())
        .await
        .unwrap();
    let row = sandbox("one", "alice", 1000);
    let before = row.location.clone();
    insert(&store, row).await;
    let commit = async |patch: &SandboxPatch, due_ms| {
        store
            .commit_sandbox(
                &id("one"),
                MAKER,
                patch,
                &[],
                TimerPlan::Set { due_ms },
                false,
            )
            .await
            .unwrap()
            .unwrap()
    };
    commit(&SandboxPatch::default(), 2000).await;
    let patch = SandboxPatch {
        provider: Some("docker".to_owned()),
        location: Some("docker:7".to_owned()),
        ..SandboxPatch::default()
    };
    let moved = commit(&patch, 2000).await;
    assert_eq!(moved.location, "docker:7");
    clock.advance_ms(5000);
    let due = async |location: &str| {
        let locations = [location.to_owned()];
        let claimed = timers.claim(&locations, "n", Duration::from_secs(1), 9);
        claimed.await.unwrap().len()
    };
    assert_eq!(due(&before).await, 0);
    assert_eq!(due("docker:7").await, 1);
}

async fn sandboxes_are_counted_by_provider(home: Home) {
    let store = home.open().await;
    for (name, provider) in [("one", "docker"), ("two", "docker"), ("three", "e2b")] {
        let mut row = sandbox(name, "alice", 1000);
        row.provider = provider.to_owned();
        insert_running(&store, row).await;
    }
    let mut counts = store.count_by_provider().await.unwrap();
    counts.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        counts,
        [
            ("docker".to_owned(), SandboxStatus::Running, 2),
            ("e2b".to_owned(), SandboxStatus::Running, 1)
        ]
    );
}

async fn snapshots_are_found_wherever_their_owner_has_them(home: Home) {
    let store = home.open().await;
    for (location, name, owner, created_ms) in [
        ("docker:7", "kept", "alice", 1),
        ("engine:1", "kept", "alice", 2),
        ("engine:2", "kept", "bob", 3),
        ("engine:3", "other", "alice", 4),
    ] {
        let snapshot = Snapshot {
            name: name.to_owned(),
            owner: owner.to_owned(),
            alias: None,
            sandbox_id: None,
            created_ms,
            is_public: false,
        };
        assert!(store.insert_snapshot(location, &snapshot).await.unwrap());
    }
    store
        .name_snapshot("engine:3", "alice", "other", "state")
        .await
        .unwrap();
    let places = async |word| store.snapshot_locations("alice", word).await.unwrap();
    assert_eq!(places("kept").await, ["engine:1", "docker:7"]);
    assert_eq!(places("state").await, ["engine:3"]);
    assert!(places("nothing").await.is_empty());
    let publish = store.publish_snapshot("engine:2", "kept", true);
    publish.await.unwrap();
    assert_eq!(places("kept").await, ["engine:1", "docker:7", "engine:2"]);
}

async fn what_is_kept_in_a_place_goes_with_its_name(home: Home) {
    let store = home.open().await;
    for (location, name, owner, alias) in [
        ("old", "one", "alice", "state"),
        ("old", "two", "alice", "other"),
        ("new", "two", "bob", "other"),
        ("new", "three", "alice", "state"),
    ] {
        let snapshot = Snapshot {
            name: name.to_owned(),
            owner: owner.to_owned(),
            alias: None,
            sandbox_id: None,
            created_ms: 1,
            is_public: false,
        };
        assert!(store.insert_snapshot(location, &snapshot).await.unwrap());
        store
            .name_snapshot(location, owner, name, alias)
            .await
            .unwrap();
    }
    for _ in 0..2 {
        store.rename_location("old", "new").await.unwrap();
        let owner = async |name| store.snapshot_owner("new", name).await.unwrap();
        assert_eq!(owner("one").await.as_deref(), Some("alice"));
        assert_eq!(
            owner("two").await.as_deref(),
            Some("bob"),
            "it was there first"
        );
        let called = store
            .snapshot_called("new", "alice", "state")
            .await
            .unwrap();
        assert_eq!(called.as_deref(), Some("three"));
        assert_eq!(store.snapshots("old").await.unwrap().len(), 1);
    }
}
