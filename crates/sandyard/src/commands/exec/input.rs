//! Forwards standard input, signals and terminal resizes to the command.

use std::io::IsTerminal;

use bytes::Bytes;
use sandyard_client::ExecInput;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::session::Session;
use super::size;

/// Number of Ctrl-C after which we end, whatever the command does.
const INTERRUPTS_TO_QUIT: u32 = 3;

/// The command's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Input {
    /// The user's keystrokes.
    Terminal,
    /// Our standard input.
    Pipe,
    /// Empty.
    Nothing,
    /// Our standard input. If it is empty, the process's input stays open: attaching without input must not close it.
    Attached,
}

/// What to do when we get SIGHUP or SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum OnHangup {
    /// Forward the signal to the process.
    Forward,
    /// End, and leave the process running.
    Detach,
}

/// The user ended this program, not the command.
#[derive(Debug)]
pub(super) struct Quit;

/// A signal or resize to forward.
enum Control {
    Signal(&'static str),
    Resize,
}

/// The forwarding tasks; [`Tasks::abort`] ends them.
#[derive(Debug)]
pub(super) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    pub(super) fn abort(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Starts forwarding to the command.
pub(super) fn forward(
    input: ExecInput,
    session: Session,
) -> anyhow::Result<(Tasks, oneshot::Receiver<Quit>)> {
    let (chunks, to_write) = mpsc::channel(4);
    // Unbounded, because people produce few of them.
    let (controls, to_send) = mpsc::unbounded_channel();
    let (quit, quit_requested) = oneshot::channel();
    let signals = Signals::new()?;
    let tasks = vec![
        tokio::spawn(send(input, to_write, to_send)),
        tokio::spawn(read(chunks, session.input)),
        tokio::spawn(signals.forward(session.on_hangup, controls, quit)),
    ];
    Ok((Tasks(tasks), quit_requested))
}

/// Sends chunks until they end. Sends controls before and after that.
async fn send(
    mut input: ExecInput,
    mut chunks: mpsc::Receiver<Bytes>,
    mut controls: mpsc::UnboundedReceiver<Control>,
) {
    let mut has_ended = false;
    loop {
        let sent = tokio::select! {
            biased;
            Some(control) = controls.recv() => match control {
                Control::Signal(name) => input.signal(name).await,
                Control::Resize => input.resize(size()).await,
            },
            chunk = chunks.recv(), if !has_ended => match chunk {
                Some(bytes) => input.write(bytes).await,
                None => {
                    has_ended = true;
                    input.end().await
                }
            },
            else => return,
        };
        // The receiving side reports why the connection is lost.
        if sent.is_err() {
            return;
        }
    }
}

async fn read(chunks: mpsc::Sender<Bytes>, input: Input) {
    if input == Input::Nothing {
        return;
    }
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; 64 << 10];
    let mut keeps_open = input == Input::Attached && !std::io::stdin().is_terminal();
    loop {
        let read = stdin.read(&mut buffer).await.unwrap_or(0);
        if read == 0 && keeps_open {
            chunks.closed().await;
        }
        keeps_open = false;
        let chunk = Bytes::copy_from_slice(&buffer[..read]);
        if read == 0 || chunks.send(chunk).await.is_err() {
            return;
        }
    }
}

struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    resize: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    async fn forward(
        mut self,
        on_hangup: OnHangup,
        controls: mpsc::UnboundedSender<Control>,
        quit: oneshot::Sender<Quit>,
    ) {
        let mut interrupts = 0;
        loop {
            let control = tokio::select! {
                _ = self.interrupt.recv() => {
                    interrupts += 1;
                    Control::Signal("SIGINT")
                }
                _ = self.terminate.recv() => Control::Signal("SIGTERM"),
                _ = self.hangup.recv() => Control::Signal("SIGHUP"),
                _ = self.resize.recv() => Control::Resize,
            };
            let is_hangup = matches!(control, Control::Signal("SIGTERM" | "SIGHUP"));
            let detaches = is_hangup && on_hangup == OnHangup::Detach;
            if interrupts == INTERRUPTS_TO_QUIT || detaches {
                let _ = quit.send(Quit);
                return;
            }
            let _ = controls.send(control);
        }
    }
}
