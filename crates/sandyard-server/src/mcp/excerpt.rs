//! The beginning and the end of an output of any length.

use std::collections::VecDeque;

/// Bytes that are stored of the beginning, and of the end.
const PART: usize = 24 << 10;

/// The beginning and the end of an output.
#[derive(Debug, Default)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Excerpt {
    /// Takes what comes next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(PART - self.head.len()));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(PART);
        self.left_out += skipped as u64;
        self.tail.extend(&rest[skipped..]);
        let over = self.tail.len().saturating_sub(PART);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// Whether something was left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// The excerpt as text, with the number of bytes left out.
    pub(super) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if !self.is_cut() {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        format!(
            "{}\n[cut: {} bytes left out]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out,
            String::from_utf8_lossy(&[front, back].concat())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_output_is_left_out() {
        let mut excerpt = Excerpt::default();
        excerpt.push("short ä".as_bytes());
        assert_eq!(
            (excerpt.text().as_str(), excerpt.is_cut()),
            ("short ä", false)
        );
        for _ in 0..100 {
            excerpt.push(&[b'x'; 5000]);
        }
        excerpt.push(&vec![b'y'; 3 * PART]);
        excerpt.push(b"end");
        let text = excerpt.text();
        assert!(excerpt.is_cut() && text.starts_with("short ä") && text.ends_with("yend"));
        assert!(text.len() < 2 * PART + 100);
        let omitted = 8 + 500_000 + 3 * PART + 3 - 2 * PART;
        assert!(
            text.contains(&format!("[cut: {omitted} bytes left out]")),
            "{omitted}"
        );
    }
}
