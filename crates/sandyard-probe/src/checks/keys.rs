//! Kernel keyrings, which no namespace keeps apart.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{Critical, High, Medium},
};
use crate::plan::HostKey;
use crate::search::{contains, read_start};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, Critical, "keys.read", read)
        .title("A key of the host cannot be read")
        .attempts("KEYCTL_READ of the planted key by its serial number; the key allows anyone")
        .expects("refused")
        .on_host(OnHost::Breaches),
    Check::new(Privileges, High, "keys.search", search)
        .title("A key of the host cannot be found")
        .attempts(
            "search the user, session and process keyrings by description; request_key; /proc/keys",
        )
        .expects("refused")
        .on_host(OnHost::Breaches),
    Check::new(Privileges, Medium, "keys.add", add)
        .title("Keys cannot be made")
        .attempts("add_key to the user and process keyrings")
        .expects("refused"),
];

const KEYCTL_SEARCH: i32 = 10;
const KEYCTL_READ: i32 = 11;
const KEYRINGS: [i32; 5] = [-1, -2, -3, -4, -5];

fn on_key(context: &Context, attempt: impl FnOnce(&HostKey) -> Outcome) -> Outcome {
    context
        .plan
        .key
        .as_ref()
        .map_or_else(|| Outcome::inconclusive("no key was planted"), attempt)
}

fn read(context: &Context) -> Outcome {
    on_key(context, |key| {
        let mut payload = [0_u8; 256];
        match sys!(
            libc::SYS_keyctl,
            KEYCTL_READ,
            key.serial,
            &mut payload[..],
            256
        ) {
            Ok(_) if contains(&payload, &key.marker) => Outcome::breached("it was read"),
            result => sys::refused(result),
        }
    })
}

fn search(context: &Context) -> Outcome {
    on_key(context, |key| {
        let description = sys::c_str(&key.description);
        let description = description.as_c_str();
        let mut last = None;
        let listed = read_start("/proc/keys").is_ok_and(|table| contains(&table, &key.description));
        if listed {
            return Outcome::breached("/proc/keys lists it");
        }
        for keyring in KEYRINGS {
            match sys!(
                libc::SYS_keyctl,
                KEYCTL_SEARCH,
                keyring,
                c"user",
                description,
                0
            ) {
                Ok(serial) => {
                    return Outcome::breached(format_args!(
                        "found as {serial} in keyring {keyring}"
                    ));
                }
                Err(errno) => last = Some(errno),
            }
        }
        match sys!(libc::SYS_request_key, c"user", description, 0, 0) {
            Ok(serial) => Outcome::breached(format_args!("request_key gave {serial}")),
            Err(errno) => Outcome::held(format_args!("{}, {errno}", last.unwrap_or(errno))),
        }
    })
}

fn add(_: &Context) -> Outcome {
    for keyring in KEYRINGS {
        let made = sys!(
            libc::SYS_add_key,
            c"user",
            c"sandyard-probe",
            &b"x"[..],
            1,
            keyring
        );
        if made.is_ok() {
            return sys::refused(made);
        }
    }
    sys::refused(sys!(
        libc::SYS_add_key,
        c"user",
        c"sandyard-probe",
        &b"x"[..],
        1,
        -2
    ))
}
