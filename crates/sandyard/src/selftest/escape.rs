//! Every way out, tried as root and as the user inside.

use sandyard_probe::{Finding, Group, Report, Severity, Task, Verdict};

use super::yard::{Sandbox, Yard};
use crate::output;

/// The user first: root may leave things in a state that the user would not find otherwise.
pub(super) async fn run(yard: &Yard) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    let users: &[(&str, &str)] = match yard.plan.single_uid {
        true => &[("root", "as the only user inside")],
        false => &[("user", "as the user inside"), ("root", "as root inside")],
    };
    for (user, label) in users {
        output::note(format!("Trying every way out {label}"));
        let mut report: Report = yard
            .target
            .task(user, &Task::Escape(Box::new(yard.plan.clone())))
            .await?;
        report.label = (*label).to_owned();
        report.findings.push(survival(&yard.target, user).await);
        reports.push(report);
    }
    Ok(reports)
}

/// Lets the user kill everything it can, and sees whether the agent lives.
async fn survival(sandbox: &Sandbox, user: &str) -> Finding {
    // It kills the command that runs it too, so its end tells nothing.
    let _ = sandbox.task::<String>(user, &Task::KillAll).await;
    let lives = sandbox.answers().await;
    Finding {
        id: "agent.kill-all".to_owned(),
        title: "The agent survives `kill -9 -1`".to_owned(),
        group: Group::Processes,
        what_was_tried: "kill(-1, SIGKILL), then a command through the agent".to_owned(),
        expected: "the agent answers and runs it".to_owned(),
        observed: if lives { "it did" } else { "it did not" }.to_owned(),
        verdict: if lives {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::Medium,
    }
}
