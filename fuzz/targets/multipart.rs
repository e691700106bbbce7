//! Multipart bodies: any bytes, cut anyhow, give the same parts as in one piece, and no more data than came in.
#![no_main]

#[path = "../../crates/sandyard-agent/src/files/multipart.rs"]
mod multipart;

use libfuzzer_sys::fuzz_target;
use multipart::{Event, MultipartError, Parser};

/// Events with neighbouring data joined, since where data is cut means nothing.
fn parse<'a>(
    content_type: &str,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Option<(Vec<Event>, Result<(), MultipartError>)> {
    let mut parser = Parser::new(content_type).ok()?;
    let mut joined = Vec::new();
    for piece in pieces {
        match parser.push(piece) {
            Ok(events) => events
                .into_iter()
                .for_each(|event| join(&mut joined, event)),
            Err(error) => return Some((joined, Err(error))),
        }
    }
    let end = parser.finish();
    Some((joined, end))
}

fn join(joined: &mut Vec<Event>, event: Event) {
    match (joined.last_mut(), event) {
        (Some(Event::Data(before)), Event::Data(more)) => before.extend(more),
        (_, event) => joined.push(event),
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, rest)) = input.split_first() else {
        return;
    };
    // The first line is the content type, in half of the cases replaced by a good one.
    let mut lines = rest.splitn(2, |&byte| byte == b'\n');
    let (head, body) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let content_type = match size % 2 {
        0 => "multipart/form-data; boundary=B".into(),
        _ => String::from_utf8_lossy(head),
    };
    let Some((whole, whole_end)) = parse(&content_type, [body].into_iter()) else {
        return;
    };
    let data: usize = whole
        .iter()
        .map(|event| {
            if let Event::Data(data) = event {
                data.len()
            } else {
                0
            }
        })
        .sum();
    assert!(data <= body.len());
    let Some((pieces, pieces_end)) =
        parse(&content_type, body.chunks(usize::from(size / 2).max(1)))
    else {
        panic!("the same content type is good or bad");
    };
    assert_eq!(whole_end, pieces_end);
    if whole_end.is_ok() {
        assert_eq!(whole, pieces);
    }
});
