//! Commands over WebSocket, against a server written down here.

use futures_util::{SinkExt, StreamExt};
use sandyard_client::{Client, Command, ExecEvent, ExecRequest, TerminalSize};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::script::{Act, Script};

#[tokio::test]
async fn input_output_and_exit_code_are_transferred() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
        let first = socket.next().await.unwrap().unwrap().into_text().unwrap();
        socket
            .send(Message::text(r#"{"type":"start","pid":7}"#))
            .await
            .unwrap();
        let mut read = Vec::new();
        let mut messages = Vec::new();
        while messages
            .last()
            .is_none_or(|message: &String| !message.contains("eof"))
        {
            match socket.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => read.extend_from_slice(&bytes),
                Message::Text(text) => messages.push(text.to_string()),
                _ => {}
            }
        }
        socket
            .send(Message::binary(b"\x01out".to_vec()))
            .await
            .unwrap();
        socket
            .send(Message::binary(b"\x02err".to_vec()))
            .await
            .unwrap();
        socket
            .send(Message::text(r#"{"type":"exit","exit_code":3}"#))
            .await
            .unwrap();
        (first.to_string(), read.len(), messages)
    });
    let client = Client::new(&url, Some("key")).unwrap();
    let request = ExecRequest {
        tty: Some(TerminalSize { cols: 80, rows: 24 }),
        ..ExecRequest::new(Command::Argv(vec!["ls".into(), "-l".into()]))
    };
    let mut exec = client.exec("abc", &request).await.unwrap();
    exec.input.write(vec![1; 1 << 20].into()).await.unwrap();
    exec.input.signal("SIGINT").await.unwrap();
    exec.input.end().await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = exec.output.next().await.unwrap() {
        events.push(event);
    }
    let expected = [
        ExecEvent::Start { pid: 7 },
        ExecEvent::Stdout("out".into()),
        ExecEvent::Stderr("err".into()),
        ExecEvent::Exit { exit_code: 3 },
    ];
    assert_eq!(events, expected);
    let (first, read, messages) = server.await.unwrap();
    assert_eq!(first, r#"{"argv":["ls","-l"],"tty":{"cols":80,"rows":24}}"#);
    assert_eq!(read, 1 << 20);
    assert_eq!(
        messages,
        [
            r#"{"type":"signal","signal":"SIGINT"}"#,
            r#"{"type":"eof"}"#
        ]
    );
}

#[tokio::test]
async fn rejected_connection_keeps_the_error_response() {
    let refusal = r#"{"detail":"no sandbox `abc`","code":"sandbox_not_found","hint":"list them"}"#;
    let server = Script::play(vec![Act::json("404 Not Found", refusal)]).await;
    let request = ExecRequest::new(Command::Shell("true".into()));
    let error = server.client.exec("abc", &request).await.unwrap_err();
    assert_eq!(
        (error.code(), error.hint()),
        (Some("sandbox_not_found"), Some("list them"))
    );
}

#[tokio::test]
async fn a_connection_that_ends_without_an_exit_code_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
        let _ = socket.next().await;
        let _ = socket.close(None).await;
    });
    let client = Client::new(&url, None).unwrap();
    let request = ExecRequest::new(Command::Shell("true".into()));
    let mut exec = client.exec("abc", &request).await.unwrap();
    assert!(exec.output.next().await.is_err());
    assert_eq!(exec.output.next().await.unwrap(), None);
}

/// Runs a command against a server that answers with these messages and goes.
async fn ends_of(messages: Vec<Message>) -> Vec<Result<Option<ExecEvent>, Option<String>>> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.expect("a client");
        let mut socket = tokio_tungstenite::accept_async(socket)
            .await
            .expect("a WebSocket");
        let _ = socket.next().await;
        for message in messages {
            let _ = socket.send(message).await;
        }
        let _ = socket.close(None).await;
    });
    let client = Client::new(&url, None).expect("an address");
    let request = ExecRequest::new(Command::Shell("true".into()));
    let mut exec = client.exec("abc", &request).await.expect("connected");
    let mut seen = Vec::new();
    loop {
        let event = exec.output.next().await;
        let event = event.map_err(|error| error.code().map(str::to_owned));
        seen.push(event.clone());
        if event == Ok(None) {
            return seen;
        }
    }
}

#[tokio::test]
async fn input_that_comes_too_late_does_not_hide_the_exit_code() {
    let late = r#"{"type":"error","code":"not_found","detail":"process with pid 3 not found"}"#;
    let seen = ends_of(vec![
        Message::text(late),
        Message::text(r#"{"type":"exit","exit_code":7}"#),
    ])
    .await;
    assert_eq!(seen, [Ok(Some(ExecEvent::Exit { exit_code: 7 })), Ok(None)]);
}

#[tokio::test]
async fn error_as_last_message_ends_the_stream() {
    let seen = ends_of(vec![Message::text(
        r#"{"type":"error","code":"timed_out","detail":"too slow"}"#,
    )])
    .await;
    assert_eq!(seen, [Err(Some("timed_out".to_owned())), Ok(None)]);
}
