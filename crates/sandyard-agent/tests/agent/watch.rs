//! Watching directories.

use crate::common::{Agent, Frame, Stream, wait_until};
use serde_json::{Value, json};

fn upload(agent: &Agent, name: &str) {
    let path = format!("/files?path={}", agent.path(name).display());
    let kind = [("content-type", "application/octet-stream")];
    assert_eq!(
        agent.host().request("POST", &path, &kind, b"hello").status,
        200
    );
}

fn watch(agent: &Agent, request: &Value) -> Stream {
    let path = "/filesystem.Filesystem/WatchDir";
    let mut stream = Stream::open(agent.host(), path, request, &[]);
    assert_eq!(stream.next(), Frame::Message(json!({"start": {}})));
    stream
}

fn next(stream: &mut Stream) -> (String, String) {
    match stream.next() {
        Frame::Message(message) => {
            let event = &message["filesystem"];
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            (text("name"), text("type").replace("EVENT_TYPE_", ""))
        }
        Frame::End(end) => panic!("the stream ended: {end}"),
    }
}

#[test]
fn one_upload_is_seen_as_create_chmod_write() {
    let agent = Agent::start();
    std::fs::create_dir(agent.path("w")).unwrap();
    let mut stream = watch(&agent, &json!({"path": agent.path("w")}));
    for round in 0..20 {
        let name = format!("f{round}");
        upload(&agent, &format!("w/{name}"));
        for kind in ["CREATE", "CHMOD", "WRITE"] {
            assert_eq!(next(&mut stream), (name.clone(), kind.to_owned()));
        }
    }
}

#[test]
fn renames_and_removals_are_seen() {
    let agent = Agent::start();
    let mut stream = watch(&agent, &json!({"path": agent.dir.path()}));
    std::fs::create_dir(agent.path("d")).unwrap();
    std::fs::rename(agent.path("d"), agent.path("e")).unwrap();
    std::fs::remove_dir(agent.path("e")).unwrap();
    let seen: Vec<_> = (0..4).map(|_| next(&mut stream)).collect();
    let expected = [
        ("d", "CREATE"),
        ("d", "RENAME"),
        ("e", "CREATE"),
        ("e", "REMOVE"),
    ];
    assert_eq!(
        seen,
        expected.map(|(name, kind)| (name.to_owned(), kind.to_owned()))
    );
}

#[test]
fn recursive_watches_follow_new_folders_and_tell_each_file_once() {
    let agent = Agent::start();
    std::fs::create_dir_all(agent.path("w/old/deep")).unwrap();
    let mut stream = watch(&agent, &json!({"path": agent.path("w"), "recursive": true}));
    std::fs::write(agent.path("w/old/deep/a"), "").unwrap();
    assert_eq!(next(&mut stream), ("old/deep/a".into(), "CREATE".into()));
    for round in 0..20 {
        let folder = format!("new{round}");
        std::fs::create_dir_all(agent.path(&format!("w/{folder}/x/y"))).unwrap();
        std::fs::write(agent.path(&format!("w/{folder}/x/y/f")), "").unwrap();
        let mut seen: Vec<_> = (0..4).map(|_| next(&mut stream)).collect();
        seen.sort();
        let names = ["", "/x", "/x/y", "/x/y/f"].map(|rest| format!("{folder}{rest}"));
        assert_eq!(seen, names.map(|name| (name, "CREATE".to_owned())));
    }
    std::fs::rename(agent.path("w/new0"), agent.path("w/moved")).unwrap();
    assert_eq!(next(&mut stream), ("new0".into(), "RENAME".into()));
    let mut seen: Vec<_> = (0..4).map(|_| next(&mut stream)).collect();
    seen.sort();
    let names = ["", "/x", "/x/y", "/x/y/f"].map(|rest| format!("moved{rest}"));
    assert_eq!(seen, names.map(|name| (name, "CREATE".to_owned())));
    std::fs::write(agent.path("w/moved/x/y/g"), "").unwrap();
    assert_eq!(next(&mut stream), ("moved/x/y/g".into(), "CREATE".into()));
}

#[test]
fn a_watcher_collects_until_it_is_asked() {
    let agent = Agent::start();
    let request = json!({"path": agent.dir.path(), "includeEntry": true});
    let watcher = agent.call("/filesystem.Filesystem/CreateWatcher", &request);
    upload(&agent, "f");
    let mut events = Vec::new();
    wait_until("three events", || {
        let new = agent.call("/filesystem.Filesystem/GetWatcherEvents", &watcher);
        events.extend(new["events"].as_array().cloned().unwrap_or_default());
        events.len() >= 3
    });
    assert_eq!(events[0]["type"], "EVENT_TYPE_CREATE");
    assert_eq!(events[2]["entry"]["path"], json!(agent.path("f")));
    agent.call("/filesystem.Filesystem/RemoveWatcher", &watcher);
    let refused = agent.try_call("/filesystem.Filesystem/GetWatcherEvents", &watcher);
    assert_eq!(refused.status, 404);
}

#[test]
fn a_watch_made_right_after_another_ended_sees_everything() {
    let agent = Agent::start();
    for round in 0..30 {
        let watcher = agent.call(
            "/filesystem.Filesystem/CreateWatcher",
            &json!({"path": agent.dir.path()}),
        );
        upload(&agent, &format!("f{round}"));
        let mut count = 0;
        wait_until("three events", || {
            let new = agent.call("/filesystem.Filesystem/GetWatcherEvents", &watcher);
            count += new["events"].as_array().map_or(0, Vec::len);
            count >= 3
        });
        agent.call("/filesystem.Filesystem/RemoveWatcher", &watcher);
    }
}

#[test]
fn what_is_no_directory_cannot_be_watched() {
    let agent = Agent::start();
    upload(&agent, "f");
    for (name, code) in [("f", "invalid_argument"), ("none", "not_found")] {
        let request = json!({"path": agent.path(name)});
        let path = "/filesystem.Filesystem/WatchDir";
        let error = Stream::open(agent.host(), path, &request, &[]).error();
        assert_eq!(error["code"], code);
    }
}

#[test]
fn watchers_and_their_queues_are_bounded() {
    let agent = Agent::start();
    let create = "/filesystem.Filesystem/CreateWatcher";
    // The others watch where nothing happens: what one misses is not told sooner because all of them do.
    let other_folder = tempfile::tempdir().unwrap();
    let first = agent.call(create, &json!({"path": agent.dir.path()}));
    let refused = (0..100)
        .map(|_| agent.try_call(create, &json!({"path": other_folder.path()})))
        .find(|reply| reply.status != 200)
        .expect("a limit");
    assert_eq!(refused.json()["code"], "resource_exhausted");
    let script = format!(
        "cd {}; for i in $(seq 1 20000); do : > f$i; done",
        agent.dir.path().display()
    );
    agent.shell(&script).finish();
    let mut events = 0;
    let mut lost = None;
    wait_until("the loss to be told", || {
        let reply = agent.try_call("/filesystem.Filesystem/GetWatcherEvents", &first);
        match reply.status {
            200 => events += reply.json()["events"].as_array().map_or(0, Vec::len),
            _ => lost = Some(reply.json()),
        }
        lost.is_some()
    });
    assert!((8192..20_000).contains(&events), "{events}");
    assert_eq!(lost.unwrap()["code"], "data_loss");
    assert!(agent.is_healthy());
}
