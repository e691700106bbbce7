//! Reads a terminal's control sequences.

/// Longest control sequence that is looked at.
const MAX_SEQUENCE: usize = 64;
/// Longest title, link or other text for the terminal itself.
const MAX_STRING: usize = 4_096;

/// What a character of the stream comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Part of something, or without effect.
    Nothing,
    /// To be shown.
    Char(char),
    /// The next line.
    Newline,
    /// Back to the beginning of the line.
    Return,
    /// One to the left.
    Back,
    /// A control sequence: its letter and numbers.
    Control(char, Vec<u16>),
}

/// Where in a sequence the stream is.
#[derive(Debug, Default)]
pub(super) enum Escapes {
    /// In none.
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// One more character belongs to it.
    OneMore,
    /// In a control sequence, with its parameters so far.
    Control(String),
    /// In a text for the terminal itself, this long so far.
    String(usize),
    /// The same after an escape character, which may end it.
    StringEscape(usize),
}

impl Escapes {
    /// Takes one character.
    pub(super) fn take(&mut self, char: char) -> Sign {
        match std::mem::take(self) {
            Self::Text => self.text(char),
            Self::Escape => {
                match char {
                    '[' => *self = Self::Control(String::new()),
                    ']' | 'P' | 'X' | '^' | '_' => *self = Self::String(0),
                    ' '..='/' => *self = Self::OneMore,
                    '\x1b' => *self = Self::Escape,
                    '\n' | '\r' => return self.text(char),
                    _ => {}
                }
                Sign::Nothing
            }
            Self::OneMore => Sign::Nothing,
            Self::Control(parameters) => self.control(parameters, char),
            Self::String(length) => {
                match char {
                    '\x07' | '\u{9c}' => {}
                    // No such text goes over lines: it was something else, and the rest is to be seen.
                    '\n' => {}
                    '\x1b' => *self = Self::StringEscape(length),
                    _ if length >= MAX_STRING => {}
                    _ => *self = Self::String(length + 1),
                }
                Sign::Nothing
            }
            Self::StringEscape(length) => {
                match char {
                    '\\' => {}
                    '\x1b' => *self = Self::StringEscape(length),
                    _ => {
                        // It was the beginning of something new.
                        *self = Self::Escape;
                        return self.take(char);
                    }
                }
                Sign::Nothing
            }
        }
    }

    fn text(&mut self, char: char) -> Sign {
        match char {
            '\n' => Sign::Newline,
            '\r' => Sign::Return,
            '\x08' => Sign::Back,
            '\x1b' => {
                *self = Self::Escape;
                Sign::Nothing
            }
            '\t' => Sign::Char('\t'),
            char if char.is_control() => Sign::Nothing,
            char => Sign::Char(char),
        }
    }

    fn control(&mut self, mut parameters: String, char: char) -> Sign {
        match char {
            '\u{40}'..='\u{7e}' => {
                let numbers = parameters
                    .trim_start_matches(['?', '>', '=', '<'])
                    .split(';');
                let numbers = numbers.map(|number| match number {
                    "" => 0,
                    number => number.parse().unwrap_or(u16::MAX),
                });
                Sign::Control(char, numbers.collect())
            }
            '\x1b' => {
                *self = Self::Escape;
                Sign::Nothing
            }
            '\n' | '\r' => self.text(char),
            _ if parameters.len() >= MAX_SEQUENCE => Sign::Nothing,
            _ => {
                parameters.push(char);
                *self = Self::Control(parameters);
                Sign::Nothing
            }
        }
    }
}
