//! What came up and is told with the next answer.

/// Most notes in one answer. A page can bring up as many as it likes.
const MAX: usize = 20;

/// Notes in the order they came, bounded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    kept: Vec<String>,
    left_out: usize,
}

impl Notes {
    /// One more.
    pub(super) fn add(&mut self, words: String) {
        if self.kept.len() < MAX {
            self.kept.push(words);
        } else {
            self.left_out += 1;
        }
    }

    /// All of them; then there are none.
    pub(super) fn take(&mut self) -> Vec<String> {
        let left_out = std::mem::take(&mut self.left_out);
        let mut notes = std::mem::take(&mut self.kept);
        if left_out > 0 {
            notes.push(format!("{left_out} more of these came up"));
        }
        notes
    }
}

/// A page's text on one line, cut to so many characters.
pub(super) fn short(text: &str, limit: usize) -> String {
    let mut one_line = String::new();
    for (count, char) in text.chars().enumerate() {
        if count == limit {
            one_line.push('…');
            break;
        }
        one_line.push(if char.is_control() { ' ' } else { char });
    }
    one_line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut notes = Notes::default();
        for number in 0..1000 {
            notes.add(number.to_string());
        }
        let taken = notes.take();
        assert_eq!(taken.len(), MAX + 1);
        assert_eq!(taken[MAX], "980 more of these came up");
        assert!(notes.take().is_empty());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(short("äöü\nß", 4), "äöü …");
        assert_eq!(short("äöü", 3), "äöü");
    }
}
