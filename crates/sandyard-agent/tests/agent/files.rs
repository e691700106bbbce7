//! Files: contents over HTTP and the calls about them.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

use crate::common::Agent;
use crate::common::http::Reply;
use flate2::Compression;
use serde_json::{Value, json};

const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");

fn url(path: &std::path::Path) -> String {
    format!("/files?path={}", path.display())
}

fn upload(agent: &Agent, name: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut headers = headers.to_vec();
    headers.push(OCTETS);
    agent
        .host()
        .request("POST", &url(&agent.path(name)), &headers, body)
}

#[test]
fn what_is_written_is_read_back() {
    let agent = Agent::start();
    let content: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let reply = upload(&agent, "a/b/c.bin", &[], &content);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let path = agent.path("a/b/c.bin");
    assert_eq!(
        reply.json(),
        json!([{"path": path, "name": "c.bin", "type": "file"}])
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
    let reply = agent.host().request("GET", &url(&path), &[], b"");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-length"), Some("3000000"));
    assert_eq!(reply.body, content);
}

#[test]
fn writing_again_replaces_what_was_there() {
    let agent = Agent::start();
    upload(&agent, "f", &[], b"a long first text");
    upload(&agent, "f", &[], b"short");
    assert_eq!(std::fs::read(agent.path("f")).unwrap(), b"short");
    upload(&agent, "f", &[], b"");
    assert_eq!(std::fs::read(agent.path("f")).unwrap(), b"");
    let reply = agent
        .host()
        .request("GET", &url(&agent.path("f")), &[], b"");
    assert_eq!((reply.status, reply.body.len()), (200, 0));
}

#[test]
fn parts_of_a_file_are_sent_on_request() {
    let agent = Agent::start();
    upload(&agent, "f", &[], b"0123456789");
    let path = url(&agent.path("f"));
    let get = |range| agent.host().request("GET", &path, &[("range", range)], b"");
    let reply = get("bytes=2-4");
    assert_eq!((reply.status, reply.text().as_str()), (206, "234"));
    assert_eq!(reply.header("content-range"), Some("bytes 2-4/10"));
    assert_eq!(get("bytes=-3").text(), "789");
    let reply = get("bytes=10-");
    assert_eq!(reply.status, 416);
    assert_eq!(reply.header("content-range"), Some("bytes */10"));
    let head = agent.host().request("HEAD", &path, &[], b"");
    assert_eq!(head.header("content-length"), Some("10"));
}

#[test]
fn compressed_bodies_work_in_both_directions() {
    let agent = Agent::start();
    let text = b"all work and no play ".repeat(10_000);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&text).unwrap();
    let packed = packer.finish().unwrap();
    let reply = upload(&agent, "f", &[("content-encoding", "gzip")], &packed);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(std::fs::read(agent.path("f")).unwrap(), text);
    let accept_gzip = [("accept-encoding", "gzip")];
    let reply = agent
        .host()
        .request("GET", &url(&agent.path("f")), &accept_gzip, b"");
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    let mut unpacked = flate2::write::GzDecoder::new(Vec::new());
    unpacked.write_all(&reply.body).unwrap();
    assert_eq!(unpacked.finish().unwrap(), text);
    let broken = upload(&agent, "g", &[("content-encoding", "gzip")], &packed[..50]);
    assert_eq!(broken.status, 400);
    assert!(!agent.path("g").exists(), "half a file is left");
}

#[test]
fn a_form_brings_several_files() {
    let agent = Agent::start();
    let dir = agent.dir.path().display();
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{dir}/one\"\r\n\r\n1\r\n\
         --B\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nignored\r\n\
         --B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{dir}/d/two\"\r\n\r\n22\r\n--B--\r\n"
    );
    let form = [("content-type", "multipart/form-data; boundary=B")];
    let reply = agent
        .host()
        .request("POST", "/files", &form, body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json().as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read(agent.path("one")).unwrap(), b"1");
    assert_eq!(std::fs::read(agent.path("d/two")).unwrap(), b"22");
    let cut = &body.as_bytes()[..body.len() - 20];
    let reply = agent.host().request("POST", "/files", &form, cut);
    assert_eq!(reply.status, 400);
    let none = [("content-type", "multipart/form-data")];
    let reply = agent.host().request("POST", "/files", &none, b"x");
    assert_eq!(reply.status, 400);
}

#[test]
fn metadata_stays_with_a_file() {
    let agent = Agent::start();
    let reply = upload(
        &agent,
        "f",
        &[("X-Metadata-Kind", "a b"), ("x-metadata-n", "1")],
        b"x",
    );
    assert_eq!(reply.status, 200, "{}", reply.text());
    let stat = agent.call(
        "/filesystem.Filesystem/Stat",
        &json!({"path": agent.path("f")}),
    );
    assert_eq!(stat["entry"]["metadata"], json!({"kind": "a b", "n": "1"}));
}

#[test]
fn an_upload_replaces_all_metadata() {
    let agent = Agent::start();
    let path = agent.path("f");
    let stat = || {
        let stat = agent.call("/filesystem.Filesystem/Stat", &json!({"path": path}));
        stat["entry"]["metadata"].clone()
    };
    upload(
        &agent,
        "f",
        &[("x-metadata-a", "1"), ("x-metadata-b", "2")],
        b"x",
    );
    // Another program's attribute is not metadata, and stays.
    let (name, flags) = ("user.other", rustix::fs::XattrFlags::empty());
    rustix::fs::setxattr(&path, name, b"kept", flags).unwrap();
    upload(&agent, "f", &[("x-metadata-b", "3")], b"y");
    assert_eq!(stat(), json!({"b": "3"}));
    upload(&agent, "f", &[], b"z");
    assert_eq!(stat(), Value::Null);
    let mut value = [0; 4];
    assert_eq!(rustix::fs::getxattr(&path, name, &mut value[..]), Ok(4));
}

#[test]
fn a_symbolic_link_is_described_by_its_target() {
    let agent = Agent::start();
    upload(&agent, "f", &[], b"12345");
    std::fs::set_permissions(agent.path("f"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(agent.path("d")).unwrap();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(agent.path(target), agent.path(name)).unwrap();
        let path = json!({"path": agent.path(name)});
        let stat = agent.call("/filesystem.Filesystem/Stat", &path);
        stat["entry"].clone()
    };
    let to_file = link("f", "to-file");
    assert_eq!(to_file["type"], "FILE_TYPE_FILE");
    assert_eq!(
        (&to_file["size"], &to_file["mode"]),
        (&json!("5"), &json!(0o640))
    );
    assert_eq!(to_file["symlinkTarget"], json!(agent.path("f")));
    assert_eq!(to_file["permissions"], "Lrwxrwxrwx");
    assert_eq!(link("d", "to-directory")["type"], "FILE_TYPE_DIRECTORY");
    let broken = link("nothing", "broken");
    assert_eq!(broken["symlinkTarget"], json!(agent.path("nothing")));
    for absent in ["type", "mode"] {
        assert_eq!(broken.get(absent), None, "{broken}");
    }
    // A link to a directory is not entered.
    link(".", "d/up");
    let list = json!({"path": agent.path("d"), "depth": 9});
    let list = agent.call("/filesystem.Filesystem/ListDir", &list);
    assert_eq!(names(&list), ["up"]);
}

#[test]
fn errors_have_the_expected_shape() {
    let agent = Agent::start();
    let path = agent.path("none");
    let reply = agent.host().request("GET", &url(&path), &[], b"");
    assert_eq!(reply.status, 404);
    let message = format!("path '{}' does not exist", path.display());
    assert_eq!(reply.json(), json!({"code": 404, "message": message}));
    let reply = agent
        .host()
        .request("GET", &url(agent.dir.path()), &[], b"");
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(400)));
    let reply = upload(&agent, "", &[], b"x");
    assert_eq!(reply.status, 400, "{}", reply.text());
    let reply = agent.host().request("POST", "/files", &[OCTETS], b"x");
    assert_eq!(reply.status, 400);
    let reply = agent
        .host()
        .request("GET", "/files?path=x&username=nobody-here", &[], b"");
    assert_eq!(reply.status, 401);
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_half_file() {
    let agent = Agent::start_in_user_namespace();
    let reply = upload(&agent, "small/big", &[], &vec![7; 4 * 1024 * 1024]);
    assert_eq!(reply.status, 507, "{}", reply.text());
    assert_eq!(reply.json()["code"], 507);
    let reply = upload(&agent, "small/little", &[], &vec![7; 100_000]);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let list = json!({"path": agent.path("small")});
    let list = agent.call("/filesystem.Filesystem/ListDir", &list);
    assert_eq!(names(&list), ["little"]);
}

#[test]
fn directories_are_made_listed_moved_and_removed() {
    let agent = Agent::start();
    let dir = agent.path("d");
    let made = agent.call(
        "/filesystem.Filesystem/MakeDir",
        &json!({"path": dir.join("e/f")}),
    );
    assert_eq!(made["entry"]["type"], "FILE_TYPE_DIRECTORY");
    let retry = agent.try_call("/filesystem.Filesystem/MakeDir", &json!({"path": dir}));
    assert_eq!(
        (retry.status, &retry.json()["code"]),
        (409, &json!("already_exists"))
    );
    upload(&agent, "d/e/x", &[], b"12345");
    std::os::unix::fs::symlink("e/x", dir.join("link")).unwrap();
    let list = |depth: u32| {
        let request = json!({"path": dir, "depth": depth});
        agent.call("/filesystem.Filesystem/ListDir", &request)
    };
    assert_eq!(names(&list(0)), ["e", "link"]);
    assert_eq!(names(&list(2)), ["e", "f", "x", "link"]);
    assert_eq!(
        list(1)["entries"][1]["symlinkTarget"],
        json!(dir.join("e/x"))
    );
    let moved = json!({"source": dir.join("e/x"), "destination": dir.join("new/y")});
    let moved = agent.call("/filesystem.Filesystem/Move", &moved);
    assert_eq!(moved["entry"]["size"], "5");
    assert_eq!(moved["entry"]["permissions"], "-rw-r--r--");
    for _ in 0..2 {
        agent.call("/filesystem.Filesystem/Remove", &json!({"path": dir}));
        assert!(!dir.exists());
    }
    for call in ["Stat", "ListDir"] {
        let path = format!("/filesystem.Filesystem/{call}");
        let reply = agent.try_call(&path, &json!({"path": dir}));
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (404, &json!("not_found"))
        );
    }
    let root = agent.try_call("/filesystem.Filesystem/Remove", &json!({"path": "/"}));
    assert_eq!(root.status, 400);
}

#[test]
fn links_are_removed_and_not_what_they_lead_to() {
    let agent = Agent::start();
    upload(&agent, "kept/f", &[], b"x");
    std::fs::create_dir(agent.path("gone")).unwrap();
    std::os::unix::fs::symlink(agent.path("kept"), agent.path("gone/link")).unwrap();
    agent.call(
        "/filesystem.Filesystem/Remove",
        &json!({"path": agent.path("gone")}),
    );
    assert!(agent.path("kept/f").exists() && !agent.path("gone").exists());
}

#[test]
fn a_gibibyte_goes_in_and_out_within_little_memory() {
    let agent = Agent::start();
    let size = 1024 * 1024 * 1024u64;
    let mut connection = agent.host();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: a\r\ncontent-type: application/octet-stream\r\ncontent-length: {size}\r\n\r\n",
        url(&agent.path("giant"))
    );
    connection.writer.write_all(head.as_bytes()).unwrap();
    let piece = vec![0x5a; 1024 * 1024];
    for _ in 0..1024 {
        connection.writer.write_all(&piece).unwrap();
    }
    assert_eq!(connection.read_reply("POST").status, 200);
    assert_eq!(std::fs::metadata(agent.path("giant")).unwrap().len(), size);
    connection.send("GET", &url(&agent.path("giant")), &[], b"");
    let head = connection.read_head();
    connection.begin_body(&head);
    for _ in 0..1024 {
        assert!(connection.read_chunked(1024 * 1024) == piece);
    }
    assert!(
        agent.resident_kib() < 24 * 1024,
        "{} KiB",
        agent.resident_kib()
    );
}

fn names(list: &Value) -> Vec<&str> {
    let entries = list["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect()
}
