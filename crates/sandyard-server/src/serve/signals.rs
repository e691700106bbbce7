//! What the operator wishes while the server runs.

use std::fmt;
use std::io;
use std::pin::Pin;

use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use tokio::signal::unix::{SignalKind, signal};

/// One wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Read the certificate again.
    Reload,
    /// End.
    End,
}

type Wishes = Pin<Box<dyn Stream<Item = Wish> + Send>>;

/// Wishes as they come: SIGTERM and SIGINT to end, SIGHUP to read the certificate again.
pub struct Signals(SelectAll<Wishes>);

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
            (SignalKind::terminate(), Wish::End),
            (SignalKind::interrupt(), Wish::End),
            (SignalKind::hangup(), Wish::Reload),
        ];
        let mut all = SelectAll::new();
        for (kind, wish) in kinds {
            let signal = signal(kind)?;
            let wishes = stream::unfold(signal, move |mut signal| async move {
                signal.recv().await?;
                Some((wish, signal))
            });
            all.push(Box::pin(wishes) as Wishes);
        }
        Ok(Self(all))
    }

    /// Ends when `stop` does, for servers within another program.
    pub fn until(stop: impl Future<Output = ()> + Send + 'static) -> Self {
        let wishes = stream::once(async move {
            stop.await;
            Wish::End
        });
        let mut all = SelectAll::new();
        all.push(Box::pin(wishes.chain(stream::pending())) as Wishes);
        Self(all)
    }

    pub(super) async fn next(&mut self) -> Wish {
        self.0.next().await.unwrap_or(Wish::End)
    }

    /// Waits for the wish to end at once.
    pub(super) async fn next_end(&mut self) {
        while self.next().await != Wish::End {}
    }
}
