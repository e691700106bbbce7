//! Using up one sandbox while its neighbour must answer.

use std::path::PathBuf;

use sandyard_probe::resources::{Exhaust, Exhausted, StoppedBy, judge};
use sandyard_probe::{Finding, Report, Task, Verdict};

use super::yard::{Sandbox, Yard};
use crate::output;

/// An attack, the limit it runs into, and the words by which a sandbox says that this host has no such limit.
struct Attack {
    exhaust: Exhaust,
    limit: u64,
    lack: &'static str,
}

/// Runs every attack in the tight sandbox.
pub(super) async fn run(yard: &Yard) -> anyhow::Result<Report> {
    let mut findings = Vec::new();
    for attack in attacks(&yard.tight) {
        let finding = match missing_limit(&yard.tight, attack.lack) {
            Some(lack) => not_tried(&attack, &lack),
            None => launch(yard, &attack).await,
        };
        output::note(format!("{}: {}", finding.title, finding.observed));
        findings.push(finding);
    }
    Ok(Report {
        label: "using things up".to_owned(),
        identity: None,
        findings,
    })
}

fn attacks(sandbox: &Sandbox) -> Vec<Attack> {
    let limits = &sandbox.info.limits;
    let pids = u64::from(limits.pids);
    let directory = PathBuf::from("/var/tmp");
    let files = 400_000;
    vec![
        Attack {
            exhaust: Exhaust::Processes {
                give_up_at: pids * 4,
                storm_seconds: 3,
            },
            limit: pids,
            lack: "process count",
        },
        Attack {
            exhaust: Exhaust::Memory {
                give_up_at: limits.memory_bytes * 2,
            },
            limit: limits.memory_bytes,
            lack: "memory",
        },
        Attack {
            exhaust: Exhaust::MemoryFiles {
                give_up_at: limits.memory_bytes * 2,
            },
            limit: limits.memory_bytes,
            lack: "memory",
        },
        Attack {
            exhaust: Exhaust::Disk {
                directory: directory.clone(),
                give_up_at: limits.disk_bytes * 2,
            },
            limit: limits.disk_bytes,
            lack: "disk",
        },
        Attack {
            exhaust: Exhaust::DiskFiles {
                directory,
                give_up_at: files,
            },
            limit: files,
            lack: "disk",
        },
        Attack {
            exhaust: Exhaust::Processor {
                threads: 16,
                seconds: 3,
            },
            limit: u64::from(limits.cpu_millis),
            lack: "processor",
        },
    ]
}

fn missing_limit(sandbox: &Sandbox, lack: &str) -> Option<String> {
    sandbox
        .info
        .limitations
        .iter()
        .find(|text| text.starts_with("no ") && text.contains(lack))
        .cloned()
}

/// A limit that the host cannot give was told beforehand; running into nothing would only hurt the host.
fn not_tried(attack: &Attack, lack: &str) -> Finding {
    let nothing = Exhausted {
        reached: 0,
        stopped_by: StoppedBy::Time,
        detail: String::new(),
    };
    let finding = judge(&attack.exhaust, attack.limit, &nothing, true);
    Finding {
        verdict: Verdict::Inconclusive,
        observed: format!("not tried on this host: {lack}"),
        ..finding
    }
}

async fn launch(yard: &Yard, attack: &Attack) -> Finding {
    let task = Task::Exhaust(attack.exhaust.clone());
    let (exhausted, answered) =
        meanwhile(yard.tight.task::<Exhausted>("root", &task), &yard.neighbour).await;
    let survived = yard.tight.recovers().await;
    match exhausted {
        Ok(exhausted) if survived => judge(&attack.exhaust, attack.limit, &exhausted, answered),
        Ok(exhausted) => {
            let finding = judge(&attack.exhaust, attack.limit, &exhausted, answered);
            let observed = format!("{}; the agent did not survive", finding.observed);
            Finding {
                verdict: Verdict::Breached,
                observed,
                ..finding
            }
        }
        // The probe itself was hit. That is within the rules as long as the neighbour and the agent live.
        Err(error) => {
            let nothing = Exhausted {
                reached: 0,
                stopped_by: StoppedBy::Killed,
                detail: String::new(),
            };
            let finding = judge(&attack.exhaust, attack.limit, &nothing, answered);
            let verdict = if answered && survived {
                Verdict::Inconclusive
            } else {
                Verdict::Breached
            };
            Finding {
                verdict,
                observed: format!("the probe gave no answer: {error:#}"),
                ..finding
            }
        }
    }
}

/// Waits for `attack` and asks the neighbour all the while. It must have answered, and never have failed to.
async fn meanwhile<T>(attack: impl Future<Output = T>, neighbour: &Sandbox) -> (T, bool) {
    tokio::pin!(attack);
    let mut answered = 0_u32;
    loop {
        tokio::select! {
            result = &mut attack => return (result, answered > 0 || neighbour.answers().await),
            answers = neighbour.answers() => match answers {
                true => answered += 1,
                false => return (attack.await, false),
            },
        }
    }
}
