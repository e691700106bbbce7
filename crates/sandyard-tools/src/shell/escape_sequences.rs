//! Parser of a terminal's control characters and escape sequences.

/// Maximum length of a control sequence.
const MAX_SEQUENCE: usize = 64;
/// Maximum length of a string for the terminal itself, such as a title.
const MAX_STRING: usize = 4_096;

/// The effect of a character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// No effect, or part of a sequence.
    None,
    /// A visible character.
    Char(char),
    /// Move to the next line.
    Newline,
    /// Move to the beginning of the line.
    Return,
    /// Move left by one.
    Back,
    /// A control sequence: its final character and its parameters.
    Control(char, Vec<u16>),
}

/// Parser state.
#[derive(Debug, Default)]
pub(super) enum EscapeParser {
    /// Not in a sequence.
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// In a sequence with one more character.
    FinalCharacter,
    /// In a control sequence, with its parameters so far.
    Control(String),
    /// In a string for the terminal itself, with its length so far.
    String(usize),
    /// In a string, after an escape character that may end it.
    StringEscape(usize),
}

impl EscapeParser {
    /// Processes a character.
    pub(super) fn next(&mut self, char: char) -> Token {
        match std::mem::take(self) {
            Self::Text => self.text(char),
            Self::Escape => {
                match char {
                    '[' => *self = Self::Control(String::new()),
                    ']' | 'P' | 'X' | '^' | '_' => *self = Self::String(0),
                    ' '..='/' => *self = Self::FinalCharacter,
                    '\x1b' => *self = Self::Escape,
                    '\n' | '\r' => return self.text(char),
                    _ => {}
                }
                Token::None
            }
            Self::FinalCharacter => Token::None,
            Self::Control(parameters) => self.control(parameters, char),
            Self::String(length) => {
                match char {
                    '\x07' | '\u{9c}' => {}
                    // Such strings do not span lines, so this was something else. Show the rest.
                    '\n' => {}
                    '\x1b' => *self = Self::StringEscape(length),
                    _ if length >= MAX_STRING => {}
                    _ => *self = Self::String(length + 1),
                }
                Token::None
            }
            Self::StringEscape(length) => {
                match char {
                    '\\' => {}
                    '\x1b' => *self = Self::StringEscape(length),
                    _ => {
                        // The escape character starts another sequence.
                        *self = Self::Escape;
                        return self.next(char);
                    }
                }
                Token::None
            }
        }
    }

    fn text(&mut self, char: char) -> Token {
        match char {
            '\n' => Token::Newline,
            '\r' => Token::Return,
            '\x08' => Token::Back,
            '\x1b' => {
                *self = Self::Escape;
                Token::None
            }
            '\t' => Token::Char('\t'),
            char if char.is_control() => Token::None,
            char => Token::Char(char),
        }
    }

    fn control(&mut self, mut parameters: String, char: char) -> Token {
        match char {
            '\u{40}'..='\u{7e}' => {
                let numbers = parameters
                    .trim_start_matches(['?', '>', '=', '<'])
                    .split(';');
                let numbers = numbers.map(|number| match number {
                    "" => 0,
                    number => number.parse().unwrap_or(u16::MAX),
                });
                Token::Control(char, numbers.collect())
            }
            '\x1b' => {
                *self = Self::Escape;
                Token::None
            }
            '\n' | '\r' => self.text(char),
            _ if parameters.len() >= MAX_SEQUENCE => Token::None,
            _ => {
                parameters.push(char);
                *self = Self::Control(parameters);
                Token::None
            }
        }
    }
}
