//! Ports of a real sandbox, seen from outside.

use futures_util::future::join_all;
use reqwest::StatusCode;
use sandyard_config::settings::AuthMode;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::live::{Server, code, ok};

/// A server in a sandbox that tells what it was asked.
const ECHO: &str = r#"
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        text = f'{self.path} {self.headers.get("authorization")} {self.headers.get("x-api-key")}'.encode()
        self.send_response(200)
        self.send_header('content-length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        self.send_response(201)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer.request_queue_size = 1024
http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Echo).serve_forever()
"#;

async fn with_echo(server: &Server, key: Option<&str>) -> String {
    with_program(server, key, ECHO).await
}

/// Makes a sandbox in which a program listens on port 3000.
async fn with_program(server: &Server, key: Option<&str>, program: &str) -> String {
    let auth = |request: reqwest::RequestBuilder| match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let create = auth(server.post("/sandboxes/create")).json(&json!({"user_id": "alice"}));
    let id = ok(create.send().await.unwrap()).await["sandbox_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let write = auth(server.post("/sandboxes/write-file"))
        .json(&json!({"sandbox_id": id, "path": "/tmp/program.py", "content": program}));
    ok(write.send().await.unwrap()).await;
    let run = auth(server.post("/sandboxes/run-command")).json(
        &json!({"sandbox_id": id, "command": ["python3", "/tmp/program.py"], "background": true}),
    );
    ok(run.send().await.unwrap()).await;
    let wait = "for i in $(seq 4500); do (exec 3<>/dev/tcp/127.0.0.1/3000) 2>/dev/null && exit 0; sleep 0.02; done; exit 1";
    let run = auth(server.post("/sandboxes/run-command"))
        .json(&json!({"sandbox_id": id, "command": wait}));
    assert_eq!(ok(run.send().await.unwrap()).await["exit_code"], 0);
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_reached_by_host_and_by_path() {
    let server = Server::start().await;
    let id = with_echo(&server, None).await;
    let port = server.started.addresses[0].address.port();
    for host in [
        format!("3000-{id}.localhost:{port}"),
        format!("{id}-3000.localhost:{port}"),
    ] {
        let response = server
            .get("/a/b?c=d")
            .header("host", &host)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{host}");
        assert_eq!(
            response.text().await.unwrap(),
            "/a/b?c=d None None",
            "{host}"
        );
    }
    let response = server
        .get(&format!("/p/{id}/3000/a?b=c"))
        .send()
        .await
        .unwrap();
    let policy = response.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("sandbox") && !policy.contains("allow-same-origin"),
        "{policy}"
    );
    assert_eq!(response.text().await.unwrap(), "/a?b=c None None");
    let response = server
        .post(&format!("/p/{id}/3000/"))
        .body("abc")
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            response.status().as_u16(),
            response.text().await.unwrap().as_str()
        ),
        (201, "cba")
    );

    // The API never sees a request for a preview's host.
    let host = format!("3000-{id}.localhost:{port}");
    let response = server
        .get("/sandboxes")
        .header("host", &host)
        .send()
        .await
        .unwrap();
    assert_eq!(response.text().await.unwrap(), "/sandboxes None None");

    let closed = server.get(&format!("/p/{id}/3001/")).send().await.unwrap();
    assert_eq!(code(closed, 502).await, "port_closed");
    let page = server
        .get(&format!("/p/{id}/3001/"))
        .header("accept", "text/html")
        .send()
        .await
        .unwrap();
    assert!(page.text().await.unwrap().contains("Nothing is listening"));
    let response = server
        .get("/p/nosuchsandboxatall00/3000/")
        .send()
        .await
        .unwrap();
    assert_eq!(code(response, 404).await, "sandbox_not_found");
    let foreign = server
        .get("/")
        .header("host", &host)
        .header("origin", "http://evil.example")
        .header("sec-fetch-site", "cross-site")
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.status(), StatusCode::UNAUTHORIZED);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_port_opens_for_its_owner_and_a_public_one_for_all() {
    let server = Server::with(|settings| settings.auth.mode = AuthMode::Required).await;
    let key = server.started.admin_key.clone().unwrap();
    let id = with_echo(&server, Some(&key)).await;
    let path = format!("/p/{id}/3000/");
    assert_eq!(
        code(server.get(&path).send().await.unwrap(), 401).await,
        "unauthenticated"
    );
    let wrong = server
        .get(&path)
        .bearer_auth("not-a-key")
        .send()
        .await
        .unwrap();
    assert_eq!(code(wrong, 401).await, "unauthenticated");
    // Clients of the tool server are programs: the error says what a program can do.
    let tools = server
        .get(&format!("/p/{id}/6060/mcp"))
        .send()
        .await
        .unwrap();
    assert_eq!(tools.headers()["www-authenticate"], "Bearer");
    let told: serde_json::Value = tools.json().await.unwrap();
    assert_eq!(told["code"], "unauthenticated");
    assert!(
        told["hint"]
            .as_str()
            .unwrap()
            .contains("Authorization: Bearer KEY"),
        "{told}"
    );
    // The key was for us; the sandbox does not see it.
    let own = server.get(&path).bearer_auth(&key).send().await.unwrap();
    assert_eq!(own.text().await.unwrap(), "/ None None");
    let own = server
        .get(&path)
        .header("x-api-key", &key)
        .header("authorization", "Basic YTpi")
        .send()
        .await
        .unwrap();
    assert_eq!(own.text().await.unwrap(), "/ Basic YTpi None");
    let fake = server
        .get(&path)
        .query(&[("sandyard_token", "1.x")])
        .send()
        .await
        .unwrap();
    assert_eq!(code(fake, 403).await, "forbidden");

    // A link opens it in a browser: it becomes a cookie, and the token leaves the address.
    let exposed = server
        .get(&format!("/sandboxes/{id}/ports/3000"))
        .bearer_auth(&key)
        .send()
        .await
        .unwrap();
    let exposed = ok(exposed).await;
    let link = exposed.to_string();
    let token = link.split("sandyard_token=").nth(1).expect("a signed link");
    let token = token.split('"').next().unwrap();
    let browser = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let first = browser
        .get(server.url(&path))
        .query(&[("sandyard_token", token)])
        .header("accept", "text/html")
        .send()
        .await
        .unwrap();
    assert_eq!(first.status(), StatusCode::SEE_OTHER);
    assert_eq!(first.headers()["location"], path.as_str());
    let cookie = first.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let second = browser
        .get(server.url(&path))
        .header("cookie", cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(second.text().await.unwrap(), "/ None None");
    // Keys of ours stay here also when a link opened it; what is meant for the program does not.
    let with = async |header: &str, cookie: &str| {
        let request = browser.get(server.url(&path)).header("cookie", cookie);
        let request = request.header("authorization", header);
        request.send().await.unwrap().text().await.unwrap()
    };
    let wrong = format!("Bearer e2b_{}", "0".repeat(40));
    let own = format!("Bearer {key}");
    assert_eq!(with(&wrong, cookie).await, "/ None None");
    assert_eq!(with("Bearer app", cookie).await, "/ Bearer app None");
    let other_port = browser
        .get(server.url(&format!("/p/{id}/3001/")))
        .header("cookie", cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(code(other_port, 403).await, "forbidden");
    let both = server
        .get(&path)
        .header("x-api-key", &key)
        .header("authorization", &own);
    let both = both.send().await.unwrap();
    assert_eq!(both.text().await.unwrap(), "/ None None");
    let public = server
        .post(&format!("/sandboxes/{id}/ports/3000"))
        .bearer_auth(&key)
        .json(&json!({"public": true}));
    ok(public.send().await.unwrap()).await;
    assert_eq!(with(&own, "a=b").await, "/ None None");
    assert_eq!(with("Bearer app", "a=b").await, "/ Bearer app None");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_is_woken_by_its_visitors() {
    let server = Server::start().await;
    let id = with_echo(&server, None).await;
    ok(server
        .post(&format!("/sandboxes/{id}/pause"))
        .send()
        .await
        .unwrap())
    .await;
    let path = format!("/p/{id}/3000/");
    let visits = (0..20).map(|_| server.get(&path).send());
    for visit in join_all(visits).await {
        assert_eq!(visit.unwrap().text().await.unwrap(), "/ None None");
    }
    let events = ok(server
        .get(&format!("/sandboxes/{id}/events"))
        .send()
        .await
        .unwrap())
    .await;
    let woken = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "woken")
        .count();
    assert_eq!(woken, 1);
    server.finish().await;
}

/// Answers every request with an upgrade and then sends back what it gets, in upper case.
const UPGRADER: &str = r#"
import socket
listener = socket.create_server(('127.0.0.1', 3000))
while True:
    peer, _ = listener.accept()
    head = b''
    while b'\r\n\r\n' not in head:
        data = peer.recv(4096)
        if not data: break
        head += data
    if not head: continue
    peer.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n')
    while True:
        data = peer.recv(4096)
        if not data: break
        peer.sendall(data.upper())
    peer.close()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_carries_bytes_in_both_directions_and_counts_as_activity() {
    let server = Server::start().await;
    let id = with_program(&server, None, UPGRADER).await;
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    let head = format!(
        "GET /p/{id}/3000/ HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await.unwrap());
    }
    assert!(
        seen.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&seen)
    );
    for word in [b"one", b"two"] {
        stream.write_all(word).await.unwrap();
        let mut back = [0; 3];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, &word.to_ascii_uppercase()[..]);
    }
    server.finish().await;
}
