//! The browser in the sandbox: one Chromium, controlled over a pipe.
//!
//! | module | holds |
//! |---|---|
//! | `program`, `process`, `profile` | the program, its processes and its profile folder |
//! | `pipe` | messages of the DevTools protocol |
//! | `state`, `downloads`, `notes` | state from events: tabs, dialogs, downloads |
//! | `running` | a running browser with its tabs |
//! | `page` | a tab: scripts, navigation, waiting for it to load |
//! | `mouse`, `typing`, `keys` | input |
//! | `observe` | the text and the screenshot that every tool returns |
//! | `tools` | the tools |
//!
//! The first call starts the browser; calls use it one at a time. It ends with the tool server, or after a time without calls. If it
//! crashes, the next call starts another one and says so.

pub(crate) mod address;
mod downloads;
mod keys;
mod mouse;
mod notes;
mod observe;
mod page;
mod pipe;
mod process;
mod profile;
mod program;
mod running;
mod state;
#[cfg(test)]
mod tests;
mod tools;
mod typing;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use self::running::Running;
use crate::reply::{Problem, Result};
use crate::tool_state::ToolState;

pub(crate) use self::tools::tools;

/// The browser, started on first use.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    slot: Arc<Mutex<Slot>>,
    limits: Limits,
}

/// Time limits.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// For a navigation.
    navigation: Duration,
    /// For a page to load after an action.
    load: Duration,
    /// Without a call until the browser ends, because it needs much memory.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            navigation: Duration::from_secs(30),
            load: Duration::from_secs(5),
            idle: Duration::from_secs(10 * 60),
        }
    }
}

#[derive(Debug)]
struct Slot {
    running: Option<Running>,
    last_used: Instant,
    /// Number of browsers started so far.
    started: u64,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            running: None,
            last_used: Instant::now(),
            started: 0,
        }
    }
}

/// Exclusive use of the browser for one call.
#[derive(Debug)]
struct BrowserGuard {
    slot: OwnedMutexGuard<Slot>,
    limits: Limits,
}

impl Browser {
    /// Waits for exclusive use of the browser, and starts it if necessary.
    async fn acquire(&self, tool_state: &ToolState) -> Result<BrowserGuard> {
        let mut slot = self.slot.clone().lock_owned().await;
        let mut has_ended = false;
        if slot.running.as_ref().is_some_and(Running::is_ended)
            && let Some(old) = slot.running.take()
        {
            has_ended = true;
            old.end().await;
        }
        if slot.running.is_none() {
            let running = Running::start(tool_state).await?;
            if has_ended {
                running
                    .state
                    .note("the browser had crashed and was restarted: its tabs are gone");
            }
            slot.running = Some(running);
            slot.started += 1;
            let watched = Arc::downgrade(&self.slot);
            tokio::spawn(end_when_idle(watched, slot.started, self.limits.idle));
        }
        slot.last_used = Instant::now();
        Ok(BrowserGuard {
            slot,
            limits: self.limits,
        })
    }

    /// Ends the browser without waiting, when the tool server ends. During a call only its profile folder remains, which the next start
    /// removes: a browser ends when its pipe is closed.
    pub(crate) fn end_now(&self) {
        if let Ok(mut slot) = self.slot.try_lock() {
            slot.running = None;
        }
    }

    /// Ends the browser, so that the next call starts a new one.
    async fn end(&self) {
        let running = self.slot.lock().await.running.take();
        if let Some(running) = running {
            running.end().await;
        }
    }
}

impl BrowserGuard {
    fn running(&self) -> Result<&Running> {
        self.slot
            .running
            .as_ref()
            .ok_or_else(|| Problem::new("the browser has ended: call again"))
    }
}

impl Drop for BrowserGuard {
    fn drop(&mut self) {
        self.slot.last_used = Instant::now();
    }
}

/// Ends the browser with this number after a time without calls.
async fn end_when_idle(slot: Weak<Mutex<Slot>>, number: u64, idle: Duration) {
    let mut wake = Instant::now() + idle;
    loop {
        tokio::time::sleep_until(wake).await;
        let Some(slot) = slot.upgrade() else {
            return;
        };
        let mut slot = slot.lock().await;
        wake = slot.last_used + idle;
        if slot.running.is_none() || slot.started != number {
            return;
        }
        if wake <= Instant::now() {
            if let Some(running) = slot.running.take() {
                running.end().await;
            }
            return;
        }
    }
}
