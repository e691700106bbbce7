//! Bounds the number of concurrent calls, each kind separately: however many creates hang, deletes and reads go through.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::layer::{Layer, Request};
use super::rejected_locally::RejectedLocally;
use super::timeout::Effort;
use crate::{Answer, ProviderError, ProviderErrorKind, Result, Verb};

/// How many calls may be in progress at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Number of `create` calls.
    pub create: usize,
    /// Number of calls that copy and compare, which loads disks: `fork`, `snapshot`, `import_template`, `diff`.
    pub copy: usize,
    /// Number of changes: `pause`, `delete`, …
    pub change: usize,
    /// Number of reads: `inspect`, `list`, `usage`, …
    pub read: usize,
    /// How long a call that creates or copies waits for a slot.
    pub long_wait: Duration,
    /// How long any other call waits for a slot.
    pub wait: Duration,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            // A remote provider creates many at once without effort, and reports itself when it has no capacity.
            create: 64,
            copy: 16,
            change: 32,
            read: 64,
            long_wait: Duration::from_secs(180),
            wait: Duration::from_secs(15),
        }
    }
}

/// Bounds the number of concurrent calls.
#[derive(Debug)]
pub(super) struct LimitLayer {
    settings: LimitSettings,
    create: Semaphore,
    copy: Semaphore,
    change: Semaphore,
    read: Semaphore,
}

impl LimitLayer {
    pub(super) fn new(settings: LimitSettings) -> Self {
        let slots = |count: usize| Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            create: slots(settings.create),
            copy: slots(settings.copy),
            change: slots(settings.change),
            read: slots(settings.read),
            settings,
        }
    }
}

#[async_trait]
impl Layer for LimitLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let verb = request.verb();
        let (slots, wait) = match Effort::of(verb) {
            Effort::Health => return request.send().await,
            // Nothing is dialled for it.
            _ if verb == Verb::Agent => return request.send().await,
            Effort::Read => (&self.read, self.settings.wait),
            Effort::Change => (&self.change, self.settings.wait),
            Effort::Long if verb == Verb::Create => (&self.create, self.settings.long_wait),
            Effort::Long => (&self.copy, self.settings.long_wait),
        };
        let Ok(slot) = tokio::time::timeout(wait, slots.acquire()).await else {
            return Err(busy(request, wait));
        };
        // The semaphore is never closed; if it were, the call would go through.
        let _slot = slot.ok();
        request.send().await
    }
}

fn busy(request: &Request<'_>, waited: Duration) -> ProviderError {
    let kind = match Effort::of(request.verb()) {
        Effort::Long => ProviderErrorKind::NoCapacity,
        _ => ProviderErrorKind::Unavailable,
    };
    let message = format!(
        "provider `{}` is busy: `{}` waited {} s for a free slot",
        request.provider(),
        request.verb(),
        waited.as_secs_f64()
    );
    ProviderError::new(kind, message).source(RejectedLocally)
}
