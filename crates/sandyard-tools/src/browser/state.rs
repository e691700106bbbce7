//! State of the browser from its events: tabs, and notes for the next reply.

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::downloads::Downloads;
use super::notes::{Notes, short};
use super::pipe::{Event, Failure, Pipe};

/// Width of the page, in pixels.
pub(super) const WIDTH: u32 = 1280;
/// Height of the page, in pixels.
pub(super) const HEIGHT: u32 = 800;
/// Maximum number of tabs. Each needs tens of MiB.
pub(super) const MAX_TABS: usize = 20;

/// A tab.
#[derive(Debug, Clone)]
pub(super) struct Tab {
    /// ID of the target and of its main frame.
    pub(super) target: String,
    /// ID of the protocol session.
    pub(super) session: String,
    pub(super) url: String,
    pub(super) title: String,
    /// Whether a document is loading.
    pub(super) is_loading: bool,
    /// Whether its process has crashed.
    pub(super) is_crashed: bool,
}

/// State of the browser.
#[derive(Debug)]
pub(super) struct State {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// In the order they were opened.
    tabs: Vec<Tab>,
    /// Target of the current tab.
    current: Option<String>,
    notes: Notes,
    downloads: Downloads,
    /// Data of a drag that has just started.
    drag: Option<Value>,
}

impl State {
    /// The state of a new browser.
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

    /// All tabs, and the index of the current one.
    pub(super) fn tabs(&self) -> (Vec<Tab>, Option<usize>) {
        let inner = self.inner.lock();
        let at = inner
            .current
            .as_deref()
            .and_then(|target| inner.position(target));
        (inner.tabs.clone(), at)
    }

    /// Finds a tab by its target.
    pub(super) fn tab(&self, target: &str) -> Option<Tab> {
        let inner = self.inner.lock();
        inner.position(target).map(|at| inner.tabs[at].clone())
    }

    /// Makes another tab the current one.
    pub(super) fn select_tab(&self, target: &str) {
        self.inner.lock().current = Some(target.to_owned());
    }

    /// The notes since the last call.
    pub(super) fn take_notes(&self) -> Vec<String> {
        let mut inner = self.inner.lock();
        let mut notes = inner.notes.take();
        notes.extend(inner.downloads.running());
        notes
    }

    /// Adds a note for the next reply.
    pub(super) fn note(&self, text: impl Into<String>) {
        self.inner.lock().notes.add(text.into());
    }

    /// The data of a drag that started since the last call.
    pub(super) fn take_drag(&self) -> Option<Value> {
        self.inner.lock().drag.take()
    }

    /// Handles an event.
    pub(super) fn on_event(&self, pipe: &Pipe, event: Event<'_>) {
        let params = event.params;
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        let mut inner = self.inner.lock();
        match event.method {
            "Target.attachedToTarget" => inner.add_target(pipe, params),
            "Target.detachedFromTarget" => inner.closed(pipe, text("sessionId")),
            "Target.targetInfoChanged" => inner.changed(&params["targetInfo"]),
            "Target.targetCrashed" => inner.crashed(pipe, text("targetId")),
            "Page.frameStartedLoading" => inner.loading(event.session, text("frameId"), true),
            "Page.frameStoppedLoading" => inner.loading(event.session, text("frameId"), false),
            "Page.javascriptDialogOpening" => inner.dialog(pipe, event.session, params),
            "Page.fileChooserOpened" => inner
                .notes
                .add("the page asked for a file upload, which is not supported".into()),
            "Input.dragIntercepted" => inner.drag = Some(params["data"].clone()),
            "Browser.downloadWillBegin" => inner.downloads.begin(params),
            "Browser.downloadProgress" => {
                if let Some(note) = inner.downloads.progress(pipe, params) {
                    inner.notes.add(note);
                }
            }
            _ => {}
        }
    }
}

impl Inner {
    fn position(&self, target: &str) -> Option<usize> {
        self.tabs.iter().position(|tab| tab.target == target)
    }

    fn add_target(&mut self, pipe: &Pipe, params: &Value) {
        let info = &params["targetInfo"];
        let (Some(session), Some(target)) =
            (params["sessionId"].as_str(), info["targetId"].as_str())
        else {
            return;
        };
        if self.tabs.len() >= MAX_TABS {
            pipe.notify(None, "Target.closeTarget", json!({ "targetId": target }));
            self.notes.add(format!(
                "a page wanted to open a tab, which was refused: the maximum is {MAX_TABS}"
            ));
            return;
        }
        // The new page is paused until this is done, so that no event is missed.
        let send = |method, params| pipe.notify(Some(session), method, params);
        send("Page.enable", json!({}));
        send(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false }),
        );
        send(
            "Page.setInterceptFileChooserDialog",
            json!({ "enabled": true }),
        );
        send("Runtime.runIfWaitingForDebugger", json!({}));
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
                "a page opened tab {}, which is now the current tab",
                self.tabs.len() - 1
            ));
        }
        self.current = Some(target.to_owned());
    }

    fn closed(&mut self, pipe: &Pipe, session: &str) {
        pipe.fail_session(session, &Failure::Closed);
        let Some(at) = self.tabs.iter().position(|tab| tab.session == session) else {
            return;
        };
        let closed = self.tabs.remove(at);
        if self.current.as_deref() == Some(&closed.target) {
            self.current = self.tabs.last().map(|tab| tab.target.clone());
            if let Some(target) = &self.current {
                pipe.notify(None, "Target.activateTarget", json!({ "targetId": target }));
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
            pipe.fail_session(&tab.session, &Failure::Crashed);
        }
    }

    fn loading(&mut self, session: &str, frame: &str, is_loading: bool) {
        // Only the main frame counts: other frames may load forever.
        let found = self.tabs.iter_mut().find(|tab| tab.session == session);
        if let Some(tab) = found.filter(|tab| tab.target == frame) {
            tab.is_loading = is_loading;
        }
    }

    /// Answers a dialog, because it blocks everything else in the page.
    fn dialog(&mut self, pipe: &Pipe, session: &str, params: &Value) {
        let message = short(params["message"].as_str().unwrap_or_default(), 500);
        let (accept, note) = match params["type"].as_str().unwrap_or_default() {
            "alert" => (true, format!("an alert with {message:?} was closed")),
            "confirm" => (
                true,
                format!("a confirmation with {message:?} was answered with OK"),
            ),
            "beforeunload" => (
                true,
                "a confirmation to leave the page was answered with OK".to_owned(),
            ),
            _ => (false, format!("a prompt with {message:?} was cancelled")),
        };
        pipe.notify(
            Some(session),
            "Page.handleJavaScriptDialog",
            json!({ "accept": accept }),
        );
        self.notes.add(note);
    }
}
