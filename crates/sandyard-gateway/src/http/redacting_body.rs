//! A body on its way back, searched for secrets as it passes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::redact::with_trailers_redacted;
use super::replace::{Length, Replacements};
use super::replace_stream::ReplaceStream;

/// How long to wait for more of a body without a length before what is held back is passed on: after the end of a line, which
/// is in no secret, so that the events of a stream arrive as they happen.
const LINE_PAUSE: Duration = Duration::from_millis(25);

/// The same anywhere else. It is longer than the way to most hosts and back: a program that stops reading in the middle of a
/// secret, so that the host must wait as well, shall not get the half that came.
const OTHER_PAUSE: Duration = Duration::from_millis(250);

/// A body in which secrets are hidden as it passes.
#[derive(Debug)]
pub(super) struct RedactingBody<B> {
    inner: B,
    replacements: Arc<Replacements>,
    stream: ReplaceStream,
    length: Length,
    /// Runs out when nothing has come for so long that what is held back is passed on.
    pause: Option<Pin<Box<Sleep>>>,
    /// What comes after the data, kept until what was held back is out.
    last: Option<Frame<Bytes>>,
    is_over: bool,
}

impl<B> RedactingBody<B> {
    /// Begins with a body of which nothing has been read.
    pub(super) fn new(inner: B, replacements: Arc<Replacements>, length: Length) -> Self {
        Self {
            inner,
            stream: ReplaceStream::new(replacements.clone(), length),
            replacements,
            length,
            pause: None,
            last: None,
            is_over: false,
        }
    }

    /// There is no more data: gives what was held back, and keeps what came instead of data.
    fn finish(&mut self, last: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        self.is_over = true;
        self.last = last.map(|frame| with_trailers_redacted(frame, &self.replacements));
        let held = self.stream.flush();
        match held.is_empty() {
            true => self.last.take(),
            false => Some(Frame::data(held)),
        }
    }

    /// Nothing more has come yet: gives what was held back when that has lasted. It begins when somebody waits, so that it does
    /// not count how long a program reads nothing.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        // Of a body with a length the rest is sure to come, and nobody reads it line by line.
        let held = self.stream.held();
        if self.length == Length::Kept || held.is_empty() {
            return Poll::Pending;
        }
        let time = match held.ends_with(b"\n") {
            true => LINE_PAUSE,
            false => OTHER_PAUSE,
        };
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(pause.as_mut().poll(cx));
        self.pause = None;
        Poll::Ready(self.stream.flush())
    }
}

impl<B> http_body::Body for RedactingBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        while !this.is_over {
            let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
                let piece = ready!(this.poll_pause(cx));
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            };
            this.pause = None;
            let Some(frame) = frame else {
                return Poll::Ready(this.finish(None).map(Ok));
            };
            // When it breaks off, what is held back is not passed on: it may be the better part of a secret.
            match frame?.into_data() {
                Ok(piece) => {
                    let piece = this.stream.push(&piece);
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(piece))));
                    }
                }
                Err(other) => return Poll::Ready(this.finish(Some(other)).map(Ok)),
            }
        }
        Poll::Ready(this.last.take().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        // Whoever sends it on goes by the header anyhow; this is for bodies that have not begun.
        match self.length {
            Length::Kept => self.inner.size_hint(),
            Length::Free => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{Stream, stream};
    use http_body_util::{BodyExt, StreamBody};
    use tokio::time::Instant;

    use super::*;

    const VALUE: &str = "s3cret-Value-0123456789";

    /// What is sent after how many milliseconds.
    type Script = Vec<(u64, String)>;

    fn sent(script: Script) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        stream::unfold(script.into_iter(), |mut script| async {
            let (after, piece) = script.next()?;
            sleep(Duration::from_millis(after)).await;
            Some((Ok(Frame::data(Bytes::from(piece))), script))
        })
    }

    /// What is passed on of it, and when.
    async fn passed(script: Script, length: Length) -> Vec<(u128, Bytes)> {
        let replacements =
            Replacements::new([(VALUE.as_bytes().to_vec(), b"placeholder".to_vec())]);
        let body = StreamBody::new(Box::pin(sent(script)));
        let mut body = RedactingBody::new(body, Arc::new(replacements), length);
        let (start, mut passed) = (Instant::now(), Vec::new());
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            passed.push((start.elapsed().as_millis(), piece));
        }
        passed
    }

    #[tokio::test(start_paused = true)]
    async fn neither_sizes_nor_times_tell_how_much_of_a_guess_is_right() {
        for length in [Length::Free, Length::Kept] {
            for right in 0..VALUE.len() {
                let script = |guess: &str| -> Script {
                    let pieces = [
                        (0, format!("{}{guess}", "x".repeat(500))),
                        (1, guess.to_owned()),
                        (300, guess.to_owned()),
                        (30, format!("{guess}\n")),
                        (30, guess.to_owned()),
                    ];
                    pieces.into()
                };
                let guess = passed(script(&VALUE[..right]), length).await;
                let other = passed(script(&".".repeat(right)), length).await;
                let shape = |pieces: &[(u128, Bytes)]| -> Vec<_> {
                    pieces
                        .iter()
                        .map(|(time, piece)| (*time, piece.len()))
                        .collect()
                };
                assert_eq!(shape(&guess), shape(&other), "{right} {length:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_back_is_passed_on_when_nothing_more_comes() {
        let script: Script = [
            (0, "one\n"),
            (1000, "two"),
            (1000, "<s3cret-V"),
            (1000, "alue-0123456789>\n"),
        ]
        .map(|(after, piece)| (after, piece.to_owned()))
        .into();
        let live = passed(script.clone(), Length::Free).await;
        let live: Vec<_> = live
            .iter()
            .map(|(time, piece)| (*time, &piece[..]))
            .collect();
        let expected: [(u128, &[u8]); 5] = [
            (25, b"one\n"),
            (1250, b"two"),
            (2250, b"<s3cret-V"),
            (3000, b"***************"),
            (3000, b">\n"),
        ];
        assert_eq!(live, expected);
        // With a length, everything can wait.
        let whole = passed(script, Length::Kept).await;
        let whole: Vec<_> = whole.iter().map(|(_, piece)| piece.clone()).collect();
        assert_eq!(
            whole.concat(),
            format!("one\ntwo<{:*<23}>\n", "placeholder").as_bytes()
        );
    }
}
