//! Signals of the operator to a running server.

use std::fmt;
use std::io;
use std::pin::Pin;

use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use tokio::signal::unix::{SignalKind, signal};

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// Reload the certificate.
    Reload,
    /// Shut down.
    End,
}

type SignalStream = Pin<Box<dyn Stream<Item = SignalAction> + Send>>;

/// Incoming signals: SIGTERM and SIGINT to end, SIGHUP to reload the certificate.
pub struct Signals(SelectAll<SignalStream>);

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signals")
    }
}

impl Signals {
    /// Takes this process's signals.
    ///
    /// # Errors
    ///
    /// When the kernel does not let us.
    pub fn listen() -> io::Result<Self> {
        let kinds = [
            (SignalKind::terminate(), SignalAction::End),
            (SignalKind::interrupt(), SignalAction::End),
            (SignalKind::hangup(), SignalAction::Reload),
        ];
        let mut all = SelectAll::new();
        for (kind, action) in kinds {
            let signal = signal(kind)?;
            let actions = stream::unfold(signal, move |mut signal| async move {
                signal.recv().await?;
                Some((action, signal))
            });
            all.push(Box::pin(actions) as SignalStream);
        }
        Ok(Self(all))
    }

    /// Ends when `stop` does, for servers within another program.
    pub fn until(stop: impl Future<Output = ()> + Send + 'static) -> Self {
        let actions = stream::once(async move {
            stop.await;
            SignalAction::End
        });
        let mut all = SelectAll::new();
        all.push(Box::pin(actions.chain(stream::pending())) as SignalStream);
        Self(all)
    }

    pub(super) async fn next(&mut self) -> SignalAction {
        self.0.next().await.unwrap_or(SignalAction::End)
    }

    /// Waits for the next signal to end.
    pub(super) async fn next_end(&mut self) {
        while self.next().await != SignalAction::End {}
    }
}
