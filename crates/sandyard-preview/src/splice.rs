//! Two byte streams made one, after an upgrade.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;

const CHUNK: usize = 16 << 10;

/// Carries bytes both ways until both have ended, or one has failed.
///
/// Silence is fine for as long as both sides are open. When one has ended the other may go on (a client that has said
/// all it has to say still wants the answer), but not in silence: else a client long gone would keep a sandbox awake.
pub(crate) async fn splice<A, B>(client: A, port: B, half_closed: Duration)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let carried = AtomicU64::new(0);
    let (mut client_read, mut client_write) = split(client);
    let (mut port_read, mut port_write) = split(port);
    {
        let mut up = std::pin::pin!(carry(&mut client_read, &mut port_write, &carried));
        let mut down = std::pin::pin!(carry(&mut port_read, &mut client_write, &carried));
        tokio::select! {
            ended = &mut up => if ended.is_ok() {
                while_moving(down, &carried, half_closed).await;
            },
            ended = &mut down => if ended.is_ok() {
                while_moving(up, &carried, half_closed).await;
            },
        }
    }
    // Ends are said even where the other direction failed or fell silent.
    let _ = client_write.shutdown().await;
    let _ = port_write.shutdown().await;
}

/// Copies until the end and passes that on.
async fn carry<R, W>(from: &mut R, to: &mut W, carried: &AtomicU64) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
        carried.fetch_add(1, Ordering::Relaxed);
    }
}

async fn while_moving(
    mut rest: impl Future<Output = io::Result<()>> + Unpin,
    carried: &AtomicU64,
    idle_timeout: Duration,
) {
    loop {
        let before = carried.load(Ordering::Relaxed);
        let done = timeout(idle_timeout, &mut rest).await.is_ok();
        if done || carried.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{ReadBuf, duplex, join, sink};

    use super::*;

    /// A side that was reset.
    struct Broken;

    impl AsyncRead for Broken {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
    }

    #[tokio::test]
    async fn a_side_that_breaks_ends_the_other_at_once() {
        let forever = Duration::from_secs(u32::MAX.into());
        for broken_is_client in [true, false] {
            let broken = join(Broken, sink());
            let (idle, mut other) = duplex(16);
            if broken_is_client {
                splice(broken, idle, forever).await;
            } else {
                splice(idle, broken, forever).await;
            }
            assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_stream_lives_while_it_moves() {
        let idle_timeout = Duration::from_secs(60);
        let (client, mut client_end) = duplex(16);
        let (port, mut port_end) = duplex(16);
        let task = tokio::spawn(splice(client, port, idle_timeout));
        client_end.shutdown().await.unwrap();
        assert_eq!(port_end.read(&mut [0; 1]).await.unwrap(), 0);
        for _ in 0..10 {
            tokio::time::sleep(idle_timeout * 2 / 3).await;
            port_end.write_all(b"x").await.unwrap();
            assert_eq!(client_end.read_u8().await.unwrap(), b'x');
        }
        // And ends when it falls silent.
        assert_eq!(client_end.read(&mut [0; 1]).await.unwrap(), 0);
        task.await.unwrap();
    }
}
