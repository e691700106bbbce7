//! Looking.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::call::Call;
use crate::files::testing::Bench;
use crate::reply::MAX_IMAGE;

#[tokio::test]
async fn lines_are_numbered_and_a_part_can_be_had() {
    let bench = Bench::new();
    bench.file("a.txt", "one\r\ntwo\nthree");
    assert_eq!(
        bench.read("a.txt").await,
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    let arguments = json!({"file_path": "a.txt", "offset": 2, "limit": 1});
    let reply = bench.call("Read", arguments).await.unwrap();
    let text = reply.all_text();
    assert!(text.starts_with("     2\ttwo\n["), "{text}");
    assert!(text.contains("offset=3"), "{text}");
    assert!(text.contains("lines 2 to 2 are shown, 14 bytes"), "{text}");
    // Clients that find a structured part show a model nothing else.
    assert!(reply.structured().is_none());
    let last = bench
        .call(
            "Read",
            json!({"file_path": "a.txt", "offset": 3, "limit": 1}),
        )
        .await
        .unwrap();
    assert_eq!(last.all_text(), "     3\tthree\n");
    let beyond = bench
        .text("Read", json!({"file_path": "a.txt", "offset": 9}))
        .await;
    assert!(beyond.contains("only 3 lines"), "{beyond}");
    bench.file("empty", "");
    assert_eq!(bench.read("empty").await, "empty is empty.");
    bench.file("blank", "\n");
    assert_eq!(bench.read("blank").await, "     1\t\n");
}

#[tokio::test]
async fn long_lines_and_long_files_are_cut_and_say_so() {
    let bench = Bench::new();
    bench.file("long", format!("{}\nshort\n", "ü".repeat(5_000)));
    let text = bench.read("long").await;
    assert!(
        text.contains(&format!(
            "{} [cut: the line has 10000 bytes]",
            "ü".repeat(2_000)
        )),
        "{text}"
    );
    assert!(!text.contains(&"ü".repeat(2_001)));
    assert!(text.contains("     2\tshort"), "{text}");
    bench.file("many", "x\n".repeat(2_500));
    let text = bench.read("many").await;
    assert!(
        text.contains("  2000\tx\n[lines 1 to 2000 are shown"),
        "{}",
        &text[text.len() - 200..]
    );
    assert!(text.contains("offset=2001"));
    bench.file("wide", format!("{}\n", "y".repeat(1_000)).repeat(100));
    let text = bench.read("wide").await;
    assert!(text.chars().count() < 30_200, "{}", text.chars().count());
    assert!(text.contains("offset=30]"), "{}", &text[text.len() - 200..]);
}

#[tokio::test]
async fn parts_of_a_huge_line_and_what_follows_it_are_read() {
    let bench = Bench::new();
    let mut file = std::fs::File::create(bench.path("huge")).unwrap();
    // A line of 100 MiB, then a short one. Holes cost no disk, but would be binary: so it is written.
    let block = vec![b'x'; 1024 * 1024];
    for _ in 0..100 {
        file.write_all(&block).unwrap();
    }
    file.write_all(b"\nlast\n").unwrap();
    drop(file);
    let text = bench
        .text("Read", json!({"file_path": "huge", "offset": 2}))
        .await;
    assert_eq!(text, "     2\tlast\n");
    let text = bench
        .text("Read", json!({"file_path": "huge", "limit": 1}))
        .await;
    assert!(
        text.contains("[cut: the line has 104857600 bytes]"),
        "{}",
        &text[2_000..]
    );
}

#[tokio::test]
async fn images_come_back_as_images() {
    let bench = Bench::new();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend([0; 100]);
    // By what they are, not by what they are called.
    bench.file("picture.txt", &png);
    let result = bench
        .call("Read", json!({"file_path": "picture.txt"}))
        .await
        .unwrap();
    assert!(result.structured().is_none());
    let result = serde_json::to_value(result.into_result()).unwrap();
    assert_eq!(result["content"][1]["type"], "image");
    assert_eq!(result["content"][1]["mimeType"], "image/png");
    png.resize(MAX_IMAGE + 1, 0);
    bench.file("large.png", &png);
    let problem = bench
        .problem("Read", json!({"file_path": "large.png"}))
        .await;
    assert!(problem.contains("resize"), "{problem}");
}

#[tokio::test]
async fn what_is_no_text_is_named() {
    let bench = Bench::new();
    bench.file("program", b"\x7fELF\x02\x01\x01\0\0");
    bench.file("data", b"abc\0def");
    for (name, words) in [("program", "ELF"), ("data", "binary data")] {
        let problem = bench.problem("Read", json!({"file_path": name})).await;
        assert!(problem.contains(words), "{problem}");
        bench.problem("read_file", json!({"path": name})).await;
    }
    bench.file("latin", b"caf\xe9\n");
    assert_eq!(bench.read("latin").await, "     1\tcaf\u{fffd}\n");
}

#[tokio::test]
async fn folders_pipes_sockets_and_missing_files_are_refused_at_once() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    assert!(
        bench
            .path("pipe")
            .symlink_metadata()
            .unwrap()
            .file_type()
            .is_fifo()
    );
    let _listener = UnixListener::bind(bench.path("socket")).unwrap();
    std::fs::write(bench.folder.path().join("secret"), "x").unwrap();
    symlink("../secret", bench.path("out")).unwrap();
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
            let problem = bench.problem(tool, arguments).await;
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
                bench.problem(tool, arguments).await;
            }
        }
    }
    assert_eq!(
        std::fs::read_to_string(bench.folder.path().join("secret")).unwrap(),
        "x"
    );
}

#[tokio::test]
async fn the_short_name_gives_the_content_itself() {
    let bench = Bench::new();
    bench.file("a", "one\r\n\ttwo");
    assert_eq!(
        bench.text("read_file", json!({"path": "a"})).await,
        "one\r\n\ttwo"
    );
    assert_eq!(
        bench.text("read_file", json!({"file_path": "a"})).await,
        "one\r\n\ttwo"
    );
    bench.file("large", "x".repeat(256 * 1024));
    let problem = bench.problem("read_file", json!({"path": "large"})).await;
    assert!(problem.contains("Read"), "{problem}");
}

#[tokio::test]
async fn a_cancelled_reading_ends() {
    let bench = Bench::new();
    bench.file("many", "x\n".repeat(100_000));
    let call = Call::quiet();
    call.cancelled.cancel();
    let answer = bench
        .call_with("Read", json!({"file_path": "many", "offset": 90_000}), call)
        .await;
    assert!(answer.unwrap_err().to_string().contains("too long"));
}
