//! Closes descriptors that came from a sandbox, on threads that may block.
//!
//! A sandbox can make `close` of the last reference block: a socket lingers, or a large unlinked file has to be freed. A
//! sandbox that shares a socket can change it until the moment of the close, so a check beforehand does not help.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::runtime::Handle;

/// Maximum number of blocked threads of the shared closer.
const SHARED_THREADS: usize = 16;

static SHARED: LazyLock<Arc<Closer>> = LazyLock::new(|| Arc::new(Closer::new(SHARED_THREADS)));

/// A queue of descriptors to close, with a bound on the threads that work on it.
#[derive(Debug)]
pub struct Closer {
    max_threads: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(OwnedFd, Ending)>,
    /// Threads at work; each has one descriptor in hand.
    threads: usize,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// A socket's peer gets a reset.
    Abort,
    /// The kernel delivers what was written, in the background.
    Orderly,
}

impl Closer {
    /// A closer that blocks `max_threads` threads at most.
    pub fn new(max_threads: usize) -> Self {
        Self {
            max_threads,
            state: Mutex::default(),
        }
    }

    /// The closer of connections to agents.
    pub(crate) fn shared() -> Arc<Self> {
        SHARED.clone()
    }

    /// Closes a descriptor of any kind. A connection of TCP is reset at once, even if others hold it too.
    pub fn abort(self: &Arc<Self>, descriptor: OwnedFd) {
        self.push(descriptor, Ending::Abort);
    }

    /// Closes a socket without cutting off what was written to it.
    pub fn close(self: &Arc<Self>, socket: OwnedFd) {
        self.push(socket, Ending::Orderly);
    }

    /// How many descriptors are not closed yet.
    pub fn pending(&self) -> usize {
        let state = self.state.lock();
        state.queue.len() + state.threads
    }

    fn push(self: &Arc<Self>, descriptor: OwnedFd, ending: Ending) {
        {
            let mut state = self.state.lock();
            state.queue.push_back((descriptor, ending));
            if state.threads == self.max_threads {
                return;
            }
            state.threads += 1;
        }
        let closer = self.clone();
        match Handle::try_current() {
            // The runtime reuses these threads, so an ordinary close starts none.
            Ok(runtime) => drop(runtime.spawn_blocking(move || closer.work())),
            Err(_) => drop(std::thread::spawn(move || closer.work())),
        }
    }

    fn work(&self) {
        loop {
            let (descriptor, ending) = {
                let mut state = self.state.lock();
                match state.queue.pop_front() {
                    Some(next) => next,
                    None => {
                        state.threads -= 1;
                        return;
                    }
                }
            };
            // Both avoid the blocking, unless the sandbox changes the socket in between. Descriptors that are not sockets refuse them.
            let _ = match ending {
                Ending::Abort => rustix::net::connect_unspec(&descriptor),
                Ending::Orderly => sockopt::set_socket_linger(&descriptor, None),
            };
            drop(descriptor);
        }
    }
}
