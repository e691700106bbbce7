//! Bad, endless and slow input: clear errors, bounded memory, and an agent that goes on.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;

use crate::common::{Agent, Stream, raise_open_files, wait_until};
use serde_json::json;

const STREAM: (&str, &str) = ("content-type", "application/connect+json");
const UNARY: (&str, &str) = ("content-type", "application/json");

#[test]
fn malformed_frames_are_refused() {
    let agent = Agent::start();
    for (body, reply_bytes) in [
        (&b""[..], "no message"),
        (b"\0\0", "within a frame"),
        (b"\0\0\0\0\x09{}", "within a frame"),
        (b"\0\xff\xff\xff\xff{}", "over the limit"),
        (b"\x01\0\0\0\x02{}", "compressed"),
        (b"\x80\0\0\0\x02{}", "flags"),
        (b"\x02\0\0\0\x02{}", "no message"),
        (b"\0\0\0\0\x0277", "bad message"),
        (b"\0\0\0\0\x03\xff\xfe\xfd", "bad message"),
    ] {
        let mut connection = agent.host();
        let reply = connection.request("POST", "/process.Process/Start", &[STREAM], body);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.body[0], 2, "an end frame");
        assert!(
            reply.text().contains("invalid_argument"),
            "{}",
            reply.text()
        );
        assert!(
            reply.text().contains(reply_bytes),
            "{reply_bytes}: {}",
            reply.text()
        );
    }
    let bad = agent.host().request(
        "POST",
        "/process.Process/StreamInput",
        &[STREAM],
        b"\0\0\0\0\x02{}\x04",
    );
    assert!(bad.text().contains("invalid_argument"), "{}", bad.text());
    assert!(agent.is_healthy());
}

#[test]
fn malformed_messages_and_unknown_calls_are_refused() {
    let agent = Agent::start();
    for (path, body, status) in [
        ("/process.Process/SendInput", "{}", 400),
        ("/process.Process/SendInput", "not json", 400),
        (
            "/process.Process/SendSignal",
            r#"{"process":{"pid":1,"tag":"x"}}"#,
            400,
        ),
        ("/process.Process/None", "{}", 501),
        ("/filesystem.Filesystem/None", "{}", 501),
        ("/none", "{}", 404),
    ] {
        let reply = agent
            .host()
            .request("POST", path, &[UNARY], body.as_bytes());
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.text());
    }
    let deep = "[".repeat(100_000);
    let reply = agent
        .host()
        .request("POST", "/process.Process/List", &[UNARY], deep.as_bytes());
    assert_eq!(reply.status, 400);
    let wrong = [("content-type", "text/plain")];
    let reply = agent
        .host()
        .request("POST", "/process.Process/List", &wrong, b"{}");
    assert_eq!(reply.status, 415);
    let reply = agent
        .host()
        .request("GET", "/process.Process/List", &[UNARY], b"");
    assert_eq!(reply.status, 405);
    let packed = [UNARY, ("content-encoding", "gzip")];
    let reply = agent
        .host()
        .request("POST", "/process.Process/List", &packed, b"x");
    assert_eq!(reply.json()["code"], "unimplemented");
    assert!(agent.is_healthy());
}

#[test]
fn huge_headers_are_refused() {
    let agent = Agent::start();
    let huge = "x".repeat(1024 * 1024);
    let mut connection = agent.tcp();
    connection.send("GET", "/health", &[("x-huge", &huge)], b"");
    assert_eq!(connection.read_head().status, 431);
    let many: Vec<(String, String)> = (0..1000).map(|n| (format!("h{n}"), "v".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut connection = agent.tcp();
    connection.send("GET", "/health", &many, b"");
    assert_eq!(connection.read_head().status, 431);
    assert!(agent.is_healthy());
}

#[test]
fn an_endless_message_is_cut_off() {
    let agent = Agent::start();
    let before = agent.resident_kib();
    let mut connection = agent.tcp();
    let head = "POST /process.Process/List HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    connection.writer.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    // More than any limit; the agent stops reading at some point.
    for _ in 0..256 {
        if connection.writer.write_all(&chunk).is_err() {
            break;
        }
    }
    let reply = connection.read_head();
    assert_eq!(reply.status, 429);
    assert!(agent.resident_kib() < before + 16 * 1024);
    assert!(agent.is_healthy());
}

#[test]
fn garbage_that_is_no_http_is_refused() {
    let agent = Agent::start();
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut connection = agent.tcp();
        connection.writer.write_all(garbage).unwrap();
        connection.writer.half_close();
        let mut answer = Vec::new();
        connection.reader.read_to_end(&mut answer).unwrap();
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
    }
    assert!(agent.is_healthy());
}

#[test]
fn a_client_that_closes_its_sending_side_still_gets_its_answer() {
    let agent = Agent::start();
    for path in ["/health", "/metrics", "/envs"] {
        let mut connection = agent.tcp();
        connection.send("GET", path, &[], b"");
        connection.writer.half_close();
        assert!(matches!(connection.read_head().status, 200 | 204));
    }
}

#[test]
fn paths_with_nul_bytes_are_refused_everywhere() {
    let agent = Agent::start();
    for call in ["Stat", "MakeDir", "ListDir", "Remove", "CreateWatcher"] {
        let path = format!("/filesystem.Filesystem/{call}");
        let reply = agent.try_call(&path, &json!({"path": "/tmp/a\0b"}));
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (400, &json!("invalid_argument")),
            "{call}"
        );
    }
    for (method, body) in [("GET", &b""[..]), ("POST", b"x")] {
        let reply = agent
            .host()
            .request(method, "/files?path=/tmp/a%00b", &[], body);
        assert_eq!(reply.status, 400, "{method}");
    }
    let long = "x/".repeat(10_000);
    let reply = agent.try_call("/filesystem.Filesystem/Stat", &json!({"path": long}));
    assert_eq!(reply.status, 400);
}

#[test]
fn names_that_are_no_text_are_listed_all_the_same() {
    let agent = Agent::start();
    let name = OsStr::from_bytes(b"bad-\xff\xfe-name");
    std::fs::create_dir(agent.dir.path().join(name)).unwrap();
    std::fs::write(agent.dir.path().join(name).join("inner"), "x").unwrap();
    let request = json!({"path": agent.dir.path(), "depth": 3});
    let list = agent.call("/filesystem.Filesystem/ListDir", &request);
    let text = list.to_string();
    assert!(
        text.contains("bad-\u{fffd}\u{fffd}-name") && text.contains("inner"),
        "{text}"
    );
    let watch = json!({"path": agent.dir.path(), "recursive": true});
    let mut stream = Stream::open(agent.host(), "/filesystem.Filesystem/WatchDir", &watch, &[]);
    stream.next();
    std::fs::write(agent.dir.path().join(name).join(name), "x").unwrap();
    stream.next();
    agent.call(
        "/filesystem.Filesystem/Remove",
        &json!({"path": agent.dir.path()}),
    );
    assert!(!agent.dir.path().join(name).exists());
}

#[test]
fn special_files_do_not_stop_the_agent() {
    let agent = Agent::start();
    let fifo = agent.path("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    for path in [fifo.to_str().unwrap(), "/dev/zero", "/dev/tty"] {
        let url = format!("/files?path={path}");
        let reply = agent.host().request("GET", &url, &[], b"");
        assert!(reply.status >= 400, "{path}: {}", reply.status);
    }
    for path in [fifo.to_str().unwrap(), "/dev/null", "/dev/full"] {
        let url = format!("/files?path={path}");
        let reply = agent.host().request("POST", &url, &[], b"x");
        assert_eq!(reply.status, 400, "{path}");
    }
    let reply = agent
        .host()
        .request("GET", "/files?path=/proc/self/status", &[], b"");
    assert!(
        reply.text().contains("VmRSS"),
        "a file whose size is not known"
    );
    assert!(agent.is_healthy());
}

#[test]
fn ten_thousand_files_are_listed() {
    let agent = Agent::start();
    let dir = agent.path("many");
    std::fs::create_dir(&dir).unwrap();
    for n in 0..10_000 {
        std::fs::write(dir.join(format!("f{n:05}")), "").unwrap();
    }
    let list = agent.call("/filesystem.Filesystem/ListDir", &json!({"path": dir}));
    let entries = list["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 10_000);
    assert_eq!(entries[9_999]["name"], "f09999");
    agent.call("/filesystem.Filesystem/Remove", &json!({"path": dir}));
    assert!(!dir.exists());
}

#[test]
fn a_slow_reader_holds_the_command_back_and_loses_nothing() {
    let agent = Agent::start();
    let lines = 2_000_000;
    let file = agent.path("done");
    let mut stream = agent.shell(&format!("seq 1 {lines}; echo done > {}", file.display()));
    let pid = stream.pid();
    // Ten megabytes and more are on their way; what is not read must stay in the command.
    wait_until("the command to be held back", || {
        let wchan = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = wchan.unwrap_or_default();
        children.split_whitespace().any(|child| {
            std::fs::read_to_string(format!("/proc/{child}/wchan"))
                .is_ok_and(|wchan| wchan.contains("pipe"))
        })
    });
    assert!(!file.exists());
    assert!(
        agent.resident_kib() < 32 * 1024,
        "{} KiB",
        agent.resident_kib()
    );
    let stdout = stream.finish().stdout_text();
    assert_eq!(stdout.lines().count(), lines);
    assert!(
        stdout
            .lines()
            .enumerate()
            .all(|(at, line)| line == (at + 1).to_string())
    );
    assert!(
        agent.resident_kib() < 32 * 1024,
        "{} KiB",
        agent.resident_kib()
    );
}

#[test]
fn without_a_reader_the_oldest_output_goes_and_the_command_goes_on() {
    let agent = Agent::start();
    let file = agent.path("done");
    let mut stream = agent.shell(&format!(
        "read x; seq 1 2000000; echo done > {}",
        file.display()
    ));
    let pid = stream.pid();
    drop(stream);
    wait_until("the reader to be gone", || {
        let activity = agent.host().request("GET", "/activity", &[], b"").json();
        activity.get("streams").is_none()
    });
    agent.call(
        "/process.Process/CloseStdin",
        &json!({"process": {"pid": pid}}),
    );
    wait_until("the command's end", || file.exists());
    assert!(
        agent.resident_kib() < 32 * 1024,
        "{} KiB",
        agent.resident_kib()
    );
    let mut stream = agent.connect(pid, &[("sandyard-output-offset", "0")]);
    let begins: usize = stream
        .reply
        .header("sandyard-output-offset")
        .unwrap()
        .parse()
        .unwrap();
    let rest = stream.finish().stdout;
    let total: usize = (1..=2_000_000u32).map(|n| n.to_string().len() + 1).sum();
    assert_eq!(begins + rest.len(), total);
    assert!(
        rest.len() > 900_000,
        "about a mebibyte is kept: {}",
        rest.len()
    );
    assert!(rest.ends_with(b"\n2000000\n"));
}

#[test]
fn many_processes_with_unread_output_share_a_bound() {
    let agent = Agent::start();
    let streams: Vec<Stream> = (0..80)
        .map(|_| {
            let mut stream = agent.shell("yes | head -c 3000000; sleep 600");
            stream.pid();
            stream
        })
        .collect();
    assert_eq!(
        agent.call("/process.Process/List", &json!({}))["processes"]
            .as_array()
            .unwrap()
            .len(),
        80
    );
    assert!(agent.is_healthy());
    assert!(
        agent.resident_kib() < 128 * 1024,
        "{} KiB",
        agent.resident_kib()
    );
    drop(streams);
}

#[test]
fn idle_connections_do_not_keep_others_out() {
    raise_open_files();
    let agent = Agent::start();
    let idle: Vec<_> = (0..512).map(|_| agent.tcp()).collect();
    assert!(agent.is_healthy(), "the host's door has slots of its own");
    drop(idle);
    assert_eq!(agent.tcp().request("GET", "/health", &[], b"").status, 204);
}
