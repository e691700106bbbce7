//! Those who would use the data plane of E2B's clients for something else.

use axum::body::Body;
use axum::http::Request;
use reqwest::Method;
use sandyard_agent_client::wire::signature::{Operation, SignedUrl, sign};
use sandyard_store::model::SandboxFilter;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::{Actor, At, TestApp};
use crate::e2b_data::{Sandbox, json_of};
use crate::live::Server;

async fn send(app: &TestApp, method: &str, path: &str, headers: &[(&str, &[u8])]) -> (u16, Value) {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "yard.test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = app
        .send(At::Network, request.body(Body::empty()).unwrap())
        .await;
    let status = answer.status.as_u16();
    (
        status,
        if answer.text.is_empty() {
            Value::Null
        } else {
            answer.json()
        },
    )
}

#[tokio::test]
async fn names_that_cannot_be_are_nobodys() {
    let app = TestApp::new().await;
    let long = "a".repeat(10_000);
    for id in [
        "",
        " ",
        "nosuchsandboxatall00",
        "ABC",
        "../abc",
        "a'b\"c",
        "a/b",
        "%61",
        &long,
        "-",
        "a-b-c",
    ] {
        for port in ["49983", "3000"] {
            let headers: [(&str, &[u8]); 2] = [
                ("e2b-sandbox-id", id.as_bytes()),
                ("e2b-sandbox-port", port.as_bytes()),
            ];
            let (status, body) = send(&app, "GET", "/e2b/health", &headers).await;
            assert_eq!(
                (status, &body["message"]),
                (502, &json!("The sandbox was not found")),
                "{id}"
            );
            assert!(body["sandboxId"].as_str().unwrap().len() <= 64);
        }
    }
    for port in [
        "", "0", "65536", "080", "-1", "49983 ", "49983,80", "0x50", "agent",
    ] {
        let headers: [(&str, &[u8]); 2] = [
            ("e2b-sandbox-id", b"abc"),
            ("e2b-sandbox-port", port.as_bytes()),
        ];
        let (status, body) = send(&app, "GET", "/e2b/health", &headers).await;
        assert_eq!((status, &body["code"]), (400, &json!(400)), "{port}");
    }
}

#[tokio::test]
async fn what_is_not_running_is_not_found_whatever_is_asked() {
    let app = TestApp::new().await;
    let id = app.sandbox(Actor::Alice).await;
    let path = format!("/sandboxes/{id}");
    app.ask(Actor::Alice, "DELETE", &path, None).await.ok();
    for path in ["/e2b/health", "/e2b/init", "/e2b/files?path=a", "/e2b/"] {
        let headers: [(&str, &[u8]); 2] = [
            ("e2b-sandbox-id", id.as_bytes()),
            ("e2b-sandbox-port", b"49983"),
        ];
        let (status, body) = send(&app, "GET", path, &headers).await;
        assert_eq!(status, 502);
        assert_eq!(
            body,
            json!({"sandboxId": id, "message": "The sandbox was not found", "code": 502})
        );
    }
}

#[tokio::test]
async fn signatures_that_cannot_be_are_refused_without_a_search() {
    let app = TestApp::new().await;
    let text = "A".repeat(42);
    for signature in [
        "",
        "v1_",
        "x",
        &text,
        &format!("v2_{text}A"),
        &format!("v1_{text}!"),
        &"v1_".repeat(20_000),
    ] {
        let path = format!("/e2b/files?path=a&signature={signature}");
        let (status, body) = send(&app, "GET", &path, &[]).await;
        assert_eq!(
            (status, body),
            (401, json!({"code": 401, "message": "invalid signature"}))
        );
    }
}

#[tokio::test]
async fn one_of_many_sandboxes_is_found_by_its_signature() {
    let app = TestApp::new().await;
    for number in 0..1100 {
        // Nobody may have that many alone.
        let body = json!({"user_id": format!("user{}", number / 50)});
        app.post(Actor::Admin, "/sandboxes/create", body).await.ok();
    }
    let filter = SandboxFilter::default();
    let newest = app.app.store().list_sandboxes(&filter).await.unwrap();
    let filter = SandboxFilter {
        cursor: newest.next.clone(),
        ..filter
    };
    let oldest = app.app.store().list_sandboxes(&filter).await.unwrap();
    let url = SignedUrl {
        path: "/a b",
        operation: Operation::Read,
        user: "",
        expiration: None,
    };
    for row in [
        &newest.items[0],
        &newest.items[500],
        oldest.items.last().unwrap(),
    ] {
        let signature = sign(&url, &row.access_token);
        let signature = signature.replace('+', "%2B").replace('/', "%2F");
        let path = format!("/e2b/files?path=/a%20b&signature={signature}");
        // Nobody answers in a sandbox that is only pretended; that it is this one is all there is to see.
        let (status, body) = send(&app, "GET", &path, &[]).await;
        assert_eq!(status, 503, "{body}");
        assert_eq!(body["sandboxId"], row.id.as_str());
    }
    let path = format!("/e2b/files?path=/a%20b&signature=v1_{}", "A".repeat(43));
    assert_eq!(send(&app, "GET", &path, &[]).await.0, 401);
}

/// Sends bytes and gives the first line of the answer.
async fn raw(server: &Server, head: &str) -> String {
    let stream = TcpStream::connect(server.authority()).await.unwrap();
    let (mut answer, mut request) = stream.into_split();
    let head = head.to_owned();
    let asking = tokio::spawn(async move {
        // It may be answered and cut off before all of it is there.
        let _ = request.write_all(head.as_bytes()).await;
        // Its end would be the end of the request, too.
        std::future::pending::<()>().await;
        drop(request);
    });
    let mut seen = Vec::new();
    while !seen.contains(&b'\n') {
        let mut some = [0; 512];
        match answer.read(&mut some).await {
            Ok(0) | Err(_) => break,
            Ok(count) => seen.extend_from_slice(&some[..count]),
        }
    }
    asking.abort();
    let text = String::from_utf8_lossy(&seen).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_the_hosts_alone_is_reached() {
    let server = Server::start().await;
    let sandbox = Sandbox::create(&server, json!({})).await;
    let (id, token) = (&sandbox.id, &sandbox.token);
    let named = format!("E2b-Sandbox-Id: {id}\r\nE2b-Sandbox-Port: 49983\r\n");
    for token in ["", token] {
        let header = format!("X-Access-Token: {token}\r\n");
        for path in [
            "/init",
            "/dial?port=22",
            "/egress",
            "/activity",
            "/left?reader=1-1",
            "//init",
            "/./init",
            "/files/../init",
            "/%69nit",
            "/files%2f..%2finit",
            "/process.Process/../init",
            "/process.Process/..%2finit",
            "/init/",
            "/INIT",
            "/init;x",
            "/init%00",
            "/health/../dial?port=49983",
        ] {
            let heads = [
                format!(
                    "POST /e2b{path} HTTP/1.1\r\nHost: x\r\n{named}{header}Content-Length: 2\r\n\r\n{{}}"
                ),
                format!(
                    "GET /e2b{path} HTTP/1.1\r\nHost: x\r\n{named}{header}Connection: upgrade\r\nUpgrade: sandyard-dial\r\n\r\n"
                ),
                format!(
                    "GET http://localhost/e2b{path} HTTP/1.1\r\nHost: localhost\r\n{named}{header}\r\n"
                ),
                format!(
                    "POST {path} HTTP/1.1\r\nHost: 49983-{id}.localhost\r\n{header}Content-Length: 0\r\n\r\n"
                ),
                format!(
                    "GET {path} HTTP/1.1\r\nHost: 49983-{id}.localhost\r\n{header}Connection: upgrade\r\nUpgrade: sandyard-egress\r\n\r\n"
                ),
            ];
            for head in heads {
                let line = raw(&server, &head).await;
                assert!(line.starts_with("HTTP/1.1 404"), "{line}\n{head}");
            }
        }
    }
    let header = format!("X-Access-Token: {token}\r\n");
    // An upgrade is not passed on where the path is good either, and no second request hides in a body: of two
    // lengths one is taken off before it is passed on (RFC 9112 6.3), or it is refused.
    for (head, wanted) in [
        (
            format!(
                "GET /e2b/envs HTTP/1.1\r\nHost: x\r\n{named}{header}Connection: upgrade\r\nUpgrade: sandyard-dial\r\n\r\n"
            ),
            "HTTP/1.1 200",
        ),
        (
            format!("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n{named}{header}\r\n"),
            "HTTP/1.1 4",
        ),
        (
            format!(
                "POST /e2b/files?path=/tmp/x HTTP/1.1\r\nHost: x\r\n{named}{header}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /init HTTP/1.1\r\n\r\n"
            ),
            "HTTP/1.1 200",
        ),
        (
            format!(
                "POST /e2b/files?path=/tmp/x HTTP/1.1\r\nHost: x\r\n{named}{header}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"
            ),
            "HTTP/1.1 4",
        ),
        (
            format!("GET /e2b/envs HTTP/1.1\r\nHost: x\r\n{named}{header}X-Evil: a\rb\r\n\r\n"),
            "HTTP/1.1 4",
        ),
        (
            format!(
                "GET /e2b/envs HTTP/1.1\r\nHost: x\r\n{named}{header}X-Big: {}\r\n\r\n",
                "a".repeat(1 << 20)
            ),
            "HTTP/1.1 4",
        ),
        (
            format!(
                "GET /e2b/envs HTTP/1.1\r\nHost: x\r\n{named}{header}{}\r\n",
                "X-Many: a\r\n".repeat(500)
            ),
            "HTTP/1.1 4",
        ),
    ] {
        let line = raw(&server, &head).await;
        assert!(
            line.starts_with(wanted),
            "{line}\n{}",
            &head[..head.len().min(400)]
        );
    }
    // The agent is as it was.
    let envs = sandbox.agent(Method::GET, "/envs").send().await.unwrap();
    json_of(envs, 200).await;
    // A client without credentials cannot reach the agent through a path, nor through a public port.
    let by_path = server
        .get(&format!("/p/{id}/49983/init"))
        .header("origin", "https://x.example");
    assert!(by_path.send().await.unwrap().status().is_client_error());
    server.finish().await;
}
