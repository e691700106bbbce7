//! What goes to the command: our standard input, interrupts, and the terminal's new size.

use std::io::IsTerminal;

use bytes::Bytes;
use sandyard_client::ExecInput;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::session::Session;
use super::size;

/// The third Ctrl-C in a row: the user wants out.
const ENOUGH: u32 = 3;

/// What the command gets to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Input {
    /// The user's keys.
    Terminal,
    /// Our standard input.
    Pipe,
    /// Nothing: its input ends at once.
    Nothing,
    /// Our standard input, without its end if it was empty: attaching without input must not end the process's.
    Attached,
}

/// What SIGHUP and SIGTERM to us mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum OnHangUp {
    /// They go to the process.
    Forward,
    /// They end us, and the process runs on.
    Leave,
}

/// Says that the user wants out whatever the command does.
#[derive(Debug)]
pub(super) struct GaveUp;

/// Something that goes to the command beside its input.
enum Notice {
    Signal(&'static str),
    Resize,
}

/// The tasks that carry input; ended by [`Tasks::abort`].
#[derive(Debug)]
pub(super) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    pub(super) fn abort(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Carries everything to the command from now on.
pub(super) fn forward(
    input: ExecInput,
    session: Session,
) -> anyhow::Result<(Tasks, oneshot::Receiver<GaveUp>)> {
    let (pieces, to_write) = mpsc::channel(4);
    // Few, since people make them; so none is ever dropped or waited for.
    let (notices, noticed) = mpsc::unbounded_channel();
    let (give_up, given_up) = oneshot::channel();
    let signals = Signals::new()?;
    let tasks = vec![
        tokio::spawn(send(input, to_write, noticed)),
        tokio::spawn(read(pieces, session.input)),
        tokio::spawn(signals.forward(session.on_hang_up, notices, give_up)),
    ];
    Ok((Tasks(tasks), given_up))
}

/// Writes pieces until they end, and passes notices on before and after that.
async fn send(
    mut input: ExecInput,
    mut pieces: mpsc::Receiver<Bytes>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
) {
    let mut has_ended = false;
    loop {
        let sent = tokio::select! {
            biased;
            Some(notice) = notices.recv() => match notice {
                Notice::Signal(name) => input.signal(name).await,
                Notice::Resize => input.resize(size()).await,
            },
            piece = pieces.recv(), if !has_ended => match piece {
                Some(bytes) => input.write(bytes).await,
                None => {
                    has_ended = true;
                    input.end().await
                }
            },
            else => return,
        };
        // The other direction knows why the connection is gone.
        if sent.is_err() {
            return;
        }
    }
}

async fn read(pieces: mpsc::Sender<Bytes>, wants: Input) {
    if wants == Input::Nothing {
        return;
    }
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; 64 << 10];
    let mut keeps_open = wants == Input::Attached && !std::io::stdin().is_terminal();
    loop {
        let read = stdin.read(&mut buffer).await.unwrap_or(0);
        if read == 0 && keeps_open {
            pieces.closed().await;
        }
        keeps_open = false;
        let piece = Bytes::copy_from_slice(&buffer[..read]);
        if read == 0 || pieces.send(piece).await.is_err() {
            return;
        }
    }
}

struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    resize: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    async fn forward(
        mut self,
        on_hang_up: OnHangUp,
        notices: mpsc::UnboundedSender<Notice>,
        give_up: oneshot::Sender<GaveUp>,
    ) {
        let mut interrupts = 0;
        loop {
            let notice = tokio::select! {
                _ = self.interrupt.recv() => {
                    interrupts += 1;
                    Notice::Signal("SIGINT")
                }
                _ = self.terminate.recv() => Notice::Signal("SIGTERM"),
                _ = self.hang_up.recv() => Notice::Signal("SIGHUP"),
                _ = self.resize.recv() => Notice::Resize,
            };
            let is_hang_up = matches!(notice, Notice::Signal("SIGTERM" | "SIGHUP"));
            let leaves = is_hang_up && on_hang_up == OnHangUp::Leave;
            if interrupts == ENOUGH || leaves {
                let _ = give_up.send(GaveUp);
                return;
            }
            let _ = notices.send(notice);
        }
    }
}
