//! Commands inside, across pauses and stops. Skipped where there are no agents.

use super::subject::{Done, Subject, same, works};
use crate::instance::ChangeKind;

pub(super) async fn commands_run_with_the_instances_variables(subject: &Subject) -> Done {
    let id = subject.create().await?.id;
    let said = subject.sh(&id, "echo $WHO").await?;
    same("printed", said.as_str(), "conformance")
}

pub(super) async fn a_command_goes_on_after_a_pause(subject: &Subject) -> Done {
    let id = subject.create().await?.id;
    // It waits for the file that is only made when it has been paused and resumed.
    let waits = "touch /tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo went on > /tmp/said; cat /tmp/said";
    let listen = async {
        match subject.sh(&id, waits).await {
            Err(_) if subject.options.does_pause_cut_off => Ok(None),
            said => said.map(Some),
        }
    };
    let pause = async {
        // What is asked for while it pauses may be refused.
        let begun = "until [ -e /tmp/begun ]; do sleep 0.05; done";
        subject.sh(&id, begun).await?;
        works("pause", subject.provider.pause(&id).await)?;
        works("resume", subject.provider.resume(&id).await)?;
        subject.sh(&id, "touch /tmp/go").await
    };
    let (heard, _) = tokio::try_join!(listen, pause)?;
    let said = match heard {
        Some(said) => said,
        None => {
            let said = "until [ -s /tmp/said ]; do sleep 0.05; done; cat /tmp/said";
            subject.sh(&id, said).await?
        }
    };
    same("printed", said.as_str(), "went on")
}

pub(super) async fn files_outlive_a_stop(subject: &Subject) -> Done {
    let id = subject.create().await?.id;
    subject.sh(&id, "echo kept > ~/file").await?;
    works("stop", subject.provider.stop(&id).await)?;
    works("start", subject.provider.start(&id).await)?;
    let said = subject.sh(&id, "cat ~/file; echo $WHO").await?;
    same("printed", said.as_str(), "kept\nconformance")
}

pub(super) async fn a_fork_has_the_files_and_the_difference_tells_them(subject: &Subject) -> Done {
    let id = subject.create().await?.id;
    let path = subject.sh(&id, "echo shared > ~/file; echo ~/file").await?;
    let changes = works("diff", subject.provider.diff(&id).await)?;
    let is_told = changes
        .iter()
        .any(|change| change.path == path && change.kind == ChangeKind::Added);
    same("told", is_told, true)?;
    let mut spec = subject.spec();
    spec.env.insert("WHO".to_owned(), "the fork".to_owned());
    let fork = works("fork", subject.provider.fork(&id, &spec).await)?;
    let line = "cat ~/file; echo changed > ~/file; echo $WHO";
    let said = subject.sh(&fork.id, line).await?;
    same("in the fork", said.as_str(), "shared\nthe fork")?;
    let said = subject.sh(&id, "cat ~/file; echo $WHO").await?;
    same("in the source", said.as_str(), "shared\nconformance")
}
