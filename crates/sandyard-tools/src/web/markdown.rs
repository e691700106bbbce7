//! Converts HTML to Markdown.
//!
//! Tags are converted as they come, without a document tree, so the cost depends only on the length of a page, not on its nesting.

use std::cell::RefCell;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;

use super::markdown_writer::MarkdownWriter;

/// A converted page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Title of the page.
    pub(super) title: String,
    /// Content as Markdown.
    pub(super) text: String,
}

/// Converts a page. Relative links are resolved against the URL of the page.
pub(super) fn readable(html: &str, base: &Url) -> Readable {
    let sink = Sink(RefCell::new(MarkdownWriter::new(base.clone())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(html.into());
    // Scripts do not run, so the whole text is processed at once.
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<MarkdownWriter>);

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
