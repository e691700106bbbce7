//! Progress display of a copy.

use std::io::IsTerminal;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::io::{AsyncRead, ReadBuf};

/// Counts bytes and shows them on a terminal.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    bytes: Arc<AtomicU64>,
}

impl Progress {
    /// Shows progress on standard error if `is_enabled` and standard error is a terminal.
    pub(super) fn new(is_enabled: bool) -> Self {
        let target = match is_enabled && std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            bytes: Arc::default(),
        }
    }

    /// Starts a copy with its name and, if known, its size.
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
            .set_message(crate::output::escape_control(name).into_owned());
    }

    /// Adds to the number of bytes.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bar.inc(bytes as u64);
    }

    /// Number of bytes copied.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Clears the line.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Wraps a reader so that its bytes are counted.
    pub(super) fn counting<R>(&self, reader: R) -> CountingReader<R> {
        CountingReader {
            reader,
            progress: self.clone(),
        }
    }
}

/// A reader whose bytes are counted.
#[derive(Debug)]
pub(super) struct CountingReader<R> {
    reader: R,
    progress: Progress,
}

impl<R: AsyncRead + Unpin> AsyncRead for CountingReader<R> {
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
