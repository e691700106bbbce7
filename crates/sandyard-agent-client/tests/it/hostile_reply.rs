//! Unary calls against replies that are too long, too short, senseless or missing.

use proptest::prelude::*;
use sandyard_agent_client::wire::Code;
use sandyard_agent_client::{AgentClient, ClientError, Endpoint, Limits};

use crate::server::{Server, kind, reply};

#[tokio::test]
async fn a_body_shorter_than_announced_is_closed() {
    let server = Server::replying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}");
    assert_eq!(kind(server.client().list().await), "closed");
}

#[tokio::test]
async fn a_body_announced_over_the_limit_is_refused_unread() {
    let server = Server::stalling_after("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n");
    assert_eq!(kind(server.client().list().await), "too large");
}

#[tokio::test]
async fn a_body_without_end_is_cut_off_at_the_limit() {
    let limits = Limits {
        max_body_len: 100_000,
        ..Limits::default()
    };
    for (head, second) in [
        (
            &b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..],
            &b"8\r\n[[[[[[[[\r\n"[..],
        ),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"x"),
    ] {
        let server = Server::endless(head, second);
        assert_eq!(
            kind(server.client_with(limits.clone()).list().await),
            "too large"
        );
    }
}

#[tokio::test]
async fn a_header_without_end_is_cut_off_at_the_limit() {
    let server = Server::endless(b"HTTP/1.1 200 OK\r\nx: ", b"x");
    assert_eq!(kind(server.client().health().await), "too large");
}

#[tokio::test]
async fn headers_without_number_are_cut_off() {
    let server = Server::endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n");
    assert_eq!(kind(server.client().health().await), "too large");
}

#[tokio::test]
async fn a_chunk_size_without_end_is_refused() {
    let server = Server::endless(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;",
        b"x",
    );
    assert_eq!(kind(server.client().list().await), "protocol");
}

#[tokio::test(start_paused = true)]
async fn interim_replies_without_end_are_a_timeout() {
    let server = Server::stalling_after("HTTP/1.1 100 Continue\r\n\r\n".repeat(100));
    assert_eq!(kind(server.client().health().await), "timeout");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_answers_is_a_timeout() {
    let server = Server::stalling_after("");
    let client = server.client();
    assert_eq!(kind(client.health().await), "timeout");
    assert_eq!(kind(client.list().await), "timeout");
    assert_eq!(kind(client.read_file("/x").await), "timeout");
    assert_eq!(kind(client.dial(80).await), "timeout");
    assert_eq!(
        kind(client.start(&Default::default(), &Default::default()).await),
        "timeout"
    );
    assert_eq!(kind(client.watch(&Default::default()).await), "timeout");
    assert_eq!(
        kind(client.run(Default::default(), &Default::default()).await),
        "timeout"
    );
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_and_then_nothing_is_a_timeout() {
    for half in [
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"pro",
    ] {
        let server = Server::stalling_after(half);
        assert_eq!(kind(server.client().list().await), "timeout", "{half}");
    }
}

#[tokio::test]
async fn an_agent_that_closes_without_answer_is_closed() {
    let server = Server::replying("");
    assert_eq!(kind(server.client().health().await), "closed");
    assert_eq!(kind(server.client().list().await), "closed");
}

#[tokio::test]
async fn what_is_not_http_or_not_the_expected_json_breaks_the_protocol() {
    for invalid in [
        b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(),
        reply("200 OK", "not json"),
        reply("200 OK", r#"{"processes": 7}"#),
        reply("200 OK", r#"{"processes": [{"pid": -1}]}"#),
        reply("200 OK", "[".repeat(100_000)),
        reply("302 Found", "{}"),
        reply("204 No Content", ""),
    ] {
        let server = Server::replying(&invalid);
        let start_of_reply =
            String::from_utf8_lossy(&invalid[..invalid.len().min(80)]).into_owned();
        assert_eq!(
            kind(server.client().list().await),
            "protocol",
            "{start_of_reply}"
        );
    }
}

#[tokio::test]
async fn a_small_body_cannot_blow_up_into_a_huge_list() {
    let body = format!(r#"{{"processes":[{}{{}}]}}"#, "{},".repeat(1_000_000));
    let server = Server::replying(reply("200 OK", body));
    assert_eq!(kind(server.client().list().await), "protocol");
}

#[tokio::test]
async fn refusals_are_understood_in_every_form() {
    for (status, body, expected_code, expected_message) in [
        (
            "404 Not Found",
            r#"{"code":"not_found","message":"gone"}"#,
            Code::NotFound,
            "gone",
        ),
        (
            "404 Not Found",
            r#"{"code":404,"message":"gone"}"#,
            Code::NotFound,
            "gone",
        ),
        (
            "507 Insufficient Storage",
            r#"{"code":507,"message":"full"}"#,
            Code::ResourceExhausted,
            "full",
        ),
        (
            "409 Conflict",
            r#"{"code":"made_up","message":"m"}"#,
            Code::AlreadyExists,
            "m",
        ),
        (
            "500 Oops",
            "<html>",
            Code::Internal,
            "HTTP status 500 Internal Server Error",
        ),
        (
            "401 No",
            "",
            Code::Unauthenticated,
            "HTTP status 401 Unauthorized",
        ),
    ] {
        let server = Server::replying(reply(status, body));
        match server.client().stat("/x").await {
            Err(ClientError::Remote { code, message }) => {
                assert_eq!((code, message.as_str()), (expected_code, expected_message));
            }
            other => panic!("{status} {body}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_missing_listener_is_a_failure_to_connect() {
    let client = AgentClient::new(Endpoint::Unix("/nonexistent/agent.sock".into()));
    assert_eq!(kind(client.health().await), "connect");
    let client = AgentClient::new(Endpoint::Unix(
        format!("/nonexistent/{}/s", "x".repeat(200)).into(),
    ));
    assert_eq!(kind(client.health().await), "connect");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the bytes: an error or an answer, never a panic, never a wait beyond the limit.
    #[test]
    fn any_bytes_give_an_error_or_an_answer(
        head in prop_oneof![
            Just("HTTP/1.1 200 OK\r\n\r\n".to_owned()),
            Just("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned()),
            Just("HTTP/1.1 101 Switching\r\nupgrade: sandyard-dial\r\nconnection: upgrade\r\n\r\n".to_owned()),
            "\\PC{0,40}",
        ],
        tail in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let server = Server::replying([head.as_bytes(), &tail].concat());
            let client = server.client_with(Limits { max_frame_len: 1024, max_body_len: 1024, ..Limits::default() });
            let _ = client.health().await;
            let _ = client.list().await;
            let _ = client.stat("/x").await;
            let _ = client.metrics().await;
            let _ = client.run(Default::default(), &Default::default()).await;
            let _ = client.read_to_vec("/x", 1000).await;
            let _ = client.write_file("/x", "content").await;
            let _ = client.dial(80).await;
            if let Ok(mut watch) = client.watch(&Default::default()).await {
                while let Some(Ok(_)) = watch.next().await {}
            }
        });
    }
}
