//! What is sent, what is understood, and how connections are used.

use std::os::unix::fs::symlink;
use std::time::Duration;

use sandyard_agent_client::wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_agent_client::wire::frame::{encode, encode_end};
use sandyard_agent_client::wire::process::{ProcessConfig, ProcessSelector, Signal};
use sandyard_agent_client::{
    AgentClient, ClientError, Endpoint, InputTo, RunOptions, StartOptions,
};
use tokio::io::AsyncWriteExt;

use crate::server::{Server, read_head, read_request, reply, stream_of};

/// How long the client trusts an idle connection.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// Answers every request on a connection with the same reply.
fn keeping_alive(answer: &'static [u8]) -> Server {
    Server::new(move |mut stream| async move {
        while !read_request(&mut stream).await.0.is_empty() {
            if stream.write_all(answer).await.is_err() {
                break;
            }
        }
    })
}

#[tokio::test]
async fn unary_calls_share_a_connection() {
    in_time(async || {
        let server = keeping_alive(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        let client = server.client();
        for _ in 0..10 {
            client.list().await.expect("a list");
            client.remove("/x").await.expect("an answer");
        }
        server.connections() == 1
    })
    .await;
}

/// Asserts a condition that holds only for the short time for which connections are trusted. Repeats the check if the machine was
/// too busy to finish it in that time.
async fn in_time(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..20 {
        let started = std::time::Instant::now();
        if holds().await {
            return;
        }
        assert!(started.elapsed() >= TRUSTED_FOR, "it was in time");
    }
    panic!("this machine is too busy");
}

#[tokio::test]
async fn a_connection_the_agent_closed_is_not_used_again() {
    let server = Server::replying(reply("200 OK", "{}"));
    let client = server.client();
    for _ in 0..10 {
        client.list().await.expect("a list");
    }
    assert_eq!(server.connections(), 10);
}

#[tokio::test]
async fn an_agent_without_trouble_is_healthy() {
    let server = keeping_alive(b"HTTP/1.1 204 No Content\r\n\r\n");
    server.client().health().await.expect("healthy");
    server
        .client()
        .init(&Default::default())
        .await
        .expect("initialised");
}

#[tokio::test]
async fn requests_carry_token_user_and_timeout() {
    let server = Server::new(|mut stream| async move {
        let (head, body) = read_request(&mut stream).await;
        for line in [
            "POST /process.Process/Start HTTP/1.1",
            "x-access-token: secret",
            "authorization: Basic cm9vdDo=",
            "content-type: application/connect+json",
            "connect-protocol-version: 1",
            "connect-timeout-ms: 1500",
            "keepalive-ping-interval: 40",
        ] {
            assert!(head.contains(&format!("{line}\r\n")), "{line} in {head}");
        }
        assert_eq!(body, encode(0, br#"{"process":{"cmd":"true"}}"#));
        let start = encode(0, br#"{"event":{"start":{"pid":7}}}"#);
        stream
            .write_all(&stream_of(&[&start, &encode_end(None)]))
            .await
            .expect("a client");
    });
    let client = server
        .client()
        .with_access_token("secret")
        .expect("a good token");
    let request = sandyard_agent_client::wire::process::StartRequest {
        process: ProcessConfig {
            cmd: "true".into(),
            ..ProcessConfig::default()
        },
        ..Default::default()
    };
    let options = StartOptions {
        timeout: Some(Duration::from_millis(1500)),
        user: Some("root".into()),
        retain_as: None,
    };
    let mut stream = client.start(&request, &options).await.expect("a start");
    assert_eq!(stream.pid(), 7);
    assert!(stream.next().await.is_none());
}

#[test]
fn a_token_no_header_can_hold_is_refused() {
    let client = AgentClient::new(Endpoint::Unix("/x".into()));
    assert!(client.with_access_token("a\r\nb: c").is_err());
}

#[tokio::test]
async fn a_run_collects_output_and_exit() {
    let server = Server::replying(stream_of(&[
        &encode(0, br#"{"event":{"keepalive":{}}}"#),
        &encode(0, br#"{"event":{"start":{"pid":7}}}"#),
        &encode(0, br#"{"event":{"data":{"stdout":"b3V0"}}}"#),
        &encode(0, br#"{"event":{"data":{"stderr":"ZXJy"}}}"#),
        &encode(0, br#"{"event":{"brand_new":{}}}"#),
        &encode(
            0,
            br#"{"event":{"end":{"exitCode":2,"exited":true,"status":"exit status 2"}}}"#,
        ),
        &encode_end(None),
    ]));
    let output = server
        .client()
        .run(Default::default(), &RunOptions::default())
        .await
        .expect("an end");
    assert_eq!(
        (&*output.stdout, &*output.stderr),
        (&b"out"[..], &b"err"[..])
    );
    let expected = EndEvent {
        exit_code: 2,
        exited: true,
        status: "exit status 2".into(),
        error: None,
    };
    assert_eq!(output.exit, expected);
    assert!(!output.is_truncated);
}

#[tokio::test]
async fn following_goes_on_from_where_the_agent_says() {
    let server = Server::new(|mut stream| async move {
        let (head, _) = read_request(&mut stream).await;
        assert!(head.contains("sandyard-output-offset: 100\r\n"), "{head}");
        let mut answer =
            b"HTTP/1.1 200 OK\r\nsandyard-output-offset: 150\r\nconnection: close\r\n\r\n".to_vec();
        answer.extend_from_slice(&encode(0, br#"{"event":{"start":{"pid":7}}}"#));
        answer.extend_from_slice(&encode(0, br#"{"event":{"data":{"pty":"aGVsbG8="}}}"#));
        stream.write_all(&answer).await.expect("a client");
    });
    let process = ProcessSelector::Tag("t".into());
    let mut stream = server
        .client()
        .connect_from(process, 100)
        .await
        .expect("a stream");
    assert_eq!(stream.output_offset(), 150);
    let event = stream.next().await.expect("an event").expect("no error");
    assert_eq!(event, ProcessEvent::Data(Output::Pty("hello".into())));
    assert_eq!(stream.output_offset(), 155);
}

#[tokio::test]
async fn orders_to_a_process_are_sent_as_the_protocol_says() {
    let server = Server::new(|mut stream| async move {
        let mut seen = Vec::new();
        for _ in 0..4 {
            let (head, body) = read_request(&mut stream).await;
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            seen.push((path, String::from_utf8(body).expect("JSON")));
            stream
                .write_all(&reply("200 OK", "{}"))
                .await
                .expect("a client");
        }
        let expected = [
            (
                "/process.Process/SendInput",
                r#"{"process":{"pid":7},"input":{"pty":"aGk="}}"#,
            ),
            (
                "/process.Process/SendSignal",
                r#"{"process":{"pid":7},"signal":"SIGNAL_SIGKILL"}"#,
            ),
            (
                "/process.Process/Update",
                r#"{"process":{"pid":7},"pty":{"size":{"cols":80,"rows":24}}}"#,
            ),
            ("/process.Process/CloseStdin", r#"{"process":{"pid":7}}"#),
        ];
        for ((path, body), (expected_path, expected_body)) in seen.iter().zip(expected) {
            assert_eq!(
                (path.as_str(), body.as_str()),
                (expected_path, expected_body)
            );
        }
        read_request(&mut stream).await;
        stream
            .write_all(&reply("200 OK", "{}"))
            .await
            .expect("a client");
    });
    let client = server.client();
    let pid = || ProcessSelector::Pid(7);
    client
        .send_input(pid(), InputTo::Pty, "hi".into())
        .await
        .expect("sent");
    client.signal(pid(), Signal::KILL).await.expect("sent");
    let size = sandyard_agent_client::wire::process::PtySize { cols: 80, rows: 24 };
    client.resize(pid(), size).await.expect("sent");
    client.close_stdin(pid()).await.expect("sent");
    // Only answered when the comparisons above held.
    client.list().await.expect("the server was content");
}

#[tokio::test]
async fn a_socket_path_longer_than_an_address_works() {
    let server = keeping_alive(b"HTTP/1.1 204 No Content\r\n\r\n");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let deep = directory.path().join("d".repeat(120)).join("e".repeat(120));
    std::fs::create_dir_all(&deep).expect("directories");
    let Endpoint::Unix(real) = server.endpoint() else {
        unreachable!("a Unix socket")
    };
    symlink(real, deep.join("agent.sock")).expect("a link");
    let client = AgentClient::new(Endpoint::Unix(deep.join("agent.sock")));
    client.health().await.expect("healthy");
}

#[tokio::test]
async fn a_full_queue_of_connections_is_waited_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("s");
    let socket = tokio::net::UnixSocket::new_stream().expect("a socket");
    socket.bind(&path).expect("a name");
    let listener = socket.listen(1).expect("a listener");
    // As many as fit, and the client's comes on top of them.
    let mut fillers = Vec::new();
    while let Ok(filler) = tokio::net::UnixStream::connect(&path).await {
        fillers.push(filler);
    }
    let client = AgentClient::new(Endpoint::Unix(path));
    let health = tokio::spawn(async move { client.health().await });
    tokio::task::yield_now().await;
    for _ in &fillers {
        listener.accept().await.expect("a filler");
    }
    let (mut stream, _) = listener.accept().await.expect("the client");
    read_request(&mut stream).await;
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
        .await
        .expect("a client");
    health.await.expect("no panic").expect("healthy");
}

#[tokio::test]
async fn an_agent_behind_tcp_is_reached_too() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let client = AgentClient::new(Endpoint::Tcp(listener.local_addr().expect("an address")));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the client");
        // An answer before the question would be one to nothing.
        read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .expect("a client");
        stream
    });
    client.health().await.expect("healthy");
    server.await.expect("no panic");
}

/// An endpoint that counts its connections.
struct Detour {
    to: Endpoint,
    times: std::sync::atomic::AtomicUsize,
}

impl sandyard_agent_client::Dial for Detour {
    fn name(&self) -> &str {
        "detour"
    }

    fn dial(&self) -> sandyard_agent_client::Dialling<'_> {
        self.times.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Box::pin(self.to.dial())
    }
}

#[tokio::test]
async fn an_agent_behind_a_custom_endpoint_is_reached_and_its_connection_reused() {
    in_time(async || {
        let server = keeping_alive(b"HTTP/1.1 204 No Content\r\n\r\n");
        let detour = std::sync::Arc::new(Detour {
            to: server.endpoint(),
            times: Default::default(),
        });
        let client = AgentClient::patient(Endpoint::Custom(detour.clone()));
        client.health().await.expect("healthy");
        client.health().await.expect("healthy");
        let times = detour.times.load(std::sync::atomic::Ordering::SeqCst);
        (times, server.connections()) == (1, 1)
    })
    .await;
}

/// An endpoint behind a proxy that routes by headers and reaches the ports of the sandbox itself.
struct Proxied {
    to: Endpoint,
    headers: http::HeaderMap,
}

impl sandyard_agent_client::Dial for Proxied {
    fn name(&self) -> &str {
        "proxied"
    }

    fn dial(&self) -> sandyard_agent_client::Dialling<'_> {
        Box::pin(self.to.dial())
    }

    fn headers(&self) -> Option<&http::HeaderMap> {
        Some(&self.headers)
    }

    fn dial_port(&self, port: u16) -> Option<sandyard_agent_client::PortDialling<'_>> {
        Some(Box::pin(async move {
            if port == 1 {
                return Err(std::io::ErrorKind::ConnectionRefused.into());
            }
            if port == 2 {
                return Err(std::io::Error::other(ClientError::Remote {
                    code: sandyard_agent_client::wire::Code::FailedPrecondition,
                    message: "no room".to_owned(),
                }));
            }
            let headers = [(
                http::header::HOST,
                port.to_string().parse().expect("a value"),
            )];
            Ok(sandyard_agent_client::PortStream {
                stream: self.to.dial().await?,
                headers: headers.into_iter().collect(),
            })
        }))
    }

    fn is_host_connection(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn headers_of_a_proxy_replace_those_of_the_client() {
    let (heads, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new(move |mut stream| {
        let heads = heads.clone();
        async move {
            let head = crate::server::read_head(&mut stream).await;
            heads.send(head).expect("the test goes on");
            let reply = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, reply).await;
        }
    });
    let headers = [("host", "49983-x.test"), ("x-access-token", "theirs")];
    let headers = headers.map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    });
    let proxied = Proxied {
        to: server.endpoint(),
        headers: headers.into_iter().collect(),
    };
    let client = AgentClient::new(Endpoint::Custom(std::sync::Arc::new(proxied)));
    assert!(!client.endpoint().is_host_connection());
    let client = client
        .with_access_token("ours")
        .expect("a token")
        .as_user("user");
    client.health().await.expect("healthy");
    let head = seen.recv().await.expect("a request").to_ascii_lowercase();
    for line in [
        "host: 49983-x.test\r\n",
        "x-access-token: theirs\r\n",
        "authorization: basic ",
    ] {
        assert_eq!(head.matches(line).count(), 1, "{line}: {head}");
    }
    assert!(
        !head.contains("localhost") && !head.contains("ours"),
        "{head}"
    );
    let port = client.dial(8080).await.expect("a port");
    assert_eq!(port.headers["host"], "8080");
    assert!(!format!("{port:?}").contains("8080"));
    let closed = client.dial(1).await.expect_err("closed");
    let is_reported = matches!(
        closed,
        ClientError::Remote {
            code: sandyard_agent_client::wire::Code::Unavailable,
            ..
        }
    );
    assert!(is_reported, "{closed}");
    let reason = client.dial(2).await.expect_err("a reason");
    assert_eq!(reason.to_string(), "no room (failed_precondition)");
}
