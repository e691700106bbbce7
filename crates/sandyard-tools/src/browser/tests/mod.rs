//! Real Chromium, real pages.
//!
//! Pages say in their titles what has happened to them, and every answer has the title in it. Without Chromium these fail.

mod elements;
mod input;
mod lifecycle;
mod pages;
mod site;
mod tabs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use self::site::Site;
use super::tools;
use crate::call::Call;
use crate::options::Options;
use crate::reply::Reply;
use crate::tool_state::ToolState;

/// One browser at a time: they are large.
static BROWSER_LOCK: Mutex<()> = Mutex::const_new(());

/// A tool_state with a browser, and a site for it to go to.
struct TestEnv {
    tool_state: Arc<ToolState>,
    folder: tempfile::TempDir,
    site: Site,
    _turn: MutexGuard<'static, ()>,
}

/// What a tool answered.
#[derive(Debug)]
struct Seen {
    text: String,
    is_error: bool,
    picture: Option<Picture>,
}

struct Picture {
    bytes: usize,
    width: u32,
    height: u32,
    channels: usize,
    pixels: Vec<u8>,
}

impl TestEnv {
    async fn new() -> Self {
        Self::with_limits(|_| {}).await
    }

    async fn with_limits(change: impl FnOnce(&mut super::Limits)) -> Self {
        let browser = BROWSER_LOCK.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let mut tool_state = ToolState::new(Options {
            workspace: folder.path().to_owned(),
            more_roots: Vec::new(),
            home: folder.path().to_owned(),
            token: None,
            port: 6060,
        });
        // What comes to rest does so at once, unless the machine is busy.
        tool_state.browser.limits.load = Duration::from_secs(30);
        change(&mut tool_state.browser.limits);
        Self {
            tool_state: Arc::new(tool_state),
            folder,
            site: Site::start().await,
            _turn: browser,
        }
    }

    async fn call(&self, name: &str, args: Value) -> Seen {
        self.call_with(name, args, Call::quiet()).await
    }

    async fn call_with(&self, name: &str, args: Value, call: Call) -> Seen {
        let tool = tools()
            .into_iter()
            .find(|tool| tool.name() == name)
            .unwrap();
        let args = args.as_object().unwrap().clone();
        let answer = tool.call(self.tool_state.clone(), args, call).await;
        Seen::new(answer.unwrap_or_else(Reply::from))
    }

    /// Shows a page of this HTML, served at a path of its own.
    async fn show(&self, html: &str) -> Seen {
        let url = self.site.page(html);
        let seen = self.call("browser_navigation", json!({ "url": url })).await;
        assert!(!seen.is_error, "{}", seen.text);
        seen
    }

    /// Waits until the page has this title.
    async fn until_title(&self, title: &str) -> Seen {
        let line = format!("Title: {title}\n");
        let until = Instant::now() + Duration::from_secs(90);
        loop {
            let seen = self.call("browser_wait", json!({})).await;
            if seen.text.contains(&line) {
                return seen;
            }
            assert!(Instant::now() < until, "{}", seen.text);
        }
    }
}

impl Seen {
    fn new(reply: Reply) -> Self {
        let result = serde_json::to_value(reply.into_result()).unwrap();
        let content = result["content"].as_array().unwrap();
        let texts = content.iter().filter_map(|block| block["text"].as_str());
        let picture = content
            .iter()
            .find(|block| block["type"] == "image")
            .map(|block| {
                assert_eq!(block["mimeType"], "image/png");
                Picture::new(&STANDARD.decode(block["data"].as_str().unwrap()).unwrap())
            });
        Self {
            text: texts.collect::<Vec<_>>().join("\n"),
            is_error: result["isError"] == true,
            picture,
        }
    }

    #[track_caller]
    fn has(&self, text: &str) -> &Self {
        assert!(
            !self.is_error && self.text.contains(text),
            "{text:?} is not in: {}",
            self.text
        );
        self
    }

    #[track_caller]
    fn has_not(&self, text: &str) -> &Self {
        assert!(
            !self.is_error && !self.text.contains(text),
            "{text:?} is in: {}",
            self.text
        );
        self
    }

    #[track_caller]
    fn titled(&self, title: &str) -> &Self {
        self.has(&format!("Title: {title}\n"))
    }

    #[track_caller]
    fn refused(&self, text: &str) -> &Self {
        assert!(
            self.is_error && self.text.contains(text),
            "{text:?} is not refused: {}",
            self.text
        );
        self
    }

    #[track_caller]
    fn colour(&self, x: u32, y: u32) -> [u8; 3] {
        self.picture.as_ref().expect(&self.text).colour(x, y)
    }
}

impl Picture {
    fn new(data: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(data))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        Self {
            bytes: data.len(),
            width: info.width,
            height: info.height,
            channels: info.color_type.samples(),
            pixels,
        }
    }

    fn colour(&self, x: u32, y: u32) -> [u8; 3] {
        let at = (y * self.width + x) as usize * self.channels;
        self.pixels[at..at + 3].try_into().unwrap()
    }
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Picture({} by {}, {} bytes)",
            self.width, self.height, self.bytes
        )
    }
}

const RED: [u8; 3] = [255, 0, 0];
const GREEN: [u8; 3] = [0, 128, 0];
const BLUE: [u8; 3] = [0, 0, 255];
const WHITE: [u8; 3] = [255, 255, 255];
