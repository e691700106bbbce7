//! Looking.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::call::Call;
use crate::files::test_env::TestEnv;
use crate::reply::MAX_IMAGE;

#[tokio::test]
async fn lines_are_numbered_and_a_part_can_be_had() {
    let env = TestEnv::new();
    env.file("a.txt", "one\r\ntwo\nthree");
    assert_eq!(
        env.read("a.txt").await,
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    let arguments = json!({"file_path": "a.txt", "offset": 2, "limit": 1});
    let reply = env.call("Read", arguments).await.unwrap();
    let text = reply.all_text();
    assert!(text.starts_with("     2\ttwo\n["), "{text}");
    assert!(text.contains("offset=3"), "{text}");
    assert!(
        text.contains("lines 2 to 2 are shown; the file has 14 bytes"),
        "{text}"
    );
    // Clients that find a structured part show a model nothing else.
    assert!(reply.structured().is_none());
    let last = env
        .call(
            "Read",
            json!({"file_path": "a.txt", "offset": 3, "limit": 1}),
        )
        .await
        .unwrap();
    assert_eq!(last.all_text(), "     3\tthree\n");
    let beyond = env
        .text("Read", json!({"file_path": "a.txt", "offset": 9}))
        .await;
    assert!(beyond.contains("only 3 lines"), "{beyond}");
    env.file("empty", "");
    assert_eq!(env.read("empty").await, "empty is empty.");
    env.file("blank", "\n");
    assert_eq!(env.read("blank").await, "     1\t\n");
}

#[tokio::test]
async fn long_lines_and_long_files_are_cut_and_say_so() {
    let env = TestEnv::new();
    env.file("long", format!("{}\nshort\n", "ü".repeat(5_000)));
    let text = env.read("long").await;
    assert!(
        text.contains(&format!(
            "{} [truncated: the line has 10000 bytes]",
            "ü".repeat(2_000)
        )),
        "{text}"
    );
    assert!(!text.contains(&"ü".repeat(2_001)));
    assert!(text.contains("     2\tshort"), "{text}");
    env.file("many", "x\n".repeat(2_500));
    let text = env.read("many").await;
    assert!(
        text.contains("  2000\tx\n[lines 1 to 2000 are shown"),
        "{}",
        &text[text.len() - 200..]
    );
    assert!(text.contains("offset=2001"));
    env.file("wide", format!("{}\n", "y".repeat(1_000)).repeat(100));
    let text = env.read("wide").await;
    assert!(text.chars().count() < 30_200, "{}", text.chars().count());
    assert!(text.contains("offset=30]"), "{}", &text[text.len() - 200..]);
}

#[tokio::test]
async fn parts_of_a_huge_line_and_what_follows_it_are_read() {
    let env = TestEnv::new();
    let mut file = std::fs::File::create(env.path("huge")).unwrap();
    // A line of 100 MiB, then a short one. Holes cost no disk, but would be binary: so it is written.
    let block = vec![b'x'; 1024 * 1024];
    for _ in 0..100 {
        file.write_all(&block).unwrap();
    }
    file.write_all(b"\nlast\n").unwrap();
    drop(file);
    let text = env
        .text("Read", json!({"file_path": "huge", "offset": 2}))
        .await;
    assert_eq!(text, "     2\tlast\n");
    let text = env
        .text("Read", json!({"file_path": "huge", "limit": 1}))
        .await;
    assert!(
        text.contains("[truncated: the line has 104857600 bytes]"),
        "{}",
        &text[2_000..]
    );
}

#[tokio::test]
async fn images_come_back_as_images() {
    let env = TestEnv::new();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend([0; 100]);
    // By what they are, not by what they are called.
    env.file("picture.txt", &png);
    let result = env
        .call("Read", json!({"file_path": "picture.txt"}))
        .await
        .unwrap();
    assert!(result.structured().is_none());
    let result = serde_json::to_value(result.into_result()).unwrap();
    assert_eq!(result["content"][1]["type"], "image");
    assert_eq!(result["content"][1]["mimeType"], "image/png");
    png.resize(MAX_IMAGE + 1, 0);
    env.file("large.png", &png);
    let problem = env.problem("Read", json!({"file_path": "large.png"})).await;
    assert!(problem.contains("resize"), "{problem}");
}

#[tokio::test]
async fn what_is_no_text_is_named() {
    let env = TestEnv::new();
    env.file("program", b"\x7fELF\x02\x01\x01\0\0");
    env.file("data", b"abc\0def");
    for (name, words) in [("program", "ELF"), ("data", "binary data")] {
        let problem = env.problem("Read", json!({"file_path": name})).await;
        assert!(problem.contains(words), "{problem}");
        env.problem("read_file", json!({"path": name})).await;
    }
    env.file("latin", b"caf\xe9\n");
    assert_eq!(env.read("latin").await, "     1\tcaf\u{fffd}\n");
}

#[tokio::test]
async fn folders_pipes_sockets_and_missing_files_are_refused_at_once() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, env.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    assert!(
        env.path("pipe")
            .symlink_metadata()
            .unwrap()
            .file_type()
            .is_fifo()
    );
    let _listener = UnixListener::bind(env.path("socket")).unwrap();
    std::fs::write(env.folder.path().join("secret"), "x").unwrap();
    symlink("../secret", env.path("out")).unwrap();
    for (name, words) in [
        ("folder", "LS"),
        ("pipe", "a named pipe"),
        ("socket", "a socket"),
        ("missing", "Glob"),
        ("out", "outside of the workspace"),
        ("../secret", "outside of the workspace"),
        ("/dev/zero", "outside of the workspace"),
        ("", "empty"),
    ] {
        for (tool, arguments) in [
            ("Read", json!({"file_path": name})),
            ("read_file", json!({"path": name})),
        ] {
            let problem = env.problem(tool, arguments).await;
            assert!(problem.contains(words), "{name}: {problem}");
        }
        if name != "missing" {
            for (tool, arguments) in [
                ("Write", json!({"file_path": name, "content": "x"})),
                (
                    "Edit",
                    json!({"file_path": name, "old_string": "", "new_string": "x"}),
                ),
            ] {
                env.problem(tool, arguments).await;
            }
        }
    }
    assert_eq!(
        std::fs::read_to_string(env.folder.path().join("secret")).unwrap(),
        "x"
    );
}

#[tokio::test]
async fn the_short_name_gives_the_content_itself() {
    let env = TestEnv::new();
    env.file("a", "one\r\n\ttwo");
    assert_eq!(
        env.text("read_file", json!({"path": "a"})).await,
        "one\r\n\ttwo"
    );
    assert_eq!(
        env.text("read_file", json!({"file_path": "a"})).await,
        "one\r\n\ttwo"
    );
    env.file("large", "x".repeat(256 * 1024));
    let problem = env.problem("read_file", json!({"path": "large"})).await;
    assert!(problem.contains("Read"), "{problem}");
}

#[tokio::test]
async fn a_cancelled_reading_ends() {
    let env = TestEnv::new();
    env.file("many", "x\n".repeat(100_000));
    let call = Call::quiet();
    call.cancelled.cancel();
    let answer = env
        .call_with("Read", json!({"file_path": "many", "offset": 90_000}), call)
        .await;
    assert!(answer.unwrap_err().to_string().contains("too long"));
}
