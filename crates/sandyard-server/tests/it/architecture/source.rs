//! A source file without its comments, strings and tests.

/// A source file.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The code, with comments and literals blanked and items under `#[cfg(test)]` removed.
    pub(super) code: String,
    /// The string literals of the code, without those in attributes and tests.
    pub(super) strings: Vec<String>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let (code, literals) = blank_literals(text);
        let tests = ranges_of_tests(&code);
        let attributes = ranges_of_attributes(&code);
        let is_in = |ranges: &[(usize, usize)], at: usize| {
            ranges
                .iter()
                .any(|(start, end)| (*start..*end).contains(&at))
        };
        let strings = literals
            .into_iter()
            .filter(|(at, _)| !is_in(&tests, *at) && !is_in(&attributes, *at))
            .map(|(_, text)| text)
            .collect();
        let mut production = String::new();
        let mut position = 0;
        for (start, end) in tests {
            production.push_str(&code[position..start]);
            position = end;
        }
        production.push_str(&code[position..]);
        Self {
            code: production,
            strings,
        }
    }
}

/// Replaces comments and literals by spaces, byte for byte, and returns the string literals with their positions.
fn blank_literals(text: &str) -> (String, Vec<(usize, String)>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_word_before =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let length = if rest.starts_with(b"//") {
            rest.iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            find(rest, b"*/").map_or(rest.len(), |end| end + 2)
        } else if rest[0] == b'"' {
            string_length(rest)
        } else if !is_word_before && (rest.starts_with(b"r\"") || rest.starts_with(b"r#")) {
            raw_string_length(&rest[1..]).map_or(0, |length| length + 1)
        } else if !is_word_before && (rest.starts_with(b"br\"") || rest.starts_with(b"br#")) {
            raw_string_length(&rest[2..]).map_or(0, |length| length + 2)
        } else if rest[0] == b'\'' {
            char_length(rest)
        } else {
            0
        };
        if length == 0 {
            at += 1;
            continue;
        }
        if rest[0] == b'"' {
            strings.push((at, text[at + 1..at + length - 1].to_owned()));
        }
        for byte in &mut code[at..at + length] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += length;
    }
    (
        String::from_utf8(code).expect("whole literals were blanked"),
        strings,
    )
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|it| it == needle)
}

fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The length of `"…"` or `#"…"#`; none: it is another kind of token, such as `r#type`.
fn raw_string_length(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes.iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(hashes) != Some(&b'"') {
        return None;
    }
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let content = &bytes[hashes + 1..];
    find(content, &end).map(|at| hashes + 1 + at + end.len())
}

/// The length of a character literal; 0: it is a lifetime.
fn char_length(bytes: &[u8]) -> usize {
    if bytes.get(1) == Some(&b'\\') {
        return bytes[2..]
            .iter()
            .skip(1)
            .position(|byte| *byte == b'\'')
            .map_or(0, |at| at + 4);
    }
    let text = std::str::from_utf8(&bytes[1..bytes.len().min(6)]);
    let first = match &text {
        Ok(text) => text.chars().next(),
        Err(error) => std::str::from_utf8(&bytes[1..1 + error.valid_up_to()])
            .ok()
            .and_then(|text| text.chars().next()),
    };
    match first {
        Some(first) if bytes.get(1 + first.len_utf8()) == Some(&b'\'') => 2 + first.len_utf8(),
        _ => 0,
    }
}

/// The items under `#[cfg(test)]`, with the attribute.
fn ranges_of_tests(code: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut position = 0;
    while let Some(found) = code[position..].find("#[cfg(test)]") {
        let start = position + found;
        let mut end = start + "#[cfg(test)]".len();
        // Other attributes of the item.
        while code[end..].trim_start().starts_with('#') {
            let attribute = end + code[end..].find('#').unwrap_or(0);
            end = closing(code, attribute, '[', ']');
        }
        let body = code[end..]
            .find(['{', ';'])
            .map_or(code.len(), |at| end + at);
        end = match code[body..].starts_with('{') {
            true => closing(code, body, '{', '}'),
            false => (body + 1).min(code.len()),
        };
        ranges.push((start, end));
        position = end;
    }
    ranges
}

fn ranges_of_attributes(code: &str) -> Vec<(usize, usize)> {
    let starts = code.match_indices("#[").map(|(at, _)| at);
    starts.map(|at| (at, closing(code, at, '[', ']'))).collect()
}

/// The position after the bracket that closes the first one at or after `start`.
fn closing(code: &str, start: usize, open: char, close: char) -> usize {
    let mut depth = 0;
    for (at, c) in code[start..].char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return start + at + 1;
            }
        }
    }
    code.len()
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let source = Source::parse(
        r##"
//! crate::comment
use crate::real; /* crate::block */
#[tag = "attribute"]
fn f<'a>(x: &'a str) -> char { let _ = (r#"crate::raw"#, "crate::text \" {", 'x', '\'', '"'); '{' }
#[cfg(test)]
#[path = "x.rs"]
mod tests;
fn g() { crate::after::call() }
#[cfg(test)]
mod more { use crate::tests_only; fn h() { "hidden"; } }
"##,
    );
    let names: Vec<&str> = source.code.split("crate::").skip(1).collect();
    assert_eq!(names.len(), 2, "{}", source.code);
    assert!(names[0].starts_with("real") && names[1].starts_with("after"));
    assert_eq!(source.strings, ["crate::text \\\" {"]);
}
