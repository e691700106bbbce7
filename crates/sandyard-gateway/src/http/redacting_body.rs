//! A response body that is redacted while it is forwarded.

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

/// How long to wait for more of a body without a length before the pending data is released, if it ends with a line end. No
/// secret has a line end, so the events of a stream arrive as they happen.
const LINE_PAUSE: Duration = Duration::from_millis(25);

/// The same in the middle of a line. It is longer than the round trip to most hosts: a program that stops reading in the middle of
/// a secret, so that the host must wait as well, does not get the first half.
const OTHER_PAUSE: Duration = Duration::from_millis(250);

/// A body in which secrets are redacted.
#[derive(Debug)]
pub(super) struct RedactingBody<B> {
    inner: B,
    replacements: Arc<Replacements>,
    stream: ReplaceStream,
    length: Length,
    /// Releases the pending data when nothing arrived for a while.
    pause: Option<Pin<Box<Sleep>>>,
    /// The trailers, stored until the pending data is released.
    last: Option<Frame<Bytes>>,
    is_over: bool,
}

impl<B> RedactingBody<B> {
    /// Wraps an unread body.
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

    /// Notes the end of the data: returns the pending data, and stores the trailers.
    fn finish(&mut self, last: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        self.is_over = true;
        self.last = last.map(|frame| with_trailers_redacted(frame, &self.replacements));
        let pending = self.stream.flush();
        match pending.is_empty() {
            true => self.last.take(),
            false => Some(Frame::data(pending)),
        }
    }

    /// No data has arrived: releases the pending data after a pause. The pause begins when the program reads, so that the time
    /// in which it does not read does not count.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        // The rest of a body with a length will arrive, and nothing reads it line by line.
        let pending = self.stream.pending();
        if self.length == Length::Fixed || pending.is_empty() {
            return Poll::Pending;
        }
        let time = match pending.ends_with(b"\n") {
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
            // After a failure the pending data is dropped: it may be a large part of a secret.
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
        // Only for bodies that have not started; hyper uses the header anyway.
        match self.length {
            Length::Fixed => self.inner.size_hint(),
            Length::Variable => SizeHint::default(),
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

    fn frames(script: Script) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
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
        let body = StreamBody::new(Box::pin(frames(script)));
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
        for length in [Length::Variable, Length::Fixed] {
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
        let live = passed(script.clone(), Length::Variable).await;
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
        let whole = passed(script, Length::Fixed).await;
        let whole: Vec<_> = whole.iter().map(|(_, piece)| piece.clone()).collect();
        assert_eq!(
            whole.concat(),
            format!("one\ntwo<{:*<23}>\n", "placeholder").as_bytes()
        );
    }
}
