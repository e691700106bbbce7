//! Uses up the resources of one sandbox while its neighbour must answer.

use std::path::PathBuf;

use sandyard_probe::resources::{Exhaust, Exhausted, StoppedBy, judge};
use sandyard_probe::{Finding, Report, Task, Verdict};

use super::environment::{Sandbox, TestEnv};
use crate::output;

/// An attack on a resource.
struct Attack {
    exhaust: Exhaust,
    /// The limit that must stop the attack, in the unit of the resource.
    limit: u64,
    /// Word in a sandbox's limitations that says that this host cannot enforce the limit.
    limitation: &'static str,
}

/// Runs every attack in the sandbox with low limits.
pub(super) async fn run(env: &TestEnv) -> anyhow::Result<Report> {
    let mut findings = Vec::new();
    for attack in attacks(&env.tight) {
        let finding = match missing_limit(&env.tight, attack.limitation) {
            Some(limitation) => skipped(&attack, &limitation),
            None => launch(env, &attack).await,
        };
        output::note(format!("{}: {}", finding.title, finding.observed));
        findings.push(finding);
    }
    Ok(Report {
        label: "resource exhaustion".to_owned(),
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
            limitation: "process count",
        },
        Attack {
            exhaust: Exhaust::Memory {
                give_up_at: limits.memory_bytes * 2,
            },
            limit: limits.memory_bytes,
            limitation: "memory",
        },
        Attack {
            exhaust: Exhaust::MemoryFiles {
                give_up_at: limits.memory_bytes * 2,
            },
            limit: limits.memory_bytes,
            limitation: "memory",
        },
        Attack {
            exhaust: Exhaust::Disk {
                directory: directory.clone(),
                give_up_at: limits.disk_bytes * 2,
            },
            limit: limits.disk_bytes,
            limitation: "disk",
        },
        Attack {
            exhaust: Exhaust::DiskFiles {
                directory,
                give_up_at: files,
            },
            limit: files,
            limitation: "disk",
        },
        Attack {
            exhaust: Exhaust::Processor {
                threads: 16,
                seconds: 3,
            },
            limit: u64::from(limits.cpu_millis),
            limitation: "processor",
        },
    ]
}

fn missing_limit(sandbox: &Sandbox, word: &str) -> Option<String> {
    sandbox
        .info
        .limitations
        .iter()
        .find(|text| text.starts_with("no ") && text.contains(word))
        .cloned()
}

/// The finding for a limit that this host cannot enforce. Running the attack would only harm the host.
fn skipped(attack: &Attack, limitation: &str) -> Finding {
    let nothing = Exhausted {
        reached: 0,
        stopped_by: StoppedBy::Time,
        detail: String::new(),
    };
    let finding = judge(&attack.exhaust, attack.limit, &nothing, true);
    Finding {
        verdict: Verdict::Inconclusive,
        observed: format!("not tried on this host: {limitation}"),
        ..finding
    }
}

async fn launch(env: &TestEnv, attack: &Attack) -> Finding {
    let task = Task::Exhaust(attack.exhaust.clone());
    let (exhausted, answered) =
        while_neighbour_answers(env.tight.task::<Exhausted>("root", &task), &env.neighbour).await;
    let survived = env.tight.recovers().await;
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
        // The probe itself was killed. That is acceptable as long as the neighbour and the agent survive.
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
                observed: format!("the probe did not answer: {error:#}"),
                ..finding
            }
        }
    }
}

/// Waits for `attack` and runs commands in the neighbour meanwhile. Returns whether the neighbour answered, every time.
async fn while_neighbour_answers<T>(
    attack: impl Future<Output = T>,
    neighbour: &Sandbox,
) -> (T, bool) {
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
