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
use crate::docker::link::links::{MAX_OPENING, SLOT_TIMEOUT};
use crate::docker::link::{Links, OpenLink};

/// Refuses every link, after a permit.
struct Slow {
    request: AtomicUsize,
    permits: Semaphore,
}

#[async_trait]
impl OpenLink for Slow {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        self.request.fetch_add(1, Ordering::Relaxed);
        let permit = self.permits.acquire().await.map_err(io::Error::other)?;
        permit.forget();
        Ok(InitRequest::default())
    }
}

/// Time is paused while tasks run, so slots are not released by timeouts here.
#[tokio::test(start_paused = true)]
async fn concurrent_attempts_are_bounded_and_all_get_a_slot() {
    let slow = Arc::new(Slow {
        request: AtomicUsize::new(0),
        permits: Semaphore::new(0),
    });
    let links = Links::new(slow.clone());
    let all = (0..100).map(|number| {
        let dialler = links.dialler(&number.to_string());
        tokio::spawn(async move { dialler.dial().await.is_err() })
    });
    let all: Vec<_> = all.collect();
    until(|| slow.request.load(Ordering::Relaxed) == MAX_OPENING).await;
    // The other tasks had a chance to run: they share this thread.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.request.load(Ordering::Relaxed), MAX_OPENING);
    slow.permits.add_permits(100);
    for done in join_all(all).await {
        assert!(done.expect("no panic"), "it is refused");
    }
    assert_eq!(slow.request.load(Ordering::Relaxed), 100);
    assert_eq!(links.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn hanging_containers_do_not_delay_others() {
    let slow = Arc::new(Slow {
        request: AtomicUsize::new(0),
        permits: Semaphore::new(0),
    });
    let links = Links::new(slow.clone());
    let dial = |name: String| {
        let dialler = links.dialler(&name);
        tokio::spawn(async move { dialler.dial().await.map(drop) })
    };
    let stuck: Vec<_> = (0..MAX_OPENING)
        .map(|number| dial(number.to_string()))
        .collect();
    until(|| slow.request.load(Ordering::Relaxed) == MAX_OPENING).await;
    let start = Instant::now();
    let other = dial("another".to_owned());
    until(|| slow.request.load(Ordering::Relaxed) > MAX_OPENING).await;
    assert!(start.elapsed() < SLOT_TIMEOUT * 2, "{:?}", start.elapsed());
    // Slow attempts still finish.
    slow.permits.add_permits(MAX_OPENING + 1);
    for done in join_all(stuck.into_iter().chain([other])).await {
        let refused = done.expect("no panic").expect_err("it opens none");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn containers_that_are_being_copied_occupy_no_slots() {
    let slow = Arc::new(Slow {
        request: AtomicUsize::new(0),
        permits: Semaphore::new(100),
    });
    let links = Links::new(slow.clone());
    let dial = |name: String| {
        let dialler = links.dialler(&name);
        tokio::spawn(async move { dialler.dial().await.is_err() })
    };
    let mut copies = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..MAX_OPENING * 2 {
        let name = format!("copied-{number}");
        copies.push(links.block(&name).await);
        waiting.push(dial(name));
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.request.load(Ordering::Relaxed), 0, "all of them wait");
    assert!(dial("another".to_owned()).await.expect("no panic"));
    assert_eq!(slow.request.load(Ordering::Relaxed), 1);
    // Callers that wait for a slot do not prevent a pause.
    drop(copies);
    for done in join_all(waiting).await {
        assert!(done.expect("no panic"), "it is refused");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_copy_times_out_with_a_reason() {
    let slow = Arc::new(Slow {
        request: AtomicUsize::new(0),
        permits: Semaphore::new(0),
    });
    let links = Links::new(slow);
    let _copy = links.block("copied").await;
    let refused = links.dialler("copied").dial().await.map(drop);
    let error = refused.expect_err("no link");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("is being copied"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_removed_containers_are_forgotten() {
    let env = TestEnv::new();
    assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    env.links.remove_ended();
    assert_eq!(env.links.count(), 1, "it works");
    env.opener.kill_all();
    until(|| {
        env.links.remove_ended();
        env.links.count() == 0
    })
    .await;
}
