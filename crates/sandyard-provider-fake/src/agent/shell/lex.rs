//! A line of shell as words and signs. What is not known here is not understood at all, rather than wrongly.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text as it is.
    Text { text: String, is_quoted: bool },
    /// A variable's value, or what to take where it has none.
    Variable {
        name: String,
        default: String,
        is_quoted: bool,
    },
    /// `~` at the beginning of a word.
    Home,
}

/// A word before anything is put in for its variables.
pub(super) type Word = Vec<Piece>;

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Write,
    Append,
    Read,
}

/// A word or a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;` or the end of a line.
    Next,
    And,
    Or,
    Pipe,
    /// A file follows; both standard output and standard error when the number is none.
    Redirect(Option<u8>, Direction),
    /// The first goes where the second does.
    Join(u8, u8),
}

/// Says that a line is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Odd;

/// Takes a line apart.
pub(super) fn lex(line: &str) -> Result<Vec<Token>, Odd> {
    let mut lexer = Lexer {
        rest: line,
        tokens: Vec::new(),
    };
    while lexer.step()? {}
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
}

/// Signs, longer ones before those they begin with.
const SIGNS: [(&str, Option<Token>); 18] = [
    ("&&", Some(Token::And)),
    ("||", Some(Token::Or)),
    ("&>", Some(Token::Redirect(None, Direction::Write))),
    ("2>&1", Some(Token::Join(2, 1))),
    ("1>&2", Some(Token::Join(1, 2))),
    (">&2", Some(Token::Join(1, 2))),
    ("2>>", Some(Token::Redirect(Some(2), Direction::Append))),
    ("2>", Some(Token::Redirect(Some(2), Direction::Write))),
    ("1>>", Some(Token::Redirect(Some(1), Direction::Append))),
    ("1>", Some(Token::Redirect(Some(1), Direction::Write))),
    (">>", Some(Token::Redirect(Some(1), Direction::Append))),
    (">&", None),
    (">", Some(Token::Redirect(Some(1), Direction::Write))),
    ("<<", None),
    ("<", Some(Token::Redirect(Some(0), Direction::Read))),
    ("|", Some(Token::Pipe)),
    // There is nothing to wait for, so that what is in the background is over at once.
    ("&", Some(Token::Next)),
    (";", Some(Token::Next)),
];

impl Lexer<'_> {
    /// Takes one token; false at the end.
    fn step(&mut self) -> Result<bool, Odd> {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        self.rest = trimmed.strip_prefix("\\\n").unwrap_or(trimmed);
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        if self.rest.starts_with(";;") {
            return Err(Odd);
        }
        for (sign, token) in SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                self.tokens.push(token.ok_or(Odd)?);
                return Ok(true);
            }
        }
        match first {
            '\n' | '\r' => {
                self.rest = &self.rest[1..];
                self.tokens.push(Token::Next);
            }
            '#' => self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]),
            '(' | ')' | '`' => return Err(Odd),
            _ => {
                let word = self.word()?;
                self.tokens.push(Token::Word(word));
            }
        }
        Ok(true)
    }

    fn word(&mut self) -> Result<Word, Odd> {
        let mut word = Word::new();
        if let Some(rest) = self.rest.strip_prefix('~')
            && rest
                .chars()
                .next()
                .is_none_or(|next| " \t\n\r/;&|<>".contains(next))
        {
            word.push(Piece::Home);
            self.rest = rest;
        }
        while let Some(next) = self.rest.chars().next() {
            match next {
                ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '<' | '>' => break,
                '(' | ')' | '`' => return Err(Odd),
                '\'' => {
                    let (text, rest) = self.rest[1..].split_once('\'').ok_or(Odd)?;
                    self.rest = rest;
                    push(&mut word, text, true);
                }
                '"' => {
                    self.rest = &self.rest[1..];
                    self.quoted(&mut word)?;
                }
                '\\' => {
                    let escaped = self.rest[1..].chars().next().ok_or(Odd)?;
                    self.rest = &self.rest[1 + escaped.len_utf8()..];
                    push(&mut word, escaped.encode_utf8(&mut [0; 4]), true);
                }
                '$' => self.variable(&mut word, false)?,
                // Patterns of file names are not looked up, and must not be taken for names.
                '*' | '?' => return Err(Odd),
                next => {
                    self.rest = &self.rest[next.len_utf8()..];
                    push(&mut word, next.encode_utf8(&mut [0; 4]), false);
                }
            }
        }
        Ok(word)
    }

    /// The rest of a text between double quotes.
    fn quoted(&mut self, word: &mut Word) -> Result<(), Odd> {
        // An empty text is a word all the same.
        push(word, "", true);
        loop {
            let next = self.rest.chars().next().ok_or(Odd)?;
            match next {
                '"' => {
                    self.rest = &self.rest[1..];
                    return Ok(());
                }
                '`' => return Err(Odd),
                '$' => self.variable(word, true)?,
                '\\' => {
                    let escaped = self.rest[1..].chars().next().ok_or(Odd)?;
                    self.rest = &self.rest[1 + escaped.len_utf8()..];
                    if !"\"\\$`\n".contains(escaped) {
                        push(word, "\\", true);
                    }
                    if escaped != '\n' {
                        push(word, escaped.encode_utf8(&mut [0; 4]), true);
                    }
                }
                next => {
                    self.rest = &self.rest[next.len_utf8()..];
                    push(word, next.encode_utf8(&mut [0; 4]), true);
                }
            }
        }
    }

    fn variable(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Odd> {
        let rest = &self.rest[1..];
        let is_name = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let (name, default, rest) = if let Some(inner) = rest.strip_prefix('{') {
            let (inner, rest) = inner.split_once('}').ok_or(Odd)?;
            let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
            if name.is_empty() || !name.chars().all(is_name) || default.contains(['$', '"', '\'']) {
                return Err(Odd);
            }
            (name, default, rest)
        } else if rest.starts_with('(') {
            return Err(Odd);
        } else if rest.starts_with(['?', '$']) {
            (&rest[..1], "", &rest[1..])
        } else {
            let end = rest.find(|next| !is_name(next)).unwrap_or(rest.len());
            (&rest[..end], "", &rest[end..])
        };
        self.rest = rest;
        if name.is_empty() {
            push(word, "$", is_quoted);
            return Ok(());
        }
        word.push(Piece::Variable {
            name: name.to_owned(),
            default: default.to_owned(),
            is_quoted,
        });
        Ok(())
    }
}

fn push(word: &mut Word, more: &str, quoted: bool) {
    if let Some(Piece::Text { text, is_quoted }) = word.last_mut()
        && *is_quoted == quoted
    {
        text.push_str(more);
        return;
    }
    word.push(Piece::Text {
        text: more.to_owned(),
        is_quoted: quoted,
    });
}
