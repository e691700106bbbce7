//! Streams against frames that are too long, cut off, senseless or missing.

use sandyard_agent_client::wire::frame::{FLAG_COMPRESSED, FLAG_END, encode};
use sandyard_agent_client::wire::process::ProcessSelector;
use sandyard_agent_client::wire::{Code, ProcessEvent};
use sandyard_agent_client::{ClientError, InputTo, ProcessStream, RunOptions};

use crate::server::{Server, kind, stream_of};

const START: &[u8] = br#"{"event":{"start":{"pid":7}}}"#;
const OUTPUT: &[u8] = br#"{"event":{"data":{"stdout":"aGk="}}}"#;

async fn start(server: &Server) -> Result<ProcessStream, ClientError> {
    server
        .client()
        .start(&Default::default(), &Default::default())
        .await
}

/// Starts a stream whose first frames are a good start and good output, and returns it at what follows.
async fn started_with(server: &Server) -> ProcessStream {
    let mut stream = start(server).await.expect("a start");
    let first = stream.next().await.expect("an event").expect("no error");
    assert!(matches!(first, ProcessEvent::Data(_)), "{first:?}");
    stream
}

/// Asserts that the next thing is an error of this kind and that then the stream is over.
async fn fails_once(mut stream: ProcessStream, expected: &str) {
    assert_eq!(kind(stream.next().await.expect("an error")), expected);
    assert!(stream.next().await.is_none(), "over after an error");
}

#[tokio::test]
async fn a_frame_over_the_limit_is_refused_at_its_header() {
    let server = Server::endless(
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\0\xff\xff\xff\xff",
        b"x",
    );
    assert_eq!(kind(start(&server).await), "too large");
}

#[tokio::test]
async fn garbage_in_place_of_frames_breaks_the_protocol() {
    for frame in [
        encode(FLAG_COMPRESSED, b"x"),
        encode(0x40, b"x"),
        encode(0, b"\xff\xfe"),
        encode(0, b"7"),
        encode(0, br#"{"event":{"data":{"stdout":"!!"}}}"#),
        encode(FLAG_END, b"nonsense"),
        [encode(FLAG_END, b"{}"), encode(0, START)].concat().into(),
    ] {
        let server = Server::replying(stream_of(&[&encode(0, START), &encode(0, OUTPUT), &frame]));
        fails_once(started_with(&server).await, "protocol").await;
    }
}

#[tokio::test]
async fn a_stream_without_a_last_frame_is_closed() {
    for tail in [&b""[..], b"\0", b"\0\0\0\0\x09{\"eve"] {
        let server = Server::replying(stream_of(&[&encode(0, START), &encode(0, OUTPUT), tail]));
        fails_once(started_with(&server).await, "closed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn silence_within_a_stream_is_a_timeout() {
    for tail in [&b""[..], b"\0\0\0\0\x09{\"eve"] {
        let server =
            Server::stalling_after(stream_of(&[&encode(0, START), &encode(0, OUTPUT), tail]));
        fails_once(started_with(&server).await, "timeout").await;
    }
}

#[tokio::test]
async fn a_first_event_that_is_not_the_start_breaks_the_protocol() {
    for frames in [
        vec![encode(0, OUTPUT)],
        vec![encode(0, br#"{"event":{"end":{}}}"#)],
        vec![encode(FLAG_END, b"{}")],
    ] {
        let frames: Vec<&[u8]> = frames.iter().map(AsRef::as_ref).collect();
        let server = Server::replying(stream_of(&frames));
        assert_eq!(kind(start(&server).await), "protocol");
    }
    let server = Server::replying(stream_of(&[&encode(0, br#"{"filesystem":{"name":"x"}}"#)]));
    assert_eq!(
        kind(server.client().watch(&Default::default()).await),
        "protocol"
    );
}

#[tokio::test]
async fn a_stream_that_ends_with_an_error_says_which() {
    let end = encode(
        FLAG_END,
        br#"{"error":{"code":"not_found","message":"no process 7"}}"#,
    );
    let server = Server::replying(stream_of(&[&end]));
    let error = start(&server).await.expect_err("the stream failed");
    assert_eq!(error.code(), Some(Code::NotFound));
    assert!(error.is_not_found());
}

#[tokio::test]
async fn nothing_after_the_end_event_is_read() {
    let end = encode(0, br#"{"event":{"end":{"exitCode":3,"exited":true}}}"#);
    let server = Server::stalling_after(stream_of(&[&encode(0, START), &end, b"garbage"]));
    let mut stream = start(&server).await.expect("a start");
    assert_eq!(stream.wait().await.expect("an end").exit_code, 3);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_command_whose_stream_ends_before_it_does_is_no_success() {
    let server = Server::replying(stream_of(&[&encode(0, START), &encode(FLAG_END, b"{}")]));
    let result = server
        .client()
        .run(Default::default(), &RunOptions::default())
        .await;
    assert_eq!(kind(result), "protocol");
}

#[tokio::test(start_paused = true)]
async fn keepalives_do_not_stretch_a_run_beyond_its_time() {
    let server = Server::new(|mut stream| async move {
        use tokio::io::AsyncWriteExt;
        crate::server::read_head(&mut stream).await;
        let mut result = stream.write_all(&stream_of(&[&encode(0, START)])).await;
        while result.is_ok() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            result = stream
                .write_all(&encode(0, br#"{"event":{"keepalive":{}}}"#))
                .await;
        }
    });
    let result = server
        .client()
        .run(Default::default(), &RunOptions::default())
        .await;
    assert_eq!(kind(result), "timeout");
}

#[tokio::test]
async fn output_beyond_the_limit_is_thrown_away() {
    let output = encode(0, OUTPUT).repeat(10_000);
    let end = encode(0, br#"{"event":{"end":{"exited":true}}}"#);
    let server = Server::replying(stream_of(&[&encode(0, START), &output, &end]));
    let options = RunOptions {
        max_output: 1001,
        ..RunOptions::default()
    };
    let output = server
        .client()
        .run(Default::default(), &options)
        .await
        .expect("an end");
    assert_eq!(output.stdout.len(), 1001);
    assert!(output.is_truncated && output.exit.exited);
}

#[tokio::test]
async fn input_to_an_agent_that_answers_early_or_hangs_up_is_closed() {
    for reply in [&b""[..], &stream_of(&[&encode(FLAG_END, b"{}")])] {
        let server = Server::replying(reply);
        let client = server.client();
        let result = async {
            let process = ProcessSelector::Pid(7);
            let mut input = client.open_input(process, InputTo::Stdin).await?;
            loop {
                input.send("x".into()).await?;
                tokio::task::yield_now().await;
            }
            #[expect(unreachable_code, reason = "gives the block its type")]
            Ok::<(), ClientError>(())
        };
        assert_eq!(kind(result.await), "closed");
    }
}
