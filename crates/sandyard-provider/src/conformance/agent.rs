//! Commands in an instance, across pauses and stops. Skipped when the provider has no agents.

use super::subject::{CheckResult, Subject, holds, same, works};
use crate::instances::ChangeKind;

pub(super) async fn commands_run_with_the_instances_variables(subject: &Subject) -> CheckResult {
    let id = subject.create().await?.id;
    let output = subject.sh(&id, "echo $WHO").await?;
    same("printed", output.as_str(), "conformance")
}

pub(super) async fn a_command_goes_on_after_a_pause(subject: &Subject) -> CheckResult {
    let id = subject.create().await?.id;
    // It waits for a file that is created after the instance was paused and resumed.
    let command = "touch /tmp/started; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo went on > /tmp/said; cat /tmp/said";
    let listen = async {
        match subject.sh(&id, command).await {
            Err(_) if subject.options.does_pause_cut_off => Ok(None),
            output => output.map(Some),
        }
    };
    let pause = async {
        // Requests during the pause may be refused.
        let wait_for_start = "until [ -e /tmp/started ]; do sleep 0.05; done";
        subject.sh(&id, wait_for_start).await?;
        works("pause", subject.provider.pause(&id).await)?;
        works("resume", subject.provider.resume(&id).await)?;
        subject.sh(&id, "touch /tmp/go").await
    };
    let (received, _) = tokio::try_join!(listen, pause)?;
    let output = match received {
        Some(output) => output,
        None => {
            let wait = "until [ -s /tmp/said ]; do sleep 0.05; done; cat /tmp/said";
            subject.sh(&id, wait).await?
        }
    };
    same("printed", output.as_str(), "went on")
}

pub(super) async fn files_outlive_a_stop(subject: &Subject) -> CheckResult {
    let id = subject.create().await?.id;
    subject.sh(&id, "echo kept > ~/file").await?;
    works("stop", subject.provider.stop(&id).await)?;
    works("start", subject.provider.start(&id).await)?;
    let output = subject.sh(&id, "cat ~/file; echo $WHO").await?;
    same("printed", output.as_str(), "kept\nconformance")
}

pub(super) async fn a_fork_has_the_files_and_the_difference_lists_them(
    subject: &Subject,
) -> CheckResult {
    let id = subject.create().await?.id;
    let path = subject.sh(&id, "echo shared > ~/file; echo ~/file").await?;
    let changes = works("diff", subject.provider.diff(&id).await)?;
    let is_listed = changes
        .iter()
        .any(|change| change.path == path && change.kind == ChangeKind::Added);
    holds("listed", is_listed)?;
    let mut spec = subject.spec();
    spec.env.insert("WHO".to_owned(), "the fork".to_owned());
    let fork = works("fork", subject.provider.fork(&id, &spec).await)?;
    let line = "cat ~/file; echo changed > ~/file; echo $WHO";
    let output = subject.sh(&fork.id, line).await?;
    same("in the fork", output.as_str(), "shared\nthe fork")?;
    let output = subject.sh(&id, "cat ~/file; echo $WHO").await?;
    same("in the source", output.as_str(), "shared\nconformance")
}
