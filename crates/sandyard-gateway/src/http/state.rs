//! What the requests of a connection tell whoever drives it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::upgrade::OnUpgrade;
use sandyard_core::network::Denial;
use tokio::sync::Notify;

/// What became of the requests so far.
#[derive(Debug, Default)]
pub(super) struct State {
    inner: Mutex<Inner>,
    /// Something changed.
    pub(super) news: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    denial: Option<Denial>,
    failure: Option<String>,
    is_upgrading: bool,
    upgraded: Option<(OnUpgrade, OnUpgrade)>,
}

/// A request that asks for another protocol is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Upgrading<'a>(&'a State);

impl State {
    /// A request was for another host: the connection is over.
    pub(super) fn deny(&self, denial: Denial) {
        self.inner().denial.get_or_insert(denial);
        self.news.notify_one();
    }

    /// Says whether a request was for another host.
    pub(super) fn is_denied(&self) -> bool {
        self.inner().denial.is_some()
    }

    /// The other side failed; one line for people. The first counts.
    pub(super) fn fail(&self, reason: String) {
        self.inner().failure.get_or_insert(reason);
    }

    /// Notes that the connection may be about to change its protocol.
    pub(super) fn upgrading(&self) -> Upgrading<'_> {
        self.inner().is_upgrading = true;
        Upgrading(self)
    }

    /// Says whether it may be, or is.
    pub(super) fn is_upgrading(&self) -> bool {
        let inner = self.inner();
        inner.is_upgrading || inner.upgraded.is_some()
    }

    /// Both ends have agreed.
    pub(super) fn upgraded(&self, program: OnUpgrade, other: OnUpgrade) {
        self.inner().upgraded = Some((program, other));
    }

    /// Takes both ends out, if they have agreed.
    pub(super) fn take_upgraded(&self) -> Option<(OnUpgrade, OnUpgrade)> {
        self.inner().upgraded.take()
    }

    /// Takes the reason why it was denied out.
    pub(super) fn take_denial(&self) -> Option<Denial> {
        self.inner().denial.take()
    }

    /// Takes the reason why the other side failed out.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.inner().failure.take()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Upgrading<'_> {
    fn drop(&mut self) {
        self.0.inner().is_upgrading = false;
        self.0.news.notify_one();
    }
}
