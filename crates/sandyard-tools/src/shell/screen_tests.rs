//! What a person would see of a stream.

use super::*;

fn rendered(stream: &[u8]) -> String {
    let mut whole = Screen::default();
    whole.feed(stream);
    let mut bitwise = Screen::default();
    for byte in stream {
        bitwise.feed(&[*byte]);
    }
    assert_eq!(whole.excerpt(), bitwise.excerpt());
    whole.excerpt().text
}

#[test]
fn it_is_what_a_person_would_see() {
    for (stream, seen) in [
        ("plain\r\nlines\r\n", "plain\nlines"),
        (
            "\x1b[1;31mred\x1b[0m \x1b]0;title\x07and \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            "red and link",
        ),
        ("  5%\r 50%\r100%\n", "100%"),
        ("long line\rlo\x1b[K\n", "lo"),
        ("abc\x08\x08x", "axc"),
        (
            "one: 1\ntwo: 1\n\x1b[2A\x1b[2Kone: 2\n\x1b[2Ktwo: 2\n",
            "one: 2\ntwo: 2",
        ),
        ("\x1b(Btext\x1b[?25l\x1b[?2004h!", "text!"),
        ("a\tb\0c\x07", "a\tbc"),
        (
            "before\n\x1b[?1049h\x1b[2J\x1b[Hmenu\x1b[?1049lafter",
            "before\nafter",
        ),
        ("x\x1b[2;3Hy", "x\n  y"),
        ("grüße 你好 👋\n", "grüße 你好 👋"),
        ("", ""),
    ] {
        assert_eq!(rendered(stream.as_bytes()), seen, "{stream:?}");
    }
    assert_eq!(rendered(b"a\xff\xc3(b\xe4\xbd"), "a\u{fffd}\u{fffd}(b");
}

#[test]
fn many_lines_keep_their_order_and_spaces() {
    let lines: Vec<_> = (0..300).map(|number| format!("  {number}  ")).collect();
    assert_eq!(rendered(lines.join("\r\n").as_bytes()), lines.join("\n"));
}

#[test]
fn a_line_without_end_and_wild_numbers_stay_within_bounds() {
    let mut screen = Screen::default();
    for _ in 0..100 {
        screen.feed(&[b'x'; 10_000]);
        screen.feed(b"\x1b[65535;65535H\x1b[99999999999C\x1b[65535B\x1b[65535P\x1b[65535X");
    }
    assert!(screen.excerpt().is_cut);
    assert!(screen.page.rows.len() <= usize::from(ROWS));
    let mut line = Screen::default();
    line.feed(&[b'y'; 20_000]);
    assert_eq!(line.excerpt().text, "y".repeat(20_000));
}

#[test]
fn a_sequence_that_never_ends_hides_no_more_than_its_line() {
    assert_eq!(rendered(b"\x1b]0;open\nseen"), "seen");
    assert_eq!(rendered(b"\x1b[12\nseen"), "\nseen");
}

#[test]
fn the_last_line_is_the_last_with_something_in_it() {
    let mut screen = Screen::default();
    screen.feed(b"one\ntwo\n\n");
    assert_eq!(screen.last_line(), "two");
}
