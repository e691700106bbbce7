//! The processes of the browser.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::profile::Profile;

/// Number of bytes of standard error to keep.
const MAX_STDERR: usize = 2000;

/// The browser uses descriptors 3 and 4, so that there is no port that others could connect to. The shell moves them there.
const SHELL: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// Command-line flags.
const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Chromium's own sandbox needs user namespaces or a set-user-ID helper, which our sandboxes do not have. Our sandbox takes its place.
    "--no-sandbox",
    // /dev/shm is small in many sandboxes, and pages crash when it is full.
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
    // In restored and prerendered pages the main frame differs from the target.
    "--disable-features=Translate,MediaRouter,OptimizationHints,BackForwardCache,Prerender2",
    "--metrics-recording-only",
    "--password-store=basic",
    "--mute-audio",
    // Background tabs keep their speed, and screenshots do not depend on the host.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-smooth-scrolling",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--window-size=1280,800",
];

/// The processes of a browser. Dropping this ends them and removes the profile folder.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Present until the end.
    profile: Option<Profile>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts the program with a profile. Returns the two ends of its pipe too.
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
            return Err(io::Error::other("the pipes of the browser are missing"));
        };
        let stderr = Arc::default();
        tokio::spawn(collect_stderr(errors, Arc::clone(&stderr)));
        let process = Self {
            child,
            profile: Some(profile),
            stderr,
        };
        Ok((process, input, output))
    }

    /// The end of its standard error, for a failed start.
    pub(super) fn stderr_text(&self) -> String {
        let stderr = self.stderr.lock();
        String::from_utf8_lossy(&stderr).trim().to_owned()
    }

    /// Kills the processes and waits for their end.
    pub(super) async fn end(mut self) {
        self.kill();
        let _ = self.child.wait().await;
        // The profile may have thousands of files, so do not remove it on the async thread.
        let profile = self.profile.take();
        let _ = tokio::task::spawn_blocking(move || drop(profile)).await;
    }

    /// Process ID, while the browser runs.
    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The profile folder.
    #[cfg(test)]
    pub(super) fn profile(&self) -> &Path {
        self.profile.as_ref().map(Profile::path).unwrap()
    }

    fn kill(&self) {
        // Without an ID the process was reaped, and another process may have the ID.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn collect_stderr(mut errors: ChildStderr, stderr: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        let mut stderr = stderr.lock();
        stderr.extend_from_slice(&chunk[..count]);
        let surplus = stderr.len().saturating_sub(MAX_STDERR);
        stderr.drain(..surplus);
    }
}
