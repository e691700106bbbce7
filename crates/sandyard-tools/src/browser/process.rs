//! The browser's processes.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::profile::Profile;

/// How much of its last words is kept.
const MAX_WORDS: usize = 2000;

/// Speaks over descriptors 3 and 4, so that there is no port anybody else could connect to. The shell only moves them there.
const SHELL: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// What it is always started with.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Chromium's own sandbox needs user namespaces or a set-uid helper. Inside a sandbox there are neither, and what it
    // would keep pages from is what the sandbox keeps everything from.
    "--no-sandbox",
    // /dev/shm is small in many sandboxes, and a full one crashes pages.
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-client-side-phishing-detection",
    "--disable-print-preview",
    // Restored and prerendered pages would have other frames than their tabs.
    "--disable-features=Translate,MediaRouter,OptimizationHints,BackForwardCache,Prerender2",
    "--metrics-recording-only",
    "--password-store=basic",
    "--mute-audio",
    // Pages in tabs that are not looked at keep their pace, and what is on the screenshot does not depend on the host.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-smooth-scrolling",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--window-size=1280,800",
];

/// A running browser. All of it ends when this is dropped, and its folder is removed.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// There until the end.
    profile: Option<Profile>,
    words: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts this program in this folder. What it reads and what it writes come back with it.
    pub(super) fn start(
        program: &Path,
        profile: Profile,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut folder = OsString::from("--user-data-dir=");
        folder.push(profile.path());
        let mut child = Command::new("/bin/sh")
            .args(["-c", SHELL])
            .arg(program)
            .args(FLAGS)
            .arg(folder)
            .env("TMPDIR", profile.temporary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("its pipes are missing"));
        };
        let words = Arc::default();
        tokio::spawn(keep_last_words(errors, Arc::clone(&words)));
        let process = Self {
            child,
            profile: Some(profile),
            words,
        };
        Ok((process, input, output))
    }

    /// What it said last, for a start that fails.
    pub(super) fn last_words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&words).trim().to_owned()
    }

    /// Ends all of it and waits for that.
    pub(super) async fn end(mut self) {
        self.kill();
        // What cannot be waited for is gone already.
        let _ = self.child.wait().await;
        // It may have become thousands of files: not on the thread that answers.
        let profile = self.profile.take();
        let _ = tokio::task::spawn_blocking(move || drop(profile)).await;
    }

    /// Its process id, while it runs.
    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Where it keeps its things.
    #[cfg(test)]
    pub(super) fn profile(&self) -> &Path {
        self.profile.as_ref().map(Profile::path).unwrap()
    }

    fn kill(&self) {
        // Without an id it has been waited for: the number may be somebody else's by now.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // Whoever has ended needs no killing.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn keep_last_words(mut errors: ChildStderr, words: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&chunk[..count]);
        let surplus = words.len().saturating_sub(MAX_WORDS);
        words.drain(..surplus);
    }
}
