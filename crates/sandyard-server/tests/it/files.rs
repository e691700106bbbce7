//! Files in and out of a real sandbox.

use std::io::Write;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::{get, put};
use bytes::Bytes;
use futures_util::stream;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::live::{Server, code, ok};

#[tokio::test(flavor = "multi_thread")]
async fn files_go_in_and_out_as_they_are() {
    let server = Server::start().await;
    let id = server.create().await;
    let path = format!("/sandboxes/{id}/files");
    let content: Vec<u8> = (0..1_000_003_u32).map(|n| (n % 251) as u8).collect();

    let at = [("path", "/home/user/data/raw.bin")];
    let put = server
        .client
        .put(server.url(&path))
        .query(&at)
        .body(content.clone());
    let written = ok(put.send().await.unwrap()).await;
    assert_eq!(written["size"], content.len());
    assert_eq!(written["path"], "/home/user/data/raw.bin");

    let response = server.get(&path).query(&at).send().await.unwrap();
    assert_eq!(response.content_length(), Some(content.len() as u64));
    let disposition = response.headers()["content-disposition"].to_str().unwrap();
    assert!(
        disposition.contains("filename=\"raw.bin\""),
        "{disposition}"
    );
    assert_eq!(response.bytes().await.unwrap(), content);

    let head = server
        .client
        .head(server.url(&path))
        .query(&at)
        .send()
        .await
        .unwrap();
    assert_eq!(
        head.headers()["content-length"],
        content.len().to_string().as_str()
    );

    let none = server
        .get(&path)
        .query(&[("path", "/nowhere")])
        .send()
        .await
        .unwrap();
    assert_eq!(code(none, 404).await, "file_not_found");

    // Owned by the sandbox's user, not by root.
    assert_eq!(
        server
            .run(&id, "stat -c %U /home/user/data/raw.bin")
            .await
            .trim(),
        "user"
    );
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_folders_can_be_changed() {
    let server = Server::start().await;
    let id = server.create().await;
    let path = |rest: &str| format!("/sandboxes/{id}/files{rest}");
    let made = server
        .post(&path("/mkdir"))
        .query(&[("path", "/tmp/a/b")])
        .send()
        .await
        .unwrap();
    assert_eq!(ok(made).await["entry"]["type"], "directory");
    let empty = server
        .post(&path(""))
        .query(&[("path", "/tmp/a/b/empty")])
        .send()
        .await
        .unwrap();
    assert_eq!(ok(empty).await["size"], 0);
    let renamed = server
        .post(&path("/rename"))
        .json(&json!({"from": "/tmp/a/b/empty", "to": "/tmp/a/other"}))
        .send()
        .await
        .unwrap();
    assert_eq!(ok(renamed).await["entry"]["path"], "/tmp/a/other");
    let list = server
        .get(&path("/list"))
        .query(&[("path", "/tmp/a"), ("depth", "2")])
        .send()
        .await
        .unwrap();
    let list = ok(list).await;
    let mut names: Vec<&str> = list["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "other"]);
    let deep = [("path", "/tmp"), ("depth", "0")];
    let refused = server
        .get(&path("/list"))
        .query(&deep)
        .send()
        .await
        .unwrap();
    assert_eq!(code(refused, 422).await, "invalid");
    let removed = server
        .client
        .delete(server.url(&path("")))
        .query(&[("path", "/tmp/a")])
        .send()
        .await
        .unwrap();
    ok(removed).await;
    let response = server
        .get(&path("/stat"))
        .query(&[("path", "/tmp/a")])
        .send()
        .await
        .unwrap();
    assert_eq!(code(response, 404).await, "file_not_found");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_passed_on_as_they_come() {
    let server = Server::start().await;
    let id = server.create().await;
    let upload = |form: Form| server.post("/sandboxes/upload-file").multipart(form).send();
    let form = Form::new()
        .text("sandbox_id", id.clone())
        .text("file_path", "/tmp/form.txt")
        .part(
            "file",
            Part::bytes(b"from a form".to_vec()).file_name("x.txt"),
        );
    assert_eq!(ok(upload(form).await.unwrap()).await["size"], 11);

    let wrong_order = Form::new()
        .part("file", Part::bytes(b"too early".to_vec()))
        .text("sandbox_id", id.clone())
        .text("file_path", "/tmp/early.txt");
    assert_eq!(
        code(upload(wrong_order).await.unwrap(), 422).await,
        "invalid"
    );
    let no_file = Form::new().text("sandbox_id", id.clone());
    assert_eq!(code(upload(no_file).await.unwrap(), 422).await, "invalid");

    let ask = |path: &str, format: &str| {
        server
            .post("/sandboxes/download-file")
            .json(&json!({"sandbox_id": id, "file_path": path, "format": format}))
            .send()
    };
    let text = ok(ask("/tmp/form.txt", "text").await.unwrap()).await;
    assert_eq!(text["content"], "from a form");
    let bytes = ask("/tmp/form.txt", "bytes")
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(bytes, "from a form");
    server
        .run(
            &id,
            "truncate -s 0 /tmp/empty; printf '\\377' > /tmp/binary",
        )
        .await;
    assert_eq!(
        ok(ask("/tmp/empty", "text").await.unwrap()).await["content"],
        ""
    );
    assert_eq!(
        code(ask("/tmp/binary", "text").await.unwrap(), 422).await,
        "not_text"
    );
    let streamed = ask("/tmp/binary", "stream").await.unwrap();
    assert_eq!(streamed.bytes().await.unwrap(), [0xff].as_slice());
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_breaks_off_leaves_the_file_as_it_was() {
    let server = Server::start().await;
    let id = server.create().await;
    server.run(&id, "echo before > /tmp/kept").await;
    let body = reqwest::Body::wrap_stream(stream::iter([
        Ok(Bytes::from_static(b"half")),
        Err(std::io::Error::other("gone")),
    ]));
    let sent = server
        .client
        .put(server.url(&format!("/sandboxes/{id}/files?path=/tmp/kept")))
        .body(body)
        .send()
        .await;
    assert!(sent.is_err());
    server
        .until(&id, "cat /tmp/kept; ls -A /tmp | wc -l", "before\n1")
        .await;
    server.finish().await;
}

/// A server to fetch from and to fill, with redirects to where nobody may go.
async fn other_server() -> SocketAddr {
    let router = Router::new()
        .route("/file", get(|| async { "from elsewhere" }))
        .route("/to-file", get(|| async { Redirect::temporary("/file") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route(
            "/to-metadata",
            get(|| async { Redirect::temporary("http://169.254.169.254/latest/") }),
        )
        .route(
            "/to-loopback",
            get(|| async { Redirect::permanent("http://127.0.0.1:1/") }),
        )
        .route(
            "/to-file-scheme",
            get(|| async { Redirect::permanent("file:///etc/passwd") }),
        )
        .route(
            "/put",
            put(|body: Body| async {
                match to_bytes(body, 1 << 20).await.as_deref() {
                    Ok(b"out of the sandbox\n") => StatusCode::CREATED,
                    _ => StatusCode::BAD_REQUEST,
                }
            }),
        );
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(socket, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_lead_to_public_addresses_or_those_the_operator_allows() {
    let address = other_server().await;
    let server = Server::with(|settings| {
        settings.server.url_hosts = vec![address.to_string()];
    })
    .await;
    let id = server.create().await;
    let fetch = |url: String| {
        server
            .post("/sandboxes/upload-file-from-url")
            .json(&json!({"sandbox_id": id, "file_path": "/tmp/fetched", "url": url}))
            .send()
    };
    for path in ["file", "to-file"] {
        let written = ok(fetch(format!("http://{address}/{path}")).await.unwrap()).await;
        assert_eq!(written["size"], 14, "{path}");
    }
    assert_eq!(server.run(&id, "cat /tmp/fetched").await, "from elsewhere");
    for path in ["loop", "to-metadata", "to-loopback", "to-file-scheme"] {
        let refused = fetch(format!("http://{address}/{path}")).await.unwrap();
        assert_eq!(code(refused, 422).await, "invalid", "{path}");
    }
    let missing = fetch(format!("http://{address}/missing")).await.unwrap();
    assert_eq!(code(missing, 400).await, "bad_request");
    let own_port = server.started.addresses[0].address.port();
    for url in [
        format!("http://127.0.0.1:{own_port}/sandboxes"),
        format!("http://localhost:{own_port}/sandboxes"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:127.0.0.1]/".to_owned(),
    ] {
        assert_eq!(
            code(fetch(url.clone()).await.unwrap(), 422).await,
            "invalid",
            "{url}"
        );
    }

    server.run(&id, "echo out of the sandbox > /tmp/out").await;
    let send = |url: String| {
        server
            .post("/sandboxes/download-to-presigned-url")
            .json(&json!({"sandbox_id": id, "file_path": "/tmp/out", "presigned_url": url}))
            .send()
    };
    assert_eq!(
        ok(send(format!("http://{address}/put")).await.unwrap()).await["size"],
        19
    );
    let refused = send("http://10.0.0.1/put".to_owned()).await.unwrap();
    assert_eq!(code(refused, 422).await, "invalid");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_are_unpacked_and_packed_in_the_sandbox() {
    let server = Server::start().await;
    let id = server.create().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let mut file = std::fs::File::create(folder.path().join("sub/file.txt")).unwrap();
    file.write_all(b"in a folder").unwrap();
    let tar = |arguments: &[&str]| {
        let output = std::process::Command::new("tar")
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    };
    let copy_to = format!("/api/sandboxes/{id}/copy-to");
    for (place, archive) in [
        ("/tmp/plain", tar(&["-c", "-f", "-", "sub"])),
        ("/tmp/packed", tar(&["-c", "-z", "-f", "-", "sub"])),
    ] {
        let sent = server
            .post(&copy_to)
            .query(&[("path", place)])
            .body(archive);
        ok(sent.send().await.unwrap()).await;
        let found = server.run(&id, &format!("cat {place}/sub/file.txt")).await;
        assert_eq!(found, "in a folder", "{place}");
    }
    let malformed = server
        .post(&copy_to)
        .query(&[("path", "/tmp/x")])
        .body("not a tar archive".repeat(100));
    assert_eq!(code(malformed.send().await.unwrap(), 422).await, "invalid");

    let copy_from = format!("/api/sandboxes/{id}/copy-from");
    let response = server
        .post(&copy_from)
        .query(&[("path", "/tmp/plain/sub")])
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-tar");
    let archive = response.bytes().await.unwrap();
    let unpacked = tempfile::tempdir().unwrap();
    let path = unpacked.path().join("out.tar");
    std::fs::write(&path, &archive).unwrap();
    let status = std::process::Command::new("tar")
        .args(["-x", "-f", "out.tar"])
        .current_dir(unpacked.path())
        .status()
        .unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(unpacked.path().join("sub/file.txt")).unwrap();
    assert_eq!(text, "in a folder");
    let none = server
        .post(&copy_from)
        .query(&[("path", "/tmp/none")])
        .send()
        .await
        .unwrap();
    assert_eq!(code(none, 404).await, "file_not_found");
    server.finish().await;
}

/// The test below, in a process of its own: others would be counted too.
#[test]
fn a_gibibyte_goes_through_without_being_held() {
    let own = std::env::current_exe().unwrap();
    let status = std::process::Command::new(own)
        .args([
            "--exact",
            "files::a_gibibyte_in_this_process",
            "--ignored",
            "--nocapture",
        ])
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures its own process; the test above runs it"]
async fn a_gibibyte_in_this_process() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 1024;
    let server = Server::start().await;
    let id = server.create().await;
    let path = format!("/sandboxes/{id}/files?path=/home/user/large");
    // From here on the most is counted anew (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = most_memory();
    let piece = Bytes::from(vec![7_u8; PIECE]);
    let pieces = stream::iter((0..PIECES).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
    let put = server
        .client
        .put(server.url(&path))
        .body(reqwest::Body::wrap_stream(pieces));
    assert_eq!(ok(put.send().await.unwrap()).await["size"], PIECE * PIECES);
    let mut response = server.get(&path).send().await.unwrap();
    let mut count = 0;
    while let Some(piece) = response.chunk().await.unwrap() {
        count += piece.len();
    }
    assert_eq!(count, PIECE * PIECES);
    let grown = most_memory() - before;
    println!("grown by {} KiB", grown >> 10);
    assert!(grown < 32 << 20, "grown by {grown} bytes");
    server.finish().await;
}

/// The most memory this process had since it was last counted anew.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
