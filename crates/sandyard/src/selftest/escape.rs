//! All escape checks, as the user and as root in the sandbox.

use sandyard_probe::{Finding, Group, Report, Severity, Task, Verdict};

use super::environment::{Sandbox, TestEnv};
use crate::output;

/// Runs the checks as the user first, because root could change the sandbox for the user.
pub(super) async fn run(env: &TestEnv) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    let users: &[(&str, &str)] = match env.plan.single_uid {
        true => &[("root", "as the only user")],
        false => &[("user", "as the user"), ("root", "as root")],
    };
    for (user, label) in users {
        output::note(format!("Running the escape checks {label}"));
        let mut report: Report = env
            .target
            .task(user, &Task::Escape(Box::new(env.plan.clone())))
            .await?;
        report.label = (*label).to_owned();
        report.findings.push(survival(&env.target, user).await);
        reports.push(report);
    }
    Ok(reports)
}

/// Kills every process that the user can kill, then checks that the agent is alive.
async fn survival(sandbox: &Sandbox, user: &str) -> Finding {
    // The task kills itself too, so its result means nothing.
    let _ = sandbox.task::<String>(user, &Task::KillAll).await;
    let is_alive = sandbox.answers().await;
    Finding {
        id: "agent.kill-all".to_owned(),
        title: "The agent survives `kill -9 -1`".to_owned(),
        group: Group::Processes,
        what_was_tried: "kill(-1, SIGKILL), then a command through the agent".to_owned(),
        expected: "the agent answers and runs it".to_owned(),
        observed: if is_alive { "it did" } else { "it did not" }.to_owned(),
        verdict: if is_alive {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::Medium,
    }
}
