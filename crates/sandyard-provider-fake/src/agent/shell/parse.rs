//! Words and signs as commands.

use super::lex::{Odd, Piece, Token, Word, lex};
use super::syntax::{Command, Joint, List, Pipeline, Redirect};

/// How deep commands may be in one another.
const MAX_DEPTH: usize = 32;

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<List, Odd> {
    let tokens = lex(line)?;
    let mut parser = Parser {
        tokens: &tokens,
        depth: 0,
    };
    let list = parser.list()?;
    match parser.tokens {
        [] => Ok(list),
        _ => Err(Odd),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    /// The next token as a word that has a meaning of its own.
    fn key(&self) -> Option<&str> {
        match self.tokens.first()? {
            Token::Word(word) => plain(word),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn expect(&mut self, key: &str) -> Result<(), Odd> {
        if self.key() != Some(key) {
            return Err(Odd);
        }
        self.next();
        Ok(())
    }

    fn is_at(&self, token: &Token) -> bool {
        self.tokens.first() == Some(token)
    }

    /// Commands up to the end or to a word that ends them.
    fn list(&mut self) -> Result<List, Odd> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Odd);
        }
        let mut list = List::new();
        loop {
            while self.is_at(&Token::Next) {
                self.next();
            }
            let ends = ["do", "done", "then", "elif", "else", "fi"];
            if self.tokens.is_empty() || self.key().is_some_and(|key| ends.contains(&key)) {
                break;
            }
            list.push(self.chain()?);
            if !self.tokens.is_empty() && !self.is_at(&Token::Next) {
                return Err(Odd);
            }
        }
        self.depth -= 1;
        Ok(list)
    }

    fn chain(&mut self) -> Result<Vec<(Joint, Pipeline)>, Odd> {
        let mut chain = vec![(Joint::Always, self.pipeline()?)];
        loop {
            let joint = match self.tokens.first() {
                Some(Token::And) => Joint::And,
                Some(Token::Or) => Joint::Or,
                _ => return Ok(chain),
            };
            self.next();
            while self.is_at(&Token::Next) {
                self.next();
            }
            chain.push((joint, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Odd> {
        let is_negated = self.key() == Some("!");
        if is_negated {
            self.next();
        }
        let mut commands = vec![self.command()?];
        while self.is_at(&Token::Pipe) {
            self.next();
            commands.push(self.command()?);
        }
        Ok(Pipeline {
            is_negated,
            commands,
        })
    }

    fn command(&mut self) -> Result<Command, Odd> {
        match self.key() {
            Some(key @ ("while" | "until")) => {
                let is_until = key == "until";
                self.next();
                let condition = self.list()?;
                let body = self.body()?;
                Ok(Command::While {
                    is_until,
                    condition,
                    body,
                })
            }
            Some("if") => self.conditional(),
            Some("for") => self.each(),
            Some("case" | "function" | "{" | "[[" | "select" | "time") => Err(Odd),
            _ => self.simple(),
        }
    }

    fn body(&mut self) -> Result<List, Odd> {
        self.expect("do")?;
        let body = self.list()?;
        self.expect("done")?;
        Ok(body)
    }

    fn conditional(&mut self) -> Result<Command, Odd> {
        let mut branches = Vec::new();
        loop {
            // `if` or `elif`.
            self.next();
            let condition = self.list()?;
            self.expect("then")?;
            branches.push((condition, self.list()?));
            match self.key() {
                Some("elif") => {}
                Some("else") => {
                    self.next();
                    let otherwise = self.list()?;
                    self.expect("fi")?;
                    return Ok(Command::If {
                        branches,
                        otherwise,
                    });
                }
                _ => {
                    self.expect("fi")?;
                    let otherwise = List::new();
                    return Ok(Command::If {
                        branches,
                        otherwise,
                    });
                }
            }
        }
    }

    fn each(&mut self) -> Result<Command, Odd> {
        self.next();
        let name = self.key().ok_or(Odd)?.to_owned();
        self.next();
        self.expect("in")?;
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.tokens.first() {
            words.push(word.clone());
            self.next();
        }
        while self.is_at(&Token::Next) {
            self.next();
        }
        let body = self.body()?;
        Ok(Command::For { name, words, body })
    }

    fn simple(&mut self) -> Result<Command, Odd> {
        let (mut words, mut redirects) = (Vec::new(), Vec::new());
        loop {
            match self.tokens.first() {
                Some(Token::Word(word)) => {
                    words.push(word.clone());
                    self.next();
                }
                Some(Token::Join(from, to)) => {
                    redirects.push(Redirect::Join(*from, *to));
                    self.next();
                }
                Some(Token::Redirect(number, direction)) => {
                    let (number, direction) = (*number, *direction);
                    self.next();
                    let Some(Token::Word(word)) = self.next() else {
                        return Err(Odd);
                    };
                    redirects.push(Redirect::File(number, direction, word));
                }
                _ if words.is_empty() && redirects.is_empty() => return Err(Odd),
                _ => return Ok(Command::Simple { words, redirects }),
            }
        }
    }
}

/// A word that is nothing but unquoted text.
fn plain(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [
            Piece::Text {
                text,
                is_quoted: false,
            },
        ] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_understood() {
        for line in [
            "echo $(ls)",
            "echo `ls`",
            "(ls)",
            "ls *.c",
            "case x in x) ;; esac",
            "cat <<EOF",
            "echo 'open",
            "echo \"open",
            "&& ls",
            "ls &&",
            "while true; do",
            "if true; fi",
            "done",
            "f() { :; }",
            "echo ${x%y}",
            "ls >",
            "| ls",
            "[[ a ]]",
        ] {
            assert_eq!(parse(line), Err(Odd), "{line}");
        }
        let deep = format!("{}true{}", "if ".repeat(40), "; then :; fi".repeat(40));
        assert_eq!(parse(&deep), Err(Odd));
    }

    #[test]
    fn lists_and_loops_are_read() {
        let list = parse("a && b || c; d | e &\nwhile ! f; do g; done # h").unwrap();
        assert_eq!(list.len(), 3);
        let joints: Vec<_> = list[0].iter().map(|(joint, _)| *joint).collect();
        assert_eq!(joints, [Joint::Always, Joint::And, Joint::Or]);
        assert_eq!(list[1][0].1.commands.len(), 2);
        assert!(matches!(
            list[2][0].1.commands[0],
            Command::While {
                is_until: false,
                ..
            }
        ));
        assert_eq!(parse("").unwrap(), List::new());
    }
}
