//! Commands, terminals and logs as they happen.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::live::{Server, TIMEOUT, code, ok};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Server-sent events as they come.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next event; none at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(&format!("{name}: ")))
                };
                if let (Some(name), Some(data)) = (field("event"), field("data")) {
                    return Some((name.to_owned(), serde_json::from_str(data).unwrap()));
                }
                continue;
            }
            let piece = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    async fn all(mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

async fn run(server: &Server, request: Value) -> Events {
    let sent = server
        .post("/sandboxes/run-command-stream")
        .json(&request)
        .send();
    Events::of(sent.await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_of_a_streamed_command_is_refused() {
    let server = Server::start().await;
    let id = server.create().await;
    for (path, mut body) in [
        (
            "/sandboxes/run-command-stream".to_owned(),
            json!({"sandbox_id": id}),
        ),
        (format!("/sandboxes/{id}/run"), json!({})),
    ] {
        body["command"] = "true".into();
        body["time_out"] = 5.into();
        let reply = server.post(&path).json(&body).send().await.unwrap();
        assert_eq!(reply.status(), 422, "{path}");
        let error: Value = reply.json().await.unwrap();
        assert_eq!(error["hint"], "did you mean `timeout`?", "{path}");
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_comes_as_events() {
    let server = Server::start().await;
    let id = server.create().await;
    let command =
        "echo out; sleep 0.1; echo err >&2; printf '\\303'; sleep 0.2; printf '\\244\\377'; exit 3";
    let all = run(&server, json!({"sandbox_id": id, "command": command}))
        .await
        .all()
        .await;
    assert_eq!(all[0].0, "start");
    assert!(all[0].1["pid"].as_u64().unwrap() > 0);
    let text = |name: &str| {
        let of = |event: &(String, Value)| {
            (event.0 == name).then(|| event.1["text"].as_str().unwrap().to_owned())
        };
        all.iter().filter_map(of).collect::<String>()
    };
    assert_eq!(text("stdout"), "out\nä\u{fffd}");
    assert_eq!(text("stderr"), "err\n");
    let (name, exit) = all.last().unwrap();
    assert_eq!((name.as_str(), &exit["exit_code"]), ("exit", &json!(3)));

    // The same by the aliases.
    let by_path = server
        .post(&format!("/sandboxes/{id}/run"))
        .json(&json!({"command": ["printf", "%s", "a b"]}))
        .send();
    let all = Events::of(by_path.await.unwrap()).all().await;
    assert_eq!(all[1].1["text"], "a b");
    let by_accept = server
        .post("/sandboxes/run-command")
        .header("accept", "text/event-stream")
        .json(&json!({"sandbox_id": id, "command": "echo hi"}))
        .send();
    let all = Events::of(by_accept.await.unwrap()).all().await;
    assert_eq!(all[1].1["text"], "hi\n");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_over_its_time_is_killed_and_said_to_be() {
    let server = Server::start().await;
    let id = server.create().await;
    let request = json!({"sandbox_id": id, "command": "sleep 1000 & sleep 1000", "timeout": 0.3});
    let all = run(&server, request).await.all().await;
    let (name, error) = all.last().unwrap();
    assert_eq!(
        (name.as_str(), &error["code"]),
        ("error", &json!("timed_out")),
        "{all:?}"
    );
    server.until(&id, "pgrep -c sleep || true", "0").await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_takes_its_command_along_unless_it_is_detached() {
    let server = Server::start().await;
    let id = server.create().await;
    for (detach, left) in [(true, "1"), (false, "1")] {
        let command = if detach {
            "exec sleep 1001"
        } else {
            "exec sleep 1002"
        };
        let request = json!({"sandbox_id": id, "command": command, "detach": detach});
        let mut events = run(&server, request).await;
        events.next().await.expect("it starts");
        drop(events);
        let number = if detach { "1001" } else { "1002" };
        if detach {
            server
                .until(&id, &format!("pgrep -f -c 'sleep {number}$'"), left)
                .await;
        } else {
            server
                .until(&id, &format!("pgrep -f -c '^sleep {number}$' || true"), "0")
                .await;
        }
    }
    // The detached one was there all the time.
    assert_eq!(
        server.run(&id, "pgrep -f -c '^sleep 1001$'").await.trim(),
        "1"
    );
    server.finish().await;
}

async fn open(server: &Server, path: &str) -> Socket {
    let url = server.url(path).replacen("http", "ws", 1);
    connect_async(url).await.expect("a WebSocket").0
}

/// The next message that is no ping.
async fn next(socket: &mut Socket) -> Message {
    loop {
        let message = tokio::time::timeout(TIMEOUT, socket.next()).await;
        match message
            .expect("in time")
            .expect("a message")
            .expect("a good one")
        {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

fn message_json(message: &Message) -> Value {
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

/// Collects binary messages until one in text comes.
async fn collect(socket: &mut Socket) -> (Vec<Vec<u8>>, Value) {
    let mut pieces = Vec::new();
    loop {
        match next(socket).await {
            Message::Binary(bytes) => pieces.push(bytes.to_vec()),
            text @ Message::Text(_) => return (pieces, message_json(&text)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_take_input_over_a_socket() {
    let server = Server::start().await;
    let id = server.create().await;
    let mut socket = open(&server, &format!("/sandboxes/{id}/exec")).await;
    let first = json!({"command": "wc -c; echo bad >&2; exit 7"});
    socket.send(Message::text(first.to_string())).await.unwrap();
    assert_eq!(message_json(&next(&mut socket).await)["type"], "start");
    for _ in 0..16 {
        socket
            .send(Message::binary(vec![b'x'; 65_536]))
            .await
            .unwrap();
    }
    socket
        .send(Message::text(json!({"type": "nonsense"}).to_string()))
        .await
        .unwrap();
    let (_, error) = collect(&mut socket).await;
    assert_eq!(error["code"], "invalid");
    socket
        .send(Message::text(json!({"type": "eof"}).to_string()))
        .await
        .unwrap();
    let (pieces, exit) = collect(&mut socket).await;
    assert_eq!(exit, json!({"type": "exit", "exit_code": 7}));
    let of = |number: u8| {
        let matching = pieces.iter().filter(|piece| piece[0] == number);
        String::from_utf8(matching.flat_map(|piece| piece[1..].to_vec()).collect()).unwrap()
    };
    assert_eq!((of(1).trim(), of(2).trim()), ("1048576", "bad"));
    assert!(matches!(next(&mut socket).await, Message::Close(_)));
    server.finish().await;
}

/// Every refused message interrupts the server's wait for output, often while output waits for room in the log.
#[tokio::test(flavor = "multi_thread")]
async fn refused_messages_lose_no_output() {
    const LAST: u32 = 300_000;
    let server = Server::start().await;
    let id = server.create().await;
    let socket = open(&server, &format!("/sandboxes/{id}/exec")).await;
    let (mut sink, mut messages) = socket.split();
    let first = json!({"command": format!("seq 1 {LAST}")});
    sink.send(Message::text(first.to_string())).await.unwrap();
    let refused = Message::text(json!({"type": "nonsense"}).to_string());
    let sending = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(1));
        while sink.send(refused.clone()).await.is_ok() {
            pace.tick().await;
        }
    });
    let (mut output, mut errors) = (Vec::new(), 0);
    let exit = loop {
        let message = tokio::time::timeout(TIMEOUT, messages.next()).await;
        match message.expect("in time").expect("a message").unwrap() {
            Message::Binary(piece) => output.extend_from_slice(&piece[1..]),
            message @ Message::Text(_) => match message_json(&message) {
                error if error["type"] == "error" => errors += 1,
                start if start["type"] == "start" => {}
                exit => break exit,
            },
            _ => {}
        }
    };
    sending.abort();
    assert_eq!(exit, json!({"type": "exit", "exit_code": 0}));
    assert!(errors > 0, "no message was refused while the command ran");
    let expected: String = (1..=LAST).map(|number| format!("{number}\n")).collect();
    assert!(
        output == expected.as_bytes(),
        "{} of {} bytes arrived",
        output.len(),
        expected.len()
    );
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_carries_signals_and_refuses_what_makes_no_sense() {
    let server = Server::start().await;
    let id = server.create().await;
    let path = format!("/sandboxes/{id}/exec");
    let mut socket = open(&server, &path).await;
    let first = json!({"argv": ["sleep", "1000"]});
    socket.send(Message::text(first.to_string())).await.unwrap();
    assert_eq!(message_json(&next(&mut socket).await)["type"], "start");
    let signal = json!({"type": "signal", "signal": "SIGINT"});
    socket
        .send(Message::text(signal.to_string()))
        .await
        .unwrap();
    assert_eq!(
        collect(&mut socket).await.1,
        json!({"type": "exit", "exit_code": 130})
    );

    for first in [
        json!({}),
        json!({"argv": ["/no/such/program"]}),
        json!({"command": "x", "timeout": -1}),
    ] {
        let mut socket = open(&server, &path).await;
        socket.send(Message::text(first.to_string())).await.unwrap();
        assert_eq!(
            message_json(&next(&mut socket).await)["code"],
            "invalid",
            "{first}"
        );
    }
    let plain = server.get(&path).send().await.unwrap();
    assert_eq!(code(plain, 400).await, "bad_request");
    let page = server
        .get(&path)
        .header("origin", "http://evil.example")
        .send()
        .await
        .unwrap();
    assert_eq!(code(page, 403).await, "forbidden");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_have_a_size_and_end_with_their_client() {
    let server = Server::start().await;
    let id = server.create().await;
    let mut socket = open(&server, &format!("/sandboxes/{id}/pty?cols=90&rows=31")).await;
    assert_eq!(message_json(&next(&mut socket).await)["type"], "start");
    let mut output = String::new();
    let ask = "echo size:$(stty size):$TERM; exec sleep 1003\n";
    socket.send(Message::binary(ask)).await.unwrap();
    while !output.contains("size:31 90:xterm-256color") {
        if let Message::Binary(bytes) = next(&mut socket).await {
            output.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    server.until(&id, "pgrep -f -c '^sleep 1003$'", "1").await;
    drop(socket);
    server
        .until(&id, "pgrep -f -c '^sleep 1003$' || true", "0")
        .await;

    let mut socket = open(&server, &format!("/sandboxes/{id}/pty?command=cat")).await;
    assert_eq!(message_json(&next(&mut socket).await)["type"], "start");
    let resize = json!({"type": "resize", "cols": 100, "rows": 40});
    socket
        .send(Message::text(resize.to_string()))
        .await
        .unwrap();
    socket
        .send(Message::text(json!({"type": "eof"}).to_string()))
        .await
        .unwrap();
    assert_eq!(
        collect(&mut socket).await.1,
        json!({"type": "exit", "exit_code": 0})
    );
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_events_can_be_followed() {
    let server = Server::start().await;
    let id = server.create().await;
    server.run(&id, "echo first").await;
    let lines = ok(server
        .get(&format!("/sandboxes/{id}/logs"))
        .send()
        .await
        .unwrap())
    .await;
    let texts: Vec<&str> = lines["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert!(texts.iter().any(|text| text.contains("first")), "{texts:?}");

    let follow = server
        .get(&format!("/sandboxes/{id}/logs?follow=true"))
        .send()
        .await
        .unwrap();
    let mut follow = Events::of(follow);
    server.run(&id, "echo second").await;
    let mut seen = Vec::new();
    while !seen.iter().any(|text: &String| text.contains("second")) {
        let (name, line) = follow.next().await.expect("more");
        assert_eq!(name, "log");
        seen.push(line["text"].as_str().unwrap().to_owned());
    }
    assert!(seen.iter().any(|text| text.contains("first")), "{seen:?}");
    drop(follow);

    let follow = server
        .get(&format!("/sandboxes/{id}/events?follow=true"))
        .send()
        .await
        .unwrap();
    let mut follow = Events::of(follow);
    ok(server
        .post(&format!("/sandboxes/{id}/pause"))
        .send()
        .await
        .unwrap())
    .await;
    loop {
        let (name, event) = follow.next().await.expect("more");
        assert_eq!(event["sandbox_id"], id.as_str());
        if name == "paused" {
            break;
        }
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_are_listed_and_killed() {
    let server = Server::start().await;
    let id = server.create().await;
    let started = server
        .post("/sandboxes/run-command")
        .json(&json!({"sandbox_id": id, "command": ["sleep", "1004"], "background": true}))
        .send();
    let pid = ok(started.await.unwrap()).await["process_id"]
        .as_u64()
        .unwrap();
    let list = ok(server
        .get(&format!("/sandboxes/{id}/processes"))
        .send()
        .await
        .unwrap())
    .await;
    assert_eq!(list["processes"][0]["pid"], pid);
    assert_eq!(list["processes"][0]["args"], json!(["1004"]));
    let kill = |pid: u64, query: &str| {
        server
            .post(&format!("/sandboxes/{id}/processes/{pid}/kill{query}"))
            .send()
    };
    assert_eq!(
        code(kill(pid, "?signal=SIGNOPE").await.unwrap(), 422).await,
        "invalid"
    );
    ok(kill(pid, "").await.unwrap()).await;
    server
        .until(&id, "pgrep -f -c '^sleep 1004$' || true", "0")
        .await;
    // It has no name any more a moment before it is known to have ended.
    let give_up = Instant::now() + TIMEOUT;
    let response = loop {
        let answer = kill(pid, "").await.unwrap();
        if answer.status() != 200 {
            break answer;
        }
        assert!(Instant::now() < give_up, "it is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(code(response, 404).await, "not_found");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_slows_the_command_down() {
    let server = Server::start().await;
    let id = server.create().await;
    let mut events = run(
        &server,
        json!({"sandbox_id": id, "command": "i=0; while [ $i -lt 400 ]; do head -c 1000000 /dev/zero | tr '\\0' x; i=$((i+1)); echo $i > /tmp/i; done"}),
    )
    .await;
    events.next().await.expect("it starts");
    // It stands still once all that lies between is full; what that is nobody says, but it is far from 400 MB.
    let mut before = String::new();
    let mut still = 0;
    while still < 5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = server.run(&id, "cat /tmp/i 2>/dev/null || echo 0").await;
        still = if now == before { still + 1 } else { 0 };
        before = now;
    }
    let written: u32 = before.trim().parse().unwrap();
    assert!(written < 200, "{written} MB went nowhere");
    server.finish().await;
}
