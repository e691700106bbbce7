//! Copies bytes unchanged, as fast as the slower side accepts them.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
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
const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of spare buffers.
const SPARE_BUFFERS: usize = 32;

static UNSENT_BYTES: AtomicUsize = AtomicUsize::new(0);
static BUFFERS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The side on which a direction failed.
#[derive(Debug)]
pub(crate) enum SpliceError {
    /// The program's.
    Program(io::Error),
    /// The other one.
    Remote(io::Error),
    /// Neither: the policy stops the connection.
    Stopped(Stop),
}

/// Copies from the program outward, beginning with bytes that were read already.
pub(crate) async fn up(
    program: &ProgramSocket,
    first: &[u8],
    remote: &mut WriteHalf<'_>,
) -> Result<(), SpliceError> {
    remote.write_all(first).await.map_err(SpliceError::Remote)?;
    loop {
        let take = || Piece::take(program.piece_bytes());
        let received = program.receive_into(take).await;
        let (piece, count) = received.map_err(SpliceError::Program)?;
        if count == 0 {
            return remote.shutdown().await.map_err(SpliceError::Remote);
        }
        let sent = try_write(remote, piece.filled(count)).map_err(SpliceError::Remote)?;
        if let Some(rest) = piece.rest(sent, count) {
            let written = remote.write_all(&rest.bytes).await;
            written.map_err(SpliceError::Remote)?;
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// Copies from outside to the program, also before the program has sent anything.
pub(super) async fn down(
    program: &ProgramSocket,
    remote: &ReadHalf<'_>,
    hello: &ServerHello,
) -> io::Result<()> {
    loop {
        remote.readable().await?;
        program.wait_for_bandwidth().await;
        let mut piece = Piece::take(program.piece_bytes());
        let count = match remote.try_read(piece.as_mut()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Ok(0) => {
                hello.end();
                program.finish();
                return Ok(());
            }
            other => other?,
        };
        hello.observe(piece.filled(count));
        let sent = program.send_some(piece.filled(count))?;
        if let Some(rest) = piece.rest(sent, count) {
            program.send_all(&rest.bytes).await?;
        }
        tokio::task::coop::consume_budget().await;
    }
}

fn try_write(remote: &WriteHalf<'_>, bytes: &[u8]) -> io::Result<usize> {
    match remote.try_write(bytes) {
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
        let spare = BUFFERS.lock().pop();
        let is_crowded = UNSENT_BYTES.load(Ordering::Relaxed) > MAX_UNSENT_BYTES;
        Self {
            buffer: spare.unwrap_or_else(|| vec![0; PIECE]),
            max: max.min(if is_crowded { SMALL_PIECE } else { PIECE }),
        }
    }

    fn filled(&self, count: usize) -> &[u8] {
        &self.buffer[..count]
    }

    /// The unsent bytes, in an allocation of their size.
    fn rest(self, sent_bytes: usize, count: usize) -> Option<UnsentBytes> {
        (sent_bytes < count).then(|| UnsentBytes::new(self.buffer[sent_bytes..count].to_vec()))
    }
}

impl AsMut<[u8]> for Piece {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.max]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut spare = BUFFERS.lock();
        if spare.len() < SPARE_BUFFERS {
            spare.push(std::mem::take(&mut self.buffer));
        }
    }
}

/// Unsent bytes, counted in [`UNSENT_BYTES`].
struct UnsentBytes {
    bytes: Vec<u8>,
}

impl UnsentBytes {
    fn new(bytes: Vec<u8>) -> Self {
        UNSENT_BYTES.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes }
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        UNSENT_BYTES.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}
