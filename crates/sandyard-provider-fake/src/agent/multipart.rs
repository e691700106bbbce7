//! Parses `multipart/form-data` from memory.

use bytes::Bytes;

/// Maximum number of parts of a form.
const MAX_PARTS: usize = 10_000;

/// One part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    pub(super) content: Bytes,
}

/// The parts of a body; `None` when it is malformed.
pub(super) fn parts(content_type: &str, body: &Bytes) -> Option<Vec<Part>> {
    let boundary =
        parameter(content_type, "boundary").filter(|text| (1..=70).contains(&text.len()))?;
    let first = format!("--{boundary}");
    let delimiter = format!("\r\n{first}");
    let mut at = find(body, first.as_bytes(), 0)? + first.len();
    let mut parts = Vec::new();
    loop {
        if body[at..].starts_with(b"--") {
            return Some(parts);
        }
        if parts.len() >= MAX_PARTS {
            return None;
        }
        // Blanks may follow the delimiter.
        let headers = find(body, b"\r\n", at)? + 2;
        let empty = find(body, b"\r\n\r\n", headers - 2)?;
        let content = empty + 4;
        let end = find(body, delimiter.as_bytes(), content - 2)?;
        let text = std::str::from_utf8(body.get(headers..empty.max(headers))?).ok()?;
        parts.push(part(text, body.slice(content.min(end)..end)));
        at = end + delimiter.len();
    }
}

fn part(headers: &str, content: Bytes) -> Part {
    let disposition = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim()
            .eq_ignore_ascii_case("content-disposition")
            .then_some(value)
    });
    let disposition = disposition.unwrap_or_default();
    Part {
        name: parameter(disposition, "name").unwrap_or_default(),
        filename: parameter(disposition, "filename"),
        content,
    }
}

/// A parameter of a header, with or without quotes.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once(';') {
        rest = after.trim_start();
        let Some((key, value)) = rest.split_once('=') else {
            continue;
        };
        if !key.trim().eq_ignore_ascii_case(name) {
            continue;
        }
        let Some(quoted) = value.strip_prefix('"') else {
            return Some(
                value
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            );
        };
        let mut text = String::new();
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => return Some(text.replace("%22", "\"")),
                '\\' => text.extend(characters.next()),
                character => text.push(character),
            }
        }
        return None;
    }
    None
}

fn find(body: &[u8], pattern: &[u8], from: usize) -> Option<usize> {
    let rest = body.get(from..)?;
    let found = rest
        .windows(pattern.len())
        .position(|window| window == pattern);
    found.map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Option<Vec<Part>> {
        parts(
            "multipart/form-data; boundary=xx",
            &Bytes::copy_from_slice(body.as_bytes()),
        )
    }

    #[test]
    fn a_form_is_split_into_parts() {
        let body = "--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a \\\"b\"\r\n\
                    Content-Type: text/plain\r\n\r\none\r\ntwo\r\n--xx\r\n\
                    content-disposition: form-data; name=other\r\n\r\n\r\n--xx--\r\n";
        let found = parse(body).unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].filename.as_deref()),
            ("file", Some("/a \"b"))
        );
        assert_eq!(found[0].content, "one\r\ntwo");
        assert_eq!(
            (found[1].name.as_str(), &found[1].content[..]),
            ("other", &b""[..])
        );
    }

    #[test]
    fn a_malformed_form_is_none() {
        for body in [
            "",
            "--xx",
            "--xx\r\n",
            "--xx\r\n\r\nno end",
            "nothing",
            "--xx\r\nA: b\r\n\r\nx--xx--",
        ] {
            assert_eq!(parse(body), None, "{body:?}");
        }
        assert_eq!(parts("multipart/form-data", &Bytes::new()), None);
    }
}
