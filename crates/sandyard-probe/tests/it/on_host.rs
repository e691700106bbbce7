//! On the bare host every plant is found.

use sandyard_probe::{Check, Grade, OnHost, Report, Suite, Verdict, checks, host};

use crate::greeting_server::RunningServer;
use crate::probe::{answer, probe, summary};

#[test]
fn every_check_that_must_breach_on_a_bare_host_does() {
    let planted = host::plant(&[]).unwrap();
    let mut plan = planted.plan();
    // On a bare host only the dangerous capabilities count.
    plan.allowed_caps = None;
    let (_server, neighbour) = RunningServer::start();
    plan.neighbour = Some(neighbour);
    let report: Report = answer(probe().arg("--on-host").arg(plan.to_json()));

    let is_root = rustix::process::geteuid().is_root();
    let must_breach = |check: &Check| match check.on_host {
        // A host without a network has no address to reach and no link to list.
        OnHost::Breaches if plan.lan_tcp.is_none() => {
            !check.id.contains("lan") && !check.id.contains("links")
        }
        OnHost::Breaches => true,
        OnHost::BreachesForRoot => is_root,
        OnHost::Depends | OnHost::Unsafe => false,
    };
    let silent: Vec<&str> = checks()
        .iter()
        .filter(|check| must_breach(check))
        .filter(|check| {
            report
                .finding(check.id)
                .is_none_or(|finding| finding.verdict != Verdict::Breached)
        })
        .map(|check| check.id)
        .collect();
    assert!(
        silent.is_empty(),
        "no teeth: {silent:?}\n{}",
        summary(&report)
    );
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
