//! Messages: any JSON is refused or read, and what was read is written so that it reads the same again.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use sandyard_wire::connect_error::{ConnectError, EndStream};
use sandyard_wire::signature::{Operation, SignedUrl, sign, verify};
use sandyard_wire::{filesystem, host, http, process};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn stable<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(json) else {
        return;
    };
    let written = serde_json::to_vec(&message).expect("what was read can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(message, again);
}

fn signed(text: &str) {
    let url = SignedUrl {
        path: text,
        operation: Operation::Read,
        user: "user",
        expiration: None,
    };
    assert!(verify(&url, "token", text, 0).is_err());
    assert!(verify(&url, "token", &sign(&url, "token"), 0).is_ok());
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, json)) = input.split_first() else {
        return;
    };
    match kind % 21 {
        0 => stable::<process::StartRequest>(json),
        1 => stable::<process::ConnectRequest>(json),
        2 => stable::<process::EventMessage>(json),
        3 => stable::<process::ListResponse>(json),
        4 => stable::<process::UpdateRequest>(json),
        5 => stable::<process::SendInputRequest>(json),
        6 => stable::<process::StreamInputRequest>(json),
        7 => stable::<process::SendSignalRequest>(json),
        8 => stable::<filesystem::PathRequest>(json),
        9 => stable::<filesystem::EntryResponse>(json),
        10 => stable::<filesystem::MoveRequest>(json),
        11 => stable::<filesystem::ListDirResponse>(json),
        12 => stable::<filesystem::WatchRequest>(json),
        13 => stable::<filesystem::WatchDirResponse>(json),
        14 => stable::<filesystem::WatcherEvents>(json),
        15 => stable::<host::InitRequest>(json),
        16 => stable::<host::Activity>(json),
        17 => stable::<EndStream>(json),
        18 => stable::<ConnectError>(json),
        19 => stable::<http::Metrics>(json),
        _ => signed(&String::from_utf8_lossy(json)),
    }
});
