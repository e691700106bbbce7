//! Plants come and go without a trace.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sandyard_probe::{Verdict, host};

#[test]
fn plants_are_taken_away_with_their_guard() {
    let planted = host::plant(&[]).unwrap();
    let plan = planted.plan();
    let secret = plan
        .secrets
        .first()
        .expect("one file at least")
        .path
        .clone();
    let process = plan.process.clone().expect("a process");
    assert!(secret.exists());
    drop(planted);
    assert!(plan.secrets.iter().all(|secret| !secret.path.exists()));
    assert!(!std::path::Path::new(&format!("/proc/{}", process.pid)).exists());
    for (table, segment) in [("shm", plan.shared_memory), ("msg", plan.message_queue)] {
        let segment = segment.unwrap_or_else(|| panic!("this host has System V {table}"));
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap();
        assert!(!text.contains(&segment.key.to_string()), "{table}: {text}");
    }
    let name = plan.abstract_socket.expect("a socket").name;
    // A child that another test forked meanwhile has every descriptor of ours until it ends or becomes a program.
    let end = Instant::now() + Duration::from_secs(60);
    while is_bound(&name) {
        assert!(Instant::now() < end, "{name} is still bound");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_bound(name: &str) -> bool {
    std::fs::read_to_string("/proc/net/unix")
        .expect("the kernel's list")
        .contains(name)
}

#[test]
fn an_untouched_host_is_found_as_before() {
    let planted = host::plant(&[]).unwrap();
    let breached: BTreeSet<String> = planted
        .verify()
        .into_iter()
        // Other tests of this machine may mount things meanwhile.
        .filter(|finding| finding.verdict != Verdict::Held && finding.id != "host.mounts")
        .map(|finding| finding.observed)
        .collect();
    assert!(breached.is_empty(), "{breached:?}");
}

#[test]
fn a_changed_file_and_a_footprint_are_noticed() {
    let planted = host::plant(&[]).unwrap();
    let plan = planted.plan();
    std::fs::write(&plan.secrets[0].path, "changed").unwrap();
    let footprint = std::path::Path::new("/srv").join(plan.footprint.unwrap());
    // Only root can leave one: for an ordinary user the file is all there is to notice.
    let leftovers = std::fs::write(&footprint, "probe").is_ok();
    let findings = planted.verify();
    let _ = std::fs::remove_file(footprint);
    for id in ["host.files"]
        .into_iter()
        .chain(leftovers.then_some("host.footprint"))
    {
        let finding = findings
            .iter()
            .find(|finding| finding.id == id)
            .expect("it is checked");
        assert_eq!(finding.verdict, Verdict::Breached, "{id}");
    }
}
