//! The frame decoder: any bytes, cut anyhow, give the same frames as in one piece and stay within the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sandyard_wire::frame::{Decoder, Frame, FrameError, HEADER_LEN};

const MAX: usize = 256;

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut decoder = Decoder::new(MAX);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.buffered(), 0);
                    assert_eq!(decoder.next_frame(), Err(error));
                    return (frames, Err(error));
                }
            }
        }
        assert!(decoder.buffered() <= HEADER_LEN + MAX);
    }
    (frames, decoder.finish())
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else {
        return;
    };
    let (whole, whole_end) = decode([bytes].into_iter());
    let (pieces, pieces_end) = decode(bytes.chunks(usize::from(size).max(1)));
    assert_eq!(whole_end, pieces_end);
    if whole_end == Err(FrameError::AfterEnd) {
        // The end frame itself may have been given out before what follows it came.
        assert_eq!(whole, pieces[..whole.len()]);
    } else {
        assert_eq!(whole, pieces);
    }
});
