//! Running what was read.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use super::Shell;
use super::expand::assignment;
use super::lex::Direction;
use super::parse::parse;
use super::syntax::{Command, Joint, List, Pipeline, Redirect};

/// How long a loop waits before it goes round again, once it has gone round often.
const ROUND: Duration = Duration::from_millis(10);

/// Rounds that take no time.
const FREE_ROUNDS: u32 = 1000;

/// Work on its way, boxed since commands hold commands.
type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What a command wrote and how it ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
    pub(super) code: i32,
}

impl Outcome {
    pub(super) fn out(text: impl Into<Vec<u8>>) -> Self {
        Self {
            out: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn code(code: i32) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self {
            err: (message.into() + "\n").into_bytes(),
            code: 1,
            ..Self::default()
        }
    }
}

impl Shell {
    /// Runs a line: as a rule says, or as it is written.
    pub(super) async fn line(&mut self, line: &str) {
        let rules = self.machine.rules.clone();
        if let Some(rule) = rules.find(line.trim()) {
            return self.obey(rule, &[]).await;
        }
        match parse(line) {
            Ok(list) => self.list(&list, None).await,
            Err(_) => {
                self.complain(rules.unknown(line.trim()).as_bytes());
                self.last = 127;
            }
        }
    }

    /// Runs a program with its arguments.
    pub(super) async fn words(&mut self, words: Vec<String>) {
        self.simple(words, None, &[]).await;
    }

    fn list<'a>(&'a mut self, list: &'a List, input: Option<Bytes>) -> Running<'a> {
        Box::pin(async move {
            for (joint, pipeline) in list.iter().flatten() {
                if self.exit.is_some() || self.is_breaking {
                    return;
                }
                let is_wanted = match joint {
                    Joint::Always => true,
                    Joint::And => self.last == 0,
                    Joint::Or => self.last != 0,
                };
                if is_wanted {
                    self.pipeline(pipeline, input.clone()).await;
                }
            }
        })
    }

    async fn pipeline(&mut self, pipeline: &Pipeline, mut input: Option<Bytes>) {
        let last = pipeline.commands.len() - 1;
        for (at, command) in pipeline.commands.iter().enumerate() {
            if at == last {
                self.command(command, input.take()).await;
                continue;
            }
            self.captured.push(Vec::new());
            self.command(command, input.take()).await;
            input = self.captured.pop().map(Bytes::from);
        }
        if pipeline.is_negated {
            self.last = i32::from(self.last == 0);
        }
    }

    async fn command(&mut self, command: &Command, input: Option<Bytes>) {
        // An instance that rests does nothing; one that ended is about to end this, too.
        if self.machine.awake().await.is_err() {
            return std::future::pending().await;
        }
        match command {
            Command::Simple { words, redirects } => {
                let words = words.iter().flat_map(|word| self.fields(word)).collect();
                self.simple(words, input, redirects).await;
            }
            Command::While {
                is_until,
                condition,
                body,
            } => {
                self.enter_loop();
                let mut code = 0;
                loop {
                    self.list(condition, input.clone()).await;
                    if (self.last == 0) == *is_until || self.exit.is_some() {
                        break;
                    }
                    self.list(body, input.clone()).await;
                    code = self.last;
                    if self.round().await {
                        break;
                    }
                }
                self.leave_loop(code);
            }
            Command::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.list(condition, input.clone()).await;
                    if self.last == 0 {
                        return self.list(body, input).await;
                    }
                }
                self.last = 0;
                self.list(otherwise, input).await;
            }
            Command::For { name, words, body } => {
                let values: Vec<String> = words.iter().flat_map(|word| self.fields(word)).collect();
                self.enter_loop();
                self.last = 0;
                for value in values {
                    self.env.insert(name.clone(), value);
                    self.list(body, input.clone()).await;
                    if self.round().await {
                        break;
                    }
                }
                self.leave_loop(self.last);
            }
        }
    }

    fn enter_loop(&mut self) {
        self.loops += 1;
    }

    fn leave_loop(&mut self, code: i32) {
        self.loops -= 1;
        self.is_breaking = false;
        if self.exit.is_none() {
            self.last = code;
        }
    }

    /// Lets others have their turn; true when the loop is over.
    async fn round(&mut self) -> bool {
        self.rounds = self.rounds.saturating_add(1);
        match self.rounds {
            0..FREE_ROUNDS => tokio::task::yield_now().await,
            _ => tokio::time::sleep(ROUND).await,
        }
        self.is_breaking || self.exit.is_some()
    }

    /// Time passes only in loops, which may wait for something that another command does.
    pub(super) async fn sleep(&self) {
        if self.loops > 0 {
            tokio::time::sleep(ROUND).await;
        }
    }

    async fn simple(
        &mut self,
        mut words: Vec<String>,
        mut input: Option<Bytes>,
        redirects: &[Redirect],
    ) {
        for redirect in redirects {
            let Redirect::File(_, Direction::Read, word) = redirect else {
                continue;
            };
            match self.machine.disk.read(&self.path(&self.text(word))) {
                Ok(content) => input = Some(content),
                Err(_) => {
                    let message = format!("sh: {}: No such file or directory\n", self.text(word));
                    self.complain(message.as_bytes());
                    self.last = 1;
                    return;
                }
            }
        }
        // Variables for one command are set for all that follow, which no line of a test minds.
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            self.env.insert(name, value);
            words.remove(0);
        }
        let line = words.join(" ");
        let rules = self.machine.rules.clone();
        if let Some(rule) = rules.find(&line).filter(|_| !words.is_empty()) {
            return self.obey(rule, redirects).await;
        }
        let has_way_out = redirects
            .iter()
            .any(|redirect| !matches!(redirect, Redirect::File(_, Direction::Read, _)));
        let outcome = match words.split_first() {
            None => Outcome::code(0),
            Some((name, arguments)) => {
                let ran = self.builtin(name, arguments, input, has_way_out).await;
                ran.unwrap_or_else(|| Outcome {
                    err: rules.unknown(&line).into_bytes(),
                    code: 127,
                    ..Outcome::default()
                })
            }
        };
        self.deliver(outcome, redirects);
    }
}
