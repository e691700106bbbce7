//! Streams go on where they were.

use crate::script::{Act, Script};

fn line(id: u64) -> String {
    format!(
        "id: {id}\nevent: log\ndata: {{\"seq\":{id},\"source\":\"stdout\",\"text\":\"line {id}\"}}\n\n"
    )
}

const RETRY_AT_ONCE: &str = "retry: 1\n\n";

#[tokio::test]
async fn a_cut_stream_is_resumed_after_the_last_event() {
    let first = format!("{RETRY_AT_ONCE}{}{}", line(1), line(2));
    let acts = vec![
        Act::cut_events(&first),
        Act::Cut,
        Act::cut_events(&line(3)),
        Act::json(
            "404 Not Found",
            r#"{"detail":"gone","code":"sandbox_not_found"}"#,
        ),
    ];
    let server = Script::play(acts).await;
    let mut follow = server.client.follow_logs("abc", 10).await.unwrap();
    let mut texts = Vec::new();
    while let Some(entry) = follow.next().await.unwrap() {
        texts.push(entry.text);
    }
    assert_eq!(texts, ["line 1", "line 2", "line 3"]);
    let ids = server.header("last-event-id");
    let expected = [None, Some("2"), Some("2"), Some("3")];
    assert_eq!(ids, expected.map(|id| id.map(str::to_owned)));
}

#[tokio::test]
async fn follow_waits_for_a_restarting_server() {
    let leaving = format!(
        "{RETRY_AT_ONCE}{}event: error\ndata: {{\"code\":\"unavailable\",\"detail\":\"the server ends\"}}\n\n",
        line(1)
    );
    let starting = Act::json(
        "503 Service Unavailable",
        r#"{"detail":"starting","code":"unavailable"}"#,
    );
    let not_found = Act::json("404 Not Found", "{}");
    let acts = vec![
        Act::events(&leaving),
        starting,
        Act::events(&line(2)),
        not_found,
    ];
    let server = Script::play(acts).await;
    let mut follow = server.client.follow_logs("abc", 10).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().seq, 1);
    assert_eq!(follow.next().await.unwrap().unwrap().seq, 2);
    assert!(follow.next().await.unwrap().is_none());
}

#[tokio::test]
async fn stream_that_ends_twice_without_events_has_ended() {
    let acts = vec![
        Act::events(&format!("{RETRY_AT_ONCE}{}", line(1))),
        Act::events(": hi\n\n"),
    ];
    let server = Script::play(acts).await;
    let mut follow = server.client.follow_logs("abc", 10).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().text, "line 1");
    assert!(follow.next().await.unwrap().is_none());
}

#[tokio::test]
async fn error_event_may_be_an_item_or_a_failure() {
    let happened =
        "id: 4\nevent: error\ndata: {\"seq\":4,\"sandbox_id\":\"abc\",\"kind\":\"error\"}\n\n";
    let refused = "event: error\ndata: {\"code\":\"internal\",\"detail\":\"broken\"}\n\n";
    let server = Script::play(vec![Act::events(&format!("{happened}{refused}"))]).await;
    let mut follow = server.client.follow_events(Some("abc"), 10).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().kind, "error");
    let error = follow.next().await.unwrap_err();
    assert_eq!(error.code(), Some("internal"));
}

#[tokio::test]
async fn rejected_follow_fails_at_once() {
    let server = Script::play(vec![Act::json("404 Not Found", r#"{"detail":"no"}"#)]).await;
    assert_eq!(
        server
            .client
            .follow_logs("abc", 1)
            .await
            .unwrap_err()
            .status(),
        Some(404)
    );
}
