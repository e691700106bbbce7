//! The browser in the sandbox: one real Chromium, spoken to over a pipe.
//!
//! | module | holds |
//! |---|---|
//! | `find`, `process`, `profile` | the program, its processes and its folder |
//! | `pipe` | the protocol's messages |
//! | `state`, `downloads`, `notes` | what is known from events: tabs, dialogs, files |
//! | `running` | a browser with its tabs |
//! | `page` | one tab: scripts of ours in it, going somewhere, waiting for it |
//! | `mouse`, `typing`, `keys` | hands |
//! | `look` | eyes: the words and the picture every tool answers with |
//! | `tools` | the tools |
//!
//! It is started on first use, by one call at a time; calls take turns. It ends with the tool server, or when nobody has used
//! it for a while. If it ends by itself, the next call starts another and says so.

pub(crate) mod address;
mod downloads;
mod find;
mod keys;
mod look;
mod mouse;
mod notes;
mod page;
mod pipe;
mod process;
mod profile;
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
use crate::reply::Problem;
use crate::workshop::Workshop;

pub(crate) use self::tools::tools;

/// The one browser, started on first use.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    slot: Arc<Mutex<Slot>>,
    limits: Limits,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Until a page that was asked for is there.
    navigation: Duration,
    /// Until a page has come to rest after something was done in it.
    rest: Duration,
    /// Without a call until the browser is ended: it is the largest thing in most sandboxes.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            navigation: Duration::from_secs(30),
            rest: Duration::from_secs(5),
            idle: Duration::from_secs(10 * 60),
        }
    }
}

#[derive(Debug)]
struct Slot {
    running: Option<Running>,
    used: Instant,
    /// How many have been started.
    started: u64,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            running: None,
            used: Instant::now(),
            started: 0,
        }
    }
}

/// The browser while one call uses it.
#[derive(Debug)]
struct Turn {
    slot: OwnedMutexGuard<Slot>,
    limits: Limits,
}

impl Browser {
    /// A turn with the browser, started if need be.
    async fn turn(&self, workshop: &Workshop) -> Result<Turn, Problem> {
        let mut slot = self.slot.clone().lock_owned().await;
        let mut has_ended = false;
        if slot.running.as_ref().is_some_and(Running::is_ended)
            && let Some(old) = slot.running.take()
        {
            has_ended = true;
            old.end().await;
        }
        if slot.running.is_none() {
            let running = Running::start(workshop).await?;
            if has_ended {
                running.state.note(
                    "the browser had ended by itself and was started again: the tabs it had are gone",
                );
            }
            slot.running = Some(running);
            slot.started += 1;
            let watched = Arc::downgrade(&self.slot);
            tokio::spawn(end_when_idle(watched, slot.started, self.limits.idle));
        }
        slot.used = Instant::now();
        Ok(Turn {
            slot,
            limits: self.limits,
        })
    }

    /// Ends it without waiting, for the end of the tool server. In the middle of a call only its folder is left behind, which
    /// the next one to start removes: a browser whose pipe is closed ends by itself.
    pub(crate) fn end_now(&self) {
        if let Ok(mut slot) = self.slot.try_lock() {
            slot.running = None;
        }
    }

    /// Ends it, so that the next turn begins with a new one.
    async fn end(&self) {
        let running = self.slot.lock().await.running.take();
        if let Some(running) = running {
            running.end().await;
        }
    }
}

impl Turn {
    fn running(&self) -> Result<&Running, Problem> {
        self.slot
            .running
            .as_ref()
            .ok_or_else(|| Problem::new("the browser has ended; call again"))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.slot.used = Instant::now();
    }
}

/// Ends the browser that was started with this number when nobody has used it for so long.
async fn end_when_idle(slot: Weak<Mutex<Slot>>, number: u64, idle: Duration) {
    let mut wake = Instant::now() + idle;
    loop {
        tokio::time::sleep_until(wake).await;
        let Some(slot) = slot.upgrade() else {
            return;
        };
        let mut slot = slot.lock().await;
        wake = slot.used + idle;
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
