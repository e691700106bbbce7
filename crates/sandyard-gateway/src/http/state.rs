//! State that the requests of a connection share with its driver.

use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use sandyard_core::network::Denial;
use tokio::sync::Notify;

/// The state of a connection's requests.
#[derive(Debug, Default)]
pub(super) struct State {
    inner: Mutex<Inner>,
    /// Notified when the state changes.
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    denial: Option<Denial>,
    failure: Option<String>,
    is_upgrading: bool,
    upgraded: Option<(OnUpgrade, OnUpgrade)>,
}

/// A request for another protocol is in progress until this is dropped.
#[derive(Debug)]
pub(super) struct Upgrading<'a>(&'a State);

impl State {
    /// Notes that a request was for another host: the connection ends.
    pub(super) fn deny(&self, denial: Denial) {
        self.inner.lock().denial.get_or_insert(denial);
        self.changed.notify_one();
    }

    /// Whether a request was for another host.
    pub(super) fn is_denied(&self) -> bool {
        self.inner.lock().denial.is_some()
    }

    /// Notes a failure of the remote side, as one line. The first one counts.
    pub(super) fn fail(&self, reason: String) {
        self.inner.lock().failure.get_or_insert(reason);
    }

    /// Notes that the connection may be about to change its protocol.
    pub(super) fn upgrading(&self) -> Upgrading<'_> {
        self.inner.lock().is_upgrading = true;
        Upgrading(self)
    }

    /// Whether the protocol changes or may change.
    pub(super) fn is_upgrading(&self) -> bool {
        let inner = self.inner.lock();
        inner.is_upgrading || inner.upgraded.is_some()
    }

    /// Notes that both ends agreed on another protocol.
    pub(super) fn upgraded(&self, program: OnUpgrade, other: OnUpgrade) {
        self.inner.lock().upgraded = Some((program, other));
    }

    /// Takes both ends, if they agreed on another protocol.
    pub(super) fn take_upgraded(&self) -> Option<(OnUpgrade, OnUpgrade)> {
        self.inner.lock().upgraded.take()
    }

    /// Takes the denial.
    pub(super) fn take_denial(&self) -> Option<Denial> {
        self.inner.lock().denial.take()
    }

    /// Takes the failure of the remote side.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.inner.lock().failure.take()
    }
}

impl Drop for Upgrading<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().is_upgrading = false;
        self.0.changed.notify_one();
    }
}
