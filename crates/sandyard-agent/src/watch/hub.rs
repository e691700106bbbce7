//! The inotify instance and its watchers.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use sandyard_wire::{Code, ConnectError, EventType};
use tokio::io::Interest as Readiness;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

use super::watcher::{Interest, Watcher};
use crate::filesystem::from_io;
use crate::fs;
use crate::ready;

/// Maximum number of watchers.
const MAX_WATCHERS: usize = 64;

/// Maximum number of watched directories of all watchers.
const MAX_DIRECTORIES: usize = 16 * 1024;

/// Maximum number of names remembered of a new directory, to report each only once.
const MAX_SEEN: usize = 4096;

/// Size of the read buffer, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// All watchers.
#[derive(Debug, Default)]
pub(crate) struct Hub(RefCell<Inner>);

#[derive(Debug, Default)]
struct Inner {
    inotify: Option<Instance>,
    directories: HashMap<i32, Directory>,
    watchers: BTreeMap<u64, Rc<Watcher>>,
    by_name: BTreeMap<String, Watching>,
    last_id: u64,
}

/// An inotify instance and the task that reads it, which ends with it.
///
/// Watch numbers of two instances are the same numbers, so nothing of an old one may be read once there is a new one.
#[derive(Debug)]
struct Instance {
    fd: Rc<AsyncFd<OwnedFd>>,
    task: AbortHandle,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One watched directory.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    subscriptions: Vec<Subscription>,
    /// Names that were reported because they existed when the watch began; the kernel may report them again.
    seen: HashSet<Vec<u8>>,
}

/// A watcher and its relative path of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscription {
    watcher: u64,
    prefix: String,
}

/// A watcher that exists for as long as this does.
#[derive(Debug)]
pub(super) struct Watching {
    hub: Weak<Hub>,
    pub(super) watcher: Rc<Watcher>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.remove(self.watcher.id);
        }
    }
}

impl Hub {
    /// Starts to watch.
    pub(super) fn watch(self: &Rc<Self>, interest: Interest) -> Result<Watching, ConnectError> {
        self.drop_abandoned();
        if self.0.borrow().watchers.len() >= MAX_WATCHERS {
            return Err(ConnectError::new(
                Code::ResourceExhausted,
                format!("{MAX_WATCHERS} watchers exist already"),
            ));
        }
        self.start()
            .map_err(|error| from_io(&interest.root, &error))?;
        let mut inner = self.0.borrow_mut();
        inner.last_id += 1;
        let watcher = Rc::new(Watcher::new(inner.last_id, interest));
        inner.watchers.insert(watcher.id, watcher.clone());
        let added = inner.add_tree(&watcher, &watcher.interest.root, "", false);
        drop(inner);
        let watching = Watching {
            hub: Rc::downgrade(self),
            watcher,
        };
        added.map_err(|error| from_io(&watching.watcher.interest.root, &error))?;
        Ok(watching)
    }

    /// Stores a watcher under a name until it is removed.
    pub(super) fn store(&self, watching: Watching) -> String {
        let mut inner = self.0.borrow_mut();
        let name = format!("w{}", watching.watcher.id);
        inner.by_name.insert(name.clone(), watching);
        name
    }

    /// The watcher of a name.
    pub(super) fn find(&self, name: &str) -> Option<Rc<Watcher>> {
        let inner = self.0.borrow();
        inner
            .by_name
            .get(name)
            .map(|watching| watching.watcher.clone())
    }

    /// Removes the watcher of a name; false when there is none.
    pub(super) fn remove_by_name(&self, name: &str) -> bool {
        let removed = self.0.borrow_mut().by_name.remove(name);
        // Dropped here, where nothing is borrowed.
        removed.is_some()
    }

    /// When there are too many watchers, drops stored ones whose events were not fetched for long.
    fn drop_abandoned(&self) {
        const ABANDONED: std::time::Duration = std::time::Duration::from_secs(600);
        let mut inner = self.0.borrow_mut();
        if inner.watchers.len() < MAX_WATCHERS {
            return;
        }
        let old: Vec<Watching> = inner
            .by_name
            .extract_if(.., |_, watching| {
                watching.watcher.last_fetch.get().elapsed() > ABANDONED
            })
            .map(|(_, watching)| watching)
            .collect();
        drop(inner);
        drop(old);
    }

    fn remove(&self, id: u64) {
        let mut inner = self.0.borrow_mut();
        inner.watchers.remove(&id);
        inner.unsubscribe(|subscription| subscription.watcher == id);
        if inner.watchers.is_empty() {
            inner.inotify = None;
            inner.directories.clear();
        }
    }

    /// Creates the instance and the task that reads it, if they do not exist.
    fn start(self: &Rc<Self>) -> io::Result<()> {
        if self.0.borrow().inotify.is_some() {
            return Ok(());
        }
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let fd = Rc::new(ready::register(fd, Readiness::READABLE)?);
        let task = tokio::task::spawn_local(read_events(Rc::downgrade(self), fd.clone()));
        self.0.borrow_mut().inotify = Some(Instance {
            fd,
            task: task.abort_handle(),
        });
        Ok(())
    }
}

/// Reads events for as long as the instance exists.
async fn read_events(hub: Weak<Hub>, fd: Rc<AsyncFd<OwnedFd>>) {
    while let Ok(mut ready) = fd.readable().await {
        let Some(hub) = hub.upgrade() else { return };
        if ready.try_io(|fd| drain(&hub, fd.get_ref())).is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

/// Reads one buffer of events; an error when there are none.
fn drain(hub: &Hub, fd: &OwnedFd) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    loop {
        let event = reader.next()?;
        let name = event.file_name().map(|name| name.to_bytes().to_vec());
        let mut inner = hub.0.borrow_mut();
        inner.dispatch(event.wd(), event.events(), name);
        drop(inner);
        if reader.is_buffer_empty() {
            return Ok(());
        }
    }
}

impl Inner {
    fn dispatch(&mut self, wd: i32, flags: ReadFlags, name: Option<Vec<u8>>) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.watchers.values().for_each(|watcher| watcher.lose());
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.directories.remove(&wd);
            return;
        }
        let (Some(name), Some(event)) = (name, event_type(flags)) else {
            return;
        };
        let Some(directory) = self.directories.get_mut(&wd) else {
            return;
        };
        let was_reported = directory.seen.remove(&name);
        if was_reported && event == EventType::Create {
            return;
        }
        let path = directory.path.join(OsStr::from_bytes(&name));
        let subscriptions = directory.subscriptions.clone();
        let is_directory = flags.contains(ReadFlags::ISDIR);
        for subscription in subscriptions {
            let Some(watcher) = self.watchers.get(&subscription.watcher).cloned() else {
                continue;
            };
            let relative = join(&subscription.prefix, &String::from_utf8_lossy(&name));
            watcher.push(relative.clone(), event);
            if !is_directory || !watcher.interest.is_recursive {
                continue;
            }
            if event == EventType::Create {
                let added = self.add_tree(&watcher, &path, &relative, true);
                added.unwrap_or_else(|_| watcher.lose());
            } else if matches!(event, EventType::Rename | EventType::Remove) {
                self.unsubscribe(|other| {
                    other.watcher == watcher.id && is_within(&other.prefix, &relative)
                });
            }
        }
    }

    /// Watches a directory and, for a recursive watcher, all below; with `is_new`, existing content is reported.
    fn add_tree(
        &mut self,
        watcher: &Watcher,
        path: &Path,
        prefix: &str,
        is_new: bool,
    ) -> io::Result<()> {
        let mut waiting = vec![(path.to_owned(), prefix.to_owned())];
        while let Some((path, prefix)) = waiting.pop() {
            let is_root = prefix.is_empty();
            let wd = match self.add_directory(watcher.id, &path, &prefix) {
                Ok(wd) => wd,
                // Removed again, or no longer a directory.
                Err(error) if !is_root && is_absence(&error) => continue,
                Err(error) => return Err(error),
            };
            if !watcher.interest.is_recursive {
                continue;
            }
            for (name, is_directory) in names(&path) {
                let relative = join(&prefix, &String::from_utf8_lossy(&name));
                if is_directory {
                    waiting.push((path.join(OsStr::from_bytes(&name)), relative.clone()));
                }
                if is_new {
                    self.report_once(watcher, wd, name, relative);
                }
            }
        }
        Ok(())
    }

    fn report_once(&mut self, watcher: &Watcher, wd: i32, name: Vec<u8>, relative: String) {
        watcher.push(relative, EventType::Create);
        if let Some(directory) = self.directories.get_mut(&wd)
            && directory.seen.len() < MAX_SEEN
        {
            directory.seen.insert(name);
        }
    }

    fn add_directory(&mut self, watcher: u64, path: &Path, prefix: &str) -> io::Result<i32> {
        let Some(inotify) = &self.inotify else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if self.directories.len() >= MAX_DIRECTORIES {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE
            | WatchFlags::ONLYDIR;
        let wd = inotify::add_watch(inotify.fd.get_ref(), path, flags)?;
        let directory = self.directories.entry(wd).or_insert_with(|| Directory {
            path: path.to_owned(),
            subscriptions: Vec::new(),
            seen: HashSet::new(),
        });
        let subscription = Subscription {
            watcher,
            prefix: prefix.to_owned(),
        };
        if !directory.subscriptions.contains(&subscription) {
            directory.subscriptions.push(subscription);
        }
        Ok(wd)
    }

    /// Ends subscriptions, and watches that then have none.
    fn unsubscribe(&mut self, is_over: impl Fn(&Subscription) -> bool) {
        let Some(inotify) = &self.inotify else { return };
        self.directories.retain(|&wd, directory| {
            directory.subscriptions.retain(|other| !is_over(other));
            if directory.subscriptions.is_empty() {
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(inotify.fd.get_ref(), wd);
                return false;
            }
            true
        });
    }
}

fn event_type(flags: ReadFlags) -> Option<EventType> {
    [
        (ReadFlags::CREATE, EventType::Create),
        (ReadFlags::MOVED_TO, EventType::Create),
        (ReadFlags::MODIFY, EventType::Write),
        (ReadFlags::ATTRIB, EventType::Chmod),
        (ReadFlags::MOVED_FROM, EventType::Rename),
        (ReadFlags::DELETE, EventType::Remove),
    ]
    .into_iter()
    .find_map(|(flag, event)| flags.contains(flag).then_some(event))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)
    )
}

/// Names in a directory and which of them are directories; links are not.
fn names(path: &Path) -> Vec<(Vec<u8>, bool)> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let Ok(dir) = fs::open(path, flags) else {
        return Vec::new();
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&dir) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
        .map(|entry| {
            let is_directory = entry.file_type() == rustix::fs::FileType::Directory;
            (entry.file_name().to_bytes().to_vec(), is_directory)
        })
        .collect()
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    }
}

fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
