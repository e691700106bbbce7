//! Each message against the JSON that the official SDKs send or expect.

use std::collections::BTreeMap;

use bytes::Bytes;
use sandyard_wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_wire::filesystem::*;
use sandyard_wire::process::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Asserts that a value is written as this JSON and read back from it.
#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T, text: Value) {
    assert_eq!(
        serde_json::to_value(&value).expect("a message is written"),
        text
    );
    assert_eq!(
        serde_json::from_value::<T>(text).expect("the JSON is read"),
        value
    );
}

#[track_caller]
fn reads<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: Value, value: T) {
    assert_eq!(
        serde_json::from_value::<T>(text).expect("the JSON is read"),
        value
    );
}

#[test]
fn a_start_request_reads_as_the_sdk_sends_it() {
    same(
        StartRequest {
            process: ProcessConfig {
                cmd: "/bin/bash".into(),
                args: vec!["-l".into(), "-c".into(), "true".into()],
                envs: BTreeMap::from([("A".into(), "1".into())]),
                cwd: Some("/tmp".into()),
            },
            pty: Some(Pty {
                size: Some(PtySize { cols: 80, rows: 24 }),
            }),
            tag: Some("t".into()),
            stdin: Some(false),
        },
        json!({
            "process": {"cmd": "/bin/bash", "args": ["-l", "-c", "true"], "envs": {"A": "1"}, "cwd": "/tmp"},
            "pty": {"size": {"cols": 80, "rows": 24}},
            "tag": "t",
            "stdin": false
        }),
    );
}

#[test]
fn null_and_absent_fields_are_defaults_and_unknown_ones_are_ignored() {
    reads(
        json!({"process": {"cmd": "ls", "args": null, "envs": null, "cwd": null, "new": 1}, "pty": null, "x": {}}),
        StartRequest {
            process: ProcessConfig {
                cmd: "ls".into(),
                ..ProcessConfig::default()
            },
            ..StartRequest::default()
        },
    );
    reads(json!({}), StartRequest::default());
    reads(json!({"process": null}), StartRequest::default());
}

#[test]
fn a_selector_is_a_pid_or_a_tag_but_not_both_and_not_neither() {
    same(ProcessSelector::Pid(7), json!({"pid": 7}));
    same(ProcessSelector::Tag("x".into()), json!({"tag": "x"}));
    reads(
        json!({"pid": "7", "tag": null, "new": true}),
        ProcessSelector::Pid(7),
    );
    for bad in [
        json!({}),
        json!({"pid": 1, "tag": "x"}),
        json!({"pid": -1}),
        json!({"pid": 1e30}),
        json!([]),
    ] {
        assert!(
            serde_json::from_value::<ProcessSelector>(bad.clone()).is_err(),
            "{bad}"
        );
    }
    assert!(serde_json::from_value::<SendSignalRequest>(json!({"signal": 9})).is_err());
}

#[test]
fn events_are_written_with_defaults_left_out() {
    let message = |event| EventMessage { event };
    same(
        message(ProcessEvent::Start { pid: 5 }),
        json!({"event": {"start": {"pid": 5}}}),
    );
    same(
        message(ProcessEvent::Data(Output::Stderr(Bytes::from_static(
            b"\x00\xff",
        )))),
        json!({"event": {"data": {"stderr": "AP8="}}}),
    );
    same(
        message(ProcessEvent::Data(Output::Pty(Bytes::new()))),
        json!({"event": {"data": {"pty": ""}}}),
    );
    same(
        message(ProcessEvent::Keepalive),
        json!({"event": {"keepalive": {}}}),
    );
    same(message(ProcessEvent::Other), json!({"event": {}}));
    let good = EndEvent {
        exited: true,
        status: "exit status 0".into(),
        ..EndEvent::default()
    };
    same(
        message(ProcessEvent::End(good)),
        json!({"event": {"end": {"exited": true, "status": "exit status 0"}}}),
    );
    let bad = EndEvent {
        exit_code: -1,
        exited: false,
        status: "signal: killed".into(),
        error: Some("e".into()),
    };
    same(
        message(ProcessEvent::End(bad)),
        json!({"event": {"end": {"exitCode": -1, "status": "signal: killed", "error": "e"}}}),
    );
}

#[test]
fn unknown_events_are_read_as_other() {
    for text in [
        json!({}),
        json!({"event": null}),
        json!({"event": {"new": {}}}),
        json!({"event": {"data": {}}}),
    ] {
        reads(text, EventMessage::default());
    }
}

#[test]
fn input_goes_to_stdin_or_to_the_terminal() {
    let process = ProcessSelector::Pid(1);
    same(
        SendInputRequest {
            process: process.clone(),
            input: ProcessInput::Stdin(Bytes::from_static(b"hi\n")),
        },
        json!({"process": {"pid": 1}, "input": {"stdin": "aGkK"}}),
    );
    reads(
        json!({"pty": "aGkK", "stdin": null}),
        ProcessInput::Pty(Bytes::from_static(b"hi\n")),
    );
    assert!(serde_json::from_value::<ProcessInput>(json!({})).is_err());
    assert!(serde_json::from_value::<ProcessInput>(json!({"stdin": "?"})).is_err());
    same(
        StreamInputRequest::Start { process },
        json!({"start": {"process": {"pid": 1}}}),
    );
    same(
        StreamInputRequest::Data {
            input: ProcessInput::Pty(Bytes::from_static(b"x")),
        },
        json!({"data": {"input": {"pty": "eA=="}}}),
    );
    same(StreamInputRequest::Keepalive {}, json!({"keepalive": {}}));
}

#[test]
fn signals_are_names_where_the_protocol_has_them_and_numbers_elsewhere() {
    same(Signal::TERM, json!("SIGNAL_SIGTERM"));
    same(Signal::KILL, json!("SIGNAL_SIGKILL"));
    same(Signal::INT, json!(2));
    reads(json!(15), Signal::TERM);
    reads(json!(null), Signal(0));
    assert!(serde_json::from_value::<Signal>(json!("SIGNAL_SIGNOPE")).is_err());
}

#[test]
fn an_entry_has_its_size_in_a_string() {
    same(
        EntryInfo {
            name: "a".into(),
            r#type: FileType::File,
            path: "/a".into(),
            size: 1 << 40,
            mode: 0o644,
            permissions: "-rw-r--r--".into(),
            owner: "user".into(),
            group: "user".into(),
            modified_time: Some("2025-01-01T00:00:00Z".into()),
            symlink_target: Some("/b".into()),
            metadata: BTreeMap::from([("k".into(), "v".into())]),
            is_symlink: true,
        },
        json!({
            "name": "a", "type": "FILE_TYPE_FILE", "path": "/a", "size": "1099511627776", "mode": 420,
            "permissions": "-rw-r--r--", "owner": "user", "group": "user", "modifiedTime": "2025-01-01T00:00:00Z",
            "symlinkTarget": "/b", "metadata": {"k": "v"}, "isSymlink": true
        }),
    );
    same(EntryInfo::default(), json!({}));
    reads(
        json!({"size": 12, "type": 2, "modified_time": null, "metadata": null}),
        EntryInfo {
            size: 12,
            r#type: FileType::Directory,
            ..EntryInfo::default()
        },
    );
    reads(json!({"type": "FILE_TYPE_NEW"}), EntryInfo::default());
}

#[test]
fn watch_messages_are_start_change_and_keepalive() {
    same(WatchDirResponse::Start, json!({"start": {}}));
    same(WatchDirResponse::Keepalive, json!({"keepalive": {}}));
    let event = FilesystemEvent {
        name: "x".into(),
        r#type: EventType::Create,
        entry: None,
    };
    same(
        WatchDirResponse::Filesystem(event.clone()),
        json!({"filesystem": {"name": "x", "type": "EVENT_TYPE_CREATE"}}),
    );
    same(
        WatcherEvents {
            events: vec![event],
        },
        json!({"events": [{"name": "x", "type": "EVENT_TYPE_CREATE"}]}),
    );
    same(
        WatchRequest {
            path: "/".into(),
            recursive: true,
            include_entry: true,
            allow_network_mounts: false,
        },
        json!({"path": "/", "recursive": true, "includeEntry": true}),
    );
    same(
        WatcherRef {
            watcher_id: "w".into(),
        },
        json!({"watcherId": "w"}),
    );
}
