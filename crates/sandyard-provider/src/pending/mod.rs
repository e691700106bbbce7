//! A provider that could not be reached when the server began: it is connected by the first call that finds it there.

mod calls;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sandyard_core::Clock;
use sandyard_core::network::Flow;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::instance::Ready;
use crate::provider::{Provider, ProviderInfo};
use crate::{ProviderError, ProviderErrorKind, Result};

/// A connection on its way.
type Connecting = Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>>> + Send>>;

/// How long what the last try said is the answer.
const PAUSE: Duration = Duration::from_secs(3);

/// How long a try may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Flows on their way from the provider to whoever took them.
const MAX_FLOWS: usize = 1000;

/// A provider that may not be reachable yet.
///
/// Every call connects first, one of them at a time and not more often than every three seconds; in between the last failure is
/// the answer. A try that was begun is ended, also when nobody waits for it any more. What it tells about itself is what it was
/// made with until it is connected.
pub struct Pending(Arc<Shared>);

struct Shared {
    placeholder: ProviderInfo,
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    connected: OnceLock<Arc<dyn Provider>>,
    /// Held while connecting.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    failures: u32,
    since_ms: i64,
    last: Option<(Instant, ProviderError)>,
    /// Until the provider's own flows go through it.
    flows: Option<mpsc::Sender<Flow>>,
    flows_out: Option<mpsc::Receiver<Flow>>,
    /// How many to keep ready, as last said.
    wanted: Option<Vec<Ready>>,
}

impl Pending {
    /// A provider that says `placeholder` of itself until `connect` has succeeded once. `failure` is why it did not before, if
    /// it was tried.
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
        let last = failure.map(|failure| (Instant::now(), failure));
        Self(Arc::new(Shared {
            placeholder,
            connect: Box::new(move || Box::pin(connect())),
            connected: OnceLock::new(),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                failures: u32::from(last.is_some()),
                since_ms: clock.now_ms(),
                last,
                flows: Some(flows),
                flows_out: Some(flows_out),
                wanted: None,
            }),
        }))
    }

    /// Says whether it is connected.
    pub fn is_connected(&self) -> bool {
        self.0.connected.get().is_some()
    }

    /// The provider itself.
    async fn provider(&self) -> Result<&Arc<dyn Provider>> {
        if let Some(provider) = self.0.connected.get() {
            return Ok(provider);
        }
        // On a task of its own: whoever waits may give up sooner than connecting takes, again and again.
        let shared = self.0.clone();
        match tokio::spawn(async move { shared.try_once().await }).await {
            Ok(tried) => tried?,
            Err(error) => return Err(self.0.broke_off().source(error)),
        }
        self.0.connected.get().ok_or_else(|| self.0.broke_off())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects, unless it is or was just tried.
    async fn try_once(&self) -> Result<()> {
        let _turn = self.turn.lock().await;
        if self.connected.get().is_some() {
            return Ok(());
        }
        if let Some((at, failure)) = &self.state().last
            && at.elapsed() < PAUSE
        {
            return Err(failure.again());
        }
        let tried = tokio::time::timeout(PATIENCE, (self.connect)()).await;
        match tried.unwrap_or_else(|_| Err(self.too_long())) {
            Ok(provider) => {
                self.settle(provider).await;
                Ok(())
            }
            Err(failure) => {
                let mut state = self.state();
                state.failures = state.failures.saturating_add(1);
                state.last = Some((Instant::now(), failure.again()));
                Err(failure)
            }
        }
    }

    /// Takes up a provider that was found, and makes up for what it missed.
    async fn settle(&self, provider: Arc<dyn Provider>) {
        let (flows, wanted) = {
            let mut state = self.state();
            (state.flows.take(), state.wanted.take())
        };
        if let (Some(to), Some(from)) = (flows, provider.take_flows()) {
            tokio::spawn(pass_on(from, to));
        }
        let provider = self.connected.get_or_init(|| provider);
        tracing::info!(
            provider = provider.info().name,
            "a provider is reached at last"
        );
        if let Some(wanted) = wanted
            && let Err(error) = provider.keep_ready(&wanted).await
        {
            tracing::warn!(provider = provider.info().name, %error, "no sandboxes are kept ready");
        }
    }

    fn broke_off(&self) -> ProviderError {
        let message = format!(
            "connecting to provider `{}` broke off",
            self.placeholder.name
        );
        ProviderError::new(ProviderErrorKind::Unavailable, message)
    }

    fn too_long(&self) -> ProviderError {
        let name = &self.placeholder.name;
        let message = format!(
            "provider `{name}` did not answer within {} s",
            PATIENCE.as_secs()
        );
        ProviderError::new(ProviderErrorKind::TimedOut, message)
    }
}

/// Ends when either side does, so that whoever took the flows sees their end.
async fn pass_on(mut from: mpsc::Receiver<Flow>, to: mpsc::Sender<Flow>) {
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
