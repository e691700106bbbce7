//! Reading egress frames.

use std::io;

use sandyard_wire::egress::MAX_FRAME_BYTES;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads one frame, its four bytes of length included, without decoding it.
///
/// # Errors
/// At the end of the stream, and for a frame that is too long.
pub async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let bytes = usize::try_from(length).unwrap_or(usize::MAX);
    if bytes > MAX_FRAME_BYTES {
        let message = format!("a frame of {length} bytes is too long");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut frame = length.to_be_bytes().to_vec();
    frame.resize(4 + bytes, 0);
    stream.read_exact(&mut frame[4..]).await?;
    Ok(frame)
}
