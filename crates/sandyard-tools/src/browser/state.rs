//! What is known of the browser from its events: tabs, and what came up since the last answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::downloads::Downloads;
use super::notes::{Notes, short};
use super::pipe::{Event, Failure, Pipe};

/// Size of the page in pixels, always.
pub(super) const WIDTH: u32 = 1280;
/// The same, downwards.
pub(super) const HEIGHT: u32 = 800;
/// Most tabs. Each costs tens of MiB.
pub(super) const MAX_TABS: usize = 20;

/// One tab.
#[derive(Debug, Clone)]
pub(super) struct Tab {
    /// Its name in the protocol, and that of its main frame.
    pub(super) target: String,
    /// Where it is spoken to.
    pub(super) session: String,
    pub(super) url: String,
    pub(super) title: String,
    /// A document is on its way.
    pub(super) is_loading: bool,
    /// Its process has ended.
    pub(super) is_crashed: bool,
}

/// All of it.
#[derive(Debug)]
pub(super) struct State {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// In the order they were opened.
    tabs: Vec<Tab>,
    /// The one that is looked at.
    current: Option<String>,
    notes: Notes,
    downloads: Downloads,
    /// What a drag that has just begun carries.
    drag: Option<Value>,
}

impl State {
    /// Nothing yet.
    pub(super) fn new(downloads: Downloads) -> Self {
        Self {
            inner: Mutex::new(Inner {
                tabs: Vec::new(),
                current: None,
                notes: Notes::default(),
                downloads,
                drag: None,
            }),
        }
    }

    /// The tabs, and which of them is looked at.
    pub(super) fn tabs(&self) -> (Vec<Tab>, Option<usize>) {
        let inner = self.lock();
        let at = inner
            .current
            .as_deref()
            .and_then(|target| inner.position(target));
        (inner.tabs.clone(), at)
    }

    /// A tab by its name in the protocol.
    pub(super) fn tab(&self, target: &str) -> Option<Tab> {
        let inner = self.lock();
        inner.position(target).map(|at| inner.tabs[at].clone())
    }

    /// Looks at another tab.
    pub(super) fn look_at(&self, target: &str) {
        self.lock().current = Some(target.to_owned());
    }

    /// What came up since the last time this was asked.
    pub(super) fn take_notes(&self) -> Vec<String> {
        let mut inner = self.lock();
        let mut notes = inner.notes.take();
        notes.extend(inner.downloads.running());
        notes
    }

    /// Something to tell with the next answer.
    pub(super) fn note(&self, words: impl Into<String>) {
        self.lock().notes.add(words.into());
    }

    /// What a drag that has begun since the last time carries.
    pub(super) fn take_drag(&self) -> Option<Value> {
        self.lock().drag.take()
    }

    /// Something happened.
    pub(super) fn on_event(&self, pipe: &Pipe, event: Event<'_>) {
        let params = event.params;
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        let mut inner = self.lock();
        match event.method {
            "Target.attachedToTarget" => inner.opened(pipe, params),
            "Target.detachedFromTarget" => inner.closed(pipe, text("sessionId")),
            "Target.targetInfoChanged" => inner.changed(&params["targetInfo"]),
            "Target.targetCrashed" => inner.crashed(pipe, text("targetId")),
            "Page.frameStartedLoading" => inner.loading(event.session, text("frameId"), true),
            "Page.frameStoppedLoading" => inner.loading(event.session, text("frameId"), false),
            "Page.javascriptDialogOpening" => inner.dialog(pipe, event.session, params),
            "Page.fileChooserOpened" => inner.notes.add(
                "the page asked for a file to be chosen; none was, there is no tool for it".into(),
            ),
            "Input.dragIntercepted" => inner.drag = Some(params["data"].clone()),
            "Browser.downloadWillBegin" => inner.downloads.begin(params),
            "Browser.downloadProgress" => {
                if let Some(words) = inner.downloads.progress(pipe, params) {
                    inner.notes.add(words);
                }
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn position(&self, target: &str) -> Option<usize> {
        self.tabs.iter().position(|tab| tab.target == target)
    }

    fn opened(&mut self, pipe: &Pipe, params: &Value) {
        let info = &params["targetInfo"];
        let (Some(session), Some(target)) =
            (params["sessionId"].as_str(), info["targetId"].as_str())
        else {
            return;
        };
        if self.tabs.len() >= MAX_TABS {
            pipe.tell(None, "Target.closeTarget", json!({ "targetId": target }));
            self.notes.add(format!(
                "a page wanted another tab, which was refused: {MAX_TABS} are the most"
            ));
            return;
        }
        // The new page waits until all of this is done, so that nothing of it is missed.
        let tell = |method, params| pipe.tell(Some(session), method, params);
        tell("Page.enable", json!({}));
        tell(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false }),
        );
        tell(
            "Page.setInterceptFileChooserDialog",
            json!({ "enabled": true }),
        );
        tell("Runtime.runIfWaitingForDebugger", json!({}));
        self.tabs.push(Tab {
            target: target.to_owned(),
            session: session.to_owned(),
            url: info["url"].as_str().unwrap_or_default().to_owned(),
            title: info["title"].as_str().unwrap_or_default().to_owned(),
            is_loading: false,
            is_crashed: false,
        });
        if info["openerId"].is_string() {
            self.notes.add(format!(
                "a page opened tab {}, which is looked at now",
                self.tabs.len() - 1
            ));
        }
        self.current = Some(target.to_owned());
    }

    fn closed(&mut self, pipe: &Pipe, session: &str) {
        pipe.give_up(session, &Failure::Closed);
        let Some(at) = self.tabs.iter().position(|tab| tab.session == session) else {
            return;
        };
        let gone = self.tabs.remove(at);
        if self.current.as_deref() == Some(&gone.target) {
            self.current = self.tabs.last().map(|tab| tab.target.clone());
            if let Some(target) = &self.current {
                pipe.tell(None, "Target.activateTarget", json!({ "targetId": target }));
            }
        }
    }

    fn changed(&mut self, info: &Value) {
        let Some(at) = info["targetId"]
            .as_str()
            .and_then(|target| self.position(target))
        else {
            return;
        };
        let tab = &mut self.tabs[at];
        tab.url = info["url"].as_str().unwrap_or_default().to_owned();
        tab.title = info["title"].as_str().unwrap_or_default().to_owned();
    }

    fn crashed(&mut self, pipe: &Pipe, target: &str) {
        if let Some(at) = self.position(target) {
            let tab = &mut self.tabs[at];
            tab.is_crashed = true;
            tab.is_loading = false;
            pipe.give_up(&tab.session, &Failure::Crashed);
        }
    }

    fn loading(&mut self, session: &str, frame: &str, is_loading: bool) {
        // Frames inside of the page may load for ever: only the page itself counts.
        let found = self.tabs.iter_mut().find(|tab| tab.session == session);
        if let Some(tab) = found.filter(|tab| tab.target == frame) {
            tab.is_loading = is_loading;
        }
    }

    /// Everything else in the page waits until a dialog is answered, so it is answered here.
    fn dialog(&mut self, pipe: &Pipe, session: &str, params: &Value) {
        let message = short(params["message"].as_str().unwrap_or_default(), 500);
        let (accept, words) = match params["type"].as_str().unwrap_or_default() {
            "alert" => (true, format!("an alert said {message:?} and was closed")),
            // Whoever clicked meant it.
            "confirm" => (true, format!("the page asked {message:?} and was told OK")),
            "beforeunload" => (
                true,
                "the page asked whether to leave it and was told yes".to_owned(),
            ),
            _ => (
                false,
                format!("the page asked for a text, {message:?}, and was told Cancel"),
            ),
        };
        pipe.tell(
            Some(session),
            "Page.handleJavaScriptDialog",
            json!({ "accept": accept }),
        );
        self.notes.add(words);
    }
}
