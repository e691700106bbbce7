//! A provider that could not be reached when the server started: the first call that finds it there connects it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use sandyard_core::Clock;
use sandyard_core::network::Flow;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::call::{Answer, Call};
use crate::forward::Forward;
use crate::provider::{Condition, Provider, ProviderInfo, Result};
use crate::templates::Ready;
use crate::{ProviderError, ProviderErrorKind};

/// A connection attempt in progress.
type Connecting = Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>>> + Send>>;

/// Minimum time between two attempts. In between, calls get the error of the last one.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);

/// How long an attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Capacity of the channel that passes on the provider's flows.
const MAX_FLOWS: usize = 1000;

/// A provider that may not be reachable yet.
///
/// Every call connects first, one at a time and at most every three seconds; in between, calls get the last error. An attempt
/// that has begun is finished, also when its caller is gone. Until it is connected, [`Provider::info`] is a placeholder.
pub struct Pending(Arc<Shared>);

struct Shared {
    placeholder: ProviderInfo,
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    connected: OnceLock<Arc<dyn Provider>>,
    /// Held while connecting.
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    failures: u32,
    since_ms: i64,
    last_failure: Option<(Instant, ProviderError)>,
    /// Passed on to once the provider is connected.
    flows: Option<mpsc::Sender<Flow>>,
    /// Until it is taken.
    flows_out: Option<mpsc::Receiver<Flow>>,
    /// The last `keep_ready` that could not be passed on.
    pool: Option<Vec<Ready>>,
}

impl Pending {
    /// A provider whose info is `placeholder` until `connect` succeeds. `failure` is the error of an attempt that was made
    /// already.
    pub fn new<F>(
        placeholder: ProviderInfo,
        clock: &Clock,
        failure: Option<ProviderError>,
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Arc<dyn Provider>>> + Send + 'static,
    {
        let (flows, flows_out) = mpsc::channel(MAX_FLOWS);
        let last_failure = failure.map(|failure| (Instant::now(), failure));
        Self(Arc::new(Shared {
            placeholder,
            connect: Box::new(move || Box::pin(connect())),
            connected: OnceLock::new(),
            connecting: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                failures: u32::from(last_failure.is_some()),
                since_ms: clock.now_ms(),
                last_failure,
                flows: Some(flows),
                flows_out: Some(flows_out),
                pool: None,
            }),
        }))
    }

    /// Whether it is connected.
    pub fn is_connected(&self) -> bool {
        self.0.connected.get().is_some()
    }

    /// The connected provider.
    async fn provider(&self) -> Result<&Arc<dyn Provider>> {
        if let Some(provider) = self.0.connected.get() {
            return Ok(provider);
        }
        // On a task of its own: callers may give up sooner than connecting takes, every time.
        let shared = self.0.clone();
        match tokio::spawn(async move { shared.try_connect().await }).await {
            Ok(tried) => tried?,
            Err(error) => return Err(self.0.interrupted().source(error)),
        }
        self.0.connected.get().ok_or_else(|| self.0.interrupted())
    }
}

#[async_trait]
impl Forward for Pending {
    async fn forward(&self, call: &Call<'_>) -> Result<Answer> {
        match (self.provider().await, call) {
            (Ok(provider), call) => call.send_to(&**provider).await,
            (Err(error), Call::KeepReady { pool }) => {
                // Passed on once the provider is connected.
                self.0.state.lock().pool = Some(pool.to_vec());
                Err(error)
            }
            (Err(error), _) => Err(error),
        }
    }
}

#[async_trait]
impl Provider for Pending {
    fn info(&self) -> &ProviderInfo {
        let connected = self.0.connected.get();
        connected.map_or(&self.0.placeholder, |provider| provider.info())
    }

    fn condition(&self) -> Condition {
        if let Some(provider) = self.0.connected.get() {
            return provider.condition();
        }
        let state = self.0.state.lock();
        let last_failure = state.last_failure.as_ref();
        Condition {
            is_reachable: false,
            since_ms: Some(state.since_ms),
            failures: state.failures,
            reason: last_failure.map(|(_, failure)| failure.message.clone()),
            calls: 0,
        }
    }

    async fn check_health(&self) -> Result<()> {
        self.forward(&Call::CheckHealth).await?.try_into()
    }

    /// Taken before it is known whether there are any: if not, the channel closes once the provider is connected.
    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        self.0.state.lock().flows_out.take()
    }

    async fn close(&self) {
        self.0.state.lock().flows = None;
        if let Some(provider) = self.0.connected.get() {
            provider.close().await;
        }
    }
}

impl Shared {
    /// Connects, unless it is connected or an attempt just failed.
    async fn try_connect(&self) -> Result<()> {
        let _connecting = self.connecting.lock().await;
        if self.connected.get().is_some() {
            return Ok(());
        }
        if let Some((at, failure)) = &self.state.lock().last_failure
            && at.elapsed() < RETRY_INTERVAL
        {
            return Err(failure.duplicate());
        }
        let tried = tokio::time::timeout(CONNECT_TIMEOUT, (self.connect)()).await;
        match tried.unwrap_or_else(|_| Err(self.timed_out())) {
            Ok(provider) => {
                self.set_connected(provider).await;
                Ok(())
            }
            Err(failure) => {
                let mut state = self.state.lock();
                state.failures = state.failures.saturating_add(1);
                state.last_failure = Some((Instant::now(), failure.duplicate()));
                Err(failure)
            }
        }
    }

    /// Uses the provider from now on, and passes on what waited for it.
    async fn set_connected(&self, provider: Arc<dyn Provider>) {
        let (flows, pool) = {
            let mut state = self.state.lock();
            (state.flows.take(), state.pool.take())
        };
        if let (Some(to), Some(from)) = (flows, provider.take_flows()) {
            tokio::spawn(forward_flows(from, to));
        }
        let provider = self.connected.get_or_init(|| provider);
        let name = &provider.info().name;
        tracing::info!(provider = name, "Connected to provider `{name}`");
        if let Some(pool) = pool
            && let Err(error) = provider.keep_ready(&pool).await
        {
            tracing::warn!(provider = name, %error, "Failed to keep sandboxes ready with provider `{name}`");
        }
    }

    fn interrupted(&self) -> ProviderError {
        let name = &self.placeholder.name;
        let message = format!("connecting to provider `{name}` was interrupted");
        ProviderError::new(ProviderErrorKind::Unavailable, message)
    }

    fn timed_out(&self) -> ProviderError {
        let (name, seconds) = (&self.placeholder.name, CONNECT_TIMEOUT.as_secs());
        let message = format!("provider `{name}` did not answer within {seconds} s");
        ProviderError::new(ProviderErrorKind::TimedOut, message)
    }
}

/// Ends when either side does, so that the receiver sees the end of the provider's flows.
async fn forward_flows(mut from: mpsc::Receiver<Flow>, to: mpsc::Sender<Flow>) {
    while let Some(flow) = from.recv().await {
        if to.send(flow).await.is_err() {
            return;
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("name", &self.0.placeholder.name)
            .field("connected", &self.0.connected.get())
            .finish_non_exhaustive()
    }
}
