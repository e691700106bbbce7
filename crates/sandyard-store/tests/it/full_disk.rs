//! The disk of a SQLite file fills up or fails, and works again. Needs root: the tests mount disks of their own.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandyard_core::SandboxStatus;
use sandyard_store::model::{
    ClaimOutcome, EventFilter, InsertOutcome, NewEvent, Operation, TimerPlan,
};
use sandyard_store::{Store, StoreError};
use tempfile::TempDir;

use crate::sample::{MAKER, event, finish, id, insert, insert_running, new, sandbox};

/// A tmpfs with a database on it.
struct Disk {
    directory: TempDir,
}

impl Disk {
    fn new(mib: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = std::ffi::CString::new(format!("size={mib}m,mode=700")).unwrap();
        mount(
            "tmpfs",
            directory.path(),
            "tmpfs",
            MountFlags::empty(),
            Some(options.as_c_str()),
        )
        .expect("root may mount a tmpfs");
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.path().join("test.db").display())
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Takes all space, as another program on the host would.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        let page = [1; 4096];
        while ballast.write_all(&page).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// A transaction of several pages.
fn events(round: i64) -> Vec<NewEvent> {
    (0..200)
        .map(|_| event("one", "alice", "command", round))
        .collect()
}

/// Writes until the disk is full; returns the failure and how many rounds went through.
async fn write_until_full(store: &Store) -> (StoreError, i64) {
    for round in 0..100_000 {
        if let Err(error) = store.add_events(&events(round)).await {
            return (error, round);
        }
    }
    panic!("the disk is never full");
}

async fn try_insert(store: &Store, name: &str) -> Result<InsertOutcome, StoreError> {
    let created = event(name, "alice", "created", 1);
    store
        .insert_sandbox(
            &new(sandbox(name, "alice", 1)),
            None,
            None,
            &created,
            TimerPlan::Keep,
        )
        .await
}

#[tokio::test]
async fn writes_go_on_when_a_full_disk_has_room_again() {
    let disk = Disk::new(32);
    let store = Store::open(&disk.url()).await.unwrap();
    insert(&store, sandbox("one", "alice", 1)).await;
    disk.fill();
    let (error, write_count) = write_until_full(&store).await;
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    // Once more, so that the failure is seen on a connection that has failed before.
    let second_error = store.add_events(&events(write_count)).await.unwrap_err();
    assert!(
        matches!(second_error, StoreError::Full { .. }),
        "{second_error:?}"
    );
    assert!(store.sandbox(&id("one")).await.unwrap().is_some());

    disk.free();
    insert(&store, sandbox("two", "alice", 1)).await;
    store.add_events(&events(-1)).await.unwrap();
    let tail = EventFilter {
        kinds: vec!["command".to_owned()],
        limit: 1000,
        is_tail: true,
        ..EventFilter::default()
    };
    let stored = store.events(&tail).await.unwrap();
    let failed = stored
        .iter()
        .filter(|event| event.at_ms == write_count)
        .count();
    assert_eq!(failed, 0, "what failed left nothing");
    let last = stored
        .iter()
        .filter(|event| event.at_ms == write_count - 1)
        .count();
    assert_eq!(last, 200, "what was acknowledged is there");
    store.close().await;
}

#[tokio::test]
async fn changes_of_state_are_written_on_a_full_disk() {
    let disk = Disk::new(64);
    let store = Store::open(&disk.url()).await.unwrap();
    for number in 0..50 {
        insert_running(&store, sandbox(&format!("s{number}"), "alice", 1)).await;
    }
    disk.fill();
    for number in 0..50 {
        let id = id(&format!("s{number}"));
        let claim = store
            .claim_sandbox(&id, Operation::Delete, MAKER, 0, 1000)
            .await;
        assert!(
            matches!(claim, Ok(ClaimOutcome::Claimed(_))),
            "{number}: {claim:?}"
        );
        finish(&store, &id, SandboxStatus::Deleted).await;
    }
    store.close().await;
}

/// Writers that are cancelled at any point, while the disk fills up and has room again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_moment_of_a_full_disk_breaks_the_writer() {
    let disk = Disk::new(8);
    let store = Store::open(&disk.url()).await.unwrap();
    for round in 0..10 {
        disk.fill();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for attempt in 0..20_u64 {
                        let events = events(round * 4 + writer);
                        let write = store.add_events(&events);
                        let _ = tokio::time::timeout(
                            std::time::Duration::from_micros(attempt * 150),
                            write,
                        )
                        .await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        disk.free();
        // The history of this round makes room for the next one.
        store.purge_history(i64::MAX).await.unwrap();
        insert(&store, sandbox(&format!("s{round}"), "alice", 1)).await;
    }
    store.close().await;
}

#[test]
#[ignore = "run by another test, in a process whose files cannot grow"]
fn process_whose_disk_fails() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    runtime.block_on(async {
        let store = Store::open(&url).await.unwrap();
        insert(&store, sandbox("one", "alice", 1)).await;
        let before = getrlimit(Resource::Fsize);
        let no_growth = Rlimit {
            current: Some(1),
            ..before
        };
        setrlimit(Resource::Fsize, no_growth).unwrap();
        for name in ["two", "three"] {
            let error = try_insert(&store, name).await.unwrap_err();
            assert!(matches!(error, StoreError::DiskFailed { .. }), "{error:?}");
        }
        assert!(store.sandbox(&id("one")).await.unwrap().is_some());
        setrlimit(Resource::Fsize, before).unwrap();
        insert(&store, sandbox("two", "alice", 1)).await;
        store.close().await;
    });
}

/// A write beyond the limit of a process fails with EFBIG, which SQLite treats as it treats EIO and EROFS.
#[test]
fn writes_go_on_when_a_failed_disk_works_again() {
    let done = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::process_whose_disk_fails"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && output.contains("1 passed"),
        "{done:?}"
    );
}
