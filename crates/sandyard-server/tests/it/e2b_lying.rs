//! How the data plane of E2B's dialect treats agents that lie, disabled owners, clients that guess, and impossible hosts.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use futures_util::future::join_all;
use sandyard_agent_client::wire::signature::{Operation, SignedUrl, sign};
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_auth::UserChange;
use sandyard_provider_fake::FakeProvider;
use sandyard_server::{Listener, ServerSettings};
use sandyard_store::model::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::app::{Actor, Answer, At, TestApp};

/// A page that would be the API's own, if a browser believed its headers.
const LIE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8\r\nSet-Cookie: sandyard_session=x\r\n\
    Set-Cookie: a=b\r\nContent-Security-Policy: script-src *\r\nX-Content-Type-Options: sniff\r\n\
    Service-Worker-Allowed: /\r\nClear-Site-Data: \"*\"\r\nRefresh: 0;url=/docs\r\nLink: </x>; rel=preload\r\n\
    Location: https://elsewhere.example/\r\nWWW-Authenticate: Basic realm=\"Sandyard\"\r\nETag: \"1\"\r\n\r\n<script>";

/// Names that no answer on a shared host may have.
const ACTING: [&str; 5] = [
    "set-cookie",
    "service-worker-allowed",
    "clear-site-data",
    "refresh",
    "link",
];

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&seen).into_owned())
}

/// Answers every request with a lie, whichever port was dialled.
async fn lie(mut stream: TcpStream) {
    while let Some(request) = head(&mut stream).await {
        let response = if request.starts_with("GET /dial") {
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: sandyard-dial\r\n\r\n"
        } else {
            LIE
        };
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A server whose sandboxes all have an agent that lies.
async fn lied_to() -> TestApp {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let agent = AgentClient::new(Endpoint::Tcp(listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(lie(stream));
        }
    });
    let provider = FakeProvider::new().with_agent(agent);
    TestApp::with(provider, ServerSettings::default()).await
}

async fn sandbox_of(app: &TestApp, owner: &str) -> Sandbox {
    let body = json!({"user_id": owner});
    let made = app.post(Actor::Admin, "/sandboxes/create", body).await.ok();
    let id = made["sandbox_id"].as_str().unwrap().parse().unwrap();
    app.app.store().sandbox(&id).await.unwrap().unwrap()
}

fn signed(sandbox: &Sandbox) -> String {
    let url = SignedUrl {
        path: "/a",
        operation: Operation::Read,
        user: "",
        expiration: None,
    };
    let signature = sign(&url, &sandbox.access_token);
    let signature = signature.replace('+', "%2B").replace('/', "%2F");
    format!("/e2b/files?path=/a&signature={signature}")
}

async fn get(app: &TestApp, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().uri(path).header("host", host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(At::Network, request.body(Body::empty()).unwrap())
        .await
}

/// Every route to a sandbox's agent and its port 3000 on a shared host, with the kind of its target.
async fn shared_routes(app: &TestApp, sandbox: &Sandbox) -> Vec<(&'static str, Answer)> {
    let (id, token) = (sandbox.id.as_str(), sandbox.access_token.as_str());
    let traffic = app.app.auth().traffic_token(&sandbox.id);
    let named = ("e2b-sandbox-id", id);
    let token = ("x-access-token", token);
    let agent = [named, ("e2b-sandbox-port", "49983"), token];
    let port = [
        named,
        ("e2b-sandbox-port", "3000"),
        ("e2b-traffic-access-token", &traffic),
    ];
    let data_host = "sandbox.localhost";
    vec![
        ("file", get(app, "x", &signed(sandbox), &[]).await),
        (
            "file",
            get(app, data_host, &signed(sandbox)[4..], &[]).await,
        ),
        ("file", get(app, "x", "/e2b/files?path=/a", &[token]).await),
        ("file", get(app, "x", "/e2b/files?path=/a", &agent).await),
        ("agent", get(app, "x", "/e2b/metrics", &[token]).await),
        ("agent", get(app, data_host, "/envs", &agent).await),
        ("port", get(app, "x", "/e2b/files", &port).await),
        ("port", get(app, data_host, "/", &port).await),
    ]
}

fn count(headers: &HeaderMap, name: &str) -> usize {
    headers.get_all(name).iter().count()
}

#[tokio::test]
async fn what_a_sandbox_says_on_a_shared_host_is_never_more_than_bytes() {
    let app = lied_to().await;
    let sandbox = sandbox_of(&app, "alice").await;
    for (number, (kind, answer)) in shared_routes(&app, &sandbox).await.into_iter().enumerate() {
        let headers = &answer.headers;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (200, "<script>"),
            "{number}"
        );
        for name in ACTING {
            assert_eq!(count(headers, name), 0, "{number} {name}");
        }
        assert_eq!(count(headers, "content-security-policy"), 1);
        assert_eq!(
            headers["content-security-policy"],
            "sandbox; default-src 'none'"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["etag"], "\"1\"");
        let is_agent = usize::from(kind != "port");
        assert_eq!(count(headers, "location"), 1 - is_agent, "{number}");
        assert_eq!(count(headers, "www-authenticate"), 1 - is_agent, "{number}");
        if kind == "file" {
            assert_eq!(headers["content-disposition"], "attachment");
            assert_eq!(headers["content-type"], "application/octet-stream");
        } else {
            assert_eq!(count(headers, "content-disposition"), 0);
        }
    }
    // On a host of its own it may say what it likes.
    let traffic = app.app.auth().traffic_token(&sandbox.id);
    for (port, name, token) in [
        (3000, "e2b-traffic-access-token", &traffic),
        (49983, "x-access-token", &sandbox.access_token),
    ] {
        let host = format!("{port}-{}.localhost", sandbox.id);
        let own = get(&app, &host, "/files", &[(name, token)]).await;
        assert_eq!(own.headers["content-type"], "text/html");
        assert_eq!(own.headers["content-security-policy"], "script-src *");
        assert!(own.headers.contains_key("set-cookie"));
        assert!(!own.headers.contains_key("content-disposition"));
    }
    // The token for all ports is too little for those that can do everything.
    for port in [6060, 9000] {
        let host = format!("{port}-{}.localhost", sandbox.id);
        let headers = [("e2b-traffic-access-token", traffic.as_str())];
        let refused = get(&app, &host, "/", &headers).await;
        assert!(refused.status.is_client_error(), "{port}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_disabled_owners_sandboxes_are_not_there() {
    let app = lied_to().await;
    let sandbox = sandbox_of(&app, "alice").await;
    // A name and no user.
    let other = sandbox_of(&app, "somebody").await;
    let disable = async |is_disabled| {
        let change = UserChange {
            is_disabled: Some(is_disabled),
            ..UserChange::default()
        };
        let changed = app.app.auth().update_user("alice", &change);
        changed.await.unwrap();
    };
    let path = format!("/sandboxes/{}/ports/3000", sandbox.id);
    let public = json!({"public": true});
    app.post(Actor::Alice, &path, public).await.ok();
    let host = format!("3000-{}.localhost", sandbox.id);
    let agent_host = format!("49983-{}.localhost", sandbox.id);
    let token = [("x-access-token", sandbox.access_token.as_str())];
    let admin = [("x-api-key", app.key(Actor::Admin).unwrap())];
    for is_disabled in [false, true, false] {
        disable(is_disabled).await;
        for (number, (_, answer)) in shared_routes(&app, &sandbox).await.into_iter().enumerate() {
            let expected = if is_disabled { 502 } else { 200 };
            assert_eq!(answer.status, expected, "{number} {answer:?}");
            if is_disabled {
                let body = answer.json();
                assert_eq!(body["message"], "The sandbox was not found");
            }
        }
        let by_host = get(&app, &agent_host, "/files", &token).await;
        assert_eq!(by_host.status, if is_disabled { 502 } else { 200 });
        // Without credentials, a public port looks like that of a sandbox that does not exist.
        let by_host = get(&app, &host, "/", &[]).await;
        assert_eq!(by_host.status, if is_disabled { 401 } else { 200 });
        for (_, answer) in shared_routes(&app, &other).await {
            assert_eq!(answer.status, 200);
        }
        assert_eq!(get(&app, &host, "/", &admin).await.status, 200);
    }
}

#[tokio::test]
async fn who_was_right_before_is_served_however_many_guess() {
    let app = lied_to().await;
    let sandbox = sandbox_of(&app, "alice").await;
    let link = signed(&sandbox);
    assert_eq!(get(&app, "x", &link, &[]).await.status, 200);
    let token = [("x-access-token", sandbox.access_token.as_str())];
    let by_token = async || get(&app, "x", "/e2b/metrics", &token).await;
    assert_eq!(by_token().await.status, 200);
    let guesses = (0..200).map(|number| {
        let app = &app;
        async move {
            let path = format!("/e2b/files?path=/a&signature=v1_{number:043}");
            get(app, "x", &path, &[]).await.status.as_u16()
        }
    });
    let right = async {
        let of_link = get(&app, "x", &link, &[]).await;
        // The same signature for another file is a guess.
        let guess = link.replace("path=/a", "path=/b");
        let guess = get(&app, "x", &guess, &[]).await;
        [of_link, guess, by_token().await].map(|answer| answer.status.as_u16())
    };
    let (guessed, right) = tokio::join!(join_all(guesses), right);
    assert!(
        guessed.contains(&429) && !guessed.contains(&200),
        "{guessed:?}"
    );
    assert!(matches!(right, [200, 401 | 429, 200]), "{right:?}");
}

#[tokio::test]
async fn a_host_that_cannot_be_read_is_refused_in_the_dialects_words() {
    let app = TestApp::new().await;
    let ask = async |method: Method, uri: &str, hosts: &[&str]| {
        let mut request = Request::builder().method(method).uri(uri);
        for host in hosts {
            request = request.header("host", *host);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Listener {
            address: "127.0.0.1:8101".parse().unwrap(),
            is_tls: false,
            is_e2b: true,
            peer: "127.0.0.1:5555".parse().unwrap(),
        });
        let answer = app.router.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        let body: Value = serde_json::from_slice(&bytes.unwrap()).unwrap_or_default();
        (status, body["code"].clone(), body["message"].is_string())
    };
    // The native dialect would list sandboxes to anybody on this host.
    for path in ["/sandboxes", "/health", "/p/abc/3000/", "/sandboxes/create"] {
        for hosts in [
            &["127.0.0.1:8101", "3000-abc.localhost"][..],
            &["user@127.0.0.1:8101"],
            &["127.0.0.1:8101@3000-abc.localhost"],
            &["3000-abc.localhost.."],
            &["localhost..:8101"],
            &[""],
        ] {
            let found = ask(Method::GET, path, hosts).await;
            assert_eq!(found, (400, json!(400), true), "{path} {hosts:?}");
        }
    }
    let found = ask(Method::GET, "http://user@localhost/sandboxes", &[]).await;
    assert_eq!(found, (400, json!(400), true));
    let found = ask(Method::CONNECT, "localhost:80", &["localhost:80"]).await;
    assert_eq!(found, (400, json!(400), true));
    let found = ask(Method::GET, "/sandboxes", &["127.0.0.1:8101"]).await;
    assert_eq!(found, (401, json!(401), true));
}
