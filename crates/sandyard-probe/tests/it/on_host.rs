//! On the bare host, as root, every plant is found.

use sandyard_probe::{Grade, OnHost, Report, Suite, Verdict, checks, host};

use crate::probe::{answer, probe, told};

#[test]
fn every_check_that_must_breach_on_a_bare_host_does() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test is about root on a bare host: run it as root"
    );
    let planted = host::plant(&[]).unwrap();
    let mut plan = planted.plan();
    // On a bare host only the dangerous capabilities count.
    plan.allowed_caps = None;
    let report: Report = answer(probe().arg("--on-host").arg(plan.to_json()));

    let silent: Vec<&str> = checks()
        .iter()
        .filter(|check| check.on_host == OnHost::Breaches)
        .filter(|check| {
            report
                .finding(check.id)
                .is_none_or(|finding| finding.verdict != Verdict::Breached)
        })
        .map(|check| check.id)
        .collect();
    assert!(silent.is_empty(), "no teeth: {silent:?}\n{}", told(&report));
    assert_eq!(Suite::new(vec![report]).grade, Grade::F);
}

#[test]
fn nothing_that_could_harm_the_host_runs_there() {
    let report: Report = answer(probe().arg("--on-host").arg("{}"));
    for check in checks()
        .iter()
        .filter(|check| check.on_host == OnHost::Unsafe)
    {
        assert!(report.finding(check.id).is_none(), "{} ran", check.id);
    }
}

#[test]
fn without_plants_a_check_of_them_is_inconclusive_and_never_held() {
    let report: Report = answer(probe().arg("--on-host").arg("{}"));
    for id in [
        "files.by-path",
        "processes.signal",
        "network.loopback",
        "keys.read",
        "ipc.abstract",
        "ipc.shared-memory",
    ] {
        let finding = report
            .finding(id)
            .unwrap_or_else(|| panic!("{id} is there"));
        assert_eq!(
            finding.verdict,
            Verdict::Inconclusive,
            "{id}: {}",
            finding.observed
        );
    }
}
