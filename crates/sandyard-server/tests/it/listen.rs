//! Sockets, TLS, the first start and the end.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use sandyard_config::settings::{AuthMode, E2bPort, Tls};
use sandyard_server::serve::{ServeError, Signals, serve_with};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::live::{Server, TIMEOUT, code, ok, settings};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_a_key_that_works_and_is_kept() {
    let server = Server::with(|settings| settings.auth.mode = AuthMode::Required).await;
    let key = server.started.admin_key.clone().expect("a key");
    assert!(!format!("{:?}", server.started).contains(&key));
    let file = &server.started.admin_key_file;
    assert_eq!(std::fs::read_to_string(file).unwrap().trim(), key);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.started.warning().is_none());
    let refused = server.get("/sandboxes").send().await.unwrap();
    assert_eq!(code(refused, 401).await, "unauthenticated");
    let listed = server
        .get("/sandboxes")
        .bearer_auth(&key)
        .send()
        .await
        .unwrap();
    ok(listed).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_listener_is_said_loudly() {
    let server = Server::start().await;
    let warning = server.started.warning().expect("a warning");
    assert!(warning.starts_with("OPEN"), "{warning}");
    ok(server.get("/sandboxes").send().await.unwrap()).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_made_and_used_again() {
    let server = Server::with(|settings| settings.server.tls = Tls::SelfSigned).await;
    assert!(server.url("/").starts_with("https://"));
    ok(server.get("/health").send().await.unwrap()).await;
    let certificate = server.data().join("tls/certificate.pem");
    assert!(
        std::fs::read_to_string(certificate)
            .unwrap()
            .contains("BEGIN CERTIFICATE")
    );
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listener_for_e2b_speaks_its_dialect_and_is_never_open() {
    let server = Server::start().await;
    let [own] = &server.started.e2b_addresses[..] else {
        panic!("one listener: {:?}", server.started);
    };
    assert!(!own.is_open && server.started.addresses[0].is_open);
    assert!(!server.started.warning().unwrap().contains(&own.url()));
    let ask = |path: &str| server.client.get(format!("{}{path}", own.url())).send();
    let refused = ask("/v2/sandboxes").await.unwrap();
    assert_eq!(refused.status(), 401);
    let told: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(told["code"], 401);
    // What other dialects have is not there.
    for path in ["/sandboxes/create", "/docs", "/openapi.json", "/info"] {
        assert_ne!(ask(path).await.unwrap().status(), 200, "{path}");
    }
    let info = ok(server.get("/info").send().await.unwrap()).await;
    let port = own.address.port();
    assert_eq!(
        info["e2b"],
        json!({
            "url": own.url(),
            "domain": format!("localhost:{port}"),
            "is_domain_enough": false,
            "has_listener": true,
        })
    );
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_occupied_default_port_of_e2b_costs_only_its_listener() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let server = Server::with(|settings| settings.e2b.port = E2bPort::Derived(port)).await;
    assert!(server.started.e2b_addresses.is_empty());
    let warning = server.started.e2b_warning.clone().expect("a warning");
    assert!(warning.contains("--e2b-port"), "{warning}");
    let info = ok(server.get("/info").send().await.unwrap()).await;
    assert_eq!(info["e2b"]["url"], server.url("/e2b"));
    assert_eq!(info["e2b"]["has_listener"], false);
    let refused = server.get("/e2b/v2/sandboxes").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    server.finish().await;
}

#[tokio::test]
async fn a_port_in_use_is_said_before_anything_is_opened() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&folder.path().join("data"), &[]);
    settings.server.ports = vec![socket.local_addr().unwrap().port()];
    let provider = |_installation| async { panic!("the provider must not be reached") };
    let served = serve_with(
        settings,
        provider,
        |_| {},
        Signals::until(std::future::pending()),
    )
    .await;
    let error = served.unwrap_err();
    assert!(matches!(error, ServeError::Bind(_)));
    assert!(
        error.to_string().contains("another program listens there"),
        "{error}"
    );
}

#[tokio::test]
async fn an_open_server_on_all_addresses_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&folder.path().join("data"), &[]);
    settings.server.hosts = vec!["0.0.0.0".parse().unwrap()];
    settings.auth.mode = AuthMode::Open;
    let provider = |_installation| async { panic!("the provider must not be reached") };
    let served = serve_with(
        settings,
        provider,
        |_| {},
        Signals::until(std::future::pending()),
    )
    .await;
    assert!(matches!(served, Err(ServeError::Binding(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_lets_requests_finish_ends_streams_and_leaves_sandboxes() {
    let mut server = Server::start().await;
    let id = server.create().await;
    server
        .run(&id, "nohup sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid")
        .await;

    // A request that is under way, a stream that would never end, and a connection that does nothing.
    let running = server
        .post("/sandboxes/run-command")
        .json(&json!({"sandbox_id": id, "command": "touch /tmp/runs; sleep 1; echo done"}))
        .send();
    let running = tokio::spawn(running);
    server.until(&id, "ls /tmp/runs", "/tmp/runs").await;
    let events = server
        .get(&format!("/sandboxes/{id}/events?follow=true"))
        .send()
        .await
        .unwrap();
    let mut idle = TcpStream::connect(server.authority()).await.unwrap();

    let started_at = Instant::now();
    server.stop().await;
    assert!(started_at.elapsed() < TIMEOUT);
    assert_eq!(
        ok(running.await.unwrap().unwrap()).await["output"],
        "done\n"
    );
    events.text().await.expect("the stream ends as it should");
    // One that nobody had taken yet is reset, and ended as well.
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
    TcpStream::connect(server.authority())
        .await
        .expect_err("nobody listens");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_dawdles_with_its_head_is_cut_off() {
    use sandyard_server::listen::{ListenSettings, Listeners, bind};
    let sockets = bind(&["127.0.0.1:0".parse().unwrap()], false, false).unwrap();
    let address = sockets[0].address;
    let settings = ListenSettings {
        header_timeout: Duration::from_millis(50),
        ..ListenSettings::default()
    };
    let listeners = Listeners::start(sockets, None, axum::Router::new(), &settings);
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, slow.read_to_end(&mut answer)).await;
    read.expect("cut off").ok();
    listeners.end(std::future::pending()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_slow_body_gets_an_error_and_is_disconnected() {
    use sandyard_server::listen::{ListenSettings, Listeners, bind};
    let app = crate::app::TestApp::new().await;
    let sockets = bind(&["127.0.0.1:0".parse().unwrap()], false, false).unwrap();
    let address = sockets[0].address;
    let settings = ListenSettings {
        body_timeout: Duration::from_millis(50),
        ..ListenSettings::default()
    };
    let listeners = Listeners::start(sockets, None, app.router.clone(), &settings);
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, slow.read_to_end(&mut answer)).await;
    read.expect("cut off").ok();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    listeners.end(std::future::pending()).await;
}
