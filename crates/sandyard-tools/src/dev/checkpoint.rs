//! `save_checkpoint`: a git commit of a folder.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::call::Call;
use crate::process::{OutputTail, ProcessGroup, find_program};
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::{Effect, Tool};
use crate::tool_state::ToolState;

/// Time limit of a git command.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Maximum length of git's output.
const MAX_OUTPUT: u64 = 64 * 1024;
/// Maximum length of a message.
const MAX_MESSAGE: usize = 10_000;

/// Settings that make a checkpoint independent of the user's settings and the repository's hooks.
const SETTINGS: &[&str] = &[
    "user.name=Sandyard",
    "user.email=checkpoint@sandyard.invalid",
    "commit.gpgSign=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.editor=true",
    "init.defaultBranch=main",
    "safe.directory=*",
    "gc.auto=0",
    "commit.template=",
];

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Path of the folder to save, absolute or relative to the workspace.
    project_directory: String,
    /// Commit message.
    commit_message: String,
}

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool("save_checkpoint", Effect::Adds, save_checkpoint)
        .title("Save a checkpoint")
        .description("Save all files of a folder as a git commit and return its ID, so that git can restore this state. Creates a repository if the \
         folder has none. Skips git-ignored files.")
}

async fn save_checkpoint(tool_state: Arc<ToolState>, args: Args, call: Call) -> Answer {
    let folder = tool_state.workspace.resolve(&args.project_directory)?;
    if !folder.is_dir() {
        return Err(Problem::new(format!(
            "{} is not a folder",
            folder.display()
        )));
    }
    save(&folder, &args.commit_message, &call).await
}

async fn save(folder: &Path, message: &str, call: &Call) -> Answer {
    if message.trim().is_empty() || message.len() > MAX_MESSAGE {
        return Err(Problem::new(format!(
            "commit_message must have 1 to {MAX_MESSAGE} characters"
        )));
    }
    if find_program("git", &[]).is_none() {
        return Err(Problem::new(
            "git is not installed in this sandbox: install it, or use a template that has it",
        ));
    }
    // Do not use a repository of a parent folder.
    if !folder.join(".git").exists() {
        git(folder, &["init", "--quiet"], call).await?;
    }
    git(folder, &["add", "--all", "--", "."], call).await?;
    if git(
        folder,
        &["status", "--porcelain", "--untracked-files=no"],
        call,
    )
    .await?
    .trim()
    .is_empty()
    {
        return Ok(Reply::text(
            "nothing to save: no file has changed since the last checkpoint",
        ));
    }
    let message = format!("--message={message}");
    git(
        folder,
        &[
            "commit",
            "--quiet",
            "--no-verify",
            "--allow-empty-message",
            &message,
        ],
        call,
    )
    .await?;
    let id = git(folder, &["rev-parse", "HEAD"], call).await?;
    Ok(Reply::text(format!("saved as {}", id.trim())))
}

async fn git(folder: &Path, args: &[&str], call: &Call) -> Result<String> {
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .args(args)
        .current_dir(folder)
        // Use only the folder's own repository, and never prompt.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = ProcessGroup::start(command)
        .map_err(|error| Problem::new(format!("cannot start git: {error}")))?;
    let stderr_tail = OutputTail::default();
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let work = async {
        let mut output = Vec::new();
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            let mut stdout = stdout.take(MAX_OUTPUT);
            let reading = async {
                let _ = stdout.read_to_end(&mut output).await;
                let _ = tokio::io::copy(&mut stdout.into_inner(), &mut tokio::io::sink()).await;
            };
            tokio::join!(reading, stderr_tail.clone().follow(stderr));
        }
        let status = group.wait().await;
        (status, String::from_utf8_lossy(&output).into_owned())
    };
    let (status, output) = tokio::select! {
        done = work => done,
        () = tokio::time::sleep(TIME_LIMIT) => return Err(Problem::new("git took too long: add large files to .gitignore")),
        () = call.cancelled.cancelled() => return Err(Problem::new("the call was cancelled")),
    };
    match status {
        Ok(status) if status.success() => Ok(output),
        _ => {
            let step = args.first().copied().unwrap_or_default();
            Err(Problem::new(format!(
                "git {step} failed: {}",
                stderr_tail.text()
            )))
        }
    }
}
