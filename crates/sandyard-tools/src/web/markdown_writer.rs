//! Writes markdown from what an HTML page consists of, in its order.

use html5ever::tokenizer::Tag;
use reqwest::Url;

use super::markdown::Readable;

/// Deepest nesting of lists and quotes that is shown.
const MAX_DEPTH: usize = 8;

/// What stands on lines of its own.
const BLOCKS: &str = "address article aside body center dd details dialog div dl dt fieldset figcaption figure \
    footer form h1 h2 h3 h4 h5 h6 header legend main nav option p section summary table";

/// What is not for reading.
const SKIPPED: [&str; 9] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "noframes",
];

/// Writes a page down as its tags and texts come.
pub(super) struct MarkdownWriter {
    base: Url,
    readable: Readable,
    /// An element that is left out, and how many of it are open.
    skipped: Option<(String, usize)>,
    in_title: bool,
    in_pre: bool,
    /// Numbers of open lists; none for those without.
    lists: Vec<Option<u32>>,
    quotes: usize,
    /// Where the text of an open link begins, and where it leads.
    link: Option<(usize, String)>,
    /// There was white space since the last word.
    space: bool,
}

impl MarkdownWriter {
    /// With the address its links begin at.
    pub(super) fn new(base: Url) -> Self {
        Self {
            base,
            readable: Readable::default(),
            skipped: None,
            in_title: false,
            in_pre: false,
            lists: Vec::new(),
            quotes: 0,
            link: None,
            space: false,
        }
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Readable {
        self.end_link();
        self.readable.title = normalize_spaces(&self.readable.title);
        self.readable
            .text
            .truncate(self.readable.text.trim_end().len());
        self.readable
    }

    /// Some text.
    pub(super) fn text(&mut self, text: &str) {
        if self.in_title {
            self.readable.title.push_str(text);
        } else if self.skipped.is_some() {
        } else if self.in_pre {
            self.readable.text.push_str(text);
        } else {
            for (number, word) in text.split([' ', '\t', '\n', '\r', '\x0c']).enumerate() {
                self.space |= number > 0;
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        let text = &mut self.readable.text;
        if text.ends_with('\n') || text.is_empty() {
            let quotes = self.quotes.min(MAX_DEPTH);
            text.push_str(&"> ".repeat(quotes));
        } else if self.space && !text.ends_with([' ', '[']) {
            text.push(' ');
        }
        self.space = false;
        text.push_str(word);
    }

    /// Begins a new line, with `empty` empty lines before it.
    fn line(&mut self, empty: usize) {
        self.space = false;
        let text = &mut self.readable.text;
        let end = text.trim_end_matches([' ', '\n']).len();
        // Whatever is marked only is still on its line: a number of a list, the bar of a table.
        if end == 0 {
            text.clear();
            return;
        }
        let breaks = text[end..].matches('\n').count();
        text.truncate(end);
        text.push_str(&"\n".repeat(breaks.max(empty + 1)));
    }

    /// An element begins.
    pub(super) fn open(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name && !tag.self_closing {
                *depth += 1;
            }
            return;
        }
        if SKIPPED.contains(&name) && !tag.self_closing {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        let attribute = |name: &str| {
            let found = tag.attrs.iter().find(|found| &*found.name.local == name);
            found.map(|found| found.value.trim())
        };
        match name {
            "title" => self.in_title = self.readable.title.is_empty(),
            "base" => {
                if let Some(base) = attribute("href").and_then(|href| self.base.join(href).ok()) {
                    self.base = base;
                }
            }
            "br" => self.line(0),
            "hr" => {
                self.line(1);
                self.word("---");
                self.line(1);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.line(1);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&"#".repeat(level));
            }
            "ul" | "menu" | "ol" => {
                self.line(usize::from(self.lists.is_empty()));
                self.lists.push((name == "ol").then_some(1));
            }
            "li" => self.item(),
            "blockquote" => {
                self.line(1);
                self.quotes += 1;
            }
            "pre" => {
                self.line(1);
                self.readable.text.push_str("```\n");
                self.in_pre = true;
            }
            "code" if !self.in_pre => {
                self.word("`");
            }
            "tr" => {
                self.line(0);
                self.mark("|");
            }
            "a" => {
                self.end_link();
                if let Some(href) = attribute("href").filter(|href| !href.starts_with('#')) {
                    let href = self
                        .base
                        .join(href)
                        .map_or_else(|_| href.to_owned(), String::from);
                    self.word("[");
                    self.link = Some((self.readable.text.len(), href));
                }
            }
            "img" => self.image(attribute("alt"), attribute("src")),
            _ if is_block(name) => self.line(1),
            _ => {}
        }
    }

    /// An element ends.
    pub(super) fn close(&mut self, name: &str) {
        if name == "title" {
            self.in_title = false;
        }
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            "a" => self.end_link(),
            "ul" | "menu" | "ol" => {
                self.lists.pop();
                self.line(usize::from(self.lists.is_empty()));
            }
            "blockquote" => {
                self.line(1);
                self.quotes = self.quotes.saturating_sub(1);
            }
            "pre" if self.in_pre => {
                self.in_pre = false;
                self.line(0);
                self.readable.text.push_str("```");
                self.line(1);
            }
            "code" if !self.in_pre => self.readable.text.push('`'),
            "td" | "th" => self.mark("|"),
            "li" | "tr" => self.line(0),
            _ if is_block(name) => self.line(1),
            _ => {}
        }
    }

    /// Something at the beginning of a line, or between cells.
    fn mark(&mut self, mark: &str) {
        self.space = true;
        self.word(mark);
        self.space = true;
    }

    fn item(&mut self) {
        self.line(0);
        let depth = self.lists.len().clamp(1, MAX_DEPTH);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}.");
                *number = number.saturating_add(1);
                mark
            }
            _ => "-".to_owned(),
        };
        self.word(&format!("{}{mark}", "  ".repeat(depth - 1)));
        self.space = true;
    }

    fn image(&mut self, alt: Option<&str>, source: Option<&str>) {
        let (Some(alt), Some(source)) = (alt.filter(|alt| !alt.is_empty()), source) else {
            return;
        };
        // One with all its bytes in the address is not for reading.
        let source = if source.starts_with("data:") {
            String::new()
        } else {
            self.base
                .join(source)
                .map_or_else(|_| source.to_owned(), String::from)
        };
        self.word(&format!("![{}]({source})", normalize_spaces(alt)));
    }

    fn end_link(&mut self) {
        let Some((start, href)) = self.link.take() else {
            return;
        };
        let text = &mut self.readable.text;
        let Some(inner) = text.get(start..).map(normalize_spaces) else {
            // Line breaks have taken its beginning away.
            return;
        };
        let before = start - 1;
        text.truncate(before);
        if !inner.is_empty() {
            text.push_str(&format!("[{inner}]({href})"));
        }
    }
}

fn is_block(name: &str) -> bool {
    BLOCKS.split(' ').any(|block| block == name)
}

/// A text with its white space made plain.
fn normalize_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
