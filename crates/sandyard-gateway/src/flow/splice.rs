//! Carrying bytes as they are, as fast as the slower side takes them.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::Stop;
use super::hello_retry::ServerHello;
use super::inside::Inside;

/// Bytes moved in one go, at most.
const PIECE: usize = 256 * 1024;
/// The same where many slow readers hold what was read for them.
const SMALL_PIECE: usize = 4 * 1024;
/// Bytes that all connections together may hold for slow readers before pieces become small.
const MOST_HELD: usize = 64 * 1024 * 1024;
/// Buffers kept for the next that needs one.
const SPARE_BUFFERS: usize = 32;

static HELD: AtomicUsize = AtomicUsize::new(0);
static BUFFERS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Which side a way broke on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The program's.
    Inside(io::Error),
    /// The other one.
    Outside(io::Error),
    /// Neither: it must not go on.
    Stopped(Stop),
}

/// From the program out, beginning with what was read already.
pub(crate) async fn up(
    inside: &Inside,
    first: &[u8],
    outside: &mut WriteHalf<'_>,
) -> Result<(), Broken> {
    outside.write_all(first).await.map_err(Broken::Outside)?;
    loop {
        let take = || Piece::take(inside.piece_bytes());
        let received = inside.receive_into(take).await;
        let (piece, count) = received.map_err(Broken::Inside)?;
        if count == 0 {
            return outside.shutdown().await.map_err(Broken::Outside);
        }
        let sent = try_write(outside, piece.filled(count)).map_err(Broken::Outside)?;
        if let Some(rest) = piece.rest(sent, count) {
            let written = outside.write_all(&rest.bytes).await;
            written.map_err(Broken::Outside)?;
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// From outside to the program; also what a server says before the program has said anything.
pub(super) async fn down(
    inside: &Inside,
    outside: &ReadHalf<'_>,
    hello: &ServerHello,
) -> io::Result<()> {
    loop {
        outside.readable().await?;
        inside.wait_for_turn().await;
        let mut piece = Piece::take(inside.piece_bytes());
        let count = match outside.try_read(piece.as_mut()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(0) => {
                hello.end();
                inside.finish();
                return Ok(());
            }
            other => other?,
        };
        hello.see(piece.filled(count));
        let sent = inside.send_some(piece.filled(count))?;
        if let Some(rest) = piece.rest(sent, count) {
            inside.send_all(&rest.bytes).await?;
        }
        tokio::task::coop::consume_budget().await;
    }
}

fn try_write(outside: &WriteHalf<'_>, bytes: &[u8]) -> io::Result<usize> {
    match outside.try_write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// A buffer that goes back when it is no longer needed. A connection that waits to read has none.
struct Piece {
    buffer: Vec<u8>,
    most: usize,
}

impl Piece {
    fn take(most: usize) -> Self {
        let spare = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_crowded = HELD.load(Ordering::Relaxed) > MOST_HELD;
        Self {
            buffer: spare.unwrap_or_else(|| vec![0; PIECE]),
            most: most.min(if is_crowded { SMALL_PIECE } else { PIECE }),
        }
    }

    fn filled(&self, count: usize) -> &[u8] {
        &self.buffer[..count]
    }

    /// What the other side had no room for, in as many bytes as that is.
    fn rest(self, sent: usize, count: usize) -> Option<Held> {
        (sent < count).then(|| Held::new(self.buffer[sent..count].to_vec()))
    }
}

impl AsMut<[u8]> for Piece {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.most]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut spare = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_BUFFERS {
            spare.push(std::mem::take(&mut self.buffer));
        }
    }
}

/// Bytes that wait for room, counted.
struct Held {
    bytes: Vec<u8>,
}

impl Held {
    fn new(bytes: Vec<u8>) -> Self {
        HELD.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}
