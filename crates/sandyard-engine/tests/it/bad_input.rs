//! The launcher's socket under bad input: it closes that connection or answers with an error, and serves the next.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::test_env::TestEnv;

fn exchange(env: &TestEnv, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(env.data.join("launcher.sock")).expect("connect");
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
async fn invalid_input_is_answered_or_closed_and_the_next_request_works() {
    let env = TestEnv::new().await;
    assert_eq!(exchange(&env, &[0xff; 64]), b"", "a frame beyond the limit");
    assert_eq!(
        exchange(&env, &[5, 0, 0, 0, b'x']),
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
        let answer = exchange(&env, &framed(text));
        assert!(
            String::from_utf8_lossy(&answer).contains("invalid request"),
            "{text}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    let id = env.create().await.id;
    assert_eq!(env.out(&id, "echo works").await, "works");
    env.finish().await;
}
