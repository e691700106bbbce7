//! Lists at Daytona: by cursor and by number, with many pages; and rate limits. Needs root.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode};
use sandyard_provider::prelude::*;
use sandyard_provider::{ProviderErrorKind, Retry};
use sandyard_providers::{CallTimeouts, Daytona};
use serde_json::{Value, json};

use crate::daytona_fake_api::FakeApi;
use crate::faults::{Fault, Faults};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A provider whose API is behind a proxy that injects faults; `page` is the timeout of each page.
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

/// A sandbox of this installation as a list contains it.
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
    let (faults, provider) = behind(&counterpart, DEFAULT_TIMEOUT).await;
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
    // A list without an end is an error.
    faults.set(now(json!({"items": [], "nextCursor": "x"})));
    let endless = provider.list().await.expect_err("no end");
    assert_eq!(endless.kind, ProviderErrorKind::Failed);
}

/// The timeout is per page, because the number of pages is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_may_take_longer_than_the_timeout_of_a_page() {
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

/// After a rate limit, the rest of a batch is not sent.
#[tokio::test(flavor = "multi_thread")]
async fn activity_reports_stop_at_a_rate_limit() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, DEFAULT_TIMEOUT).await;
    let started = |number: usize| {
        let mut one = sandbox(&provider, &format!("s{number}"));
        one["state"] = "started".into();
        one
    };
    let all: Vec<_> = (0..100).map(started).collect();
    let instances = json!({"items": all, "nextCursor": null}).to_string();
    let lists = |request: &str| request.starts_with("GET ") && request.ends_with("/sandbox");
    let reports = |request: &str| request.ends_with("/last-activity");
    faults.some(lists, usize::MAX, Fault::Late(Duration::ZERO, instances));
    let busy = Fault::status(429, ("retry-after", "200"), "slow down");
    faults.some(reports, usize::MAX, busy);
    assert_eq!(ids(&provider).await.len(), 100);
    let give_up = Instant::now() + Duration::from_secs(180);
    while faults.count(reports) == 0 {
        assert!(Instant::now() < give_up, "nobody tries");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        ids(&provider).await;
    }
    // The requests that were in progress at the first refusal.
    let count = faults.count(reports);
    assert!(count <= 8, "{count} reports");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retry_time_is_read_from_any_rate_limit_header() {
    let counterpart = FakeApi::start().await;
    let (faults, provider) = behind(&counterpart, DEFAULT_TIMEOUT).await;
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
    // As the substitute reports it, like Daytona itself.
    faults.set(Fault::None);
    let busy = json!({"status": 429, "retry_after": 70});
    counterpart.fault("list_sandboxes", 1, busy).await;
    let error = provider.list().await.expect_err("too many");
    assert_eq!(error.retry_after, Some(Duration::from_secs(70)));
}
