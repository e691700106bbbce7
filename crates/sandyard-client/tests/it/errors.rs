//! Refusals arrive whole.

use sandyard_client::{Client, ClientError};

use crate::script::{Act, Script};

#[tokio::test]
async fn api_error_keeps_the_whole_response() {
    let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\nconnection: close\r\ncontent-length: 76\r\n\r\n\
        {\"detail\":\"too many\",\"code\":\"rate_limited\",\"hint\":\"wait\",\"field\":\"x\",\"y\":1}";
    let server = Script::play(vec![Act::Answer(answer.to_owned())]).await;
    let error = server.client.inspect("abc").await.unwrap_err();
    let refusal = error.api().unwrap();
    assert_eq!(error.to_string(), "too many");
    assert_eq!((error.status(), error.hint()), (Some(429), Some("wait")));
    assert_eq!(refusal.field.as_deref(), Some("x"));
    assert_eq!(refusal.retry_after.unwrap().as_secs(), 7);
    assert!(refusal.body.contains("\"y\":1"));
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let away = "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let server = Script::play(vec![Act::Answer(away.to_owned())]).await;
    let error = server.client.inspect("abc").await.unwrap_err();
    assert_eq!(error.status(), Some(302));
}

#[tokio::test]
async fn missing_server_differs_from_a_broken_connection() {
    // Nobody is given this port, as may happen to one that was free a moment ago.
    let unreachable = Client::new("http://127.0.0.1:1", None).unwrap();
    let error = unreachable.health().await.unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
    let server = Script::play(vec![Act::Cut]).await;
    let error = server.client.health().await.unwrap_err();
    assert!(matches!(error, ClientError::Connection { .. }), "{error:?}");
}

#[tokio::test]
async fn unhealthy_server_still_reports_its_health() {
    let ill = Act::json(
        "503 Service Unavailable",
        r#"{"status":"starting","version":"1"}"#,
    );
    let server = Script::play(vec![ill]).await;
    assert_eq!(server.client.health().await.unwrap().status, "starting");
}

#[tokio::test]
async fn invalid_response_is_a_protocol_error() {
    let server = Script::play(vec![Act::json("200 OK", "<html>")]).await;
    let error = server.client.inspect("abc").await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn sandbox_names_cannot_change_the_route() {
    let server = Script::play(vec![Act::Cut]).await;
    let _ = server.client.inspect("../users?x=#").await;
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("GET /sandboxes/..%2Fusers%3Fx=%23/info HTTP/1.1"),
        "{request}"
    );
}
