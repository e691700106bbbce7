//! Many links at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::future::join_all;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::host::InitRequest;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::env::{TestEnv, sh, until};
use crate::docker::link::links::{AT_ONCE, COUNTS};
use crate::docker::link::{Links, OpenLink};

/// Opens none, and that only when it may.
struct Slow {
    asked: AtomicUsize,
    may: Semaphore,
}

#[async_trait]
impl OpenLink for Slow {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let permit = self.may.acquire().await.map_err(io::Error::other)?;
        permit.forget();
        Ok(InitRequest::default())
    }
}

/// Time stands still while anybody has something to do: how long one counts as one of them is nothing to this.
#[tokio::test(start_paused = true)]
async fn only_so_many_are_asked_for_at_once_and_all_have_their_turn() {
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        may: Semaphore::new(0),
    });
    let links = Links::new(slow.clone());
    let all = (0..100).map(|number| {
        let way = links.way(&number.to_string());
        tokio::spawn(async move { way.dial().await.is_err() })
    });
    let all: Vec<_> = all.collect();
    until(|| slow.asked.load(Ordering::Relaxed) == AT_ONCE).await;
    // Whoever could still come has had the chance: they all run on this thread.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.asked.load(Ordering::Relaxed), AT_ONCE);
    slow.may.add_permits(100);
    for done in join_all(all).await {
        assert!(done.expect("no panic"), "it is refused");
    }
    assert_eq!(slow.asked.load(Ordering::Relaxed), 100);
    assert_eq!(links.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn containers_that_answer_nobody_keep_nobody_else_waiting() {
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        may: Semaphore::new(0),
    });
    let links = Links::new(slow.clone());
    let dial = |name: String| {
        let way = links.way(&name);
        tokio::spawn(async move { way.dial().await.map(drop) })
    };
    let stuck: Vec<_> = (0..AT_ONCE)
        .map(|number| dial(number.to_string()))
        .collect();
    until(|| slow.asked.load(Ordering::Relaxed) == AT_ONCE).await;
    let began = Instant::now();
    let other = dial("another".to_owned());
    until(|| slow.asked.load(Ordering::Relaxed) > AT_ONCE).await;
    assert!(began.elapsed() < COUNTS * 2, "{:?}", began.elapsed());
    // Those who take long are still waited for.
    slow.may.add_permits(AT_ONCE + 1);
    for done in join_all(stuck.into_iter().chain([other])).await {
        let refused = done.expect("no panic").expect_err("it opens none");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn containers_that_are_being_copied_take_nobodys_turn() {
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        may: Semaphore::new(100),
    });
    let links = Links::new(slow.clone());
    let dial = |name: String| {
        let way = links.way(&name);
        tokio::spawn(async move { way.dial().await.is_err() })
    };
    let mut copies = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..AT_ONCE * 2 {
        let name = format!("copied-{number}");
        copies.push(links.calm(&name).await);
        waiting.push(dial(name));
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.asked.load(Ordering::Relaxed), 0, "all of them wait");
    assert!(dial("another".to_owned()).await.expect("no panic"));
    assert_eq!(slow.asked.load(Ordering::Relaxed), 1);
    // Those who wait for their turn keep no container from being frozen.
    drop(copies);
    for done in join_all(waiting).await {
        assert!(done.expect("no panic"), "it is refused");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_copy_is_told_in_the_end() {
    let slow = Arc::new(Slow {
        asked: AtomicUsize::new(0),
        may: Semaphore::new(0),
    });
    let links = Links::new(slow);
    let _copy = links.calm("copied").await;
    let refused = links.way("copied").dial().await.map(drop);
    let error = refused.expect_err("no link");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("is being copied"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_containers_that_others_removed_are_forgotten() {
    let env = TestEnv::new();
    assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    env.links.tidy();
    assert_eq!(env.links.count(), 1, "it is good");
    env.opener.kill_all();
    until(|| {
        env.links.tidy();
        env.links.count() == 0
    })
    .await;
}
