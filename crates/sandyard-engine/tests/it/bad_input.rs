//! The launcher's socket under bad input: it closes that connection or answers with an error, and serves the next.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::yard::Yard;

fn exchange(yard: &Yard, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(yard.data.join("launcher.sock")).expect("connect");
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(90)))
        .expect("time limit");
    stream.write_all(bytes).expect("write");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("half close");
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Hung up with bytes of ours unread.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => drop(other.expect("the launcher closes or answers")),
    }
    answer
}

fn framed(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

#[tokio::test]
async fn nonsense_is_answered_or_hung_up_on_and_the_next_request_works() {
    let yard = Yard::new().await;
    assert_eq!(
        exchange(&yard, &[0xff; 64]),
        b"",
        "a frame beyond the limit"
    );
    assert_eq!(
        exchange(&yard, &[5, 0, 0, 0, b'x']),
        b"",
        "a frame cut short"
    );
    for text in [
        "",
        "{}",
        "null",
        "\"explode\"",
        r#"{"delete":{"id":"../.."}}"#,
        r#"{"create":{"spec":{"surprise":1}}}"#,
        "\u{0}",
    ] {
        let answer = exchange(&yard, &framed(text));
        assert!(
            String::from_utf8_lossy(&answer).contains("not a request"),
            "{text}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    let id = yard.create().await.id;
    assert_eq!(yard.out(&id, "echo works").await, "works");
    yard.finish().await;
}
