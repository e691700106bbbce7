//! Notes for the next reply.

/// Maximum number of notes in a reply.
const MAX_NOTES: usize = 20;

/// Notes in order.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<String>,
    dropped: usize,
}

impl Notes {
    /// Adds a note.
    pub(super) fn add(&mut self, text: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(text);
        } else {
            self.dropped += 1;
        }
    }

    /// Removes and returns all notes.
    pub(super) fn take(&mut self) -> Vec<String> {
        let dropped = std::mem::take(&mut self.dropped);
        let mut notes = std::mem::take(&mut self.notes);
        if dropped > 0 {
            notes.push(format!("{dropped} more notes were dropped"));
        }
        notes
    }
}

/// A text as one line, truncated to a number of characters.
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
    fn too_many_notes_are_counted() {
        let mut notes = Notes::default();
        for number in 0..1000 {
            notes.add(number.to_string());
        }
        let taken = notes.take();
        assert_eq!(taken.len(), MAX_NOTES + 1);
        assert_eq!(taken[MAX_NOTES], "980 more notes were dropped");
        assert!(notes.take().is_empty());
    }

    #[test]
    fn a_text_is_truncated_between_characters() {
        assert_eq!(short("äöü\nß", 4), "äöü …");
        assert_eq!(short("äöü", 3), "äöü");
    }
}
