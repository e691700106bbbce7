//! Copies bytes unchanged, as fast as the slower side accepts them.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::Stop;
use super::hello_retry::ServerHello;
use super::program_socket::ProgramSocket;

/// Maximum bytes per copy.
const PIECE: usize = 256 * 1024;
/// Maximum bytes per copy while many slow readers hold unsent bytes.
const SMALL_PIECE: usize = 4 * 1024;
/// Unsent bytes of all connections together above which pieces become small.
const MAX_HELD: usize = 64 * 1024 * 1024;
/// Maximum number of spare buffers.
const SPARE_BUFFERS: usize = 32;

static HELD: AtomicUsize = AtomicUsize::new(0);
static BUFFERS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The side on which a direction failed.
#[derive(Debug)]
pub(crate) enum SpliceError {
    /// The program's.
    Inside(io::Error),
    /// The other one.
    Outside(io::Error),
    /// Neither: the policy stops the connection.
    Stopped(Stop),
}

/// Copies from the program outward, beginning with bytes that were read already.
pub(crate) async fn up(
    inside: &ProgramSocket,
    first: &[u8],
    outside: &mut WriteHalf<'_>,
) -> Result<(), SpliceError> {
    outside
        .write_all(first)
        .await
        .map_err(SpliceError::Outside)?;
    loop {
        let take = || Piece::take(inside.piece_bytes());
        let received = inside.receive_into(take).await;
        let (piece, count) = received.map_err(SpliceError::Inside)?;
        if count == 0 {
            return outside.shutdown().await.map_err(SpliceError::Outside);
        }
        let sent = try_write(outside, piece.filled(count)).map_err(SpliceError::Outside)?;
        if let Some(rest) = piece.rest(sent, count) {
            let written = outside.write_all(&rest.bytes).await;
            written.map_err(SpliceError::Outside)?;
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// Copies from outside to the program, also before the program has sent anything.
pub(super) async fn down(
    inside: &ProgramSocket,
    outside: &ReadHalf<'_>,
    hello: &ServerHello,
) -> io::Result<()> {
    loop {
        outside.readable().await?;
        inside.wait_for_bandwidth().await;
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
        hello.observe(piece.filled(count));
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

/// A buffer that returns to the spare ones when dropped. A connection that waits to read holds none.
struct Piece {
    buffer: Vec<u8>,
    max: usize,
}

impl Piece {
    fn take(max: usize) -> Self {
        let spare = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_crowded = HELD.load(Ordering::Relaxed) > MAX_HELD;
        Self {
            buffer: spare.unwrap_or_else(|| vec![0; PIECE]),
            max: max.min(if is_crowded { SMALL_PIECE } else { PIECE }),
        }
    }

    fn filled(&self, count: usize) -> &[u8] {
        &self.buffer[..count]
    }

    /// The unsent bytes, in an allocation of their size.
    fn rest(self, sent: usize, count: usize) -> Option<Held> {
        (sent < count).then(|| Held::new(self.buffer[sent..count].to_vec()))
    }
}

impl AsMut<[u8]> for Piece {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.max]
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

/// Unsent bytes, counted in [`HELD`].
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
