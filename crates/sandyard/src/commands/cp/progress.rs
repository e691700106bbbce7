//! How far a copy is, on terminals.

use std::io::IsTerminal;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::io::{AsyncRead, ReadBuf};

/// Counts bytes, and shows them where somebody looks.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    bytes: Arc<AtomicU64>,
}

impl Progress {
    /// Shown on standard error if that is a terminal and progress is wanted.
    pub(super) fn new(is_wanted: bool) -> Self {
        let is_shown = is_wanted && std::io::stderr().is_terminal();
        let target = match is_shown {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            bytes: Arc::default(),
        }
    }

    /// Begins with a name and, if it is known, a size.
    pub(super) fn begin(&self, name: &str, size_bytes: Option<u64>) {
        let template = match size_bytes {
            Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            None => "{msg} {spinner} {bytes} {binary_bytes_per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        if let Some(size) = size_bytes {
            self.bar.set_length(size);
        }
        self.bar
            .set_message(crate::output::visible(name).into_owned());
    }

    /// Counts bytes.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bar.inc(bytes as u64);
    }

    /// How many there were.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Clears the line.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// A reader that counts what goes through it.
    pub(super) fn counting<R>(&self, reader: R) -> Counting<R> {
        Counting {
            reader,
            progress: self.clone(),
        }
    }
}

/// A reader that counts what goes through it.
#[derive(Debug)]
pub(super) struct Counting<R> {
    reader: R,
    progress: Progress,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counting<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.reader).poll_read(cx, buffer);
        self.progress.add(buffer.filled().len() - before);
        outcome
    }
}
