//! A weak sandbox: namespaces of an ordinary user with every capability in them, no filter, no masks and the host's
//! own files. What would be dangerous to try on a bare host is tried here, as nobody in particular.

use std::process::Command;

use sandyard_probe::{Report, Task, Verdict, host};

use crate::probe::{answer, installed, ordinary, summary};

/// An id that owns nothing on the host.
const UNUSED_UID: u32 = 64_321;

/// What only a bare host or a strong kernel setting decides is left out.
const MUST_BREACH: [&str; 23] = [
    "files.by-path",
    "files.dot-dot",
    "files.chroot",
    "capabilities.bounding",
    "capabilities.filter",
    "namespaces.user",
    "namespaces.others",
    "mounts.kernel",
    "mounts.plain",
    "mounts.new-calls",
    "mounts.root",
    "mounts.unmask",
    "kernel.reboot",
    "kernel.hostname",
    "kernel.personality",
    "kernel.obsolete",
    "keys.read",
    "keys.add",
    "sockets.packet",
    "knobs.boot-id",
    "capabilities.raise",
    "ipc.path",
    "network.shown-links",
];

const MUST_HOLD: [&str; 12] = [
    "ids.map",
    "processes.visible",
    "processes.signal",
    "processes.environment",
    "network.loopback",
    "network.loopback-udp",
    "network.lan",
    "network.links",
    "ipc.abstract",
    "ipc.shared-memory",
    "ipc.message-queue",
    "ipc.posix-queue",
];

#[test]
fn a_weak_sandbox_is_distinguished_from_a_strong_one() {
    let planted = host::plant(&[]).unwrap();
    let (_place, program) = installed();
    let mut weak = Command::new("unshare");
    weak.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount",
        "--mount-proc",
    ])
    .args(["--net", "--ipc", "--uts", "--cgroup", "--"])
    .arg(&program)
    .arg(Task::Escape(Box::new(planted.plan())).to_json());
    ordinary(&mut weak, UNUSED_UID);
    let report: Report = answer(&mut weak);

    let wrong = |ids: &[&str], verdict: Verdict| -> Vec<String> {
        ids.iter()
            .filter(|id| {
                report
                    .finding(id)
                    .is_none_or(|finding| finding.verdict != verdict)
            })
            .map(|id| (*id).to_owned())
            .collect()
    };
    let toothless = wrong(&MUST_BREACH, Verdict::Breached);
    let false_alarms = wrong(&MUST_HOLD, Verdict::Held);
    assert!(
        toothless.is_empty() && false_alarms.is_empty(),
        "toothless {toothless:?}, false alarms {false_alarms:?}\n{}",
        summary(&report)
    );
    let after = planted.verify();
    assert!(
        after
            .iter()
            .all(|finding| finding.verdict == Verdict::Held || finding.id == "host.mounts"),
        "{after:?}"
    );
}
