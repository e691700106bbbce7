//! At most so many calls at a time, each kind by itself: however many creates are stuck, deletes and reads go through.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::layered::{Call, Layer, Work};
use super::never_asked::NeverAsked;
use super::timeout::Effort;
use crate::{ProviderError, ProviderErrorKind, Result, Verb};

/// How many calls may be under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Making: `create`.
    pub create: usize,
    /// Copying and comparing, which is hard on disks: `fork`, `snapshot`, `import_template`, `diff`.
    pub copy: usize,
    /// Changing what is there: `pause`, `delete`, …
    pub change: usize,
    /// Looking: `inspect`, `list`, `usage`, …
    pub read: usize,
    /// How long a call that makes or copies waits for its turn.
    pub long_wait: Duration,
    /// How long any other does.
    pub wait: Duration,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            // A remote provider makes many at once without effort; it says itself when it has no room.
            create: 64,
            copy: 16,
            change: 32,
            read: 64,
            long_wait: Duration::from_secs(180),
            wait: Duration::from_secs(15),
        }
    }
}

/// Lets so many calls through at a time.
#[derive(Debug)]
pub(super) struct Limit {
    settings: LimitSettings,
    create: Semaphore,
    copy: Semaphore,
    change: Semaphore,
    read: Semaphore,
}

impl Limit {
    pub(super) fn new(settings: LimitSettings) -> Self {
        let room = |most: usize| Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            create: room(settings.create),
            copy: room(settings.copy),
            change: room(settings.change),
            read: room(settings.read),
            settings,
        }
    }
}

impl Layer for Limit {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let (room, wait) = match Effort::of(call.verb) {
            Effort::Health => return work().await,
            // Nothing is dialled for it.
            _ if call.verb == Verb::Agent => return work().await,
            Effort::Read => (&self.read, self.settings.wait),
            Effort::Change => (&self.change, self.settings.wait),
            Effort::Long if call.verb == Verb::Create => (&self.create, self.settings.long_wait),
            Effort::Long => (&self.copy, self.settings.long_wait),
        };
        let Ok(turn) = tokio::time::timeout(wait, room.acquire()).await else {
            return Err(busy(call, wait));
        };
        // It is never closed; if it were, the call would go through.
        let _turn = turn.ok();
        work().await
    }
}

fn busy(call: &Call<'_>, waited: Duration) -> ProviderError {
    let kind = match Effort::of(call.verb) {
        Effort::Long => ProviderErrorKind::NoCapacity,
        _ => ProviderErrorKind::Unavailable,
    };
    let message = format!(
        "provider `{}` is busy: `{}` waited {} s for its turn",
        call.provider,
        call.verb,
        waited.as_secs_f64()
    );
    ProviderError::new(kind, message).source(NeverAsked)
}
