//! HTML to markdown, for reading.
//!
//! Tags are written down as they come, without a tree of the document: a page may be nested as deep as it likes, and costs
//! no more than its length.

use std::cell::RefCell;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;

use super::writer::Writer;

/// A page to read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Its title.
    pub(super) title: String,
    /// What is in it, as markdown.
    pub(super) text: String,
}

/// Makes a page readable. Links are made whole with the address it came from.
pub(super) fn readable(html: &str, base: &Url) -> Readable {
    let sink = Sink(RefCell::new(Writer::new(base.clone())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(html.into());
    // Scripts are never waited for, so all of it is read at once.
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => writer.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                writer.open(&tag);
                return match &*tag.name {
                    "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                        TokenSinkResult::RawData(RawKind::Rawtext)
                    }
                    "plaintext" => TokenSinkResult::Plaintext,
                    _ => TokenSinkResult::Continue,
                };
            }
            Token::TagToken(tag) => writer.close(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
