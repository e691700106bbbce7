//! A weak sandbox: namespaces of an ordinary user with every capability in them, no filter, no masks and the host's
//! own files. What would be dangerous to try on a bare host is tried here, as nobody in particular.

use std::os::unix::process::CommandExt;
use std::process::Command;

use sandyard_probe::{Report, Task, Verdict, host};

use crate::probe::{answer, told};

/// An id that owns nothing on the host.
const NOBODY_IN_PARTICULAR: u32 = 64_321;

/// What only a bare host or a strong kernel setting decides is left out.
const MUST_BREACH: [&str; 24] = [
    "files.by-path",
    "files.dot-dot",
    "files.chroot",
    "capabilities.bounding",
    "capabilities.filter",
    "namespaces.user",
    "namespaces.others",
    "namespaces.enter",
    "mounts.kernel",
    "mounts.plain",
    "mounts.new-calls",
    "mounts.root",
    "mounts.unmask",
    "nesting.proc",
    "kernel.reboot",
    "kernel.hostname",
    "kernel.personality",
    "kernel.obsolete",
    "keys.read",
    "keys.add",
    "sockets.packet",
    "knobs.boot-id",
    "knobs.kernel-addresses",
    "knobs.host-tables",
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
fn a_weak_sandbox_is_told_from_a_strong_one() {
    assert!(
        rustix::process::geteuid().is_root(),
        "only root can become an ordinary user here: run it as root"
    );
    let planted = host::plant(&[]).unwrap();
    // The program where that user can read it, and owned by root as an installed one would be.
    let place = tempfile::Builder::new()
        .prefix("probe")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let program = place.path().join("sandyard-probe");
    std::fs::copy(env!("CARGO_BIN_EXE_sandyard-probe"), &program).unwrap();

    let mut weak = Command::new("unshare");
    weak.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount",
        "--mount-proc",
        "--net",
        "--ipc",
        "--uts",
        "--cgroup",
        "--",
    ])
    .arg(&program)
    .arg(Task::Escape(Box::new(planted.plan())).to_json())
    .uid(NOBODY_IN_PARTICULAR)
    .gid(NOBODY_IN_PARTICULAR)
    .current_dir("/");
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
        told(&report)
    );
    let after = planted.verify();
    assert!(
        after
            .iter()
            .all(|finding| finding.verdict == Verdict::Held || finding.id == "host.mounts"),
        "{after:?}"
    );
}
