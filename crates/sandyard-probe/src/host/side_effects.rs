//! Effects of a probe that only the host can see.

use std::path::Path;

use crate::checks::FOOTPRINT_DIRECTORIES;
use crate::finding::{Finding, Group, Severity, Verdict};
use crate::plan::Plan;
use crate::search::start_time;

/// Settings that a probe tries to change.
const SETTINGS: [&str; 6] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/sysrq",
    "/sys/kernel/uevent_helper",
];

/// The settings before the probes.
#[derive(Debug)]
pub(super) struct State {
    settings: Vec<Option<String>>,
    mounts: usize,
}

impl State {
    pub(super) fn take() -> Self {
        Self {
            settings: SETTINGS.iter().map(|path| read(path)).collect(),
            mounts: mount_count(),
        }
    }
}

pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn mount_count() -> usize {
    sandyard_confine::mountinfo::mounts().len()
}

pub(super) fn verify(plan: &Plan, before: &State) -> Vec<Finding> {
    vec![
        settings(before),
        process(plan),
        secrets(plan),
        footprint(plan),
        mounts(before),
    ]
}

fn finding(
    id: &str,
    title: &str,
    attempt_text: &str,
    reached: &[String],
    else_held: &str,
) -> Finding {
    Finding {
        id: id.to_owned(),
        title: title.to_owned(),
        group: Group::Host,
        what_was_tried: attempt_text.to_owned(),
        expected: "unchanged".to_owned(),
        observed: if reached.is_empty() {
            else_held.to_owned()
        } else {
            reached.join("; ")
        },
        verdict: if reached.is_empty() {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::Critical,
    }
}

fn settings(before: &State) -> Finding {
    let changed: Vec<String> = SETTINGS
        .iter()
        .zip(&before.settings)
        .filter(|(path, was)| read(path) != **was)
        .map(|(path, was)| format!("`{path}` was {was:?} and is {:?}", read(path)))
        .collect();
    finding(
        "host.settings",
        "Kernel settings and host name are unchanged",
        "compare them with their values before",
        &changed,
        "unchanged",
    )
}

fn process(plan: &Plan) -> Finding {
    let gone: Vec<String> = plan
        .process
        .iter()
        .filter(|process| start_time(process.pid) != Some(process.start_time))
        .map(|process| format!("process {} has ended", process.pid))
        .collect();
    finding(
        "host.process",
        "The host's process still runs",
        "check the planted process",
        &gone,
        "it runs",
    )
}

fn secrets(plan: &Plan) -> Finding {
    let changed: Vec<String> = plan
        .secrets
        .iter()
        .filter(|secret| {
            std::fs::read(&secret.path).ok().as_deref() != Some(secret.marker.as_bytes())
        })
        .map(|secret| format!("`{}` has changed", secret.path.display()))
        .collect();
    finding(
        "host.files",
        "The host's files are unchanged",
        "read the planted files",
        &changed,
        "unchanged",
    )
}

fn footprint(plan: &Plan) -> Finding {
    let found: Vec<String> = plan
        .footprint
        .iter()
        .flat_map(|name| FOOTPRINT_DIRECTORIES.map(|directory| Path::new(directory).join(name)))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| format!("`{}` exists on the host", path.display()))
        .collect();
    finding(
        "host.footprint",
        "Nothing written inside appears on the host",
        "search for the probe's files",
        &found,
        "none found",
    )
}

fn mounts(before: &State) -> Finding {
    let now = mount_count();
    // Fewer mounts are not the work of a sandbox: another program may unmount something meanwhile.
    let more = now.saturating_sub(before.mounts);
    let found: Vec<String> = (more > 0)
        .then(|| format!("{more} more mounts than before"))
        .into_iter()
        .collect();
    let mut finding = finding(
        "host.mounts",
        "The host has no new mounts",
        "count the mounts",
        &found,
        "no more than before",
    );
    // Another program may have made them.
    finding.severity = Severity::High;
    finding
}
