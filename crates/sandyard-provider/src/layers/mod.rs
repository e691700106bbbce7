//! What lies around a provider, whichever it is: each layer is a provider around a provider.
//!
//! | file | what it does |
//! |---|---|
//! | `layered` | passes every call through a layer, and all else on |
//! | `trace` | tells of every call in the log and in measurements |
//! | `retry` | tries again what may work later and does no harm twice |
//! | `breaker` | stops asking who does not answer |
//! | `limit` | lets so many calls through at a time, each kind by itself |
//! | `never_asked` | tells what a layer refused from what the provider did |
//! | `timeout` | ends calls that take too long |
//! | `chaos` | makes calls fail, hang and lose their answers, on purpose |
//!
//! [`stack`] puts them in order, from the outside in:
//!
//! 1. `trace` sees what the caller sees: one call, however often it was tried, with all of its waiting.
//! 2. `retry` has the breaker inside: every try counts as one, and one that the breaker refuses is the last. Nothing is held
//!    while it waits.
//! 3. `breaker` refuses before anything waits for its turn, so that calls fail at once even while all turns are taken by calls
//!    that hang. What fails for want of a turn says nothing of the provider, and it does not count it. Asking whether the
//!    provider is there is never refused; that it is does not make up for what it leaves undone.
//! 4. `limit` has the timeout inside: waiting for a turn is bounded by itself, and a call that hangs gives its turn back.
//! 5. `timeout` bounds each try.
//! 6. `chaos` is next to the provider, so that all the others have to live with it. It is for tests alone: no setting of a
//!    server puts it there.
//!
//! What an agent is asked, and the streams of it, go to the agent past all of them.

mod breaker;
mod chaos;
mod dice;
mod layered;
mod limit;
mod never_asked;
mod retry;
mod timeout;
mod trace;

use std::sync::Arc;

use sandyard_core::Clock;

use crate::provider::Provider;
use layered::Layered;

pub use breaker::BreakerSettings;
pub use chaos::{ChaosSettings, ChaosSettingsError, Fault, Rule};
pub use limit::LimitSettings;
pub use retry::RetrySettings;
pub use timeout::TimeoutSettings;

/// Which layers there are, and what each goes by. What is absent is left out; calls are always told of.
#[derive(Clone, Debug)]
pub struct LayerSettings {
    /// Tries again.
    pub retry: Option<RetrySettings>,
    /// Stops asking who does not answer.
    pub breaker: Option<BreakerSettings>,
    /// Bounds how many calls are under way.
    pub limit: Option<LimitSettings>,
    /// Bounds how long a call takes.
    pub timeout: Option<TimeoutSettings>,
    /// Breaks things on purpose; for tests.
    pub chaos: Option<ChaosSettings>,
}

impl Default for LayerSettings {
    /// What suits a provider that is reached over a network or a socket.
    fn default() -> Self {
        Self {
            retry: Some(RetrySettings::default()),
            breaker: Some(BreakerSettings::default()),
            limit: Some(LimitSettings::default()),
            timeout: Some(TimeoutSettings::default()),
            chaos: None,
        }
    }
}

impl LayerSettings {
    /// Calls are told of and nothing else, which suits a provider inside this process.
    pub fn none() -> Self {
        Self {
            retry: None,
            breaker: None,
            limit: None,
            timeout: None,
            chaos: None,
        }
    }
}

/// Puts layers around a provider. The clock says since when it has not answered.
pub fn stack(
    provider: Arc<dyn Provider>,
    settings: LayerSettings,
    clock: Clock,
) -> Arc<dyn Provider> {
    let mut stack = provider;
    if let Some(chaos) = settings.chaos {
        stack = Layered::around(stack, chaos::Chaos::new(chaos));
    }
    if let Some(timeout) = settings.timeout {
        stack = Layered::around(stack, timeout::Timeout::new(timeout));
    }
    if let Some(limit) = settings.limit {
        stack = Layered::around(stack, limit::Limit::new(limit));
    }
    if let Some(breaker) = settings.breaker {
        stack = Layered::around(stack, breaker::Breaker::new(breaker, clock));
    }
    if let Some(retry) = settings.retry {
        stack = Layered::around(stack, retry::Again::new(retry));
    }
    Layered::around(stack, trace::Trace::default())
}
