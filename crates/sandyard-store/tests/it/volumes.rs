//! What is promised of volumes.

use sandyard_core::SandboxStatus;
use sandyard_store::Store;
use sandyard_store::model::{
    InsertOutcome, MountedVolume, Sandbox, SandboxFilter, TimerPlan, Volume, VolumeInsert,
    VolumeRemoval, VolumeStatus,
};

use crate::engines::Home;
use crate::sample::{delete, event, finish, id, insert, insert_running, new, sandbox};

const TASKS: usize = 20;

crate::on_every_engine![
    a_volume_is_read_back_whole_and_forgotten,
    names_are_unique_per_owner_and_numbers_bounded,
    only_unfinished_ones_are_listed_as_such,
    a_volume_in_a_sandbox_stays,
    a_sandbox_gets_no_volume_that_is_being_deleted,
    the_last_place_of_a_quota_goes_to_one,
    a_volume_is_removed_or_given_to_a_sandbox_never_both,
];

fn volume(name: &str, owner: &str) -> Volume {
    Volume {
        id: format!("v{name}{owner}"),
        owner: owner.to_owned(),
        name: name.to_owned(),
        location: "here".to_owned(),
        status: VolumeStatus::Creating,
        size_bytes: 5 << 30,
        token: "opens it".to_owned(),
        created_ms: 10,
    }
}

/// A volume that can be used.
async fn ready(store: &Store, volume: Volume) -> Volume {
    let outcome = store.insert_volume(&volume, None).await.unwrap();
    assert_eq!(outcome, VolumeInsert::Inserted);
    assert!(store.finish_volume(&volume.id).await.unwrap());
    Volume {
        status: VolumeStatus::Ready,
        ..volume
    }
}

fn with_volume(name: &str, volume: &Volume) -> Sandbox {
    let mut row = sandbox(name, &volume.owner, 1000);
    row.mounts = vec![MountedVolume {
        volume_id: volume.id.clone(),
        name: volume.name.clone(),
        path: "/data \"x\"".to_owned(),
    }];
    row
}

async fn a_volume_is_read_back_whole_and_forgotten(home: Home) {
    let store = home.open().await;
    let one = volume("one", "alice");
    assert_eq!(
        store.insert_volume(&one, Some(1)).await.unwrap(),
        VolumeInsert::Inserted
    );
    assert_eq!(store.volume(&one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(
        store.volume_named("alice", "one").await.unwrap(),
        Some(one.clone())
    );
    assert_eq!(store.volume_named("bob", "one").await.unwrap(), None);
    // Not while it is made: its maker may still be at it.
    store.forget_volume(&one.id).await.unwrap();
    assert!(store.finish_volume(&one.id).await.unwrap());
    assert!(!store.finish_volume(&one.id).await.unwrap());
    let found = store.volume(&one.id).await.unwrap().unwrap();
    assert_eq!(found.status, VolumeStatus::Ready);
    for _ in 0..2 {
        let removal = store.begin_volume_removal(&one.id).await.unwrap();
        assert_eq!(removal, VolumeRemoval::Started);
    }
    assert!(!store.finish_volume(&one.id).await.unwrap());
    store.forget_volume(&one.id).await.unwrap();
    assert_eq!(store.volume(&one.id).await.unwrap(), None);
    let removal = store.begin_volume_removal(&one.id).await.unwrap();
    assert_eq!(removal, VolumeRemoval::Missing);
}

async fn names_are_unique_per_owner_and_numbers_bounded(home: Home) {
    let store = home.open().await;
    for (name, owner) in [("b", "alice"), ("a", "alice"), ("b", "bob")] {
        ready(&store, volume(name, owner)).await;
    }
    let same = Volume {
        id: "vother".to_owned(),
        ..volume("b", "alice")
    };
    assert_eq!(
        store.insert_volume(&same, None).await.unwrap(),
        VolumeInsert::NameTaken
    );
    assert_eq!(
        store
            .insert_volume(&volume("c", "alice"), Some(2))
            .await
            .unwrap(),
        VolumeInsert::OverQuota { count: 2 }
    );
    let names = async |owner: Option<&str>| -> Vec<String> {
        let volumes = store.volumes(owner).await.unwrap();
        let name = |volume: Volume| format!("{} of {}", volume.name, volume.owner);
        volumes.into_iter().map(name).collect()
    };
    assert_eq!(names(Some("alice")).await, ["a of alice", "b of alice"]);
    assert_eq!(names(Some("carol")).await, [""; 0]);
    let all = ["a of alice", "b of alice", "b of bob"];
    assert_eq!(names(None).await, all);
}

async fn only_unfinished_ones_are_listed_as_such(home: Home) {
    let store = home.open().await;
    ready(&store, volume("ready", "alice")).await;
    let removed = ready(&store, volume("gone", "alice")).await;
    store.begin_volume_removal(&removed.id).await.unwrap();
    let late = Volume {
        created_ms: 100,
        ..volume("late", "alice")
    };
    let other_location = Volume {
        location: "there".to_owned(),
        ..volume("elsewhere", "alice")
    };
    for volume in [&volume("old", "alice"), &late, &other_location] {
        store.insert_volume(volume, None).await.unwrap();
    }
    let found = store.unfinished_volumes("here", 100).await.unwrap();
    let names: Vec<_> = found.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["gone", "old"]);
}

async fn a_volume_in_a_sandbox_stays(home: Home) {
    let store = home.open().await;
    let one = ready(&store, volume("one", "alice")).await;
    let longer = ready(&store, volume("one", "alicex")).await;
    insert_running(&store, with_volume("first", &one)).await;
    insert(&store, with_volume("second", &one)).await;
    insert_running(&store, sandbox("third", "alice", 1000)).await;
    let removal = store.begin_volume_removal(&one.id).await.unwrap();
    assert_eq!(
        removal,
        VolumeRemoval::InUse(vec![id("first"), id("second")])
    );
    // Refused, it is as it was.
    assert_eq!(store.volume(&one.id).await.unwrap(), Some(one.clone()));
    let filter = SandboxFilter {
        volume_id: Some(one.id.clone()),
        ..SandboxFilter::default()
    };
    assert_eq!(store.list_sandboxes(&filter).await.unwrap().items.len(), 2);
    let removal = store.begin_volume_removal(&longer.id).await.unwrap();
    assert_eq!(removal, VolumeRemoval::Started);
    delete(&store, &id("first")).await;
    finish(&store, &id("second"), SandboxStatus::Deleted).await;
    let removal = store.begin_volume_removal(&one.id).await.unwrap();
    assert_eq!(removal, VolumeRemoval::Started);
}

async fn try_insert(store: &Store, sandbox: Sandbox) -> InsertOutcome {
    let created = event(sandbox.id.as_str(), &sandbox.owner, "created", 1000);
    store
        .insert_sandbox(&new(sandbox), None, None, &created, TimerPlan::Keep)
        .await
        .unwrap()
}

async fn a_sandbox_gets_no_volume_that_is_being_deleted(home: Home) {
    let store = home.open().await;
    let removed = ready(&store, volume("gone", "alice")).await;
    store.begin_volume_removal(&removed.id).await.unwrap();
    let unfinished = volume("unfinished", "alice");
    store.insert_volume(&unfinished, None).await.unwrap();
    let unknown = volume("unknown", "alice");
    for volume in [removed, unfinished, unknown] {
        let outcome = try_insert(&store, with_volume("one", &volume)).await;
        assert_eq!(outcome, InsertOutcome::VolumeGone { id: volume.id });
        assert_eq!(store.sandbox(&id("one")).await.unwrap(), None);
    }
}

async fn the_last_place_of_a_quota_goes_to_one(home: Home) {
    let (one, other) = home.open_two().await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let store = if number % 2 == 0 { &one } else { &other };
            let (store, volume) = (store.clone(), volume(&format!("n{number}"), "alice"));
            tokio::spawn(async move { store.insert_volume(&volume, Some(1)).await.unwrap() })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap() == VolumeInsert::Inserted);
    }
    assert_eq!(made, 1);
}

async fn a_volume_is_removed_or_given_to_a_sandbox_never_both(home: Home) {
    let (one, other) = home.open_two().await;
    for round in 0..TASKS {
        let volume = ready(&one, volume(&format!("r{round}"), "alice")).await;
        let row = with_volume(&format!("s{round}"), &volume);
        let giver = other.clone();
        let giving = tokio::spawn(async move { try_insert(&giver, row).await });
        let removal = one.begin_volume_removal(&volume.id).await.unwrap();
        let given = giving.await.unwrap();
        match removal {
            VolumeRemoval::Started => {
                assert_eq!(given, InsertOutcome::VolumeGone { id: volume.id })
            }
            VolumeRemoval::InUse(_) => assert_eq!(given, InsertOutcome::Inserted),
            VolumeRemoval::Missing => panic!("it is there"),
        }
    }
}
