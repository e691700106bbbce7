//! What only the host can say: whether the probe's deeds arrived here.

use std::path::Path;

use crate::checks::FOOTPRINTS;
use crate::finding::{Finding, Group, Severity, Verdict};
use crate::look::start_time;
use crate::plan::Plan;

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
    crate::mountinfo::mounts().len()
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

fn finding(id: &str, title: &str, tried: &str, reached: &[String], else_held: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        title: title.to_owned(),
        group: Group::Host,
        what_was_tried: tried.to_owned(),
        expected: "as before".to_owned(),
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
        "compare with before",
        &changed,
        "unchanged",
    )
}

fn process(plan: &Plan) -> Finding {
    let gone: Vec<String> = plan
        .process
        .iter()
        .filter(|process| start_time(process.pid) != Some(process.start_time))
        .map(|process| format!("process {} is gone", process.pid))
        .collect();
    finding(
        "host.process",
        "The host's process lives",
        "look for the planted process",
        &gone,
        "it lives",
    )
}

fn secrets(plan: &Plan) -> Finding {
    let changed: Vec<String> = plan
        .secrets
        .iter()
        .filter(|secret| {
            std::fs::read(&secret.path).ok().as_deref() != Some(secret.marker.as_bytes())
        })
        .map(|secret| format!("`{}` is not what it was", secret.path.display()))
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
        .flat_map(|name| FOOTPRINTS.map(|place| Path::new(place).join(name)))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| format!("`{}` arrived here", path.display()))
        .collect();
    finding(
        "host.footprint",
        "Nothing written inside arrived outside",
        "look for the probe's files",
        &found,
        "none found",
    )
}

fn mounts(before: &State) -> Finding {
    let now = mount_count();
    // Fewer is no doing of a sandbox's; somebody else may unmount things meanwhile.
    let more = now.saturating_sub(before.mounts);
    let found: Vec<String> = (more > 0)
        .then(|| format!("{more} more mounts than before"))
        .into_iter()
        .collect();
    let mut finding = finding(
        "host.mounts",
        "The host has no mount more",
        "count the mounts",
        &found,
        "no more than before",
    );
    // It may have been anyone.
    finding.severity = Severity::High;
    finding
}
