//! What is promised of timers, with and without Redis.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandyard_core::Clock;
use sandyard_store::model::{SandboxPatch, Timer, TimerPlan};
use sandyard_store::{Store, Timers};

use crate::engines::Home;
use crate::sample::{MAKER, event, id, new, sandbox};
use crate::servers::Redis;

const LEASE: Duration = Duration::from_millis(1000);
/// Time limit for something that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of polls of a test. Each poll waits for something to happen.
const MAX_POLLS: usize = 2000;

/// Two servers on one store.
struct Two {
    first: Timers,
    second: Timers,
    store: Store,
    clock: Clock,
    redis: Option<Redis>,
    _home: Home,
}

async fn two(home: Home, has_redis: bool) -> Two {
    let redis = has_redis.then(Redis::start);
    let url = redis.as_ref().map(Redis::url);
    let clock = Clock::manual(1000);
    let (store, second) = home.open_two().await;
    Two {
        first: Timers::open(store.clone(), url.as_deref(), clock.clone())
            .await
            .unwrap(),
        second: Timers::open(second, url.as_deref(), clock.clone())
            .await
            .unwrap(),
        store,
        clock,
        redis,
        _home: home,
    }
}

fn locations() -> Vec<String> {
    vec!["here".to_owned(), "also here".to_owned()]
}

async fn claim(timers: &Timers) -> Vec<Timer> {
    timers
        .claim(&locations(), "node/1", LEASE, 100)
        .await
        .unwrap()
}

/// Claims one timer that must be due. What one server could not tell a Redis that was busy for a moment, the other learns when
/// the index is filled again.
async fn claim_one(timers: &Timers) -> Timer {
    let give_up = Instant::now() + TIMEOUT;
    let mut claimed = claim(timers).await;
    while claimed.is_empty() {
        assert!(Instant::now() < give_up, "nothing is due");
        tokio::time::sleep(Duration::from_millis(20)).await;
        claimed = claim(timers).await;
    }
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}

macro_rules! with_and_without_redis {
    ($($check:ident),* $(,)?) => {
        mod database {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                for home in [super::Home::memory(), super::Home::file(), super::Home::postgres().await] {
                    super::$check(super::two(home, false).await).await;
                }
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                for home in [super::Home::file(), super::Home::postgres().await] {
                    super::$check(super::two(home, true).await).await;
                }
            })*
        }
    };
}

with_and_without_redis![
    a_timer_is_due_in_its_place_at_its_time,
    each_timer_is_claimed_once,
    an_expired_lease_can_be_taken_over,
    a_newer_schedule_outlives_the_older_one,
    a_timer_set_again_after_clearing_is_another,
    a_failed_one_is_tried_again,
    the_dead_lie_until_revived,
    waiting_for_somebody_who_is_away_is_no_try,
    the_dead_of_one_place_are_revived_however_many_there_are,
    commits_set_and_clear_timers,
    an_aborted_commit_sets_none,
    waiting_servers_are_woken,
];

async fn a_timer_is_due_in_its_place_at_its_time(two: Two) {
    two.first.set("sandbox", "a", "here", 1500).await.unwrap();
    two.first
        .set("sandbox", "b", "elsewhere", 1000)
        .await
        .unwrap();
    two.first
        .set("sandbox", "c", "also here", 1499)
        .await
        .unwrap();
    two.first.set("other", "c", "here", 9999).await.unwrap();
    assert_eq!(claim(&two.second).await, []);
    two.clock.advance_ms(499);
    let timer = claim_one(&two.second).await;
    assert_eq!(
        (timer.subject.as_str(), timer.due_ms, timer.attempts),
        ("c", 1499, 1)
    );
    assert_eq!(timer.claimed_until_ms, 2499);
    two.clock.advance_ms(1);
    assert_eq!(claim_one(&two.second).await.subject, "a");
    assert_eq!(two.first.claim(&[], "node/1", LEASE, 5).await.unwrap(), []);
    assert_eq!(
        two.first
            .claim(&locations(), "node/1", LEASE, 0)
            .await
            .unwrap(),
        []
    );
}

async fn each_timer_is_claimed_once(two: Two) {
    const COUNT: usize = 200;
    for number in 0..COUNT {
        let subject = format!("s{number}");
        two.first
            .set("sandbox", &subject, "here", 1 + number as i64)
            .await
            .unwrap();
    }
    let all = Arc::new(AtomicUsize::new(0));
    let give_up = Instant::now() + TIMEOUT;
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let timers = if number % 2 == 0 {
                two.first.clone()
            } else {
                two.second.clone()
            };
            let all = all.clone();
            tokio::spawn(async move {
                let mut claims = Vec::new();
                let mut polls = 0;
                // Another task may hold timers that this poll skipped, so no task stops at the first empty result.
                while polls < 60
                    || (all.load(Ordering::Relaxed) < COUNT && Instant::now() < give_up)
                {
                    polls += 1;
                    let claimed = timers
                        .claim(&locations(), &format!("node/{number}"), LEASE, 7)
                        .await
                        .unwrap();
                    all.fetch_add(claimed.len(), Ordering::Relaxed);
                    claims.extend(claimed);
                    tokio::task::yield_now().await;
                }
                claims
            })
        })
        .collect();
    let mut claims = BTreeMap::new();
    for task in tasks {
        for timer in task.await.unwrap() {
            *claims.entry(timer.subject).or_insert(0) += 1;
        }
    }
    assert!(claims.values().all(|count| *count == 1), "{claims:?}");
    assert_eq!(claims.len(), COUNT);
}

async fn an_expired_lease_can_be_taken_over(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let late = claim_one(&two.first).await;
    two.clock.advance_ms(999);
    assert_eq!(claim(&two.second).await, []);
    two.clock.advance_ms(1);
    let taken = claim_one(&two.second).await;
    assert_eq!(taken.attempts, 2);
    // The late one changes nothing of the other's claim.
    assert!(!two.first.complete(&late).await.unwrap());
    two.first.retry(&late, 0, "late").await.unwrap();
    two.first.mark_dead(&late, "late").await.unwrap();
    assert_eq!(claim(&two.first).await, []);
    assert_eq!(two.first.dead().await.unwrap(), []);
    assert!(two.second.complete(&taken).await.unwrap());
    assert!(!two.second.complete(&taken).await.unwrap());
    two.clock.advance_ms(100_000);
    assert_eq!(claim(&two.first).await, []);
}

async fn a_newer_schedule_outlives_the_older_one(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let older = claim_one(&two.first).await;
    two.second.set("sandbox", "a", "here", 1200).await.unwrap();
    assert!(!two.first.complete(&older).await.unwrap());
    two.first.retry(&older, 1, "late").await.unwrap();
    two.first.mark_dead(&older, "late").await.unwrap();
    assert_eq!(claim(&two.first).await, []);
    two.clock.advance_ms(200);
    let newer = claim_one(&two.first).await;
    assert_eq!(
        (newer.due_ms, newer.generation, newer.attempts),
        (1200, older.generation + 1, 1)
    );
    // An earlier time in place of a later one counts as well.
    two.first.set("sandbox", "a", "here", 50_000).await.unwrap();
    two.first.set("sandbox", "a", "here", 1200).await.unwrap();
    assert_eq!(claim_one(&two.second).await.due_ms, 1200);
}

async fn a_timer_set_again_after_clearing_is_another(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let older = claim_one(&two.first).await;
    two.first.clear("sandbox", "a").await.unwrap();
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let newer = claim_one(&two.first).await;
    assert!(!two.first.complete(&older).await.unwrap());
    assert!(two.first.complete(&newer).await.unwrap());
    two.first.set("sandbox", "b", "here", 1000).await.unwrap();
    two.first.clear("sandbox", "b").await.unwrap();
    two.first.clear("sandbox", "b").await.unwrap();
    assert_eq!(claim(&two.second).await, []);
}

async fn a_failed_one_is_tried_again(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let first = claim_one(&two.first).await;
    two.first.retry(&first, 1300, "no luck\0").await.unwrap();
    two.clock.advance_ms(299);
    assert_eq!(claim(&two.second).await, []);
    two.clock.advance_ms(1);
    let second = claim_one(&two.second).await;
    assert_eq!((second.attempts, second.due_ms), (2, 1300));
    assert_eq!(second.last_error.as_deref(), Some("no luck\u{fffd}"));
    two.second.retry(&second, 1000, "again").await.unwrap();
    assert_eq!(claim_one(&two.first).await.attempts, 3);
}

async fn the_dead_lie_until_revived(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let first = claim_one(&two.first).await;
    two.first.mark_dead(&first, "hopeless").await.unwrap();
    two.clock.advance_ms(100_000);
    assert_eq!(claim(&two.second).await, []);
    let dead = two.second.dead().await.unwrap();
    assert_eq!(
        (dead.len(), dead[0].last_error.as_deref()),
        (1, Some("hopeless"))
    );
    assert!(!two.first.complete(&first).await.unwrap());
    assert!(two.second.revive("sandbox", "a").await.unwrap());
    assert!(!two.second.revive("sandbox", "a").await.unwrap());
    let revived = claim_one(&two.first).await;
    assert_eq!((revived.due_ms, revived.attempts), (101_000, 1));
    assert!(!two.first.complete(&first).await.unwrap());
    assert!(two.first.complete(&revived).await.unwrap());
    assert_eq!(two.first.dead().await.unwrap(), []);
}

async fn waiting_for_somebody_who_is_away_is_no_try(two: Two) {
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    for _ in 0..3 {
        let timer = claim_one(&two.first).await;
        assert_eq!(timer.attempts, 1);
        two.first
            .postpone_for_outage(&timer, 1000, "away")
            .await
            .unwrap();
        assert!(
            !two.first.complete(&timer).await.unwrap(),
            "the claim is over"
        );
    }
    assert_eq!(
        claim_one(&two.second).await.last_error.as_deref(),
        Some("away")
    );
}

async fn the_dead_of_one_place_are_revived_however_many_there_are(two: Two) {
    // Older ones elsewhere, more than a list of the dead shows.
    for number in 0..1001 {
        let subject = format!("other {number}");
        two.first
            .set("sandbox", &subject, "elsewhere", 500)
            .await
            .unwrap();
    }
    let other_location = ["elsewhere".to_owned()];
    loop {
        let due = two
            .first
            .claim(&other_location, "one", Duration::from_secs(60), 1000)
            .await
            .unwrap();
        if due.is_empty() {
            break;
        }
        for timer in due {
            two.first.mark_dead(&timer, "hopeless").await.unwrap();
        }
    }
    two.first.set("sandbox", "a", "here", 1000).await.unwrap();
    let timer = claim_one(&two.first).await;
    two.first.mark_dead(&timer, "hopeless").await.unwrap();
    assert_eq!(
        two.first.revive_all("here", 1000).await.unwrap(),
        0,
        "not so soon"
    );
    assert_eq!(two.first.revive_all("here", 1001).await.unwrap(), 1);
    assert_eq!(claim_one(&two.second).await.subject, "a");
    assert_eq!(two.first.dead().await.unwrap().len(), 1000);
}

async fn commits_set_and_clear_timers(two: Two) {
    let row = new(sandbox("one", "alice", 1));
    let created = event("one", "alice", "created", 1);
    let set = |due_ms| TimerPlan::Set { due_ms };
    two.store
        .insert_sandbox(&row, None, None, &created, set(1000))
        .await
        .unwrap();
    two.first.announce("sandbox", "one", "here", 1000).await;
    let first = claim_one(&two.second).await;
    assert_eq!(
        (first.topic.as_str(), first.subject.as_str()),
        ("sandbox", "one")
    );
    let commit = async |timer| {
        let patch = SandboxPatch::default();
        let commit = two
            .store
            .commit_sandbox(&row.sandbox.id, MAKER, &patch, &[], timer, false);
        assert!(commit.await.unwrap().is_some());
    };
    commit(TimerPlan::Keep).await;
    assert_eq!(claim(&two.second).await, []);
    commit(set(900)).await;
    two.first.announce("sandbox", "one", "here", 900).await;
    let second = claim_one(&two.second).await;
    assert_eq!((second.due_ms, second.attempts), (900, 1));
    assert!(!two.second.complete(&first).await.unwrap());
    commit(TimerPlan::Clear).await;
    two.clock.advance_ms(100_000);
    assert_eq!(claim(&two.second).await, []);
}

async fn an_aborted_commit_sets_none(two: Two) {
    let row = new(sandbox("one", "alice", 1));
    let created = event("one", "alice", "created", 1);
    two.store
        .insert_sandbox(&row, None, None, &created, TimerPlan::Keep)
        .await
        .unwrap();
    let refused = two
        .store
        .commit_sandbox(
            &id("one"),
            "stranger",
            &SandboxPatch::default(),
            &[],
            TimerPlan::Set { due_ms: 1 },
            true,
        )
        .await
        .unwrap();
    assert_eq!(refused, None);
    two.first.announce("sandbox", "one", "here", 1).await;
    assert_eq!(claim(&two.first).await, []);
}

async fn waiting_servers_are_woken(two: Two) {
    const LONG: Duration = Duration::from_secs(600);
    // By an announcement of its own server or of the other, and when a time has come.
    for (number, setter) in [&two.first, &two.second].into_iter().enumerate() {
        let subject = format!("s{number}");
        let waiter = two.first.clone();
        let waiting = tokio::spawn(async move {
            for _ in 0..MAX_POLLS {
                waiter.wait(&locations(), LONG).await;
                let claimed = claim(&waiter).await;
                if !claimed.is_empty() {
                    return claimed;
                }
            }
            panic!("never due");
        });
        let due_ms = two.clock.now_ms() + 5;
        setter
            .set("sandbox", &subject, "here", due_ms)
            .await
            .unwrap();
        two.clock.advance_ms(5);
        let claimed = waiting.await.unwrap();
        assert_eq!((claimed.len(), &claimed[0].subject), (1, &subject));
        assert!(two.first.complete(&claimed[0]).await.unwrap());
    }
    two.first.wait(&locations(), Duration::ZERO).await;
}

/// Claims and completes until all are done; each must come once.
async fn work_off(two: &Two, count: usize) {
    let mut done = BTreeMap::new();
    for poll in 0..MAX_POLLS {
        let timers = if poll % 2 == 0 {
            &two.first
        } else {
            &two.second
        };
        for timer in claim(timers).await {
            assert!(timers.complete(&timer).await.unwrap());
            *done.entry(timer.subject).or_insert(0) += 1;
        }
        if done.len() == count {
            break;
        }
        timers.wait(&locations(), Duration::from_millis(20)).await;
    }
    assert_eq!(done.len(), count);
    assert!(done.values().all(|count| *count == 1));
    assert_eq!(claim(&two.first).await, []);
    assert_eq!(claim(&two.second).await, []);
}

async fn set_many(two: &Two, name: &str, count: usize) {
    for number in 0..count {
        let timers = if number % 2 == 0 {
            &two.first
        } else {
            &two.second
        };
        let subject = format!("{name}{number}");
        timers
            .set("sandbox", &subject, "here", 1 + number as i64)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_redis_comes_back_empty() {
    let mut two = two(Home::postgres().await, true).await;
    assert_eq!(two.first.kind(), "redis");
    claim(&two.first).await;
    set_many(&two, "before", 20).await;
    two.redis.as_mut().unwrap().kill();
    // It works without it, at once.
    set_many(&two, "down", 20).await;
    let timer = two
        .first
        .claim(&locations(), "node/1", LEASE, 1)
        .await
        .unwrap()
        .remove(0);
    assert!(two.first.complete(&timer).await.unwrap());
    two.redis.as_mut().unwrap().begin();
    set_many(&two, "after", 20).await;
    work_off(&two, 59).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_redis_forgets_behind_our_back_is_filled_in_again() {
    let mut two = two(Home::file(), true).await;
    claim(&two.first).await;
    set_many(&two, "s", 20).await;
    // Both connections are made anew without any command that failed for want of an answer.
    two.redis.as_mut().unwrap().kill();
    two.redis.as_mut().unwrap().begin();
    work_off(&two, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_hangs_delays_no_server() {
    let two = two(Home::file(), true).await;
    claim(&two.first).await;
    set_many(&two, "before", 10).await;
    two.redis.as_ref().unwrap().freeze();
    set_many(&two, "during", 10).await;
    work_off(&two, 20).await;
    set_many(&two, "late", 10).await;
    two.redis.as_ref().unwrap().thaw();
    work_off(&two, 10).await;
}

#[tokio::test]
async fn a_redis_that_is_not_there_is_no_error() {
    let home = Home::memory();
    let store = home.open().await;
    let clock = Clock::manual(1000);
    let unreachable = Some("redis+unix:///nowhere/redis.sock");
    let timers = Timers::open(store.clone(), unreachable, clock.clone())
        .await
        .unwrap();
    timers.set("sandbox", "a", "here", 1000).await.unwrap();
    assert_eq!(claim_one(&timers).await.subject, "a");
    let secret = Some("http://:hunter2@host");
    let error = Timers::open(store, secret, clock).await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}
