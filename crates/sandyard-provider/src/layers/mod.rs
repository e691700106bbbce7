//! Layers around a provider: each is a provider around a provider.
//!
//! | file | what it does |
//! |---|---|
//! | `layer` | passes every call through a layer |
//! | `trace` | records every call in the log and in metrics |
//! | `retry` | retries calls that may succeed later and do no harm twice |
//! | `breaker` | rejects calls while the provider does not answer |
//! | `limit` | bounds the number of concurrent calls, each kind separately |
//! | `rejected_locally` | tells what a layer rejected from what the provider did |
//! | `timeout` | ends calls that take too long |
//! | `chaos` | injects faults for tests |
//!
//! [`stack`] puts them in order, from the outside in:
//!
//! 1. `trace` sees what the caller sees: one call, however often it was attempted, with all of its waiting.
//! 2. `retry` has the breaker inside: every attempt counts, and one that the breaker rejects is the last. No slot is held while
//!    it waits.
//! 3. `breaker` rejects before a call waits for a slot, so that calls fail at once even while hanging calls hold all slots. A
//!    call that got no slot says nothing about the provider and is not counted. Health checks are never rejected; their success
//!    does not make up for other calls that fail.
//! 4. `limit` has the timeout inside: the wait for a slot has its own bound, and a call that hangs gives its slot back.
//! 5. `timeout` bounds each attempt.
//! 6. `chaos` is next to the provider, so that all other layers have to deal with its faults. It is for tests only.
//!
//! Requests to an agent, and their streams, go directly to the agent.

mod breaker;
mod chaos;
mod layer;
mod limit;
mod rejected_locally;
mod retry;
mod timeout;
mod trace;

use std::sync::Arc;

use sandyard_core::Clock;

use crate::provider::Provider;
use layer::Layered;

pub use breaker::BreakerSettings;
pub use chaos::{ChaosSettings, ChaosSettingsError, Fault, Rule};
pub use limit::LimitSettings;
pub use retry::RetrySettings;
pub use timeout::TimeoutSettings;

/// The layers and their settings; a layer that is `None` is left out. Calls are always traced.
#[derive(Clone, Debug)]
pub struct LayerSettings {
    /// Retries.
    pub retry: Option<RetrySettings>,
    /// Circuit breaker.
    pub breaker: Option<BreakerSettings>,
    /// Bounds on concurrent calls.
    pub limit: Option<LimitSettings>,
    /// Bounds on the duration of calls.
    pub timeout: Option<TimeoutSettings>,
    /// Injected faults, for tests.
    pub chaos: Option<ChaosSettings>,
}

impl Default for LayerSettings {
    /// Suits a provider that is reached over a network or a socket.
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
    /// Traces calls and nothing else, which suits a provider inside this process.
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

/// Puts layers around a provider. `clock` dates the changes of its [`Condition`](crate::Condition).
pub fn stack(
    provider: Arc<dyn Provider>,
    settings: LayerSettings,
    clock: Clock,
) -> Arc<dyn Provider> {
    let mut stack = provider;
    if let Some(chaos) = settings.chaos {
        stack = Layered::around(stack, chaos::ChaosLayer::new(chaos));
    }
    if let Some(timeout) = settings.timeout {
        stack = Layered::around(stack, timeout::TimeoutLayer::new(timeout));
    }
    if let Some(limit) = settings.limit {
        stack = Layered::around(stack, limit::LimitLayer::new(limit));
    }
    if let Some(breaker) = settings.breaker {
        stack = Layered::around(stack, breaker::BreakerLayer::new(breaker, clock));
    }
    if let Some(retry) = settings.retry {
        stack = Layered::around(stack, retry::RetryLayer::new(retry));
    }
    Layered::around(stack, trace::TraceLayer::default())
}
