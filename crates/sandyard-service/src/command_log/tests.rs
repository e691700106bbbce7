//! Tests of the command logs as a whole.

use futures_util::FutureExt as _;

use std::time::Duration;

use sandyard_agent_client::wire::event::Output;
use sandyard_core::SandboxId;

use super::queue::{MAX_QUEUED, MAX_QUEUED_LINES, MAX_QUEUED_RECORDS};
use super::{CommandLogs, LogPage, OpenCommand, WhenFull};
use crate::request::LogSource;

#[tokio::test]
async fn output_and_open_commands_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let open = || CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
    let logs = open();
    let command = OpenCommand {
        id: "node/1".to_owned(),
        pid: 7,
        is_logged: true,
        ..OpenCommand::default()
    };
    logs.open_command(&id, command.clone());
    let quiet = OpenCommand {
        id: "node/2".to_owned(),
        pid: 8,
        ..command.clone()
    };
    logs.open_command(&id, quiet);
    for piece in ["first\nsec", "ond\nthi"] {
        let output = Output::Stdout(piece.into());
        logs.add_output(&id, 7, None, &output, 5, WhenFull::Lose)
            .await;
    }
    assert_eq!(
        logs.finish_command(&id, 8, None, 6),
        Some(("node/2".to_owned(), false))
    );
    // As a crash leaves it: what was handed over is written, nothing is closed.
    logs.flush(&id).await;
    let logs = open();
    let texts = |page: LogPage| -> Vec<String> {
        page.entries.into_iter().map(|entry| entry.text).collect()
    };
    let (page, cursor) = logs.tail(&id, 10).await.unwrap();
    assert_eq!(texts(page), ["first", "second"]);
    let open_commands = logs.open_commands(&id).await.unwrap();
    assert_eq!(open_commands.len(), 1);
    assert_eq!(
        (open_commands[0].recorded[0], open_commands[0].resume),
        (13, 13)
    );
    assert!(logs.resume_command(&id, open_commands[0].clone(), 13));
    let output = Output::Stdout("third\nend".into());
    logs.add_output(&id, 7, None, &output, 7, WhenFull::Refuse)
        .await;
    assert_eq!(
        logs.finish_command(&id, 7, None, 8),
        Some(("node/1".to_owned(), true))
    );
    logs.close_command(&id, "node/1".to_owned());
    logs.flush(&id).await;
    let (page, _) = logs.read(&id, cursor, 10).await.unwrap();
    assert_eq!(texts(page), ["third", "end"]);
    assert!(logs.open_commands(&id).await.unwrap().is_empty());
}

fn command(id: &str, pid: u32) -> OpenCommand {
    OpenCommand {
        id: id.to_owned(),
        pid,
        is_logged: true,
        ..OpenCommand::default()
    }
}

#[tokio::test]
async fn a_new_command_with_the_process_id_of_an_old_one_is_unaffected() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let logs = CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
    let add = async |expected, text: &str| {
        let output = Output::Stdout(text.as_bytes().to_vec().into());
        logs.add_output(&id, 7, expected, &output, 5, WhenFull::Lose)
            .await;
    };
    logs.open_command(&id, command("node/1", 7));
    add(Some("node/1"), "old").await;
    logs.open_command(&id, command("node/2", 7));
    assert_eq!(logs.finish_command(&id, 7, Some("node/1"), 6), None);
    assert!(!logs.resume_command(&id, command("node/1", 7), 0));
    add(Some("node/1"), "late\n").await;
    add(Some("node/2"), "new\n").await;
    let ended = logs.finish_command(&id, 7, Some("node/2"), 6);
    assert_eq!(ended, Some(("node/2".to_owned(), true)));
    let (page, _) = logs.tail(&id, 10).await.unwrap();
    let texts: Vec<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
    assert_eq!(texts, ["old", "new"]);
}

/// Logs on a disk that takes nothing: their folder is a file. The queue of the sandbox is full.
fn full_logs(folder: &std::path::Path, id: &SandboxId) -> CommandLogs {
    let blocked = folder.join("logs");
    std::fs::write(&blocked, "").unwrap();
    let logs = CommandLogs::open(Some(blocked), 1 << 20, "node").unwrap();
    while logs
        .0
        .state
        .lock()
        .logs
        .get(id)
        .map_or(0, |log| log.queued_bytes)
        <= MAX_QUEUED
    {
        logs.add_line(id, 1, LogSource::Gateway, &"x".repeat(4000));
    }
    logs
}

#[tokio::test]
async fn waiting_for_room_ends_when_the_log_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let logs = full_logs(folder.path(), &id);
    let waiting = logs.wait_for_room(&id);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    // The files are not there to be removed; what is in memory goes.
    let _ = logs.remove(&id).await;
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    waited.unwrap();
}

#[tokio::test]
async fn a_full_disk_delays_a_logged_command_once_and_others_never() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let logs = full_logs(folder.path(), &id);
    let quiet = OpenCommand {
        is_logged: false,
        ..command("node/2", 8)
    };
    logs.open_command(&id, command("node/1", 7));
    logs.open_command(&id, quiet);
    let output = Output::Stdout("line\n".into());
    let add = |pid, when_full| logs.add_output(&id, pid, None, &output, 5, when_full);
    assert_eq!(add(8, WhenFull::Lose).now_or_never(), Some(true));
    assert_eq!(add(7, WhenFull::Lose).now_or_never(), None);
    assert!(add(7, WhenFull::Lose).await);
    assert_eq!(add(7, WhenFull::Lose).now_or_never(), Some(true));
    assert_eq!(add(7, WhenFull::Refuse).now_or_never(), Some(false));
    assert_eq!(logs.0.state.lock().logs[&id].lost, 2);
    // The disk takes something again: nobody is refused.
    std::fs::remove_file(folder.path().join("logs")).unwrap();
    logs.wait_for_room(&id).await;
    assert!(add(7, WhenFull::Refuse).await);
    let (page, _) = logs.tail(&id, 2).await.unwrap();
    let texts: Vec<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
    assert!(
        texts[0].starts_with("2 lines of output were lost"),
        "{texts:?}"
    );
    assert_eq!(texts[1], "line");
}

#[tokio::test]
async fn the_queue_for_a_full_disk_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let logs = full_logs(folder.path(), &id);
    let full = logs.0.state.lock().logs[&id].queued_bytes;
    for _ in 0..100 {
        logs.open_command(&id, command("node/0", 1));
        logs.finish_command(&id, 1, None, 1);
    }
    // The writer may have had one of them in hand.
    let queued = || logs.0.state.lock().logs[&id].queued_bytes;
    assert!(queued() < full + 5000, "{}", queued());
    for _ in 0..1000 {
        logs.add_line(&id, 1, LogSource::Gateway, &"x".repeat(1000));
    }
    assert!(queued() < MAX_QUEUED_LINES + 2000, "{}", queued());
    let lost = logs.0.state.lock().logs[&id].lost;
    assert!((1..1000).contains(&lost), "{lost}");
    for number in 0..10_000 {
        logs.open_command(&id, command(&format!("node/{number}"), number));
        logs.close_command(&id, format!("node/{number}"));
    }
    assert!(queued() < MAX_QUEUED_RECORDS + 2000, "{}", queued());
}

#[tokio::test]
async fn followers_are_notified_of_writes_and_of_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let id: SandboxId = "abc".parse().unwrap();
    let logs = CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
    let mut follower = logs.subscribe(&id);
    logs.add_line(&id, 1, LogSource::Gateway, "denied");
    follower.changed().await.unwrap();
    let (page, _) = logs.tail(&id, 10).await.unwrap();
    assert_eq!(page.entries[0].text, "denied");
    logs.forget(&id).await;
    assert!(follower.changed().await.is_err());
    logs.remove(&id).await.unwrap();
    assert!(logs.folders().await.unwrap().is_empty());
}
