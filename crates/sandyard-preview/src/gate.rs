//! Delays a body until the server asks for it: `Expect: 100-continue`.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// Opens when the port says `100 Continue`, or when it has kept silent for long enough.
///
/// The client is only told to go on once its body is read, so an early refusal saves it the upload.
#[derive(Debug)]
pub(crate) struct Gate {
    signal: Option<oneshot::Receiver<()>>,
    timeout: Pin<Box<Sleep>>,
}

/// Opens the gate.
#[derive(Debug)]
pub(crate) struct Opener(Mutex<Option<oneshot::Sender<()>>>);

/// Makes a gate that opens after `timeout` at the latest.
pub(crate) fn gate(timeout: Duration) -> (Opener, Gate) {
    let (tx, rx) = oneshot::channel();
    let gate = Gate {
        signal: Some(rx),
        timeout: Box::pin(sleep(timeout)),
    };
    (Opener(Mutex::new(Some(tx))), gate)
}

impl Opener {
    /// Opens the gate; once more does nothing.
    pub(crate) fn open(&self) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // Nobody waits any more when the exchange is over.
            let _ = sender.send(());
        }
    }
}

impl Gate {
    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(signal) = &mut self.signal {
            match Pin::new(signal).poll(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(()),
                // The response came without it; the program may still read the body.
                Poll::Ready(Err(_)) => self.signal = None,
                Poll::Pending => {}
            }
        }
        self.timeout.as_mut().poll(cx)
    }
}
