//! Activity counters, from which the host decides when the sandbox is idle.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use sandyard_wire::host::Activity;

/// The counters.
#[derive(Debug)]
pub(crate) struct Counters {
    streams: Cell<u32>,
    requests: Cell<u64>,
    bytes: Cell<u64>,
    last_change: Cell<Instant>,
    initialised: Cell<bool>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            streams: Cell::default(),
            requests: Cell::default(),
            bytes: Cell::default(),
            last_change: Cell::new(Instant::now()),
            initialised: Cell::default(),
        }
    }
}

impl Counters {
    /// Notes activity.
    pub(crate) fn touch(&self) {
        self.last_change.set(Instant::now());
    }

    /// Counts an answered request.
    pub(crate) fn add_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.touch();
    }

    /// Counts transferred bytes.
    pub(crate) fn add_bytes(&self, count: usize) {
        self.bytes.set(self.bytes.get() + count as u64);
        self.touch();
    }

    /// Notes that an init request was received.
    pub(crate) fn set_initialised(&self) {
        self.initialised.set(true);
        self.touch();
    }

    /// Counts a stream for as long as the result lives.
    pub(crate) fn open_stream(self: &Rc<Self>) -> OpenStream {
        self.streams.set(self.streams.get() + 1);
        self.touch();
        OpenStream(self.clone())
    }

    /// The counters for the host.
    pub(crate) fn report(&self, processes: usize) -> Activity {
        let idle_ms = self.last_change.get().elapsed().as_millis();
        Activity {
            processes: u32::try_from(processes).unwrap_or(u32::MAX),
            streams: self.streams.get(),
            requests: self.requests.get(),
            bytes: self.bytes.get(),
            idle_ms: u64::try_from(idle_ms).unwrap_or(u64::MAX),
            initialised: self.initialised.get(),
        }
    }
}

/// A stream being counted.
#[derive(Debug)]
pub(crate) struct OpenStream(Rc<Counters>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get().saturating_sub(1));
        self.0.touch();
    }
}
