//! The decoder under any cutting of good bytes, and under bad bytes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use sandyard_wire::frame::*;
use sandyard_wire::{Code, ConnectError};

const MAX: usize = 64;

/// Feeds the pieces one by one and collects frames up to the first error.
fn decode(
    pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut decoder = Decoder::new(MAX);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece.as_ref());
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
        assert!(
            decoder.buffered() <= HEADER_LEN + MAX,
            "an incomplete frame stays within the limit"
        );
    }
    (frames, decoder.finish())
}

/// Cuts bytes at positions that need be neither sorted nor in range.
fn cut(bytes: &[u8], positions: &[usize]) -> Vec<Vec<u8>> {
    let mut positions: Vec<usize> = positions
        .iter()
        .map(|position| position % (bytes.len() + 1))
        .collect();
    positions.extend([0, bytes.len()]);
    positions.sort_unstable();
    positions
        .windows(2)
        .map(|pair| bytes[pair[0]..pair[1]].to_vec())
        .collect()
}

proptest! {
    #[test]
    fn any_cutting_of_a_stream_yields_its_frames(
        payloads in vec(vec(any::<u8>(), 0..=MAX), 0..8),
        ended: bool,
        positions in vec(any::<usize>(), 0..40),
    ) {
        let mut expected: Vec<Frame> = Vec::new();
        let mut bytes = Vec::new();
        for payload in payloads {
            bytes.extend_from_slice(&encode(0, &payload));
            expected.push(Frame::Message(payload.into()));
        }
        if ended {
            bytes.extend_from_slice(&encode_end(None));
            expected.push(Frame::End(Bytes::from_static(b"{}")));
        }
        prop_assert_eq!(decode(cut(&bytes, &positions)), (expected, Ok(())));
    }

    #[test]
    fn garbage_gives_the_same_frames_and_an_error_however_it_is_cut(
        bytes in vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..400),
        positions in vec(any::<usize>(), 0..40),
    ) {
        let (whole, whole_end) = decode([&bytes]);
        let (pieces, pieces_end) = decode(cut(&bytes, &positions));
        // What follows an end frame in the same piece fails that frame; in a later piece it fails there.
        let trailing = whole_end == Err(FrameError::AfterEnd);
        prop_assert_eq!(pieces_end, whole_end);
        if trailing {
            prop_assert_eq!(&pieces[..whole.len()], &whole[..]);
        } else {
            prop_assert_eq!(pieces, whole);
        }
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_at_its_header() {
    let mut decoder = Decoder::new(MAX);
    decoder.push(&[0, 0xff, 0xff, 0xff, 0xff]);
    let expected = FrameError::TooLarge {
        len: 0xffff_ffff,
        max: MAX,
    };
    assert_eq!(decoder.next_frame(), Err(expected));
    decoder.push(&[0; 1000]);
    assert_eq!(decoder.next_frame(), Err(expected), "the error stays");
    assert_eq!(decoder.buffered(), 0, "and nothing more is kept");
}

#[test]
fn compressed_and_undefined_flags_are_refused() {
    assert_eq!(
        decode([encode(FLAG_COMPRESSED, b"x")]).1,
        Err(FrameError::Compressed)
    );
    assert_eq!(
        decode([encode(FLAG_COMPRESSED | FLAG_END, b"x")]).1,
        Err(FrameError::Compressed)
    );
    assert_eq!(
        decode([encode(0x80, b"x")]).1,
        Err(FrameError::UnknownFlags(0x80))
    );
}

#[test]
fn a_stream_cut_within_a_frame_is_truncated() {
    let bytes = encode(0, b"hello");
    for len in 1..bytes.len() {
        assert_eq!(
            decode([&bytes[..len]]),
            (vec![], Err(FrameError::Truncated)),
            "{len} bytes"
        );
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let end = encode_end(None);
    assert_eq!(decode([end.to_vec(), vec![0]]).1, Err(FrameError::AfterEnd));
    assert_eq!(
        decode([[&end[..], &[0]].concat()]).1,
        Err(FrameError::AfterEnd)
    );
}

#[test]
fn the_end_of_a_failed_stream_carries_the_error() {
    let error = ConnectError::new(Code::NotFound, "no such process");
    assert_eq!(
        &encode_end(Some(error))[HEADER_LEN..],
        br#"{"error":{"code":"not_found","message":"no such process"}}"#
    );
}
