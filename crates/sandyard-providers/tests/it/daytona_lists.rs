//! Lists at Daytona: by cursor and by number, of many pages; and what is said of asking too often. Needs root.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode};
use sandyard_provider::prelude::*;
use sandyard_provider::{ProviderErrorKind, Retry};
use sandyard_providers::{CallTimeouts, Daytona};
use serde_json::{Value, json};

use crate::daytona_fake_api::FakeApi;
use crate::faults::{Fault, Faults};

const USUAL: Duration = Duration::from_secs(30);

/// A provider whose API is behind somebody who says something else now and then; each page of a list has that much time.
async fn behind(counterpart: &FakeApi, page: Duration) -> (Faults, Daytona) {
    let mut config = counterpart.config("mine");
    let address = config.server_url.trim_start_matches("http://");
    let address: SocketAddr = address
        .trim_end_matches("/api")
        .parse()
        .expect("an address");
    let faults = Faults::before(address).await;
    config.server_url = format!("http://{}/api", faults.address);
    config.timeouts = CallTimeouts {
        quick: page,
        ..CallTimeouts::default()
    };
    let provider = Daytona::connect(config).await.expect("connect");
    (faults, provider)
}

/// A sandbox of ours as a list tells it.
fn sandbox(provider: &Daytona, id: &str) -> Value {
    let labels = json!({
        "sandyard.sandbox": id, "sandyard.installation": "mine",
        "sandyard.place": provider.info().location, "sandyard.ready": "yes",
    });
    json!({"id": id, "state": "stopped", "labels": labels})
}

async fn ids(provider: &Daytona) -> Vec<String> {
    let all = provider.list().await.expect("list");
    all.into_iter().map(|one| one.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_are_read_by_cursor_by_number_and_without_any() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, USUAL).await;
    let one = |id| sandbox(&provider, id);
    let now = |body: Value| Fault::Late(Duration::ZERO, body.to_string());
    for pages in [
        vec![
            json!({"items": [one("a")], "nextCursor": "x"}),
            json!({"items": [one("b")], "nextCursor": "y"}),
            json!({"items": [one("c")], "nextCursor": null}),
        ],
        vec![
            json!({"items": [one("a")], "total": 3, "page": 1, "totalPages": 3}),
            json!({"items": [one("b")], "total": 3, "page": 2, "totalPages": 3}),
            json!({"items": [one("c")], "total": 3, "page": 3, "totalPages": 3}),
        ],
        vec![json!([one("a"), one("b"), one("c")])],
    ] {
        faults.next(pages.into_iter().map(now));
        assert_eq!(ids(&provider).await, ["a", "b", "c"]);
    }
    // What leads nowhere has an end all the same.
    faults.set(now(json!({"items": [], "nextCursor": "x"})));
    let endless = provider.list().await.expect_err("no end");
    assert_eq!(endless.kind, ProviderErrorKind::Failed);
}

/// The time is that of a page: how many there are is nobody's fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_may_take_longer_than_a_page_of_it() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, Duration::from_secs(20)).await;
    let page = |number: u32| {
        let next = (number < 8).then(|| format!("after {number}"));
        let id = format!("s{number}");
        let body = json!({"items": [sandbox(&provider, &id)], "nextCursor": next});
        Fault::Late(Duration::from_secs(3), body.to_string())
    };
    faults.next((1..=8).map(page));
    assert_eq!(ids(&provider).await.len(), 8);
}

/// Whoever has had enough is not told of each of a hundred.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_what_is_in_use_while_that_is_too_much() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, USUAL).await;
    let started = |number: usize| {
        let mut one = sandbox(&provider, &format!("s{number}"));
        one["state"] = "started".into();
        one
    };
    let all: Vec<_> = (0..100).map(started).collect();
    let listed = json!({"items": all, "nextCursor": null}).to_string();
    let lists = |asked: &str| asked.starts_with("GET ") && asked.ends_with("/sandbox");
    let tells = |asked: &str| asked.ends_with("/last-activity");
    faults.some(lists, usize::MAX, Fault::Late(Duration::ZERO, listed));
    let busy = Fault::status(429, ("retry-after", "200"), "slow down");
    faults.some(tells, usize::MAX, busy);
    assert_eq!(ids(&provider).await.len(), 100);
    let give_up = Instant::now() + Duration::from_secs(180);
    while faults.count(tells) == 0 {
        assert!(Instant::now() < give_up, "nobody tries");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        ids(&provider).await;
    }
    // As many as were under way when the first was refused.
    let count = faults.count(tells);
    assert!(count <= 8, "{count} were told of");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_to_come_back_is_told_by_whatever_counts() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, USUAL).await;
    let refusal = |headers: &[(&'static str, &'static str)]| {
        let headers = headers.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let headers: HeaderMap = headers.collect();
        Fault::Answer(StatusCode::TOO_MANY_REQUESTS, headers, "{}".to_owned())
    };
    for (headers, wait) in [
        (&[("retry-after-authenticated", "60")][..], 60),
        (&[("x-ratelimit-reset-authenticated", "50")], 50),
        (&[("retry-after-a", "30"), ("retry-after-b", "40")], 40),
        (&[("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")], 300),
    ] {
        faults.set(refusal(headers));
        let error = provider.list().await.expect_err("too many");
        assert_eq!(
            (error.kind, error.retry),
            (ProviderErrorKind::NoCapacity, Retry::Later)
        );
        assert_eq!(
            error.retry_after,
            Some(Duration::from_secs(wait)),
            "{headers:?}"
        );
    }
    faults.set(refusal(&[("should-retry", "false")]));
    let error = provider.list().await.expect_err("too many");
    assert_eq!((error.retry, error.retry_after), (Retry::Never, None));
    // As the counterpart itself says it, which is as the real one does.
    faults.set(Fault::None);
    let busy = json!({"status": 429, "retry_after": 70});
    counterpart.fault("list_sandboxes", 1, busy).await;
    let error = provider.list().await.expect_err("too many");
    assert_eq!(error.retry_after, Some(Duration::from_secs(70)));
}
